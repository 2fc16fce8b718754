# tries = "To reach the network: TCP and UDP, the machine's own services, names, metadata."
# output = ["tried"]
# absent = ["got"]
import json
import socket
import sys

world = json.loads(sys.argv[1])
socket.setdefaulttimeout(0.3)
targets = [("127.0.0.1", world["port"]), ("1.1.1.1", 53), ("169.254.169.254", 80), ("10.0.0.1", 22)]
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    for address in targets:
        try:
            sock = socket.socket(socket.AF_INET, kind)
            sock.connect(address)
            sock.send(b"hello")
            if kind == socket.SOCK_STREAM or sock.recv(10):
                print("got", kind, address)
        except OSError:
            continue
for action in (
    lambda: socket.getaddrinfo("example.com", 80), lambda: socket.gethostbyname("pypi.org"),
    lambda: socket.create_connection(("::1", world["port"])),
    lambda: socket.create_server(("0.0.0.0", world["port"])) and None or socket.create_connection(("8.8.8.8", 53)),
):  # fmt: skip
    try:
        print("got", action())
    except OSError:
        continue
print("tried")
