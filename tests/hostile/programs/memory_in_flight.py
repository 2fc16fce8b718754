# tries = "To take memory that no process has open: files that wait in a socket to be received."
# outcome = ["memory"]
# limits = {memory_bytes = 1_073_741_824, file_bytes = 67_108_864}
import os
import socket
import time

sender, _receiver = socket.socketpair()
block = bytes(32 << 20)
for _ in range(40):
    file = os.memfd_create("sent")
    os.write(file, block)
    socket.send_fds(sender, [b"x"], [file])
    os.close(file)
time.sleep(1000)
