# tries = "A fork bomb."
# outcome = ["processes", "raised"]
# limits = {wall_s = 10}
import os

while True:
    os.fork()
