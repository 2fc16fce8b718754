# tries = "A fork bomb, of 512 processes: one without end would harm the machine if it got away."
# outcome = ["processes"]
# limits = {wall_s = 60}
import os
import time

for _ in range(9):
    os.fork()
time.sleep(1000)
