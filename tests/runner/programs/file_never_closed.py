# says = "An open file that nobody closed is flushed at the end."
# runs = 2
import os

if os.path.exists("log.txt"):
    print(open("log.txt").read())
file = open("log.txt", "w")
file.write("kept")
