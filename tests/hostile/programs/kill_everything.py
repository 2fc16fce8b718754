# tries = "To kill every process that it may, by number and all at once."
# outcome = ["done", "killed"]
# absent = ["reached the host"]
import json
import os
import signal
import sys

world = json.loads(sys.argv[1])
try:
    os.kill(world["host"], 0)
except OSError:
    for pid in range(2, 3000):
        try:
            if pid != os.getpid():
                os.kill(pid, signal.SIGKILL)
        except OSError:
            continue
    try:
        os.kill(-1, signal.SIGKILL)
    except OSError as error:
        print(error)
else:
    print("reached the host")
