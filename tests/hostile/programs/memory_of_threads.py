# tries = "To use up memory in another thread: the program itself goes on."
# outcome = ["done"]
# output = ["MemoryError", "goes on"]
# limits = {memory_bytes = 536_870_912}
import threading

thread = threading.Thread(target=lambda: bytearray(10**12))
thread.start()
thread.join()
print("goes on")
