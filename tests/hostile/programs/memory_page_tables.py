# tries = "To take memory for page tables alone: one page of each 2 MiB, read and never written."
# outcome = ["memory"]
# limits = {memory_bytes = 1_073_741_824}
import ctypes
import time

PROT_READ, MAP_PRIVATE, MAP_ANONYMOUS, MAP_NORESERVE = 1, 0x2, 0x20, 0x4000
MADV_NOHUGEPAGE = 15
LENGTH, TABLE = 700 << 30, 2 << 20
libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [
    ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_int, ctypes.c_int, ctypes.c_long,
]  # fmt: skip
libc.madvise.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int]
place = libc.mmap(None, LENGTH, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)
libc.madvise(place, LENGTH, MADV_NOHUGEPAGE)
pages = ctypes.cast(place, ctypes.POINTER(ctypes.c_char))
for offset in range(0, LENGTH, TABLE):
    pages[offset]
time.sleep(1000)
