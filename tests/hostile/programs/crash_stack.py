# tries = "To overflow the stack."
# outcome = ["killed"]
# sentence = ["SIGSEGV"]
import sys

sys.setrecursionlimit(10**9)
nested = []
for _ in range(300_000):
    nested = [nested]
repr(nested)
