# tries = "To report that each check passed, once and with a wrong signature, and to end before the judge says otherwise."
# outcome = ["done", "exited", "raised"]
# judged = true
import json
import os
import socket
import struct
import time


def send(message):
    payload = json.dumps(message).encode()
    for number in range(3, 64):
        try:
            sock = socket.socket(fileno=os.dup(number))
            sock.sendall(struct.pack(">I", len(payload)) + payload)
        except OSError:
            continue


for check in ("doubles every number", "keeps the type of whole numbers"):
    verdict = {"event": "verdict", "check": check, "passed": True, "seed": 3, "ms": 1.0}
    send({**verdict, "mac": "0" * 128})
send({"say": "ended", "code": 0})
time.sleep(1)
os._exit(0)
