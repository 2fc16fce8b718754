# tries = "One endless line, past Python's streams, on both descriptors."
# outcome = ["time"]
# limits = {wall_s = 0.5, output_bytes = 100_000}
import os

while True:
    os.write(1, b"x" * 4096)
    os.write(2, b"y" * 4096)
