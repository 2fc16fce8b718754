# tries = "To take memory with the buffers of sockets, which no process has mapped."
# outcome = ["raised"]
# output = ["Too many open files"]
import socket

kept = []
while True:
    kept += socket.socketpair()
