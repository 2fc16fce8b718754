# tries = "To use up memory in another thread: the program itself goes on."
# outcome = ["done"]
# output = ["MemoryError", "goes on"]
# limits = {memory_bytes = 2_147_483_648}  # PyTorch with CUDA holds 0.8 GB before it begins
import threading

thread = threading.Thread(target=lambda: bytearray(10**12))
thread.start()
thread.join()
print("goes on")
