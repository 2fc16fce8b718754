"""kill -9, again and again, of everything that a run and the app consist of.

    python -m tests.soak.faults [ROUNDS]

In each round one process is killed at a random moment: the program, its keeper, the zygote,
bubblewrap (through a Runner in this process), or the whole app (in a pseudo-terminal).
Afterwards a run under way must have ended within PATIENCE_S with one Finished, the next run must
work, no process may be left, and what was typed and saved must still be there.
"""

import fcntl
import os
import pty
import random
import select
import signal
import sqlite3
import struct
import sys
import tempfile
import termios
import threading
import time
from collections import Counter
from pathlib import Path

from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tensortutor.worker.processes import children

ROUNDS = 200
PATIENCE_S = 2.0
LONGEST_S = 60.0
TINY = Path(__file__).resolve().parents[1] / "course" / "data" / "tiny"
PROGRAM = "import time\nfor i in range(40):\n    print(i, flush=True)\n    time.sleep(0.01)\n"


class Failure(Exception):
    """What the soak found."""


def below(pid: int) -> list[int]:
    """All processes below one, parents first."""
    found = children(str(pid))
    for child in found:  # grows while it is walked
        found += children(child)
    return [int(child) for child in found]


def is_there(pid: int) -> bool:
    """The process exists and is no zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return stat.rpartition(")")[2].split()[0] not in ("Z", "X")


def await_gone(pids: list[int], what: str) -> None:
    """Raises Failure if one of them is still there after PATIENCE_S."""
    end = time.monotonic() + PATIENCE_S
    while left := [pid for pid in pids if is_there(pid)]:
        if time.monotonic() > end:
            raise Failure(f"left behind after {what}: {left}")
        time.sleep(0.01)


def runner_round(runner: Runner, rng: random.Random) -> str:
    """Kill something of a run under way; then run again."""
    runner.prepare()
    assert runner._zygote is not None
    assert runner._zygote._process is not None
    root = runner._zygote._process.pid
    events: list[object] = []
    ended: list[float] = []

    def consume() -> None:
        events.extend(runner.start(Job(PROGRAM)))
        ended.append(time.monotonic())

    thread = threading.Thread(target=consume)
    thread.start()
    time.sleep(rng.uniform(0.0, 0.5))
    before = [root, *below(root)]
    victim = rng.choice(before)
    killed = time.monotonic()
    try:
        os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        victim = 0
    thread.join(LONGEST_S)
    finished = [event for event in events if isinstance(event, Finished)]
    if thread.is_alive() or len(finished) != 1:
        raise Failure(f"the run did not end (events: {events[-3:]})")
    waited = ended[0] - killed
    lost = finished[0].outcome in ("lost", "killed")
    if lost and waited > PATIENCE_S:
        raise Failure(f"the run hung for {waited:.1f} s: {finished[0].sentence}")
    again = "".join(e.text for e in runner.start(Job("print('again')")) if isinstance(e, Output))
    if again != "again\n":
        raise Failure(f"the next run said {again!r}")
    await_gone([pid for pid in before if pid not in living(runner)], "a kill in the runner")
    return f"killed {before.index(victim) if victim else '-'}: {finished[0].outcome}"


def living(runner: Runner) -> list[int]:
    """The processes of the present zygote."""
    zygote = runner._zygote
    if zygote is None or zygote._process is None:
        return []
    return [zygote._process.pid, *below(zygote._process.pid)]


class App:
    """The app in a pseudo-terminal."""

    def __init__(self, home: Path) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TENSORTUTOR_HOME=str(home), TERM="xterm-256color")
            arguments = ("-m", "tensortutor", "--course", str(TINY), "--device", "cpu")
            os.execv(sys.executable, (sys.executable, *arguments))
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._terminal, text.encode())

    def read(self, seconds: float) -> bytes:
        """What it draws in so many seconds (it must be read, or it would block)."""
        drawn, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            if select.select([self._terminal], [], [], left)[0]:
                try:
                    drawn += os.read(self._terminal, 65536)
                except OSError:
                    break
        return drawn

    def kill(self) -> list[int]:
        """kill -9; returns the processes that were below it."""
        under = below(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return under


def app_round(home: Path, rng: random.Random, typed: int) -> int:
    """Open the app, type a line of comment, kill it. Returns how many lines are typed by now."""
    app = App(home)
    app.read(2.5)
    app.send("\r")  # continue
    app.read(1.0)
    app.send("\x1b[15~")  # run
    app.read(rng.uniform(0.0, 2.0))
    await_gone(app.kill(), "a kill of the app")
    with sqlite3.connect(home / "progress.db") as database:
        (state,) = database.execute("PRAGMA integrity_check").fetchone()
    if state != "ok":
        raise Failure(f"the progress file is damaged: {state}")
    for file in home.glob("work/**/*.py"):
        if not file.read_text().strip():
            raise Failure(f"{file} is empty")
    return typed + 1


def main(rounds: int) -> None:
    """Soak, and report."""
    seed = random.randrange(10**6)
    print(f"seed {seed}, {rounds} rounds")
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        with Runner(Settings(scratch=Path(folder) / "scratch", device="cpu")) as runner:
            for number in range(rounds * 3 // 4):
                seen[runner_round(runner, rng)] += 1
                print(f"\r{number + 1}", end="", flush=True)
        for number in range(rounds - rounds * 3 // 4):
            app_round(Path(folder) / "home", rng, number)
            seen["killed the app"] += 1
            print(f"\rapp {number + 1}", end="", flush=True)
    print()
    for what, count in sorted(seen.items()):
        print(f"{count:4} {what}")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
