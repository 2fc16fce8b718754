"""`lessons/course.toml`: the course's title and its chapters in order."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor.course.problems import CourseError, Problem, Report, decode, nearest
from tensortutor.course.read_file import read_course_file
from tensortutor.course.toml_tables import (
    TEXT,
    Key,
    check_table,
    is_text,
    is_truth,
    key_lines,
    load_toml,
)

FOLDER = re.compile(r"(\d\d)_([a-z][a-z0-9_]*)")
ID = re.compile(r"[a-z][a-z0-9_]*")
BESIDE = ("reference",)
"""Folders beside the chapters that hold no lessons."""


def is_id(value: Any) -> bool:
    """A chapter's id."""
    return is_text(value) and ID.fullmatch(value) is not None


def is_tables(value: Any) -> bool:
    """A list of tables."""
    return isinstance(value, list) and all(isinstance(item, dict) for item in value)


KEYS = {"title": TEXT, "chapters": Key(is_tables, "a list of tables, written [[chapters]]")}
CHAPTER = {
    "id": Key(is_id, 'lower-case letters, digits and underscores, as "autograd_advanced"'),
    "title": TEXT,
    "blurb": TEXT,
    "planned": Key(is_truth, "true or false", required=False),
}


@dataclass(frozen=True)
class Entry:
    """A chapter that has a folder. number: its place in course.toml, from 1."""

    id: str
    number: int
    title: str
    blurb: str
    folder: Path


@dataclass(frozen=True)
class Contents:
    """The course's title and the chapters that are there.

    planned: the ids of the chapters that are still being written.
    """

    title: str
    entries: tuple[Entry, ...]
    planned: tuple[str, ...] = ()


def read_contents(root: Path) -> tuple[Contents, list[Problem]]:
    """What `lessons/course.toml` says, held against the folders beside it.

    A chapter marked `planned = true` may lack its folder; if it has one, it counts like any other.
    """
    path = root / "lessons" / "course.toml"
    report = Report(path.relative_to(root).as_posix())
    if not path.is_file():
        report.add(1, "it is missing: a course lists its title and chapters there")
        return Contents("", ()), report.problems
    data = read_course_file(path, report)
    text = decode(data or b"", report)
    table = None if data is None else load_toml(text, 1, "course.toml", report)
    if table is None:
        return Contents("", ()), report.problems
    values = check_table(table, KEYS, "course.toml", key_lines(text, 1, otherwise=1), report)
    folders = _folders(root / "lessons")
    entries = tuple(_entries(values.get("chapters", []), text, folders, report))
    chapters = values.get("chapters", [])
    problems = sorted(report.problems) + _unlisted(root, folders, chapters)
    planned = tuple(c["id"] for c in chapters if c.get("planned") is True and is_id(c.get("id")))
    return Contents(values.get("title", ""), entries, planned), problems


def chapter_ids(root: Path) -> list[str]:
    """The ids that course.toml lists, in order, those of planned chapters too.

    Raises CourseError if the file is no TOML.
    """
    path = root / "lessons" / "course.toml"
    report = Report(path.relative_to(root).as_posix())
    data = read_course_file(path, report)
    table = None if data is None else load_toml(decode(data, report), 1, "course.toml", report)
    if table is None:
        raise CourseError(report.problems)
    return [str(chapter.get("id", "")) for chapter in table.get("chapters", [])]


def _folders(lessons: Path) -> dict[str, Path]:
    """The chapters' folders by id, those with a wrong name under that name."""
    folders = {}
    for path in sorted(lessons.iterdir()):
        if path.is_dir() and path.name[0] not in "._" and path.name not in BESIDE:
            named = FOLDER.fullmatch(path.name)
            id = named[2] if named else path.name
            folders[path.name if id in folders else id] = path
    return folders


def _entries(
    chapters: list[dict[str, Any]], text: str, folders: dict[str, Path], report: Report
) -> list[Entry]:
    starts = _chapter_lines(text)
    entries = []
    seen: set[str] = set()
    for number, chapter in enumerate(chapters, 1):
        line = starts[number - 1] if len(starts) == len(chapters) else 1
        end = starts[number] - 1 if len(starts) > number else None
        body = "\n".join(text.split("\n")[line - 1 : end])
        line_of = key_lines(body, line, otherwise=line)
        values = check_table(chapter, CHAPTER, "the chapter", line_of, report)
        id = values.get("id")
        if id is None:
            continue
        if id in seen:
            report.add(line_of("id"), f"there are two chapters {id!r}: remove one")
            continue
        seen.add(id)
        if id in folders:
            _check_folder(folders[id], number, id, line_of, report)
            title, blurb = values.get("title", ""), values.get("blurb", "")
            entries.append(Entry(id, number, title, blurb, folders[id]))
        elif not values.get("planned"):
            report.add(
                line_of("id"),
                f"the chapter {id!r} has no folder lessons/{number:02d}_{id}: "
                "add it, or write planned = true",
            )
    return entries


def _check_folder(
    folder: Path, number: int, id: str, line_of: Callable[[str], int], report: Report
) -> None:
    if folder.name != f"{number:02d}_{id}":
        report.add(
            line_of("id"),
            f"the chapter {id!r} is number {number}, its folder is lessons/{folder.name}: "
            f"rename it {number:02d}_{id}, or move the chapter",
        )


def _unlisted(
    root: Path, folders: dict[str, Path], chapters: list[dict[str, Any]]
) -> list[Problem]:
    ids = [chapter["id"] for chapter in chapters if is_id(chapter.get("id"))]
    problems = []
    for id, folder in folders.items():
        if id not in ids:
            near = f"; the nearest chapter is {nearest(id, ids)[0]!r}" if ids else ""
            problems.append(
                Problem(
                    folder.relative_to(root).as_posix(),
                    0,
                    f"course.toml lists no chapter for this folder{near}",
                )
            )
    return problems


def _chapter_lines(text: str) -> list[int]:
    """The line of each [[chapters]]."""
    header = re.compile(r"^[ \t]*\[\[[ \t]*chapters[ \t]*\]\]", re.MULTILINE)
    return [text.count("\n", 0, found.start()) + 1 for found in header.finditer(text)]
