"""Follows some iterations of a loop and lets the others run at full speed.

The first iterations are followed. Then as many as keep following within its share of the time;
between them nothing is traced, and the counters of the blocks go on counting. A branch that has
not been seen often is followed when it is reached. When the loop ends, however it does, following
begins again, and what its names hold at that moment is what they held last.
"""

import ast
import itertools
import operator
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Protocol

from tensortutor.worker.lens.blocks import MARK, Block, Blocks, with_counters
from tensortutor.worker.lens.recorder import Activation, Record, Recorder
from tensortutor.worker.lens.statements import Path

FOLLOWED = 8
"""The first iterations of a loop."""
YOUNG = 4
"""The first times of a branch, and of a function."""
SHARE = 0.03
"""Of a loop's time, for following it."""
CHEAPEST_S, LINE_S = 2e-5, 1e-5
"""What it costs at least to follow an iteration, and, until it has been measured, a statement."""
WAIT = 32
"""Iterations until a loop asks again that may not decide now."""
MOST = 1 << 62
clock = time.thread_time
"""Not that on the wall: other programs' turns on a busy machine are no part of an iteration."""


class Engine(Protocol):
    """What follows lines: `settrace.Tracer` or `monitoring.Monitor`."""

    def pause(self) -> None:
        """Follow nothing."""

    def resume(self) -> None:
        """Follow again, the frames of before too."""

    def following(self) -> bool:
        """It follows at this moment."""

    def activation(self, frame: FrameType) -> Activation | None:
        """What a frame is followed with."""

    def follow(self, frame: FrameType) -> Activation | None:
        """Follow a frame that began while nothing was followed."""


class Tally:
    """Counts a block. hit: what its code calls; in the end a C function, so that it costs little.

    next: the count at which `hit` asks to be followed.
    """

    __slots__ = ("_counter", "_pacer", "block", "hit", "next", "records")

    def __init__(self, block: Block, pacer: "Pacer") -> None:
        self.block = block
        self.records: list[Record] = []
        self._pacer = pacer
        self._counter = itertools.repeat(None, MOST)
        self.next = 1
        self.hit: Callable[[], Any] = self._counter.__next__ if block.simple else self._hit

    @property
    def count(self) -> int:
        """So often it has begun."""
        return MOST - operator.length_hint(self._counter)

    def _hit(self) -> None:
        next(self._counter)
        if self._pacer.pauser is not None:
            count = self.count
            if count >= self.next:
                self.next = count + 1 if count < YOUNG else 2 * count
                self._pacer.reached(self, sys._getframe(1))
        elif self.block.kind == "function" and self.count > YOUNG:
            self.hit = self._counter.__next__


class Loop(Tally):
    """Counts a `for` loop by its iterations, in all its runs together.

    next: the count at which a turn asks what to do; sample: the next to be followed. since: when
    the iteration began that is followed now, 0 if it was not followed from its beginning. per:
    seconds of one that is not followed; cost: of following one. last: the
    statements inside whose names hold at its end what these stored last.
    """

    __slots__ = ("begun", "cost", "iterations", "last", "map", "per", "sample", "since")

    def __init__(self, block: Block, pacer: "Pacer") -> None:
        super().__init__(block, pacer)
        self.map = map
        self.iterations = 0
        self.sample = 0
        self.per = 1.0
        self.since = 0.0
        self.cost = CHEAPEST_S
        self.last: list[tuple[Record, frozenset[Path]]] = []

    @property
    def count(self) -> int:
        """So many iterations have begun."""
        return super().count if self.block.simple else self.iterations

    def begin(self) -> "Turn":
        """A run of the loop begins."""
        self.next, self.since = self.iterations + 1, 0.0
        return Turn(self, self._pacer)


class Turn:
    """One run of a `for` loop: called with each of its items, and gone when the loop has ended."""

    __slots__ = ("_loop", "_pacer")

    def __init__(self, loop: Loop, pacer: "Pacer") -> None:
        self._loop = loop
        self._pacer = pacer

    def __call__(self, item: Any) -> Any:
        """An iteration begins."""
        loop = self._loop
        loop.iterations = count = loop.iterations + 1
        if count >= loop.next:
            self._pacer.arrive(self, loop)
        return item

    def __del__(self) -> None:
        if self._pacer.pauser == id(self):
            self._pacer.ended(self._loop, sys._getframe(1))


