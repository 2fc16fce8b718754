"""kill -9, again and again, of everything that a run and the app consist of.

    nice -n 5 python -m tests.soak.faults [ROUNDS]

In each round one process is killed at a random moment: the program, its keeper, the zygote or
bubblewrap, in a run of a Runner (half of the rounds, in each layer that there is) or below the
app, or the app itself, while somebody types in it (in a pseudo-terminal). Afterwards a run under
way must have ended within PATIENCE_S with one Finished, the next run must work, an app that was
not killed must answer a key within PATIENCE_S, no process may be left, no progress may be gone,
and every letter must be in the learner's file that was typed SAVED_WITHIN_S before the end.
"""

import contextlib
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
from collections.abc import Callable, Container
from pathlib import Path

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, RunnerError, Settings
from tensortutor.runner.sandbox import choose_layer
from tensortutor.ui.lesson.code_file import SAVE_WITHIN_S
from tensortutor.worker.processes import children

ROUNDS = 200
PATIENCE_S = 2.0
LONGEST_S = 60.0
TINY = Path(__file__).resolve().parents[1] / "course" / "data" / "tiny"
LESSON_TITLE = "Means of rows"
EXERCISE = "means.py"
EXERCISE_STEP = 3
SOLUTION = "def centre(x):\n    return x - x.mean(dim=1, keepdim=True)\n\n\n"
SAVED_WITHIN_S = SAVE_WITHIN_S + PATIENCE_S
"""What the app promises, and as long as it may hang."""
OPEN_S = 30.0
RUN, CHECK = "\x1b[15~", "\x1b[20~"  # F5, F9
PAGE_DOWN, END = "\x1b[6~", "\x1b[F"
RECORDS = {
    "passed": "SELECT id, passed_at FROM lesson WHERE passed_at IS NOT NULL",
    "steps": "SELECT lesson, step FROM step",
    "attempts": "SELECT * FROM attempt",
    "answers": "SELECT * FROM answer",
    "place": "SELECT * FROM place",
}
WORKER = "/tensortutor/worker/__main__.py"
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


def await_gone(
    pids: list[int],
    what: str,
    kept: Callable[[], Container[int]] = tuple,
    patience_s: float = PATIENCE_S,
) -> None:
    """Raises Failure if one of them is still there after patience_s.

    kept: those that may be. Asked again each time: while processes begin and end, the kernel's
    list of a process's children can lack one.
    """
    end = time.monotonic() + patience_s
    while left := [pid for pid in pids if is_there(pid) and pid not in kept()]:
        if time.monotonic() > end:
            raise Failure(f"left behind after {what}: {[words(pid) for pid in left]}")
        time.sleep(0.01)


