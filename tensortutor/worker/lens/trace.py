"""The event of the lines: what was recorded, in words and with its marks."""

import ast
from collections.abc import Iterator

from tensortutor.checking.describe import SHORT
from tensortutor.protocol.lens import MOST_LINES, Broadcast, Line, Made, Mark, Trace
from tensortutor.worker.lens import peek
from tensortutor.worker.lens.looks import Seen
from tensortutor.worker.lens.recorder import First, Glimpse, Record, Recorder
from tensortutor.worker.lens.statements import Statement

MOST_MADE = 12
ALIASING = (
    "T", "mT", "H", "mH", "t", "view", "view_as", "reshape", "reshape_as", "transpose", "permute",
    "swapaxes", "swapdims", "movedim", "moveaxis", "squeeze", "unsqueeze", "expand", "expand_as",
    "flatten", "unflatten", "ravel", "narrow", "select", "diagonal", "unfold", "as_strided",
    "detach", "data", "real", "imag", "contiguous", "to", "cpu", "cuda", "float", "double",
    "half", "bfloat16", "long", "int", "bool", "type", "type_as", "clone", "numpy", "from_numpy",
    "as_tensor", "asarray", "tensor", "copy", "deepcopy", "rearrange", "atleast_1d", "atleast_2d",
    "broadcast_to", "chunk", "split", "unbind", "tensor_split",
)  # fmt: skip
"""Whether these copy or give a view is what a learner wants to know."""
CONVERTING = (
    "to", "cpu", "cuda", "float", "double", "half", "bfloat16", "long", "int", "short", "bool",
    "type", "type_as", "tensor", "as_tensor",
)  # fmt: skip
STRETCHED = "broadcast"
FEW = 3
"""So few looks, all alike, do not tell that a name is always the same."""
NONFINITE = {"nan": "NaN", "inf": "Inf"}


def trace_of(recorder: Recorder, broadcasts: tuple[Broadcast, ...], note: str) -> Trace:
    """The statements that made or changed tensors."""
    records = sorted(
        (r for r in (*recorder.by_line.values(), *recorder.functions.values()) if r.glimpses),
        key=lambda record: record.statement.line,
    )
    stretched = list(marked(broadcasts))
    lines = tuple(told(record, recorder, stretched) for record in records[:MOST_LINES])
    if recorder.failures and not note:
        note = f"{recorder.failures} looks at a line failed."
    return Trace(lines, len(records) - len(lines), note)


def told(record: Record, recorder: Recorder, stretched: list[tuple[int, Mark]]) -> Line:
    """One statement."""
    statement = record.statement
    made = [
        Made(
            peek.cut(name),
            words(glimpse.seen),
            glimpse.how,
            glimpse.at,
            tuple(marks(name, glimpse, record, recorder)),
        )
        for name, glimpse in list(record.glimpses.items())[:MOST_MADE]
    ]
    here = [mark for line, mark in stretched if statement.line <= line <= statement.end_line]
    if here and made:
        made[-1] = Made(
            made[-1].name, made[-1].words, made[-1].how, made[-1].seen, (*made[-1].marks, *here)
        )
    count = record.count // statement.runs
    return Line(statement.line, statement.end_line, count, tuple(made), record.at_least)


def words(seen: Seen) -> str:
    """`f32[64, 1]`, and the device if it is not the CPU."""
    return peek.words_of_shape(seen.dtype, tuple(seen.shape), str(seen.device))


def marks(name: str, glimpse: Glimpse, record: Record, recorder: Recorder) -> Iterator[Mark]:
    """What is worth a look."""
    operations = operations_of(record.statement)
    if glimpse.copied is not None and glimpse.how == "made" and operations & {*ALIASING, "[]"}:
        if glimpse.copied:
            yield Mark("copy", "a copy: it has cells of its own")
        else:
            yield Mark("view", "a view: it shares its cells")
    if glimpse.device_from is not None:
        yield Mark("device", f"{glimpse.device_from} → {glimpse.seen.device}")
    if glimpse.dtype_from is not None and changes_dtype(record.statement, operations, name):
        before = SHORT.get(glimpse.dtype_from, peek.dtype_name(glimpse.dtype_from))
        yield Mark("dtype", f"{before} → {words(glimpse.seen).partition('[')[0]}")
    if glimpse.detached:
        yield Mark("detached", f"no longer part of the graph of {peek.cut(glimpse.detached, 40)}")
    if glimpse.at < record.count and (glimpse.varies or glimpse.looks < FEW):
        at, count = (n // record.statement.runs for n in (glimpse.at, record.count))
        yield Mark("earlier", f"seen at execution {at:,} of {count:,}; it may differ later")
    for kind, first in recorder.firsts.items():
        if (first.record, first.name) == (record, name):
            yield Mark(kind, f"{NONFINITE[kind]} was first seen here{when(first)}")


def when(first: First) -> str:
    """At which execution, and since when at most."""
    runs = first.record.statement.runs
    count, at, sound = (n // runs for n in (first.record.count, first.at, first.sound))
    if count <= 1:
        return ""
    if first.witness:
        passes = "one pass" if first.ago == 1 else f"{first.ago:,} passes"
        was = "it" if first.witness == first.name else peek.cut(first.witness, 40)
        since = f"; {was} was still finite {passes} before"
    elif sound == at - 1:
        since = ""
    elif sound:
        since = f"; it was finite at {sound:,}, and not looked at in between"
    else:
        since = "; it was not looked at before"
    return f" at execution {at:,}{since}"


def operations_of(statement: Statement) -> set[str]:
    """What the statement does last to what it stores: methods, functions, indexing, operators."""
    found: set[str] = set()
    for expression in statement.expressions:
        node: ast.AST = expression
        if isinstance(node, ast.Call):
            node = node.func
        if isinstance(node, ast.Attribute):
            found.add(node.attr)
        elif isinstance(node, ast.Name):
            found.add(node.id)
        elif isinstance(node, ast.Subscript):
            found.add("[]")
        elif isinstance(node, ast.BinOp):
            found.add("operator")
    return found


def changes_dtype(statement: Statement, operations: set[str], name: str) -> bool:
    """A conversion, arithmetic, a name stored again: not an argmax, which gives indices."""
    own = any(name == "".join(path) for path in statement.operands)
    return own or bool(operations & {*CONVERTING, "operator"})


def marked(broadcasts: tuple[Broadcast, ...]) -> Iterator[tuple[int, Mark]]:
    """The lines at which a tensor of at least one dimension was stretched."""
    for one in broadcasts:
        for side in (one.left, one.right):
            if side.stretched and side.shape and one.result is not None:
                text = f"{side.text} stretched from {list(side.shape)} to {list(one.result)}"
                yield one.line, Mark(STRETCHED, peek.cut(text))
