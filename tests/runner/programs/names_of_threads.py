# says = "A thread can be named by another one, as GPUs' drivers do."
# layers = ["full"]
import subprocess
import sys
import threading

NAME = """
import threading
over = threading.Event()
thread = threading.Thread(target=over.wait)
thread.start()
comm = f"/proc/self/task/{thread.native_id}/comm"
with open(comm, "w") as file:
    file.write("named")
print(open(comm).read().strip())
over.set()
"""
exec(NAME)
subprocess.run([sys.executable, "-c", NAME])