def words(pid: int) -> str:
    """What a process is."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return f"{pid} (gone by now)"
    return f"{pid} {stat.rpartition(')')[2].split()[:2]} {command_of(pid)[-200:]}"


def runner_round(
    runner: Runner,
    rng: random.Random,
    *,
    processes: Callable[[Runner], list[int]] | None = None,
    latest_s: float = 0.5,
    patience_s: float = PATIENCE_S,
) -> str:
    """Kill something of a run under way; then run again. Returns what was killed and how it ended.

    processes: all that a Runner has now, those below its zygote's if not given. latest_s: seconds
    after the start at which something is killed at the latest.
    """
    found = processes or living
    events: list[object] = []
    ended: list[float] = []

    def consume() -> None:
        events.extend(runner.start(Job(PROGRAM)))
        ended.append(time.monotonic())

    thread = threading.Thread(target=consume)
    thread.start()
    time.sleep(rng.uniform(0.0, latest_s))
    root, before = root_of(runner), found(runner)
    victim = rng.choice(before) if before else 0
    role = role_of(victim)
    killed = time.monotonic()
    try:
        if victim:
            os.kill(victim, signal.SIGKILL)
    except ProcessLookupError:
        role = ""
    thread.join(LONGEST_S)
    finished = [event for event in events if isinstance(event, Finished)]
    if thread.is_alive() or len(finished) != 1:
        raise Failure(f"killed {role}: the run did not end (events: {events[-3:]})")
    waited = ended[0] - killed
    lost = finished[0].outcome in ("lost", "killed")
    if lost and waited > patience_s:
        raise Failure(f"killed {role}: the run hung for {waited:.1f} s: {finished[0].sentence}")
    told = list(runner.start(Job("print('again')")))
    again = "".join(event.text for event in told if isinstance(event, Output))
    if again != "again\n":
        raise Failure(f"killed {role}, {finished[0].outcome}; then: {told[-2:]}")
    await_gone(
        before, f"a kill of {role}", lambda: found(runner) if root_of(runner) == root else (),
        patience_s,
    )  # fmt: skip
    return f"killed {role or '-'}: {finished[0].outcome}"


def root_of(runner: Runner) -> int:
    """The process of the present zygote, 0 if there is none."""
    zygote = runner._zygote
    return 0 if zygote is None or zygote._process is None else zygote._process.pid


def living(runner: Runner) -> list[int]:
    """The processes of the present zygote."""
    root = root_of(runner)
    return [root, *below(root)] if root else []


def role_of(pid: int) -> str:
    """What a process of a runner is there for, "" if it is none."""
    command = command_of(pid)
    if WORKER not in command:
        near = "the near end" if "/transport/__main__.py" in command else ""
        far = "the far end" if " -u -c " in command else ""
        return near or far or os.path.basename(command.partition(" ")[0])
    try:
        parent = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return ""
    return "below the zygote" if WORKER in command_of(parent) else "the zygote"


def command_of(pid: int) -> str:
    """Its command line, "" if it is not there."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


class App:
    """The app in a pseudo-terminal, with one lesson's exercise open."""

    def __init__(self, home: Path) -> None:
        self.pid, self._terminal = pty.fork()
        if self.pid == 0:
            os.environ.update(TENSORTUTOR_HOME=str(home), TERM="xterm-256color", LANG="C.UTF-8")
            arguments = ("-m", "tensortutor", "--course", str(TINY), "--device", "cpu")
            os.execv(sys.executable, (sys.executable, *arguments))
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 140, 0, 0))

    def send(self, text: str) -> None:
        """Type."""
        os.write(self._terminal, text.encode())

    def read(self, seconds: float, until: str = "") -> str:
        """What it draws in so many seconds (it must be read, or it would block).

        until: stop as soon as this has been drawn.
        """
        drawn, end = b"", time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0 and not (until and until.encode() in drawn):
            if select.select([self._terminal], [], [], left)[0]:
                try:
                    drawn += os.read(self._terminal, 65536)
                except OSError:
                    break
        return drawn.decode(errors="replace")

    def await_drawn(self, words: str, seconds: float, why: str) -> None:
        """Raises Failure if it does not draw these words in time."""
        if words not in self.read(seconds, until=words):
            raise Failure(f"the app did not draw {words!r} within {seconds:g} s: {why}")

    def open_exercise(self) -> None:
        """From the home screen to the end of the exercise's code."""
        self.await_drawn(LESSON_TITLE, OPEN_S, "the home screen")
        self.send("\r")
        self.await_drawn(EXERCISE, OPEN_S, "the step where the learner was last")
        self.send(20 * PAGE_DOWN + END + "\r")
        self.read(0.5)

    def kill(self) -> list[int]:
        """kill -9; returns the processes that were below it."""
        under = below(self.pid)
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self._terminal)
        return under


