# tries = "To reach services of the machine, as an ssh-agent, through Unix sockets in the file system."
# known = {landlock = "Landlock rules on path sockets only in kernels to come"}
# output = ["tried"]
# absent = ["got"]
import json
import socket
import sys

world = json.loads(sys.argv[1])
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET):
    try:
        socket.socket(socket.AF_UNIX, kind).connect(world["socket"])
        print("got", kind)
    except OSError:
        continue
print("tried")
