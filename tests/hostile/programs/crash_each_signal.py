# tries = "To die of a signal that has no name."
# outcome = ["killed"]
# sentence = ["signal 40"]
import os

os.kill(os.getpid(), 40)
