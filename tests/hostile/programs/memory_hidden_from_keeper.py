# tries = "To take memory where nobody can look: a process that makes itself unreadable."
# outcome = ["memory"]
# limits = {memory_bytes = 536_870_912}
import ctypes
import mmap
import time

ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)
held = mmap.mmap(-1, 1 << 30)
for start in range(0, len(held), 4096):
    held[start] = 1
time.sleep(1000)
