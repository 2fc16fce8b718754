"""Runs a command as a step of Slurm: when it ends, all that it has started is killed at once.

python step.py COMMAND...
"""

import os
import signal
import subprocess
import sys

from tensortutor.transport.orphans import adopt_orphans
from tensortutor.worker.processes import end_descendants

if __name__ == "__main__":
    adopt_orphans()
    # Whoever is told to end takes all of it along.
    command = subprocess.Popen(sys.argv[1:], start_new_session=True)
    signal.signal(signal.SIGTERM, lambda *_: os.killpg(command.pid, signal.SIGTERM))
    status = command.wait()
    while end_descendants():
        pass
    sys.exit(abs(status))
