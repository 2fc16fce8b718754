# tries = "To leave a thread that the interpreter waits for."
# outcome = ["time"]
# limits = {wall_s = 1}
import threading

threading.Thread(target=threading.Event().wait).start()
