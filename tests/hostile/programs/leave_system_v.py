# tries = "To leave shared memory, semaphores and queues of the System V kind: they outlive processes."
# output = ["tried"]
# absent = ["got"]
import ctypes
import os

libc = ctypes.CDLL(None, use_errno=True)
found = [libc.shmget(0x7E57, 4096, 0o1666), libc.semget(0x7E57, 1, 0o1666), libc.msgget(0x7E57, 0o1666)]
own = os.path.exists("/.none") or os.path.isdir("/lesson")  # namespaces of its own: it may
if not own and max(found) >= 0:
    print("got", found)
    libc.shmctl(found[0], 0, 0)
    libc.semctl(found[1], 0, 0)
    libc.msgctl(found[2], 0, 0)
print("tried")
# ---
# tries = "To find what the last run left there."
# output = ["tried"]
# absent = ["got"]
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
if max(libc.shmget(0x7E57, 0, 0), libc.semget(0x7E57, 0, 0), libc.msgget(0x7E57, 0)) >= 0:
    print("got")
print("tried")
