# says = "A program's own sys.excepthook is called."
import sys

sys.excepthook = lambda kind, error, trace: print("hook", kind.__name__, error)
raise ValueError("x")
