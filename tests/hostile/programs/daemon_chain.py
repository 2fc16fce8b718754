# tries = "To outrun its end: each process forks the next one and ends."
# outcome = ["done"]
import os
import time

if os.fork() == 0:
    os.setsid()
    while True:
        if os.fork():
            os._exit(0)
        time.sleep(0.001)
