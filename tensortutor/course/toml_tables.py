"""TOML tables read against a list of known keys, every error with its line."""

import re
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tensortutor.course.problems import Report, nearest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

LARGEST = 1e300
NUMBER = re.compile(r"(?<![0-9_])[0-9][0-9_]{1000,}")
"""More digits than any number needs; Python refuses to read 4,300 of them."""
PARTS = re.compile(r"""(?<![\w"'-])(?:[\w"'-]+[ \t]*\.[ \t]*){32}""")
"""A key of so many parts. tomllib's time grows with their square."""
PLACE = re.compile(r" \(at (?:line (\d+), column \d+|end of document)\)$")


@dataclass(frozen=True)
class Key:
    """What a key's value must be. words: the same for a reader, as "a string"."""

    fits: Callable[[Any], bool]
    words: str
    required: bool = True


def is_text(value: Any) -> bool:
    """A string with something in it."""
    return isinstance(value, str) and bool(value.strip())


def is_truth(value: Any) -> bool:
    """true or false."""
    return isinstance(value, bool)


def is_number(value: Any) -> bool:
    """An integer or a float, finite as a float."""
    return type(value) in (int, float) and -LARGEST <= value <= LARGEST


def is_count(value: Any) -> bool:
    """A whole number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def is_texts(value: Any) -> bool:
    """A list of strings, none of them empty."""
    return isinstance(value, list) and all(map(is_text, value))


def is_cuda(value: Any) -> bool:
    """The one device that a claim may need."""
    return isinstance(value, str) and value == "cuda"


TEXT = Key(is_text, "a string that is not empty")
NEEDS = Key(is_cuda, '"cuda"', required=False)
"""Of a claim that only a CUDA device can prove."""


class TomlError(ValueError):
    """A text is not TOML that can be used. line: from 1, 0 if it is not known."""

    def __init__(self, message: str, line: int) -> None:
        super().__init__(message)
        self.line = line


def parse_toml(text: str) -> dict[str, Any]:
    """The table in `text`. Raises TomlError, whatever the text is."""
    if match := PARTS.search(text):
        raise TomlError(f"a key has too many parts: {show(match[0])}", _line(text, match.start()))
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except RecursionError:
        raise TomlError("brackets stand too deep in one another", _deepest(text)) from None
    except ValueError as error:
        if match := NUMBER.search(text):
            raise TomlError(_long_number(text, match), _line(text, match.start())) from None
        message = str(error)
        place = PLACE.search(message)
        line = int(place[1]) if place and place[1] else text.rstrip("\n").count("\n") + 1
        raise TomlError(PLACE.sub("", message), line if place else 0) from None
    return table


def _line(text: str, index: int) -> int:
    return text.count("\n", 0, index) + 1


def _deepest(text: str) -> int:
    """The line with the most brackets that open."""
    counts = [line.count("[") + line.count("{") for line in text.split("\n")]
    return counts.index(max(counts)) + 1


def _long_number(text: str, match: "re.Match[str]") -> str:
    before = text[text.rfind("\n", 0, match.start()) + 1 : match.start()]
    key = before.rpartition("=")[0].strip(" \t").rpartition("{")[2].rpartition(",")[2].strip()
    return f"the value of {show(key)} is a number of {len(match[0])} digits"


def load_toml(text: str, first: int, what: str, report: Report) -> dict[str, Any] | None:
    """The table in `text`, whose first line is line `first` of the file, or None if there is none.

    what: how a message names the text, as "the front matter".
    """
    try:
        return parse_toml(text)
    except TomlError as error:
        report.add(first + max(error.line - 1, 0), f"{what} is not TOML: {error}")
        return None


def check_table(
    table: Mapping[str, Any],
    keys: Mapping[str, Key],
    what: str,
    line_of: Callable[[str], int],
    report: Report,
) -> dict[str, Any]:
    """The values that are as `keys` wants them; the rest is reported.

    line_of: the line of a key in the file, or the table's own line for a key that is not there.
    """
    values = {}
    for name, value in table.items():
        key = keys.get(name)
        if key is None:
            report.add(
                line_of(name),
                f"{what} has no key {show(name)}; the nearest is {nearest(name, list(keys))[0]!r}",
            )
        elif key.fits(value):
            values[name] = value
        else:
            report.add(line_of(name), f"{name!r} must be {key.words}, not {show(value)}")
    for name, key in keys.items():
        if key.required and name not in table:
            report.add(line_of(name), f"{what} lacks {name!r}: {key.words}")
    return values


def key_lines(text: str, first: int, otherwise: int) -> Callable[[str], int]:
    """A function from a key to its line in the file.

    text starts at line `first` of the file; keys that are not there get the line `otherwise`.
    """

    def line_of(name: str) -> int:
        key = rf"[\"']?{re.escape(name)}[\"']?[ \t]*"
        found = re.search(rf"^[ \t]*(?:{key}[=.]|\[+[ \t]*{key}[].])", text, re.M)
        found = found or re.search(rf"[{{,][ \t]*{key}=", text)  # in an inline table
        return first + text.count("\n", 0, found.start()) if found else otherwise

    return line_of


def show(value: Any) -> str:
    """A value in a message, at most 40 characters."""
    if isinstance(value, bool):
        return str(value).lower()
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        # An integer of more than 4,300 digits, which a hexadecimal one may be; or deep nesting.
        text = "a number of thousands of digits" if isinstance(value, int) else "something huge"
    return text if len(text) <= 40 else text[:39] + "…"


def table_bodies(text: str, name: str, count: int) -> list[tuple[int, str]]:
    """The line and the text of each [[name]]; all of it for each if they cannot be told apart."""
    header = re.compile(rf"^[ \t]*\[\[[ \t]*{re.escape(name)}[ \t]*\]\]", re.MULTILINE)
    starts = [found.start() for found in header.finditer(text)]
    if len(starts) != count:
        return [(1, text)] * count
    ends = [*starts[1:], len(text)]
    pieces = zip(starts, ends, strict=False)  # of no pieces there is still an end
    return [(text.count("\n", 0, start) + 1, text[start:end]) for start, end in pieces]
