# tries = "To reach services of the machine through Unix sockets, abstract and in the file system."
# output = ["tried"]
# absent = ["got"]
import glob
import json
import socket
import sys

world = json.loads(sys.argv[1])
places = ["\0" + world["abstract"], world["socket"], "/run/docker.sock", "/var/run/docker.sock", "/run/dbus/system_bus_socket"]
for address in [*places, *glob.glob("/tmp/ssh-*/agent.*"), *glob.glob("/run/user/*/*"), *glob.glob("/tmp/.X11-unix/*")]:
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
        try:
            socket.socket(socket.AF_UNIX, kind).connect(address)
            print("got", repr(address))
        except OSError:
            continue
print("tried")
