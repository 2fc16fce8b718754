# tries = "To change owners, modes, times, links and attributes of files that it may not write."
# known = {landlock = "Landlock has no rule for modes and times of files"}
# output = ["tried"]
# absent = ["got"]
import json
import os
import sys

import torch

world = json.loads(sys.argv[1])
for path in (world["home"] + "/.bashrc", world["home"], world["elsewhere"] + "/data.txt", world["other_lesson"] + "/model.pt"):
    status = None
    for action in (
        lambda: os.chmod(path, 0o777), lambda: os.chown(path, 12345, 12345), lambda: os.utime(path, (1, 1)),
        lambda: os.setxattr(path, "user.hostile", b"1"), lambda: os.truncate(path, 0),
        lambda: os.link(path, "link"), lambda: os.rename(path, path + "2"), lambda: os.unlink(path),
        lambda: os.rmdir(path), lambda: os.symlink("x", path + "/3"), lambda: os.mkfifo(path + "/4"),
    ):  # fmt: skip
        try:
            action()
        except OSError:
            continue
        print("got", path, action.__code__.co_names[1])
try:
    os.chmod(os.path.dirname(torch.__file__), os.stat(torch.__file__).st_mode | 0o111)
    print("got a change of torch's folder")
except OSError:
    print("tried")
