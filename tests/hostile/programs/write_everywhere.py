# tries = "To write at home, in the package, in the interpreter, in the system and in shared folders."
# output = ["tried"]
# absent = ["got"]
import json
import os
import site
import sys
import tempfile

import torch

world = json.loads(sys.argv[1])
folders = [
    world["home"], world["home"] + "/.ssh", world["elsewhere"], world["checkout"], world["scratch"],
    world["checkout"] + "/tensortutor", os.path.dirname(torch.__file__), os.path.dirname(os.__file__),
    *site.getsitepackages(), os.path.dirname(sys.executable), sys.prefix, "/", "/usr/lib", "/etc",
    "/var/tmp", "/opt", "/run", "/sys/fs/cgroup", "/proc/sys/kernel", "/proc/1", "/dev",
]  # fmt: skip
# Below /tmp a run in namespaces writes into memory of its own; the world outside is looked at too.
own = os.path.exists("/lesson")  # only there has a run namespaces of its own
for folder in folders:
    if own and folder.startswith("/tmp/"):
        continue
    path = os.path.join(folder, world["token"])
    try:
        with open(path, "w") as file:
            file.write("left")
    except OSError:
        continue
    print("got", path, os.path.exists(path))
for path in (world["home"] + "/.bashrc", world["elsewhere"] + "/data.txt", torch.__file__, "/etc/passwd",
             "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/power/state"):  # fmt: skip
    for mode in ("a", "r+"):
        try:
            with open(path, mode):
                print("got", path, mode)
        except OSError:
            continue
print("tried")