class Learner:
    """Somebody at the app, and what must still be there when they come back."""

    def __init__(self, home: Path, rng: random.Random) -> None:
        self._home = home
        self._rng = rng
        self._file = home / "work" / "basics" / "means" / EXERCISE
        self._lines: list[str] = []
        self._rows: dict[str, set[tuple[object, ...]]] = {what: set() for what in RECORDS}
        self._file.parent.mkdir(parents=True)
        self._file.write_text(SOLUTION)
        Progress.open(Paths(home)).set_place("basics/means", EXERCISE_STEP)

    def round(self, number: int) -> str:
        """Type in the app, run, check; kill something of it. Returns what was killed."""
        rng, app = self._rng, App(self._home)
        app.open_exercise()
        others = rng.random() < 0.5
        typed = self._type(app, f"# {number}:", rng.uniform(0.2, 6.0))
        killed = "the app"
        if others and (under := below(app.pid)):
            killed = "below the app"
            with contextlib.suppress(ProcessLookupError):
                os.kill(rng.choice(under), signal.SIGKILL)
            typed += self._type(app, "", SAVED_WITHIN_S)
            app.send(f" again{number}")
            typed.append((time.monotonic(), f" again{number}"))
            app.await_drawn(f"n{number}", PATIENCE_S, "a process below it was killed")
        died = time.monotonic()
        await_gone(app.kill(), f"a kill of {killed}")
        self._lines.append("".join(text for at, text in typed if at < died - SAVED_WITHIN_S))
        self._see_code()
        self._see_progress()
        return f"killed {killed}"

    def _type(self, app: App, begin: str, seconds: float) -> list[tuple[float, str]]:
        """Letters, each with the time at which it was typed; now and then a run or a check."""
        typed = []
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            text, begin = begin or self._rng.choice("abcdefgh "), ""
            app.send(text)
            typed.append((time.monotonic(), text))
            app.read(self._rng.uniform(0.0, 0.2))
            if self._rng.random() < 0.05:
                app.send(self._rng.choice((RUN, CHECK)))
        return typed

    def _see_code(self) -> None:
        """Raises Failure if a letter is gone."""
        found = self._file.read_text()
        if not found.startswith(SOLUTION):
            raise Failure(f"the code was changed: {found!r}")
        # What was typed later than SAVED_WITHIN_S before the end may be there or not.
        at = len(SOLUTION)
        for number, line in enumerate(self._lines):
            at = found.find(line, at)
            if at < 0:
                raise Failure(f"round {number}: {line!r} is not in the code: {found[-300:]!r}")
            at += len(line)

    def _see_progress(self) -> None:
        """Raises Failure if the file is damaged or a row is gone."""
        with contextlib.closing(sqlite3.connect(self._home / "progress.db")) as database:
            (state,) = database.execute("PRAGMA integrity_check").fetchone()
            if state != "ok":
                raise Failure(f"the progress file is damaged: {state}")
            for what, query in RECORDS.items():
                rows = set(database.execute(query))
                if gone := self._rows[what] - rows:
                    raise Failure(f"gone from {what}: {gone}")
                self._rows[what] = rows

    @property
    def progress(self) -> str:
        """What has come together, in words."""
        counts = ", ".join(f"{len(rows)} {what}" for what, rows in self._rows.items())
        return f"progress: {counts}; lines typed: {len(self._lines)}"


def main(rounds: int) -> None:
    """Soak, and report."""
    seed = random.randrange(10**6)
    print(f"seed {seed}, {rounds} rounds", flush=True)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        layers = [name for name in ("full", "landlock") if is_possible(name)]
        for layer in layers:
            scratch = Path(folder) / layer
            with Runner(Settings(scratch=scratch, device="cpu", sandbox=layer)) as runner:
                for number in range(rounds // 2 // len(layers)):
                    runner.prepare()
                    seen[f"{layer}: {runner_round(runner, rng)}"] += 1
                    print(f"\r{layer} {number + 1} ", end="", flush=True)
        learner = Learner(Path(folder) / "home", rng)
        for number in range(rounds - rounds // 2):
            seen[learner.round(number)] += 1
            print(f"\rapp {number + 1}      ", end="", flush=True)
    print()
    for what, count in sorted(seen.items()):
        print(f"{count:4} {what}")
    print(learner.progress)


def is_possible(layer: str) -> bool:
    """This machine allows the layer."""
    try:
        return choose_layer(layer).name == layer
    except RunnerError:
        return False


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
