# tries = "To switch off the measuring of memory with many file names, then to take much in children."
# outcome = ["memory"]
# limits = {wall_s = 240, memory_bytes = 2_147_483_648, file_bytes = 1_073_741_824}
import os
import time

for number in range(50_000):
    open(f"{number}", "w").close()
for _ in range(4):
    if os.fork() == 0:
        kept = bytearray(600_000_000)
        time.sleep(1000)
time.sleep(1000)
