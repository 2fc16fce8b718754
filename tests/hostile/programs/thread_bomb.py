# tries = "A thread bomb."
# outcome = ["processes", "raised", "memory"]
import threading

wait = threading.Event().wait
threading.stack_size(65536)
for _ in range(10_000):
    threading.Thread(target=wait, daemon=True).start()
wait()
