# tries = "To change limits, priority and scheduling of the app, the keeper and a neighbour."
# output = ["tried"]
# absent = ["got"]
import json
import os
import resource
import sys

world = json.loads(sys.argv[1])
whom = {"keeper": os.getppid(), **{name: world[name] for name in ("host", "zygote", "neighbour")}}
tries = {
    "limits": lambda pid: resource.prlimit(pid, resource.RLIMIT_STACK, resource.getrlimit(resource.RLIMIT_STACK)),
    "priority": lambda pid: os.setpriority(os.PRIO_PROCESS, pid, 19),
    "scheduling": lambda pid: os.sched_setscheduler(pid, os.SCHED_BATCH, os.sched_param(0)),
    "parameters": lambda pid: os.sched_setparam(pid, os.sched_param(0)),
}
for who, pid in whom.items():
    for what, act in tries.items():
        try:
            act(pid)
            print("got", what, "of", who)
        except (PermissionError, ProcessLookupError):
            continue
try:
    os.setpriority(os.PRIO_USER, 0, 19)
    print("got the priority of all")
except PermissionError:
    print("tried")
os.nice(1)
os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
resource.setrlimit(resource.RLIMIT_CPU, (5, 5))
