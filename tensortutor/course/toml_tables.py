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
    """An integer or a float."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


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


def load_toml(text: str, first: int, what: str, report: Report) -> dict[str, Any] | None:
    """The table in `text`, whose first line is line `first` of the file, or None if there is none.

    what: how a message names the text, as "the front matter".
    """
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        message = str(error)
        place = PLACE.search(message)
        within = int(place[1]) if place and place[1] else text.rstrip("\n").count("\n") + 1
        line = first + within - 1 if place else first
        report.add(line, f"{what} is not TOML: {PLACE.sub('', message)}")
        return None
    return table


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
                f"{what} has no key {name!r}; the nearest is {nearest(name, list(keys))[0]!r}",
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
    text = repr(value)
    return text if len(text) <= 40 else text[:39] + "…"
