# tries = "To kill its process group."
# outcome = ["killed"]
# sentence = ["signal 9 (SIGKILL)"]
import os
import signal

os.kill(0, signal.SIGKILL)
