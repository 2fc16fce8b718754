"""The learner's program beside the course's solution: which lines differ, and how."""

import ast
import difflib
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass

from tensortutor.course.check_file_reader import DEFINITIONS
from tensortutor.course.model import Lesson
from tensortutor.course.read_file import NOT_PYTHON

SAME, MINE, THEIRS = " ", "<", ">"
"""The marks of a line: in both programs, in the learner's alone, in the solution alone.

Not `-` and `+`: both programs are right.
"""
MOST_LINES = 14
"""Of a common mistake's code."""


@dataclass(frozen=True)
class Pair:
    """One line of each program, side by side; None where one of them has no line.

    same: both hold the same line.
    """

    mine: str | None
    theirs: str | None
    same: bool


@dataclass(frozen=True)
class Mistake:
    """What others get wrong in a task: its name, the check that notices it, and the wrong code.

    code: "" where it cannot be understood without the rest of the check file, or is long.
    """

    name: str
    caught_by: str
    code: str


def beside(mine: str, theirs: str) -> list[Pair]:
    """Both programs, line by line, what corresponds on one row.

    Docstrings are left out of both. A task stands in those of the learner, and would drown what
    differs.
    """
    left, right = _lines(mine), _lines(theirs)
    pairs: list[Pair] = []
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    for kind, a, b, c, d in matcher.get_opcodes():
        same = kind == "equal"
        for i in range(max(b - a, d - c)):
            one = left[a + i] if a + i < b else None
            other = right[c + i] if c + i < d else None
            pairs.append(Pair(one, other, same))
    return pairs


def unified(pairs: list[Pair]) -> Iterator[tuple[str, str]]:
    """The rows one below the other, as (mark, line): what goes first, then what comes instead."""
    coming: list[str] = []
    for pair in pairs:
        if pair.same:
            yield from ((THEIRS, line) for line in coming)
            coming = []
            yield SAME, pair.mine or ""
            continue
        if pair.mine is not None:
            yield MINE, pair.mine
        if pair.theirs is not None:
            coming.append(pair.theirs)
    yield from ((THEIRS, line) for line in coming)


def differs(pairs: list[Pair]) -> bool:
    """Whether any line does."""
    return not all(pair.same for pair in pairs)


def common_mistakes(lesson: Lesson) -> list[Mistake]:
    """What others get wrong in a lesson's task."""
    codes = _codes(lesson.judge.source)
    return [
        Mistake(mutant.name, mutant.caught_by, codes.get(mutant.line, ""))
        for mutant in lesson.judge.mutants
    ]


def _codes(source: str) -> dict[int, str]:
    """The text of each definition of a check file that stands for itself, by its decorators' lines.

    Raises SyntaxError if the check file is not Python.
    """
    tree = ast.parse(source)
    helpers = {
        name
        for node in tree.body
        if not isinstance(node, (ast.Import, ast.ImportFrom))
        for name in _bound(node)
    }
    lines = source.splitlines()
    found: dict[int, str] = {}
    for node in tree.body:
        if not isinstance(node, DEFINITIONS) or not node.decorator_list:
            continue
        names = {
            name.id for part in node.body for name in ast.walk(part) if isinstance(name, ast.Name)
        }
        text = "\n".join(lines[node.lineno - 1 : node.end_lineno])
        kept = _lines(re.sub(r"[ ]{2,}# fmt: .*", "", text))
        if names.isdisjoint(helpers - {node.name}) and len(kept) <= MOST_LINES:
            found |= {decorator.lineno: "\n".join(kept) for decorator in node.decorator_list}
    return found


def _bound(node: ast.stmt) -> set[str]:
    """The names that a statement of a module binds."""
    if isinstance(node, DEFINITIONS):
        return {node.name}
    targets = (name for name in ast.walk(node) if isinstance(name, ast.Name))
    return {name.id for name in targets if isinstance(name.ctx, ast.Store)}


def _lines(source: str) -> list[str]:
    """The lines of a program without its docstrings, and without blank ones around them."""
    lines = source.expandtabs(4).splitlines()
    dropped = _docstring_lines(source)
    kept: list[str] = []
    for number, line in enumerate(lines, 1):
        after_docstring = number - 1 in dropped and not line.strip()
        if after_docstring:
            dropped.add(number)
        if number not in dropped:
            kept.append(line.rstrip())
    while kept and not kept[-1]:
        kept.pop()
    return kept


def _docstring_lines(source: str) -> set[int]:
    """The numbers, from 1, of the lines that docstrings of functions and classes fill."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # an odd escape in a string is no concern here
            tree = ast.parse(source)
    except NOT_PYTHON:
        return set()
    found: set[int] = set()
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            continue
        first = node.body[0]
        # A body of a docstring alone keeps it: without it there would be no body. A docstring
        # behind the colon or before a semicolon shares its line with code that stays.
        alone = len(node.body) == 1 or first.lineno == node.lineno
        shared = not alone and node.body[1].lineno == first.end_lineno
        if ast.get_docstring(node, clean=False) is not None and not alone and not shared:
            found.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    return found
