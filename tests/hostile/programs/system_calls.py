# tries = "System calls that reach far: keys, tracing, io_uring, handles, other architectures' numbers."
# output = ["tried"]
# absent = ["got"]
import ctypes
import platform

libc = ctypes.CDLL(None, use_errno=True)
numbers = {
    "keyctl": (250, 219), "add_key": (248, 217), "bpf": (321, 280), "perf_event_open": (298, 241),
    "userfaultfd": (323, 282), "io_uring_setup": (425, 425), "open_by_handle_at": (304, 265),
    "kexec_load": (246, 104), "init_module": (175, 105), "finit_module": (313, 273),
    "quotactl": (179, 60), "swapon": (167, 224),
}  # fmt: skip
which = 0 if platform.machine() == "x86_64" else 1
for name, pair in numbers.items():
    ctypes.set_errno(0)
    answer = libc.syscall(pair[which], 0, 0, 0, 0, 0)
    if answer >= 0 or ctypes.get_errno() not in (1, 38):
        print("got", name, answer, ctypes.get_errno())
if which == 0 and libc.syscall(0x40000000 + 101, 0, 0, 0, 0) >= 0:
    print("got the calls of x32")
print("tried")
