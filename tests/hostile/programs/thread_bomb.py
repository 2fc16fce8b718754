# tries = "A thread bomb."
# outcome = ["processes", "raised", "memory"]
# limits = {wall_s = 10}
import threading

wait = threading.Event().wait
threading.stack_size(65536)
while True:
    threading.Thread(target=wait, daemon=True).start()
