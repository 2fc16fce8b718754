# says = "The program starts with nearly the whole recursion limit."
import sys


def depth(n):
    return n if n == 0 else 1 + depth(n - 1)


print(sys.getrecursionlimit(), depth(900))
try:
    depth(2000)
except RecursionError as error:
    print(str(error)[:32])  # what follows depends on the place, until Python 3.11
