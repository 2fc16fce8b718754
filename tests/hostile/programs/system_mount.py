# tries = "To mount, to change its root, to make and to join namespaces."
# output = ["tried"]
# absent = ["got"]
import ctypes
import os
import subprocess

libc = ctypes.CDLL(None, use_errno=True)
os.makedirs("m", exist_ok=True)
calls = {
    "mount": lambda: libc.mount(b"tmpfs", b"m", b"tmpfs", 0, None),
    "bind": lambda: libc.mount(b"/", b"m", None, 4096, None),
    "remount": lambda: libc.mount(None, b"/", None, 32 | 4096, None),
    "umount": lambda: libc.umount2(b"/tmp", 2),
    "chroot": lambda: libc.chroot(b"m"),
    "pivot_root": lambda: libc.syscall(155, b"m", b"m"),
    "unshare": lambda: libc.unshare(0x10000000),
    "unshare files": lambda: libc.unshare(0x00020000),
    "fsopen": lambda: -1 if libc.syscall(430, b"tmpfs", 0) < 0 else 0,
    "open_tree": lambda: -1 if libc.syscall(428, -100, b"/", 1) < 0 else 0,
    "clone": lambda: libc.syscall(56, 0x10000000 | 17, 0, 0, 0, 0),
    "clone3": lambda: libc.syscall(435, (ctypes.c_uint64 * 11)(0x10000000, 0, 0, 0, 17), 88),
}
for name, call in calls.items():
    parent = os.getpid()
    answer = call()
    if os.getpid() != parent:
        os._exit(0)
    if answer >= 0:
        print("got", name)
for namespace in ("user", "mnt", "net", "pid"):
    for pid in (1, 2, os.getppid()):
        try:
            descriptor = os.open(f"/proc/{pid}/ns/{namespace}", os.O_RDONLY)
        except OSError:
            continue
        if libc.setns(descriptor, 0) == 0:
            print("got", namespace)
for command in ("unshare -Ur true", "bwrap --ro-bind / / true", "mount -t tmpfs x m", "nsenter -t 1 -m true"):
    if subprocess.run(command, shell=True, capture_output=True).returncode == 0:
        print("got", command)
print("tried")
