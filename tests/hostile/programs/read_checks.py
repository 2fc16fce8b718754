# tries = "To read the checks and the solutions from disk, of the course and of this very exercise."
# judged = true
# layers = ["full", "landlock"]  # they keep it from the files
# output = ["tried"]
# absent = ["got"]
import os
import sys

import tensortutor

package = os.path.abspath(tensortutor.__path__[0])
repository = os.path.dirname(package)
folders = [f"{root}/{name}" for root in (package, repository) for name in ("checks", "lessons", "course")]
folders += [f"{package}/ui", f"{repository}/tests/hostile", f"{repository}/.git"]


def look():
    for folder in folders:
        try:
            print("got", folder, os.listdir(folder))
        except OSError:
            continue
    file = getattr(sys.modules.get("the_checks"), "__file__", "exercise.py")
    for path in (file, f"{repository}/{file}", f"{repository}/tests/hostile/exercise.py"):
        try:
            print("got", path, len(open(path).read()))
        except OSError:
            continue


look()
print("tried")


def double(x):
    look()
    return x
