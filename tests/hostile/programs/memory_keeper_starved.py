# tries = "To take memory after the keeper has been kept from opening /proc, by its limit on files."
# outcome = ["memory"]
# limits = {memory_bytes = 536_870_912}
import contextlib
import mmap
import os
import resource
import time

with contextlib.suppress(PermissionError):
    resource.prlimit(os.getppid(), resource.RLIMIT_NOFILE, (0, 0))
held = mmap.mmap(-1, 1 << 30)
for start in range(0, len(held), 4096):
    held[start] = 1
time.sleep(1000)
