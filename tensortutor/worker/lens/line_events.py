"""The event of the lines: what was recorded, in words and with its marks."""

import ast
from collections.abc import Iterator
from dataclasses import replace

from tensortutor.protocol.lens import MOST_LINES, Broadcast, Line, Made, Mark, Trace
from tensortutor.worker import access
from tensortutor.worker.lens.recorder import AT_END, FirstSeen, Record, Recorder, Stored
from tensortutor.worker.lens.snapshots import TensorSnapshot
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
NONFINITE = {"nan": "NaN", "inf": "Inf"}


def trace_of(recorder: Recorder, broadcasts: tuple[Broadcast, ...], note: str) -> Trace:
    """The statements that made or changed tensors."""
    records = sorted(
        (r for r in (*recorder.records, *recorder.functions.values()) if r.stored),
        key=lambda record: record.statement.line,
    )
    stretched = list(broadcast_marks(broadcasts))
    lines = tuple(line_of(record, recorder, stretched) for record in records[:MOST_LINES])
    if recorder.failures and not note:
        note = f"{recorder.failures} looks at a line failed."
    return Trace(lines, len(records) - len(lines), note)


def line_of(record: Record, recorder: Recorder, stretched: list[tuple[int, Mark]]) -> Line:
    """One statement."""
    statement = record.statement
    made = [
        Made(
            access.cut(name),
            words(stored.seen),
            stored.how,
            stored.at,
            tuple(marks(name, stored, record, recorder)),
        )
        for name, stored in list(record.stored.items())[:MOST_MADE]
    ]
    here = [mark for line, mark in stretched if statement.line <= line <= statement.end_line]
    if here and made:
        made[-1] = replace(made[-1], marks=(*made[-1].marks, *here))
    return Line(statement.line, statement.end_line, record.count, tuple(made), record.let_go)


def words(seen: TensorSnapshot) -> str:
    """`f32[64, 1]`, and the device if it is not the CPU."""
    return access.words_of_shape(seen.dtype, tuple(seen.shape), str(seen.device))


def marks(name: str, stored: Stored, record: Record, recorder: Recorder) -> Iterator[Mark]:
    """What is worth a look."""
    operations = operations_of(record.statement)
    if stored.copied is not None and stored.how == "made" and operations & {*ALIASING, "[]"}:
        if stored.copied:
            yield Mark("copy", "a copy: it has cells of its own")
        else:
            yield Mark("view", "a view: it shares its cells")
    if stored.device_from is not None:
        yield Mark("device", f"{stored.device_from} → {stored.seen.device}")
    if stored.dtype_from is not None and operations & {*CONVERTING, "operator"}:
        dtypes = (stored.dtype_from, stored.seen.dtype)
        yield Mark("dtype", " → ".join(map(access.short_dtype, dtypes)))
    if stored.detached:
        yield Mark("detached", f"no longer part of the graph of {access.cut(stored.detached, 40)}")
    for kind, first in recorder.firsts.items():
        if (first.record, first.name) == (record, name):
            yield Mark(kind, first_seen(NONFINITE[kind], first))


def first_seen(kind: str, first: FirstSeen) -> str:
    """Where NaN or infinity was first seen, and what lies before it that was not seen."""
    count = first.record.count
    if first.at == AT_END:
        return f"{kind} was here at the end; not followed past pass {count:,}"
    gap = "; lines before were not followed to their end" if first.after_gap else ""
    return f"{kind} was first seen here{f' at pass {first.at:,}' * (count > 1)}{gap}"


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


def broadcast_marks(broadcasts: tuple[Broadcast, ...]) -> Iterator[tuple[int, Mark]]:
    """The lines at which a tensor of at least one dimension was stretched."""
    for one in broadcasts:
        for side in (one.left, one.right):
            if side.stretched and side.shape and one.result is not None:
                text = f"{side.text} stretched from {list(side.shape)} to {list(one.result)}"
                yield one.line, Mark(STRETCHED, access.cut(text))
