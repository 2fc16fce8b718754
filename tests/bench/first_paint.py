"""How long until the home screen stands, against a Textual app of one widget.

    python -m tests.bench.first_paint [ROUNDS]

Both are started in a pseudo-terminal as a learner starts them, in turns; the clock runs from the
start of the process to the moment at which its text is on the screen.
"""

import shutil
import statistics
import sys
import tempfile
import time
from dataclasses import dataclass

from tests.bench.terminal import Terminal

ROUNDS = 15
WANTED_RATIO = 1.3
ROWS, COLUMNS = 40, 120

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
    """Seconds from start to paint. Raises TimeoutError if the text never appears."""
    environment = {"TENSORTUTOR_HOME": home}
    with Terminal(subject.arguments, environment, (ROWS, COLUMNS)) as terminal:
        terminal.read_until(subject.text, plain=True)
        return time.perf_counter() - terminal.begun


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
