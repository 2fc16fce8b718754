"""What a search of the course finds: grouped by kind, and in words. Pure."""

from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass
from typing import NamedTuple

from tensortutor.course.model import Course
from tensortutor.course.search import (
    ENTRY,
    ERROR,
    LESSON,
    RECIPE,
    STEP,
    TERM,
    CourseIndex,
    Found,
    Place,
)
from tensortutor.ui import describe

TITLES = {
    LESSON: "Lessons",
    STEP: "Text",
    ENTRY: "Reference",
    TERM: "Reference",
    RECIPE: "Reference",
    ERROR: "Errors",
}
"""The group of each kind of place."""
WORDS = {
    LESSON: "lesson",
    STEP: "step",
    ENTRY: "call",
    TERM: "term",
    RECIPE: "recipe",
    ERROR: "error",
}
"""What a place of each kind is called."""
LESSONS = TITLES[LESSON]
EVERYTHING = 100_000
"""More places than a course has."""
FEW = 5
"""Rows of a group, until more are asked for."""


class Group(NamedTuple):
    """Places of one kind, the best first."""

    title: str
    found: tuple[Found, ...]


@dataclass(frozen=True)
class HeadRow:
    """Names a group."""

    group: Group


@dataclass(frozen=True)
class MoreRow:
    """Stands for the rest of a group."""

    group: Group


Row = HeadRow | MoreRow | Found


def groups(found: Iterable[Found]) -> list[Group]:
    """By kind. The group with the best place comes first, and each keeps its order."""
    by_title: dict[str, list[Found]] = {}
    for one in found:
        by_title.setdefault(TITLES[one.place.kind], []).append(one)
    return [Group(title, tuple(places)) for title, places in by_title.items()]


def rows(grouped: Sequence[Group], unfolded: Set[str]) -> list[Row]:
    """The rows to show. unfolded: titles of the groups of which everything shows."""
    listed: list[Row] = []
    for group in grouped:
        whole = group.title in unfolded or len(grouped) == 1 or len(group.found) <= FEW + 1
        listed += [HeadRow(group), *(group.found if whole else group.found[:FEW])]
        if not whole:
            listed.append(MoreRow(group))
    return listed


def title(course: Course, place: Place) -> str:
    """What a place is called, with the number of its lesson if it is one of a lesson."""
    lesson = describe.lesson_by_id(course, place.lesson)
    if lesson is None or place.kind not in (LESSON, STEP):
        return place.title.replace("`", "")
    name = describe.short_name(course, lesson)
    return name if place.kind == LESSON else f"{name}{place.title[len(lesson.title) :]}"


def kind(place: Place) -> str:
    """What a place is: "lesson", "step 3", "call", "error"."""
    word = WORDS[place.kind]
    return f"{word} {place.step + 1}" if place.kind == STEP else word


def searched(index: CourseIndex) -> str:
    """What is searched, as the middle of a sentence; what has not been read yet is not."""
    kinds = [place.kind for place in index.index.places()]
    reference = sum(TITLES[kind] == "Reference" for kind in kinds)
    parts = [
        f"titles and goals of {describe.count(kinds.count(LESSON), 'lesson')}",
        f"text and questions of {describe.count(kinds.count(STEP), 'step')}",
        f"{describe.count(reference, 'call')}, terms and recipes of the reference",
        describe.count(kinds.count(ERROR), "error"),
    ]
    return describe.joined([part for part in parts if not part.startswith("0 ")])


def still_reading(index: CourseIndex) -> str:
    """How far the reading is, or "" once it is done."""
    if index.is_complete:
        return ""
    return f"reading: {index.lessons_read} of {describe.count(len(index.course.lessons), 'lesson')}"
