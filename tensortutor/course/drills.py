"""Drills: a tensor is drawn, and one line of PyTorch makes it from the tensors beside it.

A chapter's drills stand in `drills.toml` in its folder. A drill belongs to a lesson: once that is
passed, the drill comes back in reviews. Its inputs are drawn anew for each check.
"""

import ast
import random
import textwrap
from collections.abc import Container, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor.course.atlas import is_lesson
from tensortutor.course.course_toml import is_id, is_tables
from tensortutor.course.model import Chapter, Course
from tensortutor.course.problems import Problem, Report, decode
from tensortutor.course.read_file import NOT_PYTHON, read_course_file
from tensortutor.course.toml_tables import (
    TEXT,
    Key,
    check_table,
    is_text,
    is_texts,
    key_lines,
    load_toml,
    table_bodies,
)
from tensortutor.protocol.jobs import Job, Judge, Limits

FILE = "drills.toml"
FUNCTION = "drill"
"""The learner's line becomes the body of this function."""
CHECKS = ("gives the tensor that is drawn", "leaves its inputs as they are")
FEWEST_WRONG = 2
LONGEST = 400
"""Characters of an answer."""
LIMITS = Limits(wall_s=20.0)


@dataclass(frozen=True)
class WrongAnswer:
    """A plausible line that makes something else. because: what it does, for who writes it."""

    line: str
    because: str


@dataclass(frozen=True)
class Drill:
    """One drill. id: chapter/name. lesson: the id of the lesson that teaches it.

    ask: what is wanted, Markdown. given: Python that makes the inputs with torch and `rng`, a
    random.Random. names: the inputs, as right lines use them. answer, accepted: right lines.
    at: the line of the file where it begins.
    """

    id: str
    lesson: str
    ask: str
    given: str
    names: tuple[str, ...]
    answer: str
    accepted: tuple[str, ...]
    wrong: tuple[WrongAnswer, ...]
    path: Path
    at: int

    def because(self, line: str) -> str:
        """What is known of this wrong line, however it is laid out; "" if it is not known."""
        same = _layout(line)
        return next((wrong.because for wrong in self.wrong if _layout(wrong.line) == same), "")

    def others(self, line: str) -> list[str]:
        """Right lines that differ from this one."""
        same = _layout(line)
        return [right for right in (self.answer, *self.accepted) if _layout(right) != same]


KEYS = {"drills": Key(is_tables, "a list of tables, written [[drills]]")}
DRILL = {
    "id": Key(is_id, 'lower-case letters, digits and underscores, as "last_columns"'),
    "lesson": Key(is_lesson, 'the id of a lesson of this chapter, as "tensors/indexing"'),
    "ask": TEXT,
    "given": Key(is_text, "Python that makes the inputs"),
    "answer": Key(is_text, "a Python expression"),
    "accepted": Key(is_texts, "a list of Python expressions", required=False),
    "wrong": Key(is_tables, "a list of tables, written [[drills.wrong]]"),
}
WRONG = {"line": Key(is_text, "a Python expression"), "because": TEXT}


def read_drills(
    course: Course, chapters: Container[str] | None = None
) -> tuple[tuple[Drill, ...], list[Problem]]:
    """The drills that can be made out, and everything that is wrong with the others.

    chapters: the ids of those to read; all without it.
    """
    drills: list[Drill] = []
    problems: list[Problem] = []
    for chapter in course.chapters:
        if chapters is not None and chapter.id not in chapters:
            continue
        path = chapter.lessons[0].path.parent / FILE
        if path.exists() or path.is_symlink():
            report = Report(path.relative_to(course.root).as_posix())
            drills += _read(path, chapter, report)
            problems += sorted(report.problems)
    return tuple(drills), problems


def _read(path: Path, chapter: Chapter, report: Report) -> list[Drill]:
    data = read_course_file(path, report)
    text = decode(data or b"", report)
    table = None if data is None else load_toml(text, 1, FILE, report)
    if table is None:
        return []
    values = check_table(table, KEYS, FILE, key_lines(text, 1, otherwise=1), report)
    tables = values.get("drills", [])
    found: dict[str, Drill] = {}
    for one, (at, body) in zip(tables, table_bodies(text, "drills", len(tables)), strict=True):
        drill = _drill(one, path, chapter, at, body, report)
        if drill is None:
            continue
        if drill.id in found:
            report.add(at, f"there are two drills {drill.id!r}: rename one")
        found.setdefault(drill.id, drill)
    return list(found.values())


def _drill(
    table: dict[str, Any], path: Path, chapter: Chapter, at: int, body: str, report: Report
) -> Drill | None:
    """A drill, or None if it is not complete enough to be one."""
    before = len(report.problems)
    line_of = key_lines(body, at, otherwise=at)
    values = check_table(table, DRILL, "the drill", line_of, report)
    wrong = _wrong(values.get("wrong", []), body, at, report)
    if len(wrong) < FEWEST_WRONG and "wrong" in values:
        report.add(line_of("wrong"), f"a drill has at least {FEWEST_WRONG} wrong lines")
    lesson = values.get("lesson", "")
    if lesson and lesson not in {one.id for one in chapter.lessons}:
        report.add(line_of("lesson"), f"the chapter {chapter.id!r} has no lesson {lesson!r}")
    lines = [values.get("answer", "0"), *values.get("accepted", ())]
    for line in (*lines, *(one.get("line", "0") for one in wrong)):
        if problem := not_a_line(line):
            report.add(line_of("answer"), f"{line!r} cannot be an answer: {problem}")
    names = _inputs(values, line_of("given"), report)
    if len(report.problems) > before:
        return None
    return Drill(
        id=f"{chapter.id}/{values['id']}",
        lesson=lesson,
        ask=values["ask"].strip(),
        given=values["given"].strip("\n") + "\n",
        names=names,
        answer=lines[0],
        accepted=tuple(lines[1:]),
        wrong=tuple(WrongAnswer(one["line"], one["because"].strip()) for one in wrong),
        path=path,
        at=at,
    )


