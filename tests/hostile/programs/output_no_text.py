# tries = "Bytes that are no text: invalid UTF-8, NULs, half characters, byte order marks."
# output = ["after"]
import os
import sys

sys.stdout.buffer.write(b"\xff\xfe\x00\x00\xc0\x80\xed\xa0\x80\xf8\x88" + bytes(range(256)) + b"\xf0\x9f")
sys.stdout.flush()
os.write(1, b"\xe2\x82")
os.write(2, bytes(reversed(range(256))))
print("after")
