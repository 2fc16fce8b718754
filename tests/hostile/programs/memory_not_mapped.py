# tries = "To take memory that no process has mapped: a file in memory that is written, not mapped."
# outcome = ["memory"]
# limits = {memory_bytes = 1_073_741_824, file_bytes = 2_147_483_648}
import os
import time

file = os.memfd_create("held")
block = bytes(50_000_000)
for _ in range(26):
    os.write(file, block)
time.sleep(1000)
