"""What the app takes while nobody touches it: its screen, the zygote, each waiting process.

    python -m tests.bench.memory

Part of what tests.bench.latency reports. The app is started in a pseudo-terminal as a learner
starts it. PSS: the memory of a process, shared pages divided among those that share them, so that
the figures add up. Other programs that have loaded the same PyTorch share in it: none should run.
"""

import fcntl
import os
import pty
import select
import shutil
import signal
import struct
import sys
import tempfile
import termios
import time
from pathlib import Path

from tensortutor.worker.processes import children

SETTLED_S = 12.0
"""By then the zygote has imported the rest of PyTorch, and the processes wait."""
ROWS, COLUMNS = 40, 140
SANDBOX = os.path.realpath(shutil.which("bwrap") or "")


def pss_mib(pid: int) -> float:
    """The memory of a process. Raises OSError if there is none of this number."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (kib,) = (line.split()[1] for line in text.splitlines() if line.startswith("Pss:"))
    return int(kib) / 1024


def below(pid: int) -> list[int]:
    """All processes below one, parents first."""
    found = children(str(pid))
    for child in found:  # grows while it is walked
        found += children(child)
    return [int(child) for child in found]


def roles(app: int) -> dict[str, list[int]]:
    """Which process is what. Raises RuntimeError if the app has no zygote."""
    under = below(app)
    forked = [pid for pid in under if os.readlink(f"/proc/{pid}/exe") != SANDBOX]
    if not forked:
        raise RuntimeError("the app has not started PyTorch")
    zygote, *rest = forked
    waiting = [pid for pid in rest if not children(str(pid))]  # each below its keepers
    return {
        "UI": [app],
        "zygote": [zygote],
        "spare": waiting,
        "keepers": [pid for pid in rest if pid not in waiting],
        "bubblewrap": [pid for pid in under if pid not in forked],
    }


def idle_app() -> dict[str, list[float]]:
    """MiB of each process of an app that has been left alone on its first screen, by role."""
    with tempfile.TemporaryDirectory() as home:
        app, terminal = pty.fork()
        if app == 0:
            environment = {**os.environ, "TENSORTUTOR_HOME": home, "TERM": "xterm-256color"}
            arguments = ("-m", "tensortutor", "--device", "cpu")
            os.execve(sys.executable, (sys.executable, *arguments), environment)
        fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        try:
            end = time.monotonic() + SETTLED_S
            while (left := end - time.monotonic()) > 0:
                if select.select([terminal], [], [], left)[0]:
                    os.read(terminal, 65536)
            return {role: [pss_mib(pid) for pid in pids] for role, pids in roles(app).items()}
        finally:
            under = below(app)
            os.kill(app, signal.SIGKILL)
            os.waitpid(app, 0)
            os.close(terminal)
            while any(os.path.exists(f"/proc/{pid}") for pid in under):
                time.sleep(0.01)


def report(memory: dict[str, list[float]]) -> str:
    """One line."""
    total = sum(map(sum, memory.values()))
    parts = (f"{role} {' + '.join(f'{x:.0f}' for x in mib)}" for role, mib in memory.items() if mib)
    return f"idle app, PSS in MiB: {', '.join(parts)}; together {total:.0f}"


if __name__ == "__main__":
    print(report(idle_app()))
