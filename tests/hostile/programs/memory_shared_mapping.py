# tries = "To take memory that is shared: RLIMIT_DATA does not count it."
# outcome = ["memory"]
# limits = {memory_bytes = 536_870_912}
import mmap
import time

area = mmap.mmap(-1, 1_200_000_000)
for start in range(0, len(area), 4096):
    area[start] = 1
time.sleep(1000)
