# tries = "To make shared memory, semaphores and queues of the System V kind: they outlive processes, and no limit counts them."
# output = ["tried"]
# absent = ["got"]
import ctypes

libc = ctypes.CDLL(None, use_errno=True)
found = [libc.shmget(0x7E57, 4096, 0o1666), libc.semget(0x7E57, 1, 0o1666), libc.msgget(0x7E57, 0o1666)]
if max(found) >= 0:
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
# ---
# tries = "To hold memory that belongs to no process: segments that are filled and let go again."
# limits = {memory_bytes = 629_145_600}
# output = ["tried 0"]
import ctypes
import time

libc = ctypes.CDLL(None, use_errno=True)
libc.shmat.restype = ctypes.c_void_p
made = []
for _ in range(14):
    segment = libc.shmget(0, 100_000_000, 0o1666)
    if segment < 0:
        break
    address = libc.shmat(segment, None, 0)
    ctypes.memset(address, 1, 100_000_000)
    libc.shmdt(ctypes.c_void_p(address))
    made.append(segment)
    time.sleep(0.1)  # the keeper looks
for segment in made:
    libc.shmctl(segment, 0, 0)
print("tried", len(made))
