# tries = "To leave the checks no room on the stack, and no memory."
# outcome = ["done", "memory", "raised", "exited", "killed"]
# limits = {memory_bytes = 536_870_912}
# judged = true
import sys

sys.setrecursionlimit(60)
kept = []
try:
    while True:
        kept.append(bytearray(1 << 20))
except MemoryError:
    pass


def double(x):
    return x
