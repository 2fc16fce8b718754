# tries = "To take memory in a process whose program nobody may read, and in a file in memory."
# outcome = ["memory"]
# limits = {memory_bytes = 536_870_912, file_bytes = 2_147_483_648}
import os
import shutil
import sys
import time

held = """
import os, time
file = os.memfd_create("held")
for _ in range(20):
    os.write(file, bytes(50_000_000))
time.sleep(1000)
"""
python = os.path.abspath("python")
shutil.copy(os.path.realpath(sys.executable), python)
os.chmod(python, 0o111)
os.environ["PYTHONHOME"] = sys.base_prefix
os.spawnv(os.P_NOWAIT, python, [python, "-I", "-S", "-c", held])
time.sleep(1000)
