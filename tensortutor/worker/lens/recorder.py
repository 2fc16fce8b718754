"""Records what the learner's lines make: each line is followed for its first passes, then let go.

A line that has been let go costs next to nothing. What it made last is read at the end from the
names that still hold it.
"""

import ast
import math
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tensortutor.worker.lens.snapshots import (
    MISSING,
    NONFINITE,
    TensorSnapshot,
    nonfinite,
    operand_snapshot,
    tensor_snapshot,
    value_at,
)
from tensortutor.worker.lens.statements import Path, Statement, Target, plan

FIRST_PASSES = 64
"""So many executions of a line, and calls of a function, are followed."""
FEWEST_PASSES = 4
"""So many when the lens has used up its time. Views and copies are told by these, too."""
BUDGET_S = 0.25
"""Processor time that the lens may spend on looking at values in one run."""
LONGEST_S = 5e-5
"""A look that seems to take longer was interrupted by another process."""
MOST_TARGETS = 64
FUNCTION = 0x3
"""The flags of a function's code: it has fast locals of its own (a module and a class have not)."""
GENERATOR = 0x20 | 0x80 | 0x200
AT_END = 0
"""In place of the number of an execution: seen when the function or the program had ended."""
clock = time.thread_time


@dataclass(eq=False)
class Stored:
    """What a target was when it was last seen. at: the execution, or AT_END."""

    seen: TensorSnapshot
    how: str
    at: int
    copied: bool | None = None
    detached: str = ""
    device_from: Any = None
    dtype_from: Any = None


class FirstSeen(NamedTuple):
    """Where NaN or infinity was first seen. at: the execution, or AT_END.

    after_gap: some lines had been let go by then.
    """

    record: "Record"
    name: str
    at: int
    after_gap: bool


@dataclass(eq=False)
class Record:
    """What is known of a statement.

    count: its executions that were followed; let_go: there were more. before: what its operands
    were before the last one. callers: of a function's head, the statements that have called it
    through somebody else's functions.
    """

    statement: Statement
    count: int = 0
    let_go: bool = False
    before: dict[Path, Any] = field(default_factory=dict)
    stored: dict[str, Stored] = field(default_factory=dict)
    returned: dict[CodeType, TensorSnapshot] = field(default_factory=dict)
    callers: set["Record"] = field(default_factory=set)


