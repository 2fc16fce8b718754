"""Follows the learner's lines: counts them, and looks at what they made as time allows."""

import ast
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType, FrameType
from typing import Any, NamedTuple

from tensortutor.worker.lens.layers import Layer
from tensortutor.worker.lens.looks import (
    MISSING,
    NONFINITE,
    Called,
    Seen,
    nonfinite,
    note,
    see,
    value_at,
)
from tensortutor.worker.lens.statements import Path, Plan, Statement, Target, plan

ALWAYS = 4
"""The first executions of a line are looked at whatever it costs."""
SHARE = 0.01
"""Of the program's time, for looks."""
GENEROUS_S = 0.004
"""So much they may take in any case."""
LONGEST_S = 5e-5
"""A look that seems to take longer was interrupted by another process."""
MOST_GLIMPSES = 64
FUNCTION = 0x3
"""The flags of a function's code: it has fast locals of its own (a module and a class have not)."""
GENERATOR = 0x20 | 0x80 | 0x200
LASTING = (Layer, Called)
clock = time.thread_time


@dataclass(eq=False)
class Glimpse:
    """What a target was at the last look. at: the execution. varies: between the looks.

    looks: how many there were. sound: the last execution after which it was seen to be finite.
    """

    seen: Seen
    how: str
    at: int
    copied: bool | None = None
    detached: str = ""
    device_from: Any = None
    dtype_from: Any = None
    varies: bool = False
    looks: int = 1
    sound: int = 0


class First(NamedTuple):
    """Where NaN or infinity was first seen. at: the execution.

    sound: the last execution after which it was seen to be finite, 0 if none. witness: a number of
    the loop around it, which was finite `ago` iterations before; "" if none was asked.
    """

    record: "Record"
    name: str
    at: int
    sound: int
    witness: str = ""
    ago: int = 0


@dataclass(eq=False)
class Record:
    """What is known of a statement.

    count: its executions; next: the one to look at next; looked: the last one. before: what its
    operands were before the last look; fresh: those that may be something else the next time.
    is_paced: its executions are counted although it is not followed. at_least: they are not.
    """

    statement: Statement
    lines: range = range(0)
    is_block: bool = False
    count: int = 0
    next: int = 1
    looked: int = 0
    before: dict[Path, Any] = field(default_factory=dict)
    fresh: tuple[Path, ...] | None = None
    glimpses: dict[str, Glimpse] = field(default_factory=dict)
    returned: dict[CodeType, Seen] = field(default_factory=dict)
    is_paced: bool = False
    at_least: bool = False


