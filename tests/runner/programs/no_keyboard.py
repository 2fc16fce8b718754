# says = "input() finds the end of the file; the Runner says why."
# stderr = ["EOFError: EOF when reading a line", "A run has no keyboard"]
import sys

print(repr(sys.stdin.read()), sys.stdin.isatty())
name = input("name? ")
