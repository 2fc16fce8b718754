"""A program taken apart into the statements of its top level, as one shows it to a room. Pure."""

import ast
import re
from itertools import pairwise

from tensortutor.course.read_file import NOT_PYTHON


def statements(source: str) -> tuple[str, ...]:
    """The program in pieces that can be shown one by one; joined, they are the program.

    A piece is one statement of the top level with what stands before it: comments, empty lines,
    and imports, which nobody wants one by one. What is no Python is one piece, and so is nothing,
    and what is too deep to be read.
    """
    try:
        body = ast.parse(source).body
    except NOT_PYTHON:
        return (source,)
    # As Python counts lines; `splitlines` knows more ends than that.
    lines = re.findall(r"[^\n]*\n|[^\n]+", source)
    ends: list[int] = []
    for statement, following in pairwise(body):
        end = statement.end_lineno or statement.lineno
        start = _start(following) - 1
        if end > start or (_is_import(statement) and _is_import(following)):
            continue  # both on one line, or both imports
        # A comment that is indented belongs to the block above it.
        while end < start and lines[end][:1].isspace() and lines[end].strip():
            end += 1
        ends.append(end)
    pieces = zip([0, *ends], [*ends, len(lines)], strict=True)
    return tuple("".join(lines[start:end]) for start, end in pieces)


def _start(statement: ast.stmt) -> int:
    """The number of a statement's first line, with its decorators."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(node.lineno for node in decorators)])


def _is_import(statement: ast.stmt) -> bool:
    return isinstance(statement, (ast.Import, ast.ImportFrom))
