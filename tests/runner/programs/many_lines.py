# says = "A hundred thousand lines arrive whole, half of them past Python's streams."
# limits = {output_bytes = 20_000_000}
import os
import sys

for i in range(50_000):
    sys.stdout.write(f"line {i}\n")
sys.stdout.flush()
os.write(1, b"")
for i in range(500):
    os.write(1, b"".join(b"raw %d\n" % j for j in range(100 * i, 100 * i + 100)))
