"""Which brackets belong together. Those in strings and comments are text and do not count."""

from typing import Protocol

from tensortutor.ui.editing.line_lexer import CLOSE, OPEN, Line

FARTHEST = 500
"""Lines that are searched; a partner farther away is not on the screen."""
Location = tuple[int, int]


class Program(Protocol):
    """Lines that have been read."""

    @property
    def line_count(self) -> int:
        """How many lines."""

    def read(self, row: int) -> Line:
        """What a line holds."""


def pair(program: Program, at: Location) -> tuple[Location, ...]:
    """The bracket at a place, or else the one just before it, and its partner; () if none."""
    row, column = at
    here = dict(program.read(row).brackets)
    for place in (column, column - 1):
        if place in here:
            partner = _partner(program, row, place, here[place])
            if partner is not None:
                return (row, place), partner
    return ()


def _partner(program: Program, row: int, column: int, bracket: str) -> Location | None:
    """The other bracket of a pair; None if there is none or another kind is in its place."""
    forward = bracket in OPEN
    step, last = (1, program.line_count) if forward else (-1, -1)
    waiting = [bracket]
    partners = CLOSE if forward else OPEN
    for number in range(row, last, step):
        if abs(number - row) > FARTHEST:
            break
        line = program.read(number).brackets
        for place, found in line if forward else reversed(line):
            if number == row and (place <= column if forward else place >= column):
                continue
            if found not in partners:
                waiting.append(found)
            elif partners[found] != waiting.pop():
                return None
            elif not waiting:
                return number, place
    return None
