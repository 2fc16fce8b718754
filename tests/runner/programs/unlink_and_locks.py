# says = "Locks, sockets and pipes in the working folder and in memory work."
import fcntl
import mmap
import socket
from multiprocessing import shared_memory

with open("lock", "w+b") as file:
    fcntl.flock(file, fcntl.LOCK_EX)
    file.truncate(4096)
    with mmap.mmap(file.fileno(), 4096) as area:
        area[:5] = b"hello"
    file.seek(0)
    print(file.read(5))
left, right = socket.socketpair()
left.send(b"x")
print(right.recv(1))
memory = shared_memory.SharedMemory(create=True, size=64)
memory.buf[0] = 7
print(memory.buf[0])
memory.close()
memory.unlink()
