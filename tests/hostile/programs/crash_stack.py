# tries = "To overflow the stack."
# outcome = ["killed", "raised"]  # Python 3.12 and 3.13 raise RecursionError in time
import sys

sys.setrecursionlimit(10**9)
nested = []
for _ in range(300_000):
    nested = [nested]
repr(nested)
