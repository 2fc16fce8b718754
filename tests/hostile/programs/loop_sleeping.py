# tries = "To sleep for ever."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import time

while True:
    time.sleep(1000)
