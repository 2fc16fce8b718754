# tries = "To change the machine: name, clock, limits, priorities, devices, kernel modules."
# output = ["tried"]
# absent = ["got"]
import ctypes
import os
import resource
import socket
import time

libc = ctypes.CDLL(None, use_errno=True)
host = socket.gethostname()


def raise_limit(which):
    soft, hard = resource.getrlimit(which)
    if hard == resource.RLIM_INFINITY:
        raise OSError("there is none")
    resource.setrlimit(which, (soft, hard + 1))


actions = {
    "name": lambda: socket.sethostname(host),
    "domain": lambda: libc.setdomainname(b"(none)", 6) and os.stat("/none"),
    "clock": lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "memory limit": lambda: raise_limit(resource.RLIMIT_DATA),
    "file limit": lambda: raise_limit(resource.RLIMIT_FSIZE),
    "processor limit": lambda: raise_limit(resource.RLIMIT_CPU),
    "priority": lambda: os.nice(-5),
    "real time": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "device": lambda: os.mknod("device", 0o600 | 0x2000, os.makedev(1, 1)),
    "memory of the machine": lambda: open("/dev/mem", "rb"),
    "messages": lambda: open("/dev/kmsg", "w"),
    "disk": lambda: open("/dev/vda", "rb"),
    "terminal": lambda: open("/dev/tty", "w"),
    "console": lambda: open("/dev/console", "w"),
    "kernel log": lambda: libc.klogctl(10, 0, 0) < 0 and os.stat("/none"),
    "processes": lambda: raise_limit(resource.RLIMIT_NPROC),
    "core pattern": lambda: open("/proc/sys/kernel/core_pattern", "w"),
    "control group": lambda: os.mkdir("/sys/fs/cgroup/hostile"),
}  # fmt: skip
for name, action in actions.items():
    try:
        answer = action()
    except (OSError, ValueError):
        continue
    print("got", name, answer)
print("tried")
