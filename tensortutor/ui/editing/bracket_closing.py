"""Brackets and quotes that close themselves: what a key means at a place. Pure functions."""

from tensortutor.ui.editing.line_lexer import CLOSE, OPEN, PREFIXES, is_code, read

QUOTES = ("'", '"')
PAIRS = {**OPEN, **{quote: quote for quote in QUOTES}}
"""What opens, and what closes it."""
FREE = " \t)]},:;=."
"""Before one of these, or at a line's end, what opens is closed at once: nothing is cut apart."""


def closing(key: str, line: str, state: str, column: int) -> str:
    """What to add behind the cursor when this key is typed, or "".

    line: as it is before. state: the string that it begins within (see lexer).
    """
    after = line[column : column + 1]
    if key not in PAIRS or (after and after not in FREE) or not is_code(line, state, column):
        return ""
    if key in OPEN:
        return OPEN[key]
    before = line[:column]
    if before.endswith(key * 2) and not before.endswith(key * 3):
        return key * 3  # the third quote in a row opens a long string
    word = before[len(before.rstrip(PREFIXES)) :]
    stem = before[: len(before) - len(word)]
    if before.endswith(key) or len(word) > 2 or stem[-1:].isalnum() or stem[-1:] == "_":
        return ""  # the end of a string, or an apostrophe behind a word
    return key


def is_typed_over(key: str, line: str, state: str, column: int) -> bool:
    """Whether the key means the character that stands behind the cursor already."""
    if line[column : column + 1] != key:
        return False
    if key in QUOTES:
        # Within a string its own quote ends it, or three of them do.
        end = len(line) - len(line[column:].lstrip(key))
        return not is_code(line, state, column) and is_code(line, state, end)
    if key not in CLOSE or not is_code(line, state, column):
        return False
    brackets = [bracket for _, bracket in read(line, state).brackets]
    # One more would be one too many.
    return brackets.count(CLOSE[key]) <= brackets.count(key)


def is_empty(line: str, state: str, column: int) -> bool:
    """Whether the cursor stands in an empty pair, which goes as a whole."""
    before, after = line[column - 1 : column] if column else "", line[column : column + 1]
    if not before or PAIRS.get(before) != after:
        return False
    return is_code(line, state, column - 1) and not line[:column].endswith(before * 3)


def is_spread(line: str, state: str, column: int) -> bool:
    """Whether a new line between these brackets puts the closing one on a line of its own."""
    before, after = line[:column].rstrip(" "), line[column:].lstrip(" ")
    here = len(before) - 1
    return OPEN.get(before[-1:]) == after[:1] != "" and (here, before[-1:]) in (
        read(line, state).brackets
    )
