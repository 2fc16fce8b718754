"""The event of broadcasting: every expression of two sides whose shapes are known."""

import ast
from collections.abc import Iterator
from types import FrameType
from typing import Any

from tensortutor.protocol.lens import MOST_BROADCASTS, Broadcast, Broadcasts, Operand
from tensortutor.worker.lens import peek, shapes
from tensortutor.worker.lens.evaluate import Evaluator, Pair
from tensortutor.worker.lens.looks import MISSING, note, value_at
from tensortutor.worker.lens.recorder import Record, Recorder
from tensortutor.worker.lens.shapes import Mismatch, Unknown, Value

LONGEST_SOURCE = 60


class Reader:
    """A program's source, for reporting places in it."""

    def __init__(self, source: str, tree: ast.Module) -> None:
        self._lines = source.splitlines()
        self.source = source
        self.modules = torch_modules(tree)

    def column(self, line: int, offset: int) -> int:
        """A column from 1 in characters, from an offset in bytes."""
        text = self._lines[line - 1] if 0 < line <= len(self._lines) else ""
        return len(text.encode()[:offset].decode(errors="replace")) + 1

    def text(self, node: ast.expr) -> str:
        """An expression as it stands there."""
        found = ast.get_source_segment(self.source, node) or ast.unparse(node)
        return peek.cut(" ".join(found.split()), LONGEST_SOURCE)


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


def broadcasts_of(
    recorder: Recorder, reader: Reader, error: BaseException | None, frames: list[FrameType]
) -> Broadcasts:
    """All of a program, as last executed; at the place where it raised, as it was then."""
    failed = failed_record(recorder, error)
    found: list[Broadcast] = []
    for record in recorder.by_line.values():
        if record is failed and frames:
            found += at_failure(record, recorder, reader, frames[-1])
        elif record.before:
            found += finished(record, reader)
    found.sort(key=lambda one: (one.line, one.column, -one.end_line, -one.end_column))
    return Broadcasts(tuple(found[:MOST_BROADCASTS]), max(0, len(found) - MOST_BROADCASTS))


def failed_record(recorder: Recorder, error: BaseException | None) -> Record | None:
    """The statement that raised."""
    trace = None if error is None else error.__traceback__
    line = 0
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == recorder.path:
            line = trace.tb_lineno
        trace = trace.tb_next
    for record in recorder.by_line.values():
        if line and record.statement.line <= line <= record.statement.end_line:
            return record
    return None


def finished(record: Record, reader: Reader) -> Iterator[Broadcast]:
    """A statement that ran to its end: nothing in it can have failed to match."""
    evaluator = Evaluator(record.before, record.returned, reader.modules)
    values = [evaluate(evaluator, expression) for expression in record.statement.expressions]
    if Mismatch in values or contradicts(record, values):
        return  # a rule was wrong here; better nothing than something false
    yield from (told(pair, reader, raised=False) for pair in evaluator.pairs)


def evaluate(evaluator: Evaluator, expression: ast.expr) -> Any:
    """The value; Unknown or Mismatch themselves."""
    try:
        return evaluator.value(expression)
    except Mismatch:
        return Mismatch
    except Exception:  # Unknown; and a rule that is wrong here is no reason to lose the others
        return Unknown


def contradicts(record: Record, values: list[Any]) -> bool:
    """What was worked out is not what the statement has made."""
    made = [t for t in record.statement.targets if t.how == "made"]
    if len(made) != 1 or len(values) != 1 or not isinstance(values[0], Value):
        return False
    glimpse = record.glimpses.get(made[0].name)
    return glimpse is not None and tuple(glimpse.seen.shape) != values[0].shape


def at_failure(
    record: Record, recorder: Recorder, reader: Reader, frame: FrameType
) -> Iterator[Broadcast]:
    """A statement that raised: its names are still there."""
    names = frame.f_locals
    known = {
        path: found
        for path in record.statement.operands
        if (found := note(value_at(path, names, frame), recorder.path, where=False)) is not MISSING
    }
    evaluator = Evaluator(known, record.returned, reader.modules)
    for expression in record.statement.expressions:
        evaluate(evaluator, expression)
    raised = False
    for pair in evaluator.pairs:
        here = pair.result is None and not raised
        raised = raised or here
        yield told(pair, reader, raised=here)


def told(pair: Pair, reader: Reader, *, raised: bool) -> Broadcast:
    """One expression."""
    node = pair.node
    result = pair.result
    end_line = node.end_lineno or node.lineno
    return Broadcast(
        line=node.lineno,
        column=reader.column(node.lineno, node.col_offset),
        end_line=end_line,
        end_column=reader.column(end_line, node.end_col_offset or 0),
        operator=pair.operator,
        left=operand(pair.left, pair, reader),
        right=operand(pair.right, pair, reader),
        result=None if result is None else result.shape,
        words=""
        if result is None
        else peek.words_of_shape(result.dtype, result.shape, result.device),
        mismatch=pair.mismatch,
        raised=raised,
    )


def operand(side: tuple[ast.expr, Any], pair: Pair, reader: Reader) -> Operand:
    """One side."""
    node, value = side
    if not isinstance(value, Value):
        return Operand(reader.text(node), "", ())
    result = pair.result
    repeated: tuple[int, ...] = ()
    if result is not None and pair.operator != "@":
        repeated = shapes.stretched(value.shape, result.shape)
    return Operand(
        reader.text(node),
        peek.words_of_shape(value.dtype, value.shape, value.device),
        value.shape,
        repeated,
    )
