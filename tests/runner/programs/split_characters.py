# says = "A character written byte by byte is one character."
import os
import sys

for byte in "é€𝄞".encode():
    sys.stdout.buffer.write(bytes([byte]))
    sys.stdout.flush()
for byte in "é€𝄞".encode():
    os.write(1, bytes([byte]))
