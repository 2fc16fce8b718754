"""How long until the home screen stands, against a Textual app of one widget.

    python -m tests.bench.first_paint [ROUNDS]

Both are started in a pseudo-terminal as a learner starts them, in turns; the clock runs from the
start of the process to the moment at which its text is on the screen.
"""

import fcntl
import os
import pty
import re
import select
import shutil
import signal
import statistics
import struct
import sys
import tempfile
import termios
import time
from dataclasses import dataclass

ROUNDS = 15
WANTED_RATIO = 1.5
PATIENCE_S = 30.0
ROWS, COLUMNS = 40, 120
ESCAPES = re.compile(rb"\x1b(\[[0-?]*[ -/]*[@-~]|[PX^_].*?\x1b\\|\].*?(\x07|\x1b\\)|[ -/]*[0-~])")

ONE_WIDGET = """
from textual.app import App
from textual.widgets import Static

class One(App):
    def compose(self):
        yield Static("one widget")

One().run()
"""


@dataclass(frozen=True)
class Subject:
    """A program, and the text that its first screen shows."""

    name: str
    arguments: tuple[str, ...]
    text: bytes


BASELINE = Subject("one widget", ("-c", ONE_WIDGET), b"one widget")
HOME = Subject("home screen", ("-m", "tensortutor"), b"Tensors: values, types, shapes")


def first_paint_s(subject: Subject, home: str) -> float:
    """Seconds from start to paint. Raises RuntimeError if the text never appears."""
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        environment = {**os.environ, "TENSORTUTOR_HOME": home, "TERM": "xterm-256color"}
        os.execve(sys.executable, [sys.executable, *subject.arguments], environment)
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    try:
        wait_for(terminal, subject)
        return time.perf_counter() - begun
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(terminal)


def wait_for(terminal: int, subject: Subject) -> None:
    """Read what the program draws until its text is there."""
    drawn = b""
    end = time.monotonic() + PATIENCE_S
    while subject.text not in ESCAPES.sub(b"", drawn):
        ready, _, _ = select.select([terminal], [], [], max(0.0, end - time.monotonic()))
        try:
            piece = os.read(terminal, 65536) if ready else b""
        except OSError:  # the other end is closed
            piece = b""
        if not piece:
            shown = ESCAPES.sub(b"", drawn).decode("utf-8", "replace").strip()
            raise RuntimeError(f"{subject.name}: its text did not appear. Last drawn:\n{shown}")
        drawn += piece


def measure(rounds: int) -> dict[str, list[float]]:
    """Seconds of each round by subject, the two in turns; one round before them to warm up."""
    home = tempfile.mkdtemp(prefix="first-paint-")
    times: dict[str, list[float]] = {BASELINE.name: [], HOME.name: []}
    try:
        for number in range(rounds + 1):
            for subject in (BASELINE, HOME):
                seconds = first_paint_s(subject, home)
                if number:
                    times[subject.name].append(seconds)
    finally:
        shutil.rmtree(home, ignore_errors=True)
    return times


def report(times: dict[str, list[float]]) -> str:
    """A table and the ratio of the medians."""
    lines = [f"{'first paint':<14}{'median':>10}{'fastest':>10}{'slowest':>10}"]
    for name, seconds in times.items():
        figures = (statistics.median(seconds), min(seconds), max(seconds))
        lines.append(f"{name:<14}" + "".join(f"{1000 * s:>7.0f} ms" for s in figures))
    ratio = statistics.median(times[HOME.name]) / statistics.median(times[BASELINE.name])
    word = "within" if ratio <= WANTED_RATIO else "over"
    rounds = len(times[HOME.name])
    lines.append(f"ratio {ratio:.2f} over {rounds} rounds, {word} the wanted {WANTED_RATIO}")
    return "\n".join(lines)


if __name__ == "__main__":
    print(report(measure(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)))
