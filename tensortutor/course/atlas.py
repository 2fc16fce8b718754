"""`lessons/atlas.toml`: what PyTorch's errors mean, and how to get out of them."""

import ast
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor.course.course_toml import is_id, is_tables, read_contents
from tensortutor.course.frontmatter import ID as LESSON_ID
from tensortutor.course.frontmatter import is_table
from tensortutor.course.model import Course
from tensortutor.course.patterns import Pattern, PatternError
from tensortutor.course.placeholders import unknown_parts
from tensortutor.course.problems import Problem, Report, decode, listed
from tensortutor.course.prose import trimmed
from tensortutor.course.read_file import NOT_PYTHON, read_course_file
from tensortutor.course.toml_tables import (
    NEEDS,
    TEXT,
    Key,
    check_table,
    is_count,
    is_text,
    is_texts,
    key_lines,
    load_toml,
    show,
    table_bodies,
)

ATLAS = "lessons/atlas.toml"
NEEDS_CUDA = "cuda"


@dataclass(frozen=True)
class Program:
    """A program that raises an error. says: a part of what its explanation must say, or "".

    ranks: run it as that many cooperating processes; 0 for an ordinary program. elsewhere: the
    entries that it may lead to with another version or build of PyTorch. needs: "cuda" if only
    a CUDA device can raise it, else "".
    """

    source: str
    line: int
    says: str = ""
    ranks: int = 0
    elsewhere: tuple[str, ...] = ()
    needs: str = ""


@dataclass(frozen=True)
class Where:
    """Conditions beyond the message; None for none.

    inside: is found in the name of one of the library's functions that were under way, as
    "loss.__init__". line: is found in the program's line.
    """

    inside: Pattern | None = None
    line: Pattern | None = None


@dataclass(frozen=True)
class Entry:
    """One error. pattern: matches the beginning of `Type: message`.

    facts: sentences about the case at hand, with the values that were in play; the first that can
    be filled is shown. where: what must hold besides.
    lesson: the id of the lesson about it, which may not be written yet. needs: "" if any machine
    can raise it, "cuda", or in words what it takes.
    """

    id: str
    title: str
    pattern: Pattern
    means: str
    way_out: str
    lesson: str
    line: int
    facts: tuple[str, ...] = ()
    where: Where | None = None
    needs: str = ""
    programs: tuple[Program, ...] = ()


def is_lesson(value: Any) -> bool:
    """The id of a lesson."""
    return is_text(value) and LESSON_ID.fullmatch(value) is not None


def is_ranks(value: Any) -> bool:
    """How many processes a program may be run as."""
    return is_count(value) and value <= 8


KEYS = {"errors": Key(is_tables, "a list of tables, written [[errors]]")}
ENTRY = {
    "id": Key(is_id, 'lower-case letters, digits and underscores, as "matmul_shapes"'),
    "title": TEXT,
    "pattern": Key(is_text, "a regular expression for the beginning of `Type: message`"),
    "means": TEXT,
    "way_out": TEXT,
    "lesson": Key(is_lesson, 'the id of a lesson, as "memory/broadcasting"'),
    "facts": Key(is_texts, "a list of sentences, the most telling first", required=False),
    "where": Key(is_table, "a table of conditions", required=False),
    "needs": Key(is_text, '"cuda", or in words what it takes', required=False),
    "programs": Key(is_tables, "a list of tables, written [[errors.programs]]", required=False),
}
WHERE = {
    "inside": Key(is_text, "a regular expression for one of torch's functions", required=False),
    "line": Key(is_text, "a regular expression for the program's line", required=False),
}
PROGRAM = {
    "source": Key(is_text, "a Python program that raises the error"),
    "says": Key(is_text, "a part of what the explanation must say", required=False),
    "ranks": Key(is_ranks, "a whole number from 1 to 8", required=False),
    "elsewhere": Key(is_texts, "a list of ids of other errors", required=False),
    "needs": NEEDS,
}


def read_atlas(root: Path, *, thorough: bool = True) -> tuple[tuple[Entry, ...], list[Problem]]:
    """The entries of the course in `root`, none if it has no atlas, and what is wrong with them.

    thorough: read their programs as well, which only the author's gate runs.
    """
    path = root / ATLAS
    if not os.path.lexists(path):
        return (), []
    report = Report(ATLAS)
    data = read_course_file(path, report)
    text = decode(data or b"", report)
    table = None if data is None else load_toml(text, 1, "atlas.toml", report)
    if table is None:
        return (), report.problems
    values = check_table(table, KEYS, "atlas.toml", key_lines(text, 1, otherwise=1), report)
    tables = values.get("errors", [])
    if not thorough:
        tables = [{**table, "programs": []} for table in tables]
    entries = tuple(_entries(tables, text, report))
    return entries, sorted(report.problems)


