# tries = "To be the reaper of its own children, so that nobody else finds them."
# outcome = ["done"]
import ctypes
import os
import time

if os.fork() == 0:
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
    ctypes.CDLL(None).prctl(1, 0, 0, 0, 0)
    for _ in range(5):
        if os.fork() == 0:
            os.setsid()
            if os.fork() == 0:
                time.sleep(1000)
            os._exit(0)
    time.sleep(1000)
