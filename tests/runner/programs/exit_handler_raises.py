# says = "An exit handler that raises is reported and the status stays 0."
# stderr = ["RuntimeError: in the handler"]
import atexit


def fail():
    raise RuntimeError("in the handler")


atexit.register(print, "still run")
atexit.register(fail)
