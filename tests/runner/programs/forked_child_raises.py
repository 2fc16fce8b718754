# says = "A forked child that fails exits with 1, and the parent goes on."
# stderr = ["ValueError: in the child"]
import os

if (pid := os.fork()) == 0:
    raise ValueError("in the child")
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
