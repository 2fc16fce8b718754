# says = "An open file that nobody closed is flushed at the end."
# runs = 2
import os

if os.path.exists("log.txt"):
    with open("log.txt") as log:
        print(log.read())
file = open("log.txt", "w")  # noqa: SIM115
file.write("kept")
