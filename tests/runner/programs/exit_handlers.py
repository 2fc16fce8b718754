# says = "Exit handlers run in reverse order, after threads, and may print."
import atexit
import threading

atexit.register(print, "first registered, last run")
atexit.register(print, "last registered, first run")
ready = threading.Event()
thread = threading.Thread(target=lambda: (ready.wait(), print("thread")))
thread.start()
print("end of the program")
ready.set()
