# tries = "To flood the host with events that are no output."
# outcome = ["time"]
# limits = {wall_s = 0.5, output_bytes = 100_000}
import json
import os
import socket
import struct

check = json.dumps({"event": "checkstarted", "check": "x" * 10_000}).encode()
raised = json.dumps(
    {"event": "raised", "type": "E", "message": "m", "frames": [], "text": "t" * 100_000}
).encode()
found = []
for number in range(3, 64):
    try:
        found.append(socket.socket(fileno=os.dup(number)))
    except OSError:
        continue
while True:
    for payload in (check, raised):
        for sock in found:
            sock.sendall(struct.pack(">I", len(payload)) + payload)