class Recorder:
    """The records of a program.

    firsts: where NaN and infinity ("nan", "inf") were first seen. witness: see `First`. waiting: by
    the frame's id, the statement under way in a generator or coroutine that will go on.
    """

    def __init__(
        self, tree: ast.Module, code: CodeType, on_leave: Callable[[FrameType], None] | None = None
    ) -> None:
        """on_leave: called with the frame of a function that is about to go."""
        self.on_leave = on_leave
        self.path = code.co_filename
        self.plan: Plan = plan(tree, code)
        self.by_line = {
            line: Record(one, range(one.line, one.end_line + 1), bool(one.body))
            for line, one in self.plan.by_line.items()
        }
        self.functions = {line: Record(one) for line, one in self.plan.functions.items()}
        self.stack: list[Activation] = []
        self.firsts: dict[str, First] = {}
        self.witness = ("", 0)
        self.failures = 0
        self.waiting: dict[int, Record] = {}
        self._by_code: dict[int, list[Record]] = {}
        self._spent = 0.0
        self._begun = clock()

    def enter(self, frame: FrameType) -> "Activation | None":
        """A function of the learner's file begins or, if it is a generator, goes on.

        None: its lines need not be followed this time.
        """
        code = frame.f_code
        head = self.functions.get(code.co_firstlineno)
        if head is None or (code.co_flags & GENERATOR and frame.f_lineno != code.co_firstlineno):
            found = Activation(self, always=True)
            found.pending = self.waiting.pop(id(frame), None)
            return found
        head.count += 1
        if head.count >= head.next:
            self.look(head, frame)
        elif head.statement.straight:
            return None
        return Activation(self, always=head.count <= ALWAYS)

    def prepare(self, record: Record, frame: FrameType) -> None:
        """Note what the operands of a statement are, before it runs."""
        begun = clock()
        try:
            names = frame.f_locals
            where = record.count <= ALWAYS
            paths = record.statement.operands if record.fresh is None else record.fresh
            before = record.before
            for path in paths:
                found = note(value_at(path, names, frame), self.path, where=where)
                if found is not MISSING:
                    before[path] = found
                elif path in before:
                    del before[path]
            if record.fresh is None and record.count >= ALWAYS:
                # What held nothing of interest so far, or a module, is not asked again.
                record.fresh = tuple(p for p in before if not isinstance(before[p], LASTING))
        except Exception:
            self.failures += 1
        self.charge(clock() - begun)
        if not record.statement.targets:
            self._later(record)

    def look(self, record: Record, frame: FrameType, only: frozenset[Path] | None = None) -> None:
        """Look at what a statement has stored."""
        record.looked = record.count
        begun = clock()
        try:
            names = frame.f_locals
            for target in record.statement.targets:
                if only is None or target.path in only:
                    self._glimpse(record, target, value_at(target.path, names, frame))
        except Exception:
            self.failures += 1
        self.charge(clock() - begun)
        self._later(record)

    def _later(self, record: Record) -> None:
        """When to look at this statement again."""
        record.next = record.count + 1
        if record.count >= ALWAYS and not self.affordable():
            record.next += record.count >> 3

    def charge(self, seconds: float) -> None:
        """So much was spent on looking."""
        self._spent += min(seconds, LONGEST_S)

    def affordable(self) -> bool:
        """The looks have taken no more than their share so far."""
        return self._spent <= GENEROUS_S + SHARE * (clock() - self._begun)

    def _glimpse(self, record: Record, target: Target, value: Any) -> None:
        where = record.count <= ALWAYS
        seen = see(value, where=where)
        if seen is None:
            if type(value) in (tuple, list) and target.how == "made" and len(value) <= ALWAYS:
                for index, item in enumerate(value):
                    part = Target((*target.path, f"[{index}]"), target.how)
                    if see(item) is not None:
                        self._glimpse(record, part, item)
            return
        name = target.name
        glimpse = record.glimpses.get(name)
        if glimpse is None:
            if len(record.glimpses) >= MOST_GLIMPSES:
                return
            glimpse = record.glimpses[name] = Glimpse(seen, target.how, record.count)
        if where:
            compare(glimpse, seen, record.before, target.path)
        glimpse.looks += 1
        glimpse.varies = glimpse.varies or seen[:2] != glimpse.seen[:2]
        glimpse.seen = seen
        glimpse.at = record.count
        self._search(record, name, seen, value)

    def leave(self, frame: FrameType, value: Any, caller: Record | None) -> None:
        """A function of the learner's gives back a value, or yields one."""
        record = self.by_line.get(frame.f_lineno)
        if record is None:
            return
        begun = clock()
        try:
            values = value if type(value) is tuple and len(value) <= ALWAYS else (value,)
            for index, item in enumerate(values):
                seen = see(item)
                if seen is None:
                    continue
                name = "return" if len(values) == 1 else f"return[{index}]"
                before = record.glimpses.get(name)
                varies = before is not None and (before.varies or before.seen[:2] != seen[:2])
                glimpse = record.glimpses[name] = Glimpse(
                    seen, "returned", record.count, varies=varies
                )
                if before is not None:
                    glimpse.looks, glimpse.sound = before.looks + 1, before.sound
                self._search(record, name, seen, item)
                if caller is not None and len(values) == 1:
                    caller.returned[frame.f_code] = seen
        except Exception:
            self.failures += 1
        self.charge(clock() - begun)

    def _search(self, record: Record, name: str, seen: Seen, value: Any) -> None:
        if len(self.firsts) == len(NONFINITE) or not seen.dtype.is_floating_point:
            return
        kinds, glimpse = nonfinite(value, seen), record.glimpses[name]
        for kind in kinds or ():
            first = First(record, name, record.count, glimpse.sound, *self.witness)
            self.firsts.setdefault(kind, first)
        if kinds == ():
            glimpse.sound = record.count

    def last_looks(self, frame: FrameType) -> None:
        """The names of a frame that is about to go still hold what was stored last."""
        waiting = self.waiting.get(id(frame))
        for record in self.of_function(frame.f_code):
            if record is not waiting and record.looked < record.count and record.statement.sole:
                self.look(record, frame, record.statement.sole)

    def settle(self) -> None:
        """A straight function's lines ran as often as it was called, followed or not."""
        for head in self.functions.values():
            if head.statement.straight:
                for line in head.statement.body:
                    if line in self.by_line:
                        self.by_line[line].count = head.count

    def of_function(self, code: CodeType) -> list[Record]:
        """The records of the statements that run in a function's own frame."""
        found = self._by_code.get(id(code))
        if found is None:
            lines = {line for _, _, line in code.co_lines() if line is not None}
            found = [self.by_line[line] for line in sorted(lines) if line in self.by_line]
            self._by_code[id(code)] = found
        return found