def check_atlas(course: Course) -> tuple[tuple[Entry, ...], list[Problem]]:
    """The entries of a course, held against its lessons as well."""
    entries, problems = read_atlas(course.root)
    planned = read_contents(course.root)[0].planned
    lessons = [lesson.id for lesson in course.lessons]
    return entries, [*problems, *lesson_problems(entries, lessons, planned)]


def lesson_problems(
    entries: Sequence[Entry], lessons: Sequence[str], planned: Sequence[str]
) -> Iterator[Problem]:
    """The entries that name a lesson which is not there.

    lessons: the ids of the course. planned: chapters that are still being written; any lesson of
    theirs may be named.
    """
    for entry in entries:
        if entry.lesson not in lessons and entry.lesson.partition("/")[0] not in planned:
            message = f"{entry.id!r} names the lesson {entry.lesson!r}, which the course has not"
            yield Problem(ATLAS, entry.line, message)


def _entries(tables: list[dict[str, Any]], text: str, report: Report) -> Iterator[Entry]:
    seen: set[str] = set()
    for table, (line, body) in zip(tables, table_bodies(text, "errors", len(tables)), strict=True):
        entry = _entry(table, line, body, report)
        if entry is None:
            continue
        if entry.id in seen:
            report.add(line, f"there are two errors {entry.id!r}: rename one")
        else:
            seen.add(entry.id)
            yield entry


def _entry(table: dict[str, Any], line: int, body: str, report: Report) -> Entry | None:
    """An entry, or None if it is not complete enough to be one."""
    before = len(report.problems)
    head = body.split("[[errors.programs]]")[0]
    line_of = key_lines(head, line, otherwise=line)
    values = check_table(table, ENTRY, "the error", line_of, report)
    pattern = _pattern(values.get("pattern"), line_of("pattern"), report)
    where = _where(values.pop("where", None), line_of, report)
    if pattern is not None:
        _check_facts(values.get("facts", []), pattern, line_of("facts"), report)
    programs = tuple(_programs(values.pop("programs", []), line, body, report))
    if not programs and "needs" not in values and "programs" not in table:
        report.add(line, "the error lacks a program that raises it: add [[errors.programs]]")
    if len(report.problems) > before or pattern is None:
        return None
    return Entry(
        id=values["id"],
        title=values["title"].strip(),
        pattern=pattern,
        means=trimmed(values["means"]),
        way_out=trimmed(values["way_out"]),
        lesson=values["lesson"],
        line=line,
        facts=tuple(values.get("facts", ())),
        where=where,
        needs=values.get("needs", ""),
        programs=programs,
    )


def _where(
    table: dict[str, Any] | None, line_of: Callable[[str], int], report: Report
) -> Where | None:
    if table is None:
        return None
    values = check_table(table, WHERE, "'where'", line_of, report)
    if not table:
        report.add(line_of("where"), f"'where' is empty: it may have {listed(list(WHERE), 'or')}")
    patterns = {name: _pattern(text, line_of(name), report) for name, text in values.items()}
    return Where(**patterns)


def _pattern(text: str | None, line: int, report: Report) -> Pattern | None:
    if text is None:
        return None
    pattern = Pattern(text)
    try:
        pattern.check()
    except PatternError as error:
        report.add(line, f"the pattern {show(text)}: {error}")
        return None
    return pattern


def _check_facts(facts: list[str], pattern: Pattern, line: int, report: Report) -> None:
    for fact in facts:
        for part in unknown_parts(fact, pattern.groups):
            report.add(line, f"{{{part}}} is neither a group of the pattern nor a part of a value")


def _programs(
    tables: list[dict[str, Any]], first: int, body: str, report: Report
) -> Iterator[Program]:
    bodies = table_bodies(body, "errors.programs", len(tables))
    for table, (within, text) in zip(tables, bodies, strict=True):
        line = first + within - 1
        line_of = key_lines(text, line, otherwise=line)
        values = check_table(table, PROGRAM, "the program", line_of, report)
        source = values.get("source")
        if source is not None:
            _check_python(source, line_of, report)
            program = source.strip("\n") + "\n"
            says, ranks = values.get("says", ""), values.get("ranks", 0)
            elsewhere = tuple(values.get("elsewhere", ()))
            yield Program(program, line, says, ranks, elsewhere, values.get("needs", ""))


def _check_python(source: str, line_of: Callable[[str], int], report: Report) -> None:
    try:
        ast.parse(source)
    except NOT_PYTHON as error:
        # The text of a ''' string begins one line below its key.
        line = line_of("source") + (getattr(error, "lineno", 1) or 1)
        report.add(line, f"the program is not Python: {getattr(error, 'msg', error)}")
