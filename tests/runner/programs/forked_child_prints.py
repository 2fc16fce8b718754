# says = "A forked child prints, also what was buffered before the fork, and exits by itself."
import os
import sys

print("parent before", flush=True)
if (pid := os.fork()) == 0:
    print("child prints")
    sys.stdout.flush()
    os._exit(9)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