class Activation:
    """One call of a function of the learner's file, or the run of the module.

    always: look at what it leaves behind, whatever it costs. pending: the statement under way.
    caller: the one that was under way when the call began.
    """

    __slots__ = ("_always", "_lines", "_recorder", "caller", "pending")

    def __init__(self, recorder: Recorder, *, always: bool) -> None:
        self.pending: Record | None = None
        self.caller = recorder.stack[-1].pending if recorder.stack else None
        recorder.stack.append(self)
        self._recorder = recorder
        self._lines = recorder.by_line
        self._always = always

    def trace(self, frame: FrameType, event: str, value: Any) -> None:
        """The frame's trace function. Its first part is what every line of the program pays for.

        None tells Python to go on with the same function.
        """
        try:
            if event == "line":
                line = frame.f_lineno
                record = self._lines.get(line)
                pending = self.pending
                if pending is not None:
                    if record is None and line in pending.lines:
                        return  # a further line of the same statement
                    if pending.is_block or pending.count >= pending.next:
                        self._finish(pending, frame, line)
                self.pending = record
                if record is not None:
                    if not record.is_block:
                        record.count += 1
                    if record.count >= record.next and record.statement.operands:
                        self._recorder.prepare(record, frame)
            elif event == "exception":
                self.fail(value[0])
            elif event == "return":
                self.leave(frame, value)
        except RecursionError:
            self.pending = None  # the program is about to find its limit by itself

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
        elif pending is not None and not pending.is_block and pending.count >= pending.next:
            self._finish(pending, frame, 0)
        if recorder.stack and recorder.stack[-1] is self:
            recorder.stack.pop()
        if self._always or recorder.affordable():
            if value is not None:
                recorder.leave(frame, value, self.caller)
            recorder.last_looks(frame)
            if recorder.on_leave is not None and frame.f_code.co_flags & FUNCTION == FUNCTION:
                recorder.on_leave(frame)

    def _finish(self, record: Record, frame: FrameType, line: int) -> None:
        """A statement has run: is it worth a look?"""
        if record.is_block:
            if line not in record.statement.body:
                return
            record.count += 1
        if record.statement.targets and record.count >= record.next:
            self._recorder.look(record, frame)


def compare(glimpse: Glimpse, seen: Seen, before: dict[Path, Any], path: Path) -> None:
    """What became of the operands: a copy or a view, another device or dtype, detached."""
    tensors = {way: one for way, one in before.items() if type(one) is Seen}
    origin = tensors.get(path)
    if len(tensors) == 1:
        (origin,) = tensors.values()
        if seen.start and origin.start:
            glimpse.copied = seen.start != origin.start
    if origin is not None:
        glimpse.device_from = origin.device if origin.device != seen.device else None
        glimpse.dtype_from = origin.dtype if origin.dtype != seen.dtype else None
    for way, one in tensors.items():
        shares = seen.start and one.start == seen.start and way != path
        if shares and one.requires_grad and not seen.requires_grad:
            glimpse.detached = "".join(way)
