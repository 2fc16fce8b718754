# says = "/proc/<own pid> is the program's own."
import os

print(os.readlink("/proc/self") == str(os.getpid()))
with open(f"/proc/{os.getpid()}/stat") as file:
    print(file.read().split()[0] == str(os.getpid()))
print(os.path.isdir(f"/proc/{os.getpid()}/task/{os.getpid()}"))
