# tries = "More processes than allowed, which do nothing."
# outcome = ["processes"]
# sentence = ["more than 20 processes"]
# limits = {processes = 20}
import os
import time

for _ in range(40):
    if os.fork() == 0:
        time.sleep(1000)
time.sleep(1000)
