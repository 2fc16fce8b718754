# tries = "To read other processes: their memory, their descriptors, their maps."
# output = ["tried"]
# absent = ["got"]
import json
import os
import sys

world = json.loads(sys.argv[1])
links = ("cwd", "root", "exe", "ns/net", "fd/0", "fd/1", "fd/3")
files = ("mem", "maps", "environ", "auxv", "stack", "syscall")
for pid in {world["neighbour"], world["zygote"], world["host"], os.getppid()}:
    for name in links:
        try:
            print("got", f"/proc/{pid}/{name}", os.readlink(f"/proc/{pid}/{name}"))
        except OSError:
            continue
    for name in files:
        try:
            with open(f"/proc/{pid}/{name}", "rb") as file:
                if name == "mem" or file.read(8):
                    print("got", f"/proc/{pid}/{name}")
        except OSError:
            continue
print("tried")
