# tries = "To say on which cores the app, the keeper and a neighbour run."
# known = {landlock = "a filter of system calls cannot tell a thread of the program from another process"}
# output = ["tried"]
# absent = ["got"]
import json
import os
import sys

world = json.loads(sys.argv[1])
for who in (os.getppid(), world["host"], world["zygote"], world["neighbour"]):
    try:
        os.sched_setaffinity(who, os.sched_getaffinity(who))
        print("got", who)
    except (PermissionError, ProcessLookupError):
        continue
os.sched_setaffinity(0, os.sched_getaffinity(0))
print("tried")