def _wrong(
    tables: list[dict[str, Any]], body: str, at: int, report: Report
) -> list[dict[str, Any]]:
    bodies = table_bodies(body, "drills.wrong", len(tables))
    return [
        check_table(one, WRONG, "'wrong'", key_lines(text, at + n - 1, at + n - 1), report)
        for one, (n, text) in zip(tables, bodies, strict=True)
    ]


def _inputs(values: dict[str, Any], line: int, report: Report) -> tuple[str, ...]:
    """The names that `given` makes and a right line uses, in the order in which they are made."""
    if not {"given", "answer"} <= values.keys():
        return ()
    try:
        made = _names(ast.parse(values["given"]), ast.Store)
        lines = (values["answer"], *values.get("accepted", ()))
        used = {name for line in lines for name in _names(ast.parse(line, mode="eval"), ast.Load)}
    except NOT_PYTHON as error:
        report.add(line, f"'given' is not Python: {getattr(error, 'msg', error)}")
        return ()
    names = tuple(name for name in dict.fromkeys(made) if name in used)
    if not names:
        report.add(line, "the answer uses nothing that 'given' makes")
    return names


def _names(tree: ast.AST, context: type[ast.expr_context]) -> list[str]:
    found = [n for n in ast.walk(tree) if isinstance(n, ast.Name) and isinstance(n.ctx, context)]
    return [name.id for name in sorted(found, key=lambda name: (name.lineno, name.col_offset))]


def not_a_line(text: str) -> str:
    """Why a text cannot be an answer, as a sentence, or ""."""
    if not text.strip():
        return "Write one expression, such as `x.sum(dim=0)`."
    if "\n" in text.strip() or len(text) > LONGEST:
        return f"Write one line of at most {LONGEST} characters."
    try:
        ast.parse(text.strip(), mode="eval")
    except NOT_PYTHON as error:
        said = getattr(error, "msg", "") or "it cannot be read"
        return f"This is no Python expression: {said}. Write the value alone, without a name and =."
    return ""


def _layout(line: str) -> str:
    """The same for lines that differ in spaces, quotes and brackets that change nothing."""
    try:
        return ast.dump(ast.parse(line.strip(), mode="eval"))
    except NOT_PYTHON:
        return line.strip()


def picture_job(drill: Drill, seed: int) -> Job:
    """A run that draws the inputs and what is wanted, each as a grid, and prints other inputs."""
    shown = "\n".join(f"show_input({name!r}, {name})" for name in drill.names)
    return Job(
        f"{_BEGIN}from tensortutor.lab import grid\n\nrng = random.Random({seed})\n"
        f"torch.manual_seed(rng.randrange(2**31))\n{drill.given}\n{_SHOW_INPUT}{shown}\n"
        f"show_input('wanted', ({drill.answer}))\n",
        "drill.py", device="cpu", limits=LIMITS,
    )  # fmt: skip


def answer_job(drill: Drill, line: str, seeds: Sequence[int] = (), every: bool = False) -> Job:
    """A run that checks a line. Without seeds the inputs are fresh. every: see `Judge`."""
    chosen = tuple(seeds) or (random.SystemRandom().randrange(100_000),)
    source = (
        f"{_BEGIN}\n\ndef {FUNCTION}({', '.join(drill.names)}):\n"
        f"    return (\n{textwrap.indent(line.strip(), ' ' * 8)}\n    )\n"
    )
    name = f"{drill.path.parent.name}/{FILE}"
    judge = Judge(_check_file(drill), name, chosen, CHECKS, every=every)
    return Job(source, "drill.py", judge=judge, device="cpu", limits=LIMITS)


def _check_file(drill: Drill) -> str:
    values = {"given": drill.given, "answer": drill.answer, "names": drill.names}
    return "\n".join([*(f"{name.upper()} = {value!r}" for name, value in values.items()), _CHECKS])


_BEGIN = """\
import math
import random

import torch
from torch.nn import functional as F

"""
_SHOW_INPUT = """
def show_input(name, value):
    if isinstance(value, torch.Tensor):
        grid(value, title=name)
    else:
        print(f"{name} = {value!r}")


"""
_CHECKS = """
import math

import torch
from torch.nn import functional as F

from tensortutor.checking import check, expect_close, expect_unchanged

HINT = "Compare the picture cell by cell with what your line gives."


def inputs(rng):
    names = {"torch": torch, "math": math, "F": F, "rng": rng}
    exec(GIVEN, names)
    return {name: names[name] for name in NAMES}


def tensors(values):
    return [value for value in values.values() if isinstance(value, torch.Tensor)]


@check("gives the tensor that is drawn", hint=HINT)
def gives(answer, rng, device):
    values = inputs(rng)
    own = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in values.items()}
    wanted = eval(ANSWER, {"torch": torch, "math": math, "F": F, **own})
    expect_close(answer.drill(*values.values()), wanted)


@check("leaves its inputs as they are")
def unchanged(answer, rng, device):
    values = inputs(rng)
    with expect_unchanged(*tensors(values)):
        answer.drill(*values.values())
"""
