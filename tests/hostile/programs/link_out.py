# tries = "To leave links out of its folder for whoever follows them."
import json
import os
import sys

world = json.loads(sys.argv[1])
os.symlink(world["home"], "home")
os.symlink(world["home"] + "/.bashrc", "notes")
os.symlink("/", "root")
os.symlink(world["other_lesson"], ".inductor")
os.symlink("/proc/self/cwd/../../home", "up")
# ---
# tries = "To follow them in the next run."
# absent = ["got"]
# output = ["tried"]
import os

for path in ("home/.bashrc", "notes", "up/.bashrc", ".inductor/model.pt", "root/etc/shadow"):
    for mode in ("r", "a"):
        try:
            with open(path, mode) as file:
                print("got", path, mode)
        except OSError:
            continue
try:
    print("got", os.listdir("home"))
except OSError:
    print("tried")
