"""Bytes that one action writes to the terminal, at 120x36: what a slow link has to carry.

    python -m tests.bench.bytes

A table of actions: bytes, seconds at 20 KB/s, the limit, and whether it is kept. Ends with 1 if one
is over. Bytes do not depend on how busy the machine is, so each action is measured once; what
comes in frames of its own (a preview that is drawn when the cursor rests) belongs to its action.
"""

import sys
import tempfile
from typing import NamedTuple

from tests.bench.terminal import Terminal

SIZE = (36, 120)
LESSON = "tensors/tensor_birth"
LINK = 20_000
"""Bytes in a second, of a slow link."""
QUIET_S = 1.2
"""After so long nothing more belongs to an action."""
START_S = 4.0
"""The same at the start, when PyTorch is being loaded."""
DOWN, F3, F8, PALETTE, ESCAPE, ENTER = "\x1b[B", "\x1bOR", "\x1b[19~", "\x10", "\x1b", "\r"


class Action(NamedTuple):
    """Keys, and how many bytes they may take."""

    name: str
    key: str
    limit: int


AT_HOME = (
    Action("Down at home", DOWN, 2_000),
    Action("Down at home, again", DOWN, 2_000),
    Action("ten Downs at once", 10 * DOWN, 4_000),
    Action("palette", PALETTE, 20_000),
    Action("palette closes", ESCAPE, 20_000),
)
IN_LESSON = (
    Action("a step, from text to code", F8, 15_000),
    Action("F3, to the code", F3, 4_000),
    Action("F3, to the results", F3, 4_000),
    Action("F3, back to the code", F3, 4_000),
    Action("a letter in the code", "a", 1_000),
    Action("a step, code to code", F8, 15_000),
    Action("palette", PALETTE, 20_000),
    Action("palette closes", ESCAPE, 20_000),
)
SUBJECTS = ((("-m", "tensortutor"), AT_HOME), (("-m", "tensortutor", LESSON), IN_LESSON))


def written(terminal: Terminal, quiet_s: float = QUIET_S) -> int:
    """How many bytes come until nothing has come for so long."""
    count = 0
    while data := terminal.read(quiet_s):
        count += len(data)
    return count


def measure(arguments: tuple[str, ...], actions: tuple[Action, ...], home: str) -> list[int]:
    """The bytes of the start, then of each action, one after the other in one app."""
    with Terminal(arguments, {"TENSORTUTOR_HOME": home}, SIZE) as terminal:
        counts = [written(terminal, START_S)]
        for action in actions:
            terminal.write(action.key)
            counts.append(written(terminal))
        return counts


def main() -> int:
    """Measure and print. Returns how many actions are over their limit."""
    over = 0
    print(f"{'at 120x36':<30}{'bytes':>8}{'20 KB/s':>9}{'limit':>9}")
    with tempfile.TemporaryDirectory(prefix="bytes-") as folder:
        for number, (arguments, actions) in enumerate(SUBJECTS):
            start = Action("start" if number == 0 else "start in a lesson", "", 40_000)
            counts = measure(arguments, actions, f"{folder}/{number}")
            for action, count in zip((start, *actions), counts, strict=True):
                verdict = "" if count <= action.limit else "  over"
                over += bool(verdict)
                print(
                    f"{action.name:<30}{count:>8,}{count / LINK:>7.2f} s{action.limit:>9,}{verdict}"
                )
    return over


if __name__ == "__main__":
    sys.exit(1 if main() else 0)
