# tries = "To read other processes: their memory, their descriptors, their maps."
# output = ["tried"]
# absent = ["got"]
import json
import os
import sys

world = json.loads(sys.argv[1])
others = {world["host"], world["zygote"], os.getppid(), *(int(n) for n in os.listdir("/proc") if n.isdigit())}
own = {int(os.readlink("/proc/self")), os.getpid()}
for pid in sorted(others - own):
    for name in ("mem", "maps", "environ", "fd", "cwd", "root", "exe", "ns/net", "auxv", "stack", "syscall"):
        path = f"/proc/{pid}/{name}"
        try:
            if name == "fd":
                print("got", path, os.listdir(path))
            elif name in ("cwd", "root", "exe", "ns/net"):
                print("got", path, os.readlink(path))
            else:
                with open(path, "rb") as file:
                    if name == "mem" or file.read(8):
                        print("got", path)
        except OSError:
            continue
print("tried")
