"""The TOML between `+++` lines that begins a lesson."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tensortutor.course.limits import LIMITS
from tensortutor.course.problems import Report
from tensortutor.course.reading_time import reading_minutes
from tensortutor.course.toml_tables import (
    TEXT,
    Key,
    check_table,
    is_count,
    is_text,
    is_texts,
    key_lines,
    load_toml,
)

FENCE = "+++"
MOST_MINUTES = 600
DEVICE = re.compile(r"any|cpu|cuda|ranks:[2-8]")
ID = re.compile(r"[a-z][a-z0-9_]*/[a-z0-9][a-z0-9_]*")


def is_device(value: Any) -> bool:
    """A device that a lesson may ask for."""
    return isinstance(value, str) and DEVICE.fullmatch(value) is not None


def is_ids(value: Any) -> bool:
    """A list of lesson ids."""
    return is_texts(value) and all(ID.fullmatch(item) for item in value)


def is_id(value: Any) -> bool:
    """A lesson's id."""
    return isinstance(value, str) and ID.fullmatch(value) is not None


def is_table(value: Any) -> bool:
    """A TOML table."""
    return isinstance(value, dict)


def is_minutes(value: Any) -> bool:
    """How long a lesson may take."""
    return is_count(value) and value <= MOST_MINUTES


def is_edition(value: Any) -> bool:
    """1 or 2."""
    return is_count(value) and value <= 2


KEYS = {
    "title": TEXT,
    "goal": TEXT,
    "requires": Key(is_ids, 'a list of ids such as "autograd/graph_and_leaves"'),
    "minutes": Key(is_minutes, f"a whole number from 1 to {MOST_MINUTES}", required=False),
    "continues": Key(is_id, 'the id of a lesson such as "capstones/ship_it"', required=False),
    "device": Key(is_device, '"any", "cpu", "cuda" or "ranks:N" with N from 2 to 8'),
    "limits": Key(is_table, "a table", required=False),
    "edition": Key(is_edition, "1 or 2", required=False),
    "long": Key(is_text, "the reason why the lesson is not split", required=False),
}
LIMIT_KEYS = {name: Key(one.fits, one.words, required=False) for name, one in LIMITS.items()}


@dataclass(frozen=True)
class FrontMatter:
    """What a lesson says about itself, with blanks where it says nothing that fits.

    minutes: as stated; 0 where they are to be computed, as in the second edition.
    """

    title: str = ""
    goal: str = ""
    requires: tuple[str, ...] = ()
    continues: str = ""
    minutes: int = 0
    device: str = "any"
    limits: tuple[tuple[str, float], ...] = ()
    edition: int = 1
    long: str = ""


def read_front_matter(text: str, report: Report) -> tuple[FrontMatter, int]:
    """The front matter, and the index of the line after it."""
    lines = text.split("\n")
    if lines[0].rstrip() != FENCE:
        report.add(1, f"the front matter is missing: begin with TOML between two lines {FENCE}")
        return FrontMatter(), _first_heading(lines)
    end = _end(lines)
    if end is None:
        report.add(1, f"the front matter is not closed: add a line {FENCE} below its last key")
        return FrontMatter(), _first_heading(lines)
    inside = "\n".join(lines[1:end])
    table = load_toml(inside, 2, "the front matter", report)
    if table is None:
        return FrontMatter(), end + 1
    line_of = key_lines(inside, 2, otherwise=1)
    values = check_table(table, KEYS, "the front matter", line_of, report)
    _check_edition(table, line_of, report)
    limits = check_table(values.pop("limits", {}), LIMIT_KEYS, "limits", line_of, report)
    values["requires"] = tuple(values.get("requires", ()))
    values["limits"] = tuple((name, float(value)) for name, value in limits.items())
    if values.get("edition") == 2:
        values.pop("minutes", None)
    return FrontMatter(**values), end + 1


def minutes_of(front: FrontMatter, text: str, start: int) -> int:
    """How long the lesson in `text` takes, whose front matter ends before line `start`."""
    return front.minutes or reading_minutes("\n".join(text.split("\n")[start:]))


def _check_edition(table: dict[str, Any], line_of: Callable[[str], int], report: Report) -> None:
    """Minutes are stated in the first edition and computed in the second."""
    second = table.get("edition", 1) == 2
    if second and "minutes" in table:
        report.add(line_of("minutes"), "edition 2 computes the minutes: remove this key")
    if not second and "long" in table:
        report.add(line_of("long"), "'long' belongs to edition 2: add edition = 2")
    if not second and "minutes" not in table:
        report.add(line_of("minutes"), f"the front matter lacks 'minutes': {KEYS['minutes'].words}")


def requires_line(text: str, required: str) -> int:
    """The line of a lesson's front matter that names `required`."""
    lines = text.split("\n")
    end = _end(lines) or len(lines)
    quoted = (f'"{required}"', f"'{required}'")
    places = (n for n, line in enumerate(lines[:end], 1) if any(q in line for q in quoted))
    return next(places, 1)


def _end(lines: list[str]) -> int | None:
    return next((n for n, line in enumerate(lines) if n and line.rstrip() == FENCE), None)


def _first_heading(lines: list[str]) -> int:
    return next((n for n, line in enumerate(lines) if line.startswith("## ")), len(lines))
