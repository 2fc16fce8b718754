# tries = "To take more memory than allowed, shared out among children."
# outcome = ["memory"]
# sentence = ["its processes together took more than 2 GiB"]
# limits = {memory_bytes = 2_147_483_648}  # PyTorch with CUDA holds 0.8 GB before it begins
import os
import time

for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(600_000_000)
        time.sleep(1000)
time.sleep(1000)
