# tries = "To begin a frame and never to end it."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import os
import socket
import struct
import time

for number in range(3, 64):
    try:
        socket.socket(fileno=os.dup(number)).sendall(struct.pack(">I", 1000) + b"{")
    except OSError:
        continue
time.sleep(1000)
