# tries = "To kill the process that all programs are forked from, and all that it can see."
# outcome = ["done", "killed"]
# absent = ["reached"]
import json
import os
import signal
import sys

world = json.loads(sys.argv[1])
targets = {world["zygote"], world["host"], *map(int, filter(str.isdigit, os.listdir("/proc")))}
for pid in sorted(targets - {os.getpid(), os.getppid(), 1}):
    try:
        os.kill(pid, 0)
    except OSError:
        continue
    print("reached", pid, flush=True)
