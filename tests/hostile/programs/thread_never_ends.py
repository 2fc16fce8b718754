# tries = "To leave a thread that the interpreter waits for."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import threading

threading.Thread(target=threading.Event().wait).start()
