# tries = "To fork without end and to ignore that it is refused; here for half a minute at most."
# outcome = ["processes"]
# sentence = ["more than 20 processes"]
# limits = {processes = 20}
import os
import time

end = time.monotonic() + 30
while time.monotonic() < end:
    try:
        os.fork()
    except OSError:
        continue
