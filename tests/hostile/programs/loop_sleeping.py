# tries = "To sleep for ever."
# outcome = ["time"]
# limits = {wall_s = 1}
import time

while True:
    time.sleep(1000)
