"""The event of shapes: expressions of two sides that broadcast, and the call that did not fit."""

import ast
from collections.abc import Iterator
from types import FrameType, TracebackType
from typing import Any

from tensortutor.protocol.lens import MOST_BROADCASTS, Broadcast, Broadcasts, Operand, ShapeError
from tensortutor.worker import access
from tensortutor.worker.lens import shape_mismatch
from tensortutor.worker.lens.budget import Budget
from tensortutor.worker.lens.expression_shapes import (
    ExpressionShapes,
    FailedCall,
    Mismatch,
    Pair,
    Unknown,
    Value,
)
from tensortutor.worker.lens.recorder import Record, Recorder
from tensortutor.worker.lens.snapshots import MISSING, operand_snapshot, value_at
from tensortutor.worker.lens.without_compiler import without_compiler

SHAPES_S = 0.15
"""Processor time for computing shapes; what comes too late is left out."""
REASON_S = 0.15
"""For finding out why a call raised."""
LONGEST_SOURCE = 60


class SourceText:
    """A program's source, for reporting places in it."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._lines = source.splitlines()
        self.source = source
        self.modules = torch_modules(tree)

    def column(self, line: int, offset: int) -> int:
        """A column from 1 in characters, from an offset in bytes."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return len(text.encode()[:offset].decode(errors="replace")) + 1

    def place(self, node: ast.expr) -> tuple[int, int, int, int]:
        """Line, column, last line and column behind the end, all from 1."""
        end_line = node.end_lineno or node.lineno
        return (
            node.lineno, self.column(node.lineno, node.col_offset),
            end_line, self.column(end_line, node.end_col_offset or 0),
        )  # fmt: skip

    def text(self, node: ast.expr) -> str:
        """An expression as it stands there."""
        found = ast.get_source_segment(self.source, node) or ast.unparse(node)
        return access.cut(" ".join(found.split()), LONGEST_SOURCE)


def torch_modules(tree: ast.Module) -> dict[str, str]:
    """The names that stand for torch or a part of it, by their imports."""
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == "torch":
                    found[alias.asname or "torch"] = alias.name if alias.asname else "torch"
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "torch":
            for alias in node.names:
                found[alias.asname or alias.name] = f"{node.module}.{alias.name}"
    return found


def broadcasts_of(recorder: Recorder, source: SourceText, trace: list[TracebackType]) -> Broadcasts:
    """All of a program, as last executed; at the place where it raised, as it was then.

    trace: the places in its file that an exception went through, [] without one.
    """
    failed = recorder.by_line.get(trace[-1].tb_lineno) if trace else None
    found: list[Broadcast] = []
    shape_error: ShapeError | None = None
    with without_compiler():
        # What that code imports at its first use: 0.3 s that are not to be taken from the budget.
        import torch.fx.experimental.symbolic_shapes  # noqa: F401

        budget = Budget(SHAPES_S)
        if failed is not None:
            found, shape_error = at_failure(failed, recorder, source, trace[-1].tb_frame)
        for record in recorder.records:
            if record.before and record is not failed:
                found += finished(record, source, budget)
    found.sort(key=lambda one: (one.line, one.column, -one.end_line, -one.end_column))
    left_out = max(0, len(found) - MOST_BROADCASTS)
    return Broadcasts(tuple(found[:MOST_BROADCASTS]), left_out, error=shape_error)


def finished(record: Record, source: SourceText, budget: Budget) -> Iterator[Broadcast]:
    """A statement that ran to its end: nothing in it can have failed to match."""
    shapes = ExpressionShapes(record.before, record.returned, source.modules, budget)
    values = [evaluate(shapes, expression) for expression in record.statement.expressions]
    if Mismatch in values or contradicts(record, values):
        return  # a name held something else by then; better nothing than something false
    yield from (told(pair, source, raised=False) for pair in shapes.pairs)


def evaluate(shapes: ExpressionShapes, expression: ast.expr) -> Any:
    """The value; Unknown or Mismatch themselves."""
    try:
        return shapes.value(expression)
    except Mismatch:
        return Mismatch
    except Exception:  # Unknown; and what goes wrong here is no reason to lose the others
        return Unknown


def contradicts(record: Record, values: list[Any]) -> bool:
    """What was worked out is not what the statement has made."""
    made = [t for t in record.statement.targets if t.how == "made"]
    if len(made) != 1 or len(values) != 1 or not isinstance(values[0], Value):
        return False
    stored = record.stored.get(made[0].name)
    is_known = stored is not None and stored.at == record.count
    return is_known and stored is not None and tuple(stored.seen.shape) != values[0].shape


def at_failure(
    record: Record, recorder: Recorder, source: SourceText, frame: FrameType
) -> tuple[list[Broadcast], ShapeError | None]:
    """A statement that raised: its names are still there."""
    names = frame.f_locals
    known = {}
    for path in record.statement.operands:
        value = value_at(path, names, frame.f_globals)
        found = operand_snapshot(value, recorder.path, where=False)
        if found is not MISSING:
            known[path] = found
    for on in ("meta", "cpu"):
        shapes = ExpressionShapes(known, record.returned, source.modules, Budget(SHAPES_S), on)
        found = (evaluate(shapes, expression) for expression in record.statement.expressions)
        if Mismatch in found:
            break
    pairs = [told(pair, source, raised=pair.result is None) for pair in shapes.pairs]
    if shapes.failed is None or any(pair.raised for pair in pairs):
        return pairs, None
    return pairs, shape_error_of(shapes.failed, source)


def shape_error_of(call: FailedCall, source: SourceText) -> ShapeError | None:
    """Why a call raised, if its shapes are why."""
    trial = shape_mismatch.Trial(call, source.text, Budget(REASON_S))
    why = shape_mismatch.explain_mismatch(trial)
    if not why:
        return None
    operands = tuple(
        Operand(access.cut(place.text, LONGEST_SOURCE), words(value), place.shape)
        for place, value in zip(trial.places, trial.values, strict=True)
    )
    return ShapeError(*source.place(call.node), access.cut(call.name), operands, (why,))


def words(value: Value) -> str:
    """`f32[64, 1]`, and the device if it is not the CPU."""
    return access.words_of_shape(value.dtype, value.shape, value.device)


def told(pair: Pair, source: SourceText, *, raised: bool) -> Broadcast:
    """One expression."""
    result = pair.result
    return Broadcast(
        *source.place(pair.node),
        operator=pair.operator,
        left=operand(pair.left, pair, source),
        right=operand(pair.right, pair, source),
        result=None if result is None else result.shape,
        words="" if result is None else words(result),
        mismatch=pair.mismatch,
        raised=raised,
    )


def operand(side: tuple[ast.expr, Any], pair: Pair, source: SourceText) -> Operand:
    """One side."""
    node, value = side
    if not isinstance(value, Value):
        return Operand(source.text(node), "", ())
    result = pair.result
    repeated: tuple[int, ...] = ()
    if result is not None and pair.operator != "@":
        repeated = tuple(stretched(value.shape, result.shape))
    return Operand(source.text(node), words(value), value.shape, repeated)


def stretched(shape: tuple[int, ...], result: tuple[int, ...]) -> Iterator[int]:
    """The dimensions of the result, from the right, along which a side is repeated."""
    for index in range(1, len(result) + 1):
        if result[-index] != 1 and (index > len(shape) or shape[-index] == 1):
            yield -index
