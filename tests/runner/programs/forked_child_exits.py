# says = "A forked child that ends like a program runs exit handlers and is no second program."
import atexit
import os
import sys

atexit.register(lambda: print("handler", flush=True))
if (pid := os.fork()) == 0:
    print("child", flush=True)
    sys.exit(6)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
