# says = "Changes of the environment reach child processes."
import os
import subprocess

os.environ["LESSON"] = "7"
print(subprocess.run(["printenv", "LESSON"], capture_output=True, text=True).stdout)
print(os.environ.get("HOME") is not None, os.path.isabs(os.getcwd()))
