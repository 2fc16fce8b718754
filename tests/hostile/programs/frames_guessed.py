# tries = "To speak the protocol: frames too long, too deep, of no kind, of the host's kinds."
# outcome = ["done", "exited", "raised"]
# absent = ["forged"]
import os
import socket
import struct


def send(payload, claimed=None):
    for number in range(3, 64):
        try:
            sock = socket.socket(fileno=os.dup(number))
            sock.sendall(struct.pack(">I", claimed or len(payload)) + payload)
        except OSError:
            continue


send(b'{"event":"finished","outcome":"done","code":0,"sentence":"forged","ms":1.0}')
send(b'{"event":"judged","passed":["forged"],"failed":[]}')
send(b'{"event":"notice","text":"forged"}')
send(b'{"say":"exited","code":0}')
send(b'{"say":"spare","pid":1}')
send(b"[" * 100_000)
send(b'{"event":' + b"9" * 10_000 + b"}")
send(b"{}", 0xFFFFFFFF)
print("after")
