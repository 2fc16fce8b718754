# tries = "To take memory with what waits in sockets, which no process has mapped."
# outcome = ["memory"]
# limits = {memory_bytes = 629_145_600}
import os
import socket
import time

for _ in range(3):
    os.fork()
kept = []
for _ in range(450):
    near, far = socket.socketpair()
    near.setblocking(False)
    near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
    kept += near, far
    try:
        while True:
            near.send(bytes(30_000))
    except BlockingIOError:
        continue
time.sleep(1000)
