"""Code lines of the reference with their results beside them, and the program that proves them.

A comment behind an expression or an assignment is its result: `x.view(2, 3)  # (2, 3)`. Parentheses
around sizes are a tensor's shape; `RuntimeError: ...` is how an error begins; anything else is the
value's `repr`, on one line. `...` at the end of an error says that its message goes on.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass

from tensortutor.course.claim_checks import Fault, ended
from tensortutor.course.problems import Report
from tensortutor.course.read_file import NOT_PYTHON
from tensortutor.course.run_record import Record
from tensortutor.protocol.jobs import Job

PRELUDE = """\
import torch
from torch import nn
from torch.nn import functional as F
_seen = []
def _see(value):
    try:
        value = value()
    except Exception as error:
        _seen.append(("raised", f"{type(error).__name__}: {error}", ""))
        return None
    sizes = isinstance(value, torch.Tensor) and tuple(value.shape)
    shown = tuple(value) if isinstance(value, torch.Size) else value
    shape = "" if sizes is False else repr(sizes)
    _seen.append(("value", " ".join(repr(shown).split()), shape))
    return value
"""
"""What every sample may use, and what takes down its results."""
ERROR = re.compile(r"[A-Za-z_.]*(?:Error|Exception|Warning|StopIteration)\b")
"""How a result begins that is an error."""


@dataclass(frozen=True)
class Shown:
    """A result beside a line of code. line: in the page's file."""

    line: int
    result: str


@dataclass(frozen=True)
class Sample:
    """The code of an entry. line: that of its opening fence. shown: its results, in order."""

    source: str
    line: int
    shown: tuple[Shown, ...]


def read_sample(source: str, line: int, report: Report) -> Sample:
    """The code of a fence, and its results. What is not Python, or no result, is reported."""
    try:
        tree = ast.parse(source)
    except NOT_PYTHON as error:
        within = getattr(error, "lineno", 1) or 1
        report.add(line + within, f"this is not Python: {getattr(error, 'msg', error)}")
        return Sample(source, line, ())
    checked = {stmt.end_lineno: stmt for stmt in tree.body if _value(stmt) is not None}
    shown = []
    for row, comment in _beside(source):
        if row in checked:
            shown.append(Shown(line + row, " ".join(comment.split())))
        else:
            report.add(
                line + row,
                "a comment beside code is the result of an expression or of an assignment "
                "to one name: give a remark a line of its own",
            )
    if not shown:
        report.add(line, "this code shows no result: write one behind a line, as `x.ndim  # 2`")
    return Sample(source, line, tuple(shown))


def sample_job(sample: Sample) -> Job:
    """The run that shows what a sample's lines give."""
    return Job(program(sample), "reference.py", probes=("_seen",), device="cpu")


def program(sample: Sample) -> str:
    """The sample, each line with a result wrapped so that its value is taken down."""
    lines = sample.source.split("\n")
    rows = {shown.line - sample.line for shown in sample.shown}
    for stmt in reversed(ast.parse(sample.source).body):
        value = _value(stmt)
        if value is None or stmt.end_lineno not in rows:
            continue
        # Columns count bytes; the end first, so that the start stays where it is.
        _insert(lines, (value.end_lineno or 1) - 1, value.end_col_offset or 0, "))")
        _insert(lines, value.lineno - 1, value.col_offset, "_see(lambda: (")
    return PRELUDE + "\n".join(lines)


def faults(sample: Sample, record: Record) -> list[Fault | None]:
    """What a run shows against each result of a sample; a crash tells against all of them."""
    crash = ended(record, sample.line - PRELUDE.count("\n"))
    probed = record.probe(0)
    if crash is None and (probed is None or probed.error):
        crash = Fault("its results could not be read")
    if crash is not None or probed is None:
        return [crash] * len(sample.shown)
    pairs = zip(sample.shown, probed.value, strict=True)
    return [_differs(shown.result, *seen) for shown, seen in pairs]


def _differs(result: str, kind: str, text: str, shape: str) -> Fault | None:
    if kind == "raised":
        wanted = result.removesuffix("...")
        same = ERROR.match(result) is not None and " ".join(text.split()).startswith(wanted)
        return None if same else Fault(f"it raises {text.split(chr(10))[0]}")
    if result in (text, shape):
        return None
    beside = f" of shape {shape}" if shape else ""
    return Fault(f"it gives {text}{beside}")


def _value(stmt: ast.stmt) -> ast.expr | None:
    """What of a statement can have a result."""
    if isinstance(stmt, ast.Expr):
        return stmt.value
    if isinstance(stmt, ast.Assign) and isinstance(stmt.targets[0], ast.Name):
        return stmt.value if len(stmt.targets) == 1 else None
    return None


def _beside(source: str) -> Iterator[tuple[int, str]]:
    """(row, text) of each comment that has code before it on its line."""
    lines = source.split("\n")
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            if lines[row - 1][:column].strip():
                yield row, token.string.lstrip("#").strip()


def _insert(lines: list[str], row: int, column: int, text: str) -> None:
    line = lines[row].encode()
    lines[row] = (line[:column] + text.encode() + line[column:]).decode()
