# tries = "To hang when the program is over."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import atexit
import time

atexit.register(time.sleep, 1000)
