# tries = "To kill the process that watches it."
# outcome = ["done"]
# output = ["still watched"]
# absent = ["reached"]
import json
import os
import signal
import sys
import time

world = json.loads(sys.argv[1])
for pid in (os.getppid(), world["host"]):
    for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGUSR1):
        try:
            if pid == world["host"]:
                os.kill(pid, 0)
                print("reached the host")
                break
            os.kill(pid, number)
        except OSError:
            continue
time.sleep(0.2)
print("still watched", os.getppid() != 1 or os.getpid() == 2)
