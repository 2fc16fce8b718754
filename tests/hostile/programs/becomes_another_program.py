# tries = "To become another program, which never ends."
# outcome = ["time"]
# limits = {wall_s = 1}
import os

os.execv("/bin/sleep", ["sleep", "1000"])
