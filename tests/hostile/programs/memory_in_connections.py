# tries = "To take memory with what waits in connections to itself, which no process has mapped."
# outcome = ["memory"]
# layers = ["full"]
# limits = {memory_bytes = 629_145_600}
import os
import socket
import time

for _ in range(3):
    os.fork()
server = socket.create_server(("127.0.0.1", 0), backlog=450)
kept = []
for _ in range(450):
    near = socket.socket()
    near.connect(server.getsockname())
    far, _address = server.accept()
    near.setblocking(False)
    kept += near, far
    try:
        while True:
            near.send(bytes(30_000))
    except BlockingIOError:
        continue
time.sleep(1000)
