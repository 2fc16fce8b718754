# says = "Writing to descriptor 1 and to /dev/stdout is printing."
import os
import sys

os.write(1, b"by descriptor\n")
with open(1, "w", closefd=False) as file:
    file.write("by a second file\n")
# Not sys.stdout.errors: plain Python takes it from the locale of the test.
print(sys.stdout.fileno(), sys.stdout.isatty(), sys.stdout.encoding)
