"""From one version of a program to another: what changes, and where a place in it has gone."""

import re
from dataclasses import dataclass
from difflib import SequenceMatcher

Location = tuple[int, int]
"""Row and column, from 0."""
LINE = re.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+\Z")
"""A line with its end, as Python sees lines; str.splitlines knows more ends."""


@dataclass(frozen=True)
class Change:
    """Whole lines give way to other lines: `text` in place of all between start and end."""

    start: Location
    end: Location
    text: str


def between(old: str, new: str) -> Change:
    """The one change that makes the new text of the old, without the lines that stay."""
    if old == new:
        return Change((0, 0), (0, 0), "")
    before, after = LINE.findall(old), LINE.findall(new)
    top = 0
    while top < min(len(before), len(after)) and before[top] == after[top]:
        top += 1
    bottom = 0
    while bottom < min(len(before), len(after)) - top and before[-1 - bottom] == after[-1 - bottom]:
        bottom += 1
    gone = before[top : len(before) - bottom]
    text = "".join(after[top : len(after) - bottom])
    if gone and not gone[-1].endswith(("\n", "\r")):
        return Change((top, 0), (top + len(gone) - 1, len(gone[-1])), text)
    return Change((top, 0), (top + len(gone), 0), text)


def follow(old: str, new: str, at: Location) -> Location:
    """Where a place of the old text is in the new: before the same character, if it is there."""
    before, after = re.split("\r\n|\r|\n", old), re.split("\r\n|\r|\n", new)
    row, column = min(at[0], len(before) - 1), at[1]
    # Empty lines are everywhere: none says where the others have gone.
    matcher = SequenceMatcher(lambda line: not line.strip(), before, after, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        if not a <= row < b:
            continue
        if kind == "equal":
            return c + row - a, column
        # Layout alone has changed, mostly: count what is not blank.
        ahead = _ink("\n".join([*before[a:row], before[row][:column]]))
        return _behind(after, c, d, ahead)
    return len(after) - 1, len(after[-1])


def _ink(text: str) -> int:
    return sum(not character.isspace() for character in text)


def _behind(lines: list[str], first: int, last: int, ink: int) -> Location:
    """The place behind so many characters that are not blank, at most at the last line's end."""
    for row in range(first, last):
        here = _ink(lines[row])
        if ink <= here:
            line = lines[row]
            column = len(line) - len(line.lstrip())
            while ink:
                ink -= not line[column].isspace()
                column += 1
            return row, column
        ink -= here
    row = max(0, min(last, len(lines)) - 1)
    return row, len(lines[row])