class Recorder:
    """The records of a program.

    by_line: the record of the statement that a line belongs to. functions: of their heads, by the
    line of their code. limit: how many executions of a line are followed. firsts: where NaN and
    infinity ("nan", "inf") were first seen. waiting: by the frame's id, the statement under way in
    a generator or coroutine that will go on.
    """

    def __init__(
        self,
        tree: ast.Module,
        code: CodeType,
        on_leave: Callable[[FrameType], None] | None = None,
        *,
        everything: bool = False,
    ) -> None:
        """on_leave: called with the frame of a function that is about to go.

        everything: follow every execution, whatever it costs.
        """
        self.on_leave = on_leave
        self.path = code.co_filename
        self.code = code
        self.everything = everything
        self.limit: float = math.inf if everything else FIRST_PASSES
        statements, heads = plan(tree)
        self.records = [Record(one) for one in statements]
        self.by_line: dict[int, Record] = {}
        for record in self.records:
            for line in range(record.statement.line, record.statement.end_line + 1):
                self.by_line.setdefault(line, record)
        self.functions = {line: Record(one) for line, one in heads.items()}
        self.stack: list[Activation] = []
        self.firsts: dict[str, FirstSeen] = {}
        self.failures = 0
        self.waiting: dict[int, Record] = {}
        self._own_names: dict[int, list[tuple[Record, Target]]] = {}
        self._spent = 0.0
        self._has_gap = False

    def is_let_go(self, record: Record) -> bool:
        """It has been followed often enough. Marks it: it is about to be executed again."""
        if record.count < self.limit:
            return False
        record.let_go = self._has_gap = True
        return True

    def enter(self, frame: FrameType) -> "Activation | None":
        """A function of the learner's file begins or, if it is a generator, goes on.

        None: it has been let go.
        """
        code = frame.f_code
        head = self.functions.get(code.co_firstlineno)
        if head is None or (code.co_flags & GENERATOR and frame.f_lineno != code.co_firstlineno):
            resumed = Activation(self)
            resumed.pending = self.waiting.pop(id(frame), None)
            return resumed
        if self.is_let_go(head):
            self._let_body_go(head)
            return None
        head.count += 1
        self.look(head, frame)
        activation = Activation(self)
        back = frame.f_back
        is_direct = back is not None and back.f_code.co_filename == self.path
        if activation.caller is not None and not is_direct:
            head.callers.add(activation.caller)
        return activation

    def _let_body_go(self, head: Record) -> None:
        """A function is called once more than it is followed."""
        for line in head.statement.body:
            if line in self.by_line:
                self.by_line[line].let_go = True

    def mark_missed_calls(self) -> None:
        """Functions were called unseen if a line that calls them has been let go: mark them."""
        todo = [head for head in self.functions.values() if not head.let_go]
        while missed := [one for one in todo if any(line.let_go for line in one.callers)]:
            for head in missed:
                head.let_go = True
                self._let_body_go(head)
            todo = [head for head in todo if not head.let_go]

    def prepare(self, record: Record, frame: FrameType) -> None:
        """Note what the operands of a statement are, before it runs."""
        begun = clock()
        try:
            names = frame.f_locals
            before = record.before
            for path in record.statement.operands:
                value = value_at(path, names, frame.f_globals)
                found = operand_snapshot(value, self.path, where=record.count <= FEWEST_PASSES)
                if found is not MISSING:
                    before[path] = found
                elif path in before:
                    del before[path]
        except Exception:
            self.failures += 1
        self.charge(begun)

    def look(self, record: Record, frame: FrameType) -> None:
        """Look at what a statement has stored."""
        begun = clock()
        try:
            names = frame.f_locals
            for target in record.statement.targets:
                value = value_at(target.path, names, frame.f_globals)
                self._store(record, target, value, record.count)
        except Exception:
            self.failures += 1
        self.charge(begun)

    def charge(self, begun: float) -> None:
        """Looking began at this time, and has ended. Without time, follow the first few only."""
        self._spent += min(clock() - begun, LONGEST_S)
        if self._spent > BUDGET_S and not self.everything:
            self.limit = FEWEST_PASSES

    def _store(self, record: Record, target: Target, value: Any, at: int) -> None:
        where = 0 < at <= FEWEST_PASSES
        seen = tensor_snapshot(value, where=where)
        if seen is None:
            if type(value) in (tuple, list) and target.how == "made" and len(value) <= 4:
                for index, item in enumerate(value):
                    if tensor_snapshot(item) is not None:
                        part = Target((*target.path, f"[{index}]"), target.how)
                        self._store(record, part, item, at)
            return
        name = target.name
        stored = record.stored.get(name)
        if stored is None:
            if len(record.stored) >= MOST_TARGETS:
                return
            stored = record.stored[name] = Stored(seen, target.how, at)
        if where:
            compare(stored, seen, record.before, target.path)
        stored.seen, stored.at = seen, at
        self._search(record, name, seen, value, at)

    def leave(self, frame: FrameType, value: Any, caller: Record | None) -> None:
        """A function of the learner's gives back a value, or yields one."""
        record = self.by_line.get(frame.f_lineno)
        if record is None:
            return
        begun = clock()
        try:
            values = value if type(value) is tuple and len(value) <= 4 else (value,)
            for index, item in enumerate(values):
                seen = tensor_snapshot(item)
                if seen is None:
                    continue
                name = "return" if len(values) == 1 else f"return[{index}]"
                record.stored[name] = Stored(seen, "returned", record.count)
                self._search(record, name, seen, item, record.count)
                if caller is not None and len(values) == 1:
                    caller.returned[frame.f_code] = seen
        except Exception:
            self.failures += 1
        self.charge(begun)

    def _search(self, record: Record, name: str, seen: TensorSnapshot, value: Any, at: int) -> None:
        """Look for the first NaN and the first infinity."""
        is_open = len(self.firsts) < len(NONFINITE) or at == AT_END
        if is_open and seen.dtype.is_floating_point:
            for kind in nonfinite(value, seen) or ():
                first = self.firsts.get(kind)
                # What was seen after a gap may come from inside the gap: from a line let go.
                if first is None or (at == AT_END != first.at and first.after_gap):
                    self.firsts[kind] = FirstSeen(record, name, at, self._has_gap)

    def last_values(
        self, code: CodeType, names: Mapping[str, Any], globals_: Mapping[str, Any], id_: int = 0
    ) -> None:
        """The names of a scope that ends: they still hold what lines that were let go made last.

        id_: of the scope's frame.
        """
        waiting = self.waiting.get(id_)
        try:
            for record, target in self.own_names(code):
                if record.let_go and record is not waiting:
                    value = value_at(target.path, names, globals_)
                    self._store(record, target, value, AT_END)
        except Exception:
            self.failures += 1

    def own_names(self, code: CodeType) -> list[tuple[Record, Target]]:
        """The names that one statement of a function stores and no other, each with its statement.

        Such a name still holds what the statement gave it when the function returns.
        """
        found = self._own_names.get(id(code))
        if found is None:
            lines = sorted({line for _, _, line in code.co_lines() if line is not None})
            own = dict.fromkeys(self.by_line[line] for line in lines if line in self.by_line)
            pairs = [(record, target) for record in own for target in record.statement.targets]
            arguments = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
            times = Counter([(name,) for name in arguments] + [target.path for _, target in pairs])
            found = [pair for pair in pairs if len(pair[1].path) == times[pair[1].path] == 1]
            self._own_names[id(code)] = found
        return found


