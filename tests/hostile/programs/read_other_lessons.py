# tries = "To read and to write the files of other lessons."
# output = ["tried"]
# absent = ["got"]
import json
import os
import sys

world = json.loads(sys.argv[1])
for folder in (world["other_lesson"], "../other.lesson", world["scratch"] + "/other.lesson/."):
    for action in (
        lambda: open(folder + "/model.pt").read(), lambda: open(folder + "/new", "w"),
        lambda: os.listdir(folder), lambda: os.remove(folder + "/model.pt"),
        lambda: os.rename(folder + "/model.pt", "model.pt"), lambda: os.link(folder + "/model.pt", "model.pt"),
        lambda: os.truncate(folder + "/model.pt", 0), lambda: os.mkdir(folder + "/folder"),
    ):  # fmt: skip
        try:
            print("got", folder, action())
        except OSError:
            continue
try:
    os.mkdir("../hostile.mine")
    print("got a folder beside its own", os.getcwd())
except OSError:
    print("tried")
