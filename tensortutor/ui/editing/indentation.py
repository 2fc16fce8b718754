"""What an editor knows about the indentation of Python. Pure functions over lines."""

import re
from collections.abc import Callable

Change = Callable[[list[str]], list[str]]
"""Whole lines in, as many whole lines out."""

WIDTH = 4
COMMENT = re.compile(r"^(\s*)# ?")
TRAILING_COMMENT = re.compile(r"\s*#[^'\"]*$")
BRACKETS = (("(", ")"), ("[", "]"), ("{", "}"))
LAST_OF_BLOCK = re.compile(r"^\s*(return|pass|break|continue|raise)\b")


def leading(line: str) -> str:
    """The white space that a line begins with."""
    return line[: len(line) - len(line.lstrip())]


def after(before: str) -> str:
    """The indentation of the line that follows, given the text left of the cursor."""
    indent = leading(before)
    code = TRAILING_COMMENT.sub("", before).rstrip()
    if code.endswith((":", "(", "[", "{")):
        return indent + " " * WIDTH
    # A bracket that is still open means that the statement goes on.
    if LAST_OF_BLOCK.match(code) and all(code.count(a) <= code.count(b) for a, b in BRACKETS):
        return indent[:-WIDTH]
    return indent


def to_previous_stop(column: int) -> int:
    """How many spaces left of a column belong to the indentation's last stop."""
    return column % WIDTH or min(column, WIDTH)


def indented(lines: list[str]) -> list[str]:
    """Lines one stop further in; empty ones stay empty."""
    return [" " * WIDTH + line if line.strip() else line for line in lines]


def dedented(lines: list[str]) -> list[str]:
    """Lines one stop further out, as far as they can go."""
    return [line[min(WIDTH, len(leading(line))) :] for line in lines]


def toggled(lines: list[str]) -> list[str]:
    """Lines commented out; or in again, if all of them were out."""
    full = [line for line in lines if line.strip()]
    if full and all(COMMENT.match(line) for line in full):
        return [COMMENT.sub(r"\1", line) if line.strip() else line for line in lines]
    column = min((len(leading(line)) for line in full), default=0)
    if not full:
        return ["# " for _ in lines]
    return [f"{line[:column]}# {line[column:]}" if line.strip() else line for line in lines]