class Pacer:
    """Decides what is followed. pauser: the id of the run of a loop that is not followed now.

    By its id, for a run is over when nobody refers to it.
    """

    def __init__(self, tree: ast.Module, path: str) -> None:
        """tree: changed. Raises what `compile` raises."""
        self.pauser: int | None = None
        self.used = False
        self._path = path
        self.blocks = Blocks(tree)
        self._tallies = [
            (Loop if block.kind == "loop" else Tally)(block, self) for block in self.blocks.all
        ]
        code = compile(tree, path, "exec", dont_inherit=True)
        self.code = with_counters(
            code, {f"{MARK}{number}": tally for number, tally in enumerate(self._tallies)}
        )
        self._loops = [tally for tally in self._tallies if isinstance(tally, Loop)]
        self._thread = 0
        self._paused_at = (0, 0.0)
        self._heads: list[tuple[Record, Tally]] = []

    def attach(self, recorder: Recorder, engine: Engine) -> None:
        """Know the records of the statements, and what follows them."""
        self._recorder, self._engine = recorder, engine
        for record in recorder.by_line.values():
            line = record.statement.line
            block = self.blocks.heads.get(line) if record.is_block else None
            block = block or self.blocks.innermost.get(line)
            if block is not None:
                self._tallies[block.number].records.append(record)
                record.is_paced = True
        for line, record in recorder.functions.items():
            if line in self.blocks.heads:
                self._heads.append((record, self._tallies[self.blocks.heads[line].number]))
                record.is_paced = True
        for loop in self._loops:
            inside = [t for t in self._tallies if is_in(t.block, loop.block)]
            loop.cost = CHEAPEST_S + LINE_S * sum(len(tally.records) for tally in inside)
            loop.last = list(last_stores(inside))

    def start(self) -> None:
        """The program begins, in this thread."""
        self._thread = threading.get_ident()

    def stop(self) -> None:
        """Decide nothing any more, in this process."""
        self._thread = 0
        self.pauser = None

    def arrive(self, turn: Turn, loop: Loop) -> None:
        """A loop asks at the beginning of an iteration."""
        count = loop.iterations
        if threading.get_ident() != self._thread:
            loop.next = count + WAIT
        elif self.pauser == id(turn):
            begun, at = self._paused_at
            now = clock()
            loop.per = (now - at) / (count - begun)
            self._resume(sys._getframe(2), loop.block)
            loop.since, loop.next = now, count + 1
        elif self.pauser is not None or not self._engine.following():
            loop.next = count + WAIT
        elif self._is_next(loop, count):
            loop.since, loop.next = clock(), count + 1
        else:
            loop.since, loop.next = 0.0, loop.sample
            self.pauser = id(turn)
            self.used = True
            self._engine.pause()
            self._paused_at = (count, clock())

    def _is_next(self, loop: Loop, count: int) -> bool:
        """Following is on: is it worth its price for the iteration that begins?"""
        if not loop.since:  # it was not on for the last one
            return count <= FOLLOWED or count >= loop.sample
        took = clock() - loop.since
        loop.per = min(loop.per, took)
        if count <= FOLLOWED:
            return True
        loop.cost += (took - loop.per - loop.cost) / 4
        if count >= loop.sample:
            loop.sample = count + int(max(loop.cost, CHEAPEST_S) / (SHARE * max(loop.per, 1e-8)))
        return loop.sample <= count

    def reached(self, tally: Tally, frame: FrameType) -> None:
        """A block that is worth following begins, while nothing is followed."""
        if threading.get_ident() != self._thread:
            return
        try:
            for loop in self._loops:
                loop.next, loop.since = 0, 0.0  # whoever begins an iteration next decides anew
            self._resume(frame, tally.block)
            activation = self._engine.activation(frame)
            if activation is None and tally.block.kind == "function":
                head = self._recorder.functions.get(frame.f_code.co_firstlineno)
                if head is not None:
                    head.count -= 1  # it is counted again now
                activation = self._engine.follow(frame)
            if activation is not None:
                activation.pending = None
                activation.trace(frame, "line", None)
        except Exception:
            self._recorder.failures += 1

    def ended(self, loop: Loop, frame: FrameType) -> None:
        """The loop that was not followed is over."""
        if threading.get_ident() != self._thread:
            return
        try:
            self._resume(frame)
            activation = self._engine.activation(frame)
            if activation is None or frame.f_code.co_filename != self._path:
                return
            activation.pending = None
            recorder, outer = self._recorder, loop.block.parent
            if outer is not None and outer.loop is not None and not recorder.affordable():
                return  # the loop around it will look once more
            for record, names in loop.last:
                if record.looked < record.count:
                    recorder.look(record, frame, names)
        except Exception:
            self._recorder.failures += 1

    def _resume(self, frame: FrameType, beginning: Block | None = None) -> None:
        self.pauser = None
        opened = []
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_filename == self._path:
                opened.append(one.f_lineno)
            one = one.f_back
        self.settle(opened, beginning)
        self._engine.resume()

    def settle(self, lines: Sequence[int], beginning: Block | None = None) -> None:
        """Bring the records' counts up to date.

        lines: where the frames stand that are under way, the innermost first: what is below in
        their blocks has not run. beginning: a block that the innermost one is about to run.
        """
        opened: dict[Block, list[int]] = {}
        for number, line in enumerate(lines):
            block = self.blocks.innermost.get(line)
            if block is not None and block is beginning and not number:
                block = block.parent
            while block is not None:
                opened.setdefault(block, []).append(line)
                block = block.parent
        if beginning is not None:
            opened.setdefault(beginning, []).append(0)
        for tally in self._tallies:
            count = tally.count
            here = opened.get(tally.block, ())
            for record in tally.records:
                first = record.statement.line
                undone = sum(first > line for line in here)
                record.count = max(0, count - undone) * record.statement.runs
        for head, tally in self._heads:
            head.count = tally.count

    def confess(self) -> None:
        """Mark what has been counted only while it was followed."""
        every = (*self._recorder.by_line.values(), *self._recorder.functions.values())
        for record in every if self.used else ():
            line = record.statement.line
            uncounted = any(line in lines for lines in self.blocks.uncounted)
            record.at_least = uncounted and not record.is_paced


def last_stores(tallies: Sequence[Tally]) -> Iterator[tuple[Record, frozenset[Path]]]:
    """The statements that store a name alone, or behind all others that do, in the same block."""
    stores: dict[Path, list[tuple[Record, Tally]]] = {}
    for tally in tallies:
        for record in tally.records:
            for target in record.statement.targets:
                stores.setdefault(target.path, []).append((record, tally))
    found: dict[Record, set[Path]] = {}
    for path, places in stores.items():
        if all(tally is places[0][1] for _, tally in places):
            last = max((record for record, _ in places), key=lambda one: one.statement.line)
            found.setdefault(last, set()).add(path)
    for record, paths in found.items():
        yield record, frozenset(paths)


def is_in(block: Block | None, outer: Block) -> bool:
    """It is the outer one, or stands inside it."""
    while block is not None and block is not outer:
        block = block.parent
    return block is outer
