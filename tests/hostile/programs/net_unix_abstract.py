# tries = "To reach services of the machine through abstract Unix sockets."
# output = ["tried"]
# absent = ["got"]
import json
import socket
import sys

world = json.loads(sys.argv[1])
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    try:
        socket.socket(socket.AF_UNIX, kind).connect("\0" + world["abstract"])
        print("got", kind)
    except OSError:
        continue
print("tried")
