# tries = "To stop its own process with SIGSTOP, so that no signal but one reaches it."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import os
import signal

os.kill(os.getpid(), signal.SIGSTOP)
