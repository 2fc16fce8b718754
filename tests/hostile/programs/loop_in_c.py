# tries = "A call of C code that holds Python's lock and never looks for signals."
# outcome = ["stopped"]
# stop_at = "ready"
# patience_s = 1.0
import collections
import itertools
import subprocess

subprocess.Popen("sleep 0.2; echo ready", shell=True)
collections.deque(itertools.repeat(0), maxlen=0)
