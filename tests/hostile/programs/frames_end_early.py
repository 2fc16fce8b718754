# tries = "To say that it has ended, and to go on."
# outcome = ["done", "exited", "raised", "time"]
# limits = {wall_s = 2}
import os
import socket
import struct
import time

payload = b'{"say":"ended","code":0}'
for number in range(3, 64):
    try:
        socket.socket(fileno=os.dup(number)).sendall(struct.pack(">I", len(payload)) + payload)
    except OSError:
        continue
while True:
    time.sleep(1000)
