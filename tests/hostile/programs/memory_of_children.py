# tries = "To take more memory than allowed, shared out among children."
# outcome = ["memory"]
# sentence = ["its processes together took more than 1 GiB"]
# limits = {memory_bytes = 1_073_741_824}
import os
import time

for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(600_000_000)
        time.sleep(1000)
time.sleep(1000)
