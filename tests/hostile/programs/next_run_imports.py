# tries = "To leave modules for the next run: torch, numpy, site customisation, path files."
import os

EVIL = "print('got the next run')\nraise SystemExit\n"
for name in (
    "torch.py", "numpy.py", "sitecustomize.py", "usercustomize.py", "json.py", "tensortutor.py",
    "random.py", "the_checks.py", "lesson.pth", "conftest.py", ".pythonrc.py", "__init__.py", "__main__.py",
):  # fmt: skip
    with open(name, "w") as file:
        file.write(EVIL if not name.endswith(".pth") else "import os; print('got')\n")
os.makedirs(".local/lib/python3/site-packages")
with open("pyvenv.cfg", "w") as file:
    file.write("home = /nowhere\n")
# ---
# tries = "To be taken in by them: in the program, in spawned workers, in a judged run."
# limits = {wall_s = 60}
# absent = ["got"]
# output = ["4.0", "spawned"]
# judged = true
import json
import random
import statistics

import torch
import torch.multiprocessing


def double(x):
    return x


if __name__ == "__main__":
    import sqlite3

    context = torch.multiprocessing.get_context("spawn")
    child = context.Process(target=print, args=("spawned",))
    child.start()
    child.join()
    print(torch.ones(4).sum().item(), json.dumps(1), random.random() < 1, statistics.mean([1]), sqlite3.version_info)
