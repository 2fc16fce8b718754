# tries = "To end a check by KeyboardInterrupt and by SIGINT."
# outcome = ["done", "stopped"]
# judged = true
import os
import signal


def double(x):
    os.kill(os.getpid(), signal.SIGINT)
    raise KeyboardInterrupt
