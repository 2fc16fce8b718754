# tries = "To close all descriptors, and then to go on."
# outcome = ["done", "exited"]
import os

os.closerange(0, 4096)
print("nobody hears this")