class Activation:
    """One call of a function of the learner's file, or the run of the module.

    pending: the statement under way. caller: the one that was under way when the call began.
    """

    __slots__ = ("_lines", "_recorder", "caller", "pending")

    def __init__(self, recorder: Recorder) -> None:
        self.pending: Record | None = None
        self.caller = recorder.stack[-1].pending if recorder.stack else None
        recorder.stack.append(self)
        self._recorder = recorder
        self._lines = recorder.by_line

    def line(self, frame: FrameType, line: int) -> bool:
        """A line begins. Returns whether it is one that has been let go."""
        record = self._lines.get(line)
        pending = self.pending
        if pending is not None:
            if record is pending and record.statement.end_line > record.statement.line:
                return False  # a further line of the same statement, or its first once more
            self._finish(pending, frame, line)
        self.pending = record
        if record is None:
            return False
        if self._recorder.is_let_go(record):
            self.pending = None
            return True
        if not record.statement.body:
            record.count += 1
        if record.statement.operands:
            self._recorder.prepare(record, frame)
        return False

    def fail(self, kind: type) -> None:
        """The statement has come to nothing; but what is awaited ends in a StopIteration, too."""
        if kind is not StopIteration or self.pending is None or not self.pending.statement.waits:
            self.pending = None

    def leave(self, frame: FrameType, value: Any) -> None:
        """The function returns, raises or yields."""
        pending, recorder = self.pending, self._recorder
        self.pending = None
        if pending is not None and pending.statement.waits and frame.f_code.co_flags & GENERATOR:
            recorder.waiting[id(frame)] = pending  # unless the frame goes, it goes on
        elif pending is not None and not pending.statement.body:
            self._finish(pending, frame, 0)
        if recorder.stack and recorder.stack[-1] is self:
            recorder.stack.pop()
        if value is not None:
            recorder.leave(frame, value, self.caller)
        if frame.f_code.co_flags & FUNCTION == FUNCTION:
            recorder.last_values(frame.f_code, frame.f_locals, frame.f_globals, id(frame))
            if recorder.on_leave is not None:
                recorder.on_leave(frame)

    def _finish(self, record: Record, frame: FrameType, line: int) -> None:
        """A statement has run: look at what it stored."""
        body = record.statement.body
        if body:
            if line not in body:
                if body.start > record.statement.line or (record.count and not record.let_go):
                    return
                record.let_go = True  # a loop on one line, of whose passes Python tells nothing
            record.count += 1
        if record.statement.targets:
            self._recorder.look(record, frame)


def compare(stored: Stored, seen: TensorSnapshot, before: dict[Path, Any], path: Path) -> None:
    """What became of the operands: a copy or a view, another device or dtype, detached."""
    tensors = {way: one for way, one in before.items() if type(one) is TensorSnapshot}
    origin = tensors.get(path)
    if len(tensors) == 1:
        (origin,) = tensors.values()
        if seen.start and origin.start:
            stored.copied = seen.start != origin.start
    if origin is not None:
        stored.device_from = origin.device if origin.device != seen.device else None
        stored.dtype_from = origin.dtype if origin.dtype != seen.dtype else None
    for way, one in tensors.items():
        shares = seen.start and one.start == seen.start and way != path
        if shares and one.requires_grad and not seen.requires_grad:
            stored.detached = "".join(way)
