# says = "os._exit leaves without clean-up: what is buffered is lost, handlers do not run."
import atexit
import os

atexit.register(print, "never")
print("flushed", flush=True)
os._exit(5)
