# tries = "To take more memory than allowed, shared out among children."
# outcome = ["memory"]
# sentence = ["a run may use 0.5 GiB"]
# limits = {memory_bytes = 536_870_912, wall_s = 10}
import os
import time

for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(300_000_000)
        time.sleep(1000)
time.sleep(1000)
