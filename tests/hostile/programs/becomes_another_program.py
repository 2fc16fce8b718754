# tries = "To become another program, which never ends."
# outcome = ["time"]
# limits = {wall_s = 0.5}
import os

os.execv("/bin/sleep", ["sleep", "1000"])
