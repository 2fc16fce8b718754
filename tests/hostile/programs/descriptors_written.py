# tries = "To write rubbish to every descriptor that it holds."
# outcome = ["done", "exited", "raised"]
import os

for number in range(64):
    try:
        os.write(number, os.urandom(4000))
        os.write(number, bytes(4000))
    except OSError:
        continue
