# tries = "To attach to other processes, and to read their memory by system calls."
# output = ["tried"]
# absent = ["got"]
import ctypes
import json
import os
import sys

world = json.loads(sys.argv[1])
libc = ctypes.CDLL(None, use_errno=True)
buffer = ctypes.create_string_buffer(16)
vector = (ctypes.c_size_t * 2)(ctypes.addressof(buffer), 16)
for pid in (os.getppid(), world["zygote"], world["neighbour"]):
    if libc.ptrace(16, pid, 0, 0) == 0 or libc.ptrace(0x4206, pid, 0, 0) == 0:
        print("got", pid)
    if libc.process_vm_readv(pid, vector, 1, vector, 1, 0) > 0:
        print("got the memory of", pid)
    descriptor = libc.syscall(434, pid, 0)
    if descriptor >= 0 and libc.syscall(438, descriptor, 0, 0) >= 0:
        print("got a descriptor of", pid)
print("tried")
