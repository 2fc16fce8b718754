# tries = "To read from every descriptor and to shut its sockets."
# outcome = ["done", "exited", "raised"]
import os
import socket

for number in range(64):
    try:
        os.set_blocking(number, False)
        print(number, os.read(number, 4000))
    except OSError:
        continue
for number in range(3, 64):
    try:
        socket.socket(fileno=number).shutdown(socket.SHUT_RDWR)
    except OSError:
        continue
