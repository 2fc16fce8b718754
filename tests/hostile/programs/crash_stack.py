# tries = "To overflow the stack."
# outcome = ["killed"]
# sentence = ["SIGSEGV"]
import sys

sys.setrecursionlimit(10**9)
nested = []
for _ in range(10**6):
    nested = [nested]
repr(nested)
