# tries = "Sockets of other kinds: raw, packet, netlink that changes things, of virtual machines, of the kernel."
# output = ["tried"]
# absent = ["got"]
import socket

families = ("AF_PACKET", "AF_VSOCK", "AF_ALG", "AF_BLUETOOTH", "AF_CAN", "AF_TIPC", "AF_RDS", "AF_QIPCRTR", "AF_KEY")
for name in families:
    family = getattr(socket, name, None)
    for kind in (socket.SOCK_RAW, socket.SOCK_DGRAM, socket.SOCK_STREAM, socket.SOCK_SEQPACKET):
        try:
            if family is not None:
                socket.socket(family, kind)
                print("got", name, kind)
        except OSError:
            continue
for family in (socket.AF_INET, socket.AF_INET6):
    try:
        socket.socket(family, socket.SOCK_RAW, 1)
        print("got raw", family)
    except OSError:
        continue
print("tried")
