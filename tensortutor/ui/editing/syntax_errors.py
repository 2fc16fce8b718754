"""What keeps a text from being Python, by the standard library's own compiler."""

import warnings
from dataclasses import dataclass

from tensortutor.ui.editing import indentation

LONGEST = 200_000
"""Characters; a longer text is not looked at, for the app waits meanwhile."""


@dataclass(frozen=True)
class Problem:
    """A place, row and columns from 0, and what Python says of it."""

    row: int
    start: int
    end: int
    message: str


def find(text: str, typing: int | None = None) -> Problem | None:
    """The first problem of a program, None if it compiles.

    typing: the row that somebody is typing in. What is only half written there, and what follows
    from it elsewhere, is no problem yet.
    """
    if len(text) > LONGEST:
        return None
    problem = _compiled(text)
    if problem is None or typing is None:
        return problem
    lines = text.split("\n")
    if problem.row == typing or typing >= len(lines):
        return None
    line = lines[typing]
    blank = line[: len(line) - len(line.lstrip())]
    inner = indentation.after(lines[typing - 1]) if typing else ""
    for instead in (f"{blank}pass", f"{inner}pass", ""):
        if _compiled("\n".join([*lines[:typing], instead, *lines[typing + 1 :]])) is None:
            return None
    return problem


def _compiled(text: str) -> Problem | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(text, "<program>", "exec", dont_inherit=True)
    except SyntaxError as error:
        return _problem(error, text.split("\n"))
    except ValueError as error:
        return Problem(0, 0, 1, str(error))
    except (RecursionError, MemoryError):
        return None  # too deep for the compiler here; a run will tell
    return None


def _problem(error: SyntaxError, lines: list[str]) -> Problem:
    row = min(max((error.lineno or 1) - 1, 0), len(lines) - 1)
    start = min(max((error.offset or 1) - 1, 0), len(lines[row]))
    end = (error.end_offset or 0) - 1 if error.end_lineno == error.lineno else len(lines[row])
    return Problem(row, start, max(end, start + 1), error.msg)
