"""Counters of blocks and loops: what the compiled code of a program calls."""

import itertools
import operator
import sys
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any, Protocol

from tensortutor.worker.lens.blocks import Block
from tensortutor.worker.lens.recorder import Record
from tensortutor.worker.lens.sentinels import Sentinel
from tensortutor.worker.lens.statements import Path

YOUNG = 4
"""The first times of a branch, and of a function."""
CHEAPEST_S = 2e-5
"""What it costs at least to follow an iteration."""
WAIT = 32
"""Iterations until a loop asks again that may not decide now."""
MOST = 1 << 62


class Decides(Protocol):
    """What counters ask: `pacing.Pacer`. pauser: the id of the run that is not followed now."""

    pauser: int | None

    def is_here(self) -> bool:
        """This is the thread that is followed."""

    def reached(self, tally: "Tally", frame: FrameType) -> None:
        """A block that is worth following begins, while nothing is followed."""

    def arrive(self, run: int, loop: "Loop", frame: FrameType) -> None:
        """A loop asks at the beginning of an iteration. run: its id."""

    def ended(self, loop: "Loop", frame: FrameType, line: int | None = None) -> None:
        """The loop that was not followed is over. line: where it raised, if it did."""


class Tally:
    """Counts a block. hit: what its code calls; in the end a C function, so that it costs little.

    next: the count at which `hit` asks to be followed.
    """

    __slots__ = ("_counter", "_pacer", "block", "hit", "next", "records")

    def __init__(self, block: Block, pacer: Decides) -> None:
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
    """Counts a loop by its iterations, in all its runs together.

    next: the count at which a turn asks what to do; sample: the next to be followed. since: when
    the iteration began that is followed now, 0 if it was not followed from its beginning. per:
    seconds of one that is not followed; cost: of following one. last: the
    statements inside whose names hold at its end what these stored last. sentinel: what is asked
    while nothing is followed. quiet: until this iteration that goes on, as far as is known.
    """

    __slots__ = (
        "begun",
        "cost",
        "iterations",
        "last",
        "map",
        "per",
        "quiet",
        "sample",
        "sentinel",
        "since",
    )

    def __init__(self, block: Block, pacer: Decides) -> None:
        super().__init__(block, pacer)
        self.map = map
        self.iterations = 0
        self.sample = 0
        self.per = 1.0
        self.since = 0.0
        self.cost = CHEAPEST_S
        self.last: list[tuple[Record, frozenset[Path]]] = []
        self.sentinel: Sentinel | None = None
        self.quiet = 0

    @property
    def count(self) -> int:
        """So many iterations have begun."""
        return super().count if self.block.simple else self.iterations

    def begin(self) -> "Turn":
        """A run of a `for` begins."""
        self.next, self.since = self.iterations + 1, 0.0
        return Turn(self, self._pacer)

    def may_go_on(self, frame: FrameType) -> bool:
        """It is known that nothing is followed before `quiet`, and its numbers are finite."""
        count, sentinel = self.iterations, self.sentinel
        if count >= self.quiet or sentinel is None or not sentinel.is_well(frame, count - 1):
            return False
        self.next = min(count + sentinel.stride, self.quiet)
        return True


class While(Loop):
    """Counts a `while` loop, which stands in a `with` of this. runs: those under way."""

    __slots__ = ("_runs",)

    def __init__(self, block: Block, pacer: Decides) -> None:
        super().__init__(block, pacer)
        self._runs: list[object] = []

    def __enter__(self) -> None:
        """A run begins."""
        if self._pacer.is_here():
            self.next, self.since = self.iterations + 1, 0.0
            self._runs.append(object())

    def turn(self) -> None:
        """An iteration begins."""
        self.iterations = count = self.iterations + 1
        if count >= self.next and not self.may_go_on(sys._getframe(1)):
            if self._pacer.is_here():
                self._pacer.arrive(id(self._runs[-1]), self, sys._getframe(1))
            else:
                self.next = count + WAIT

    def __exit__(self, _kind: Any, _error: Any, trace: TracebackType | None) -> None:
        """A run is over, however it ended."""
        if self._pacer.is_here():
            run = self._runs.pop()
            if self._pacer.pauser == id(run):
                line = None if trace is None else trace.tb_lineno
                self._pacer.ended(self, sys._getframe(1), line)


class Turn:
    """One run of a `for` loop: called with each of its items, and gone when the loop has ended."""

    __slots__ = ("_loop", "_pacer")

    def __init__(self, loop: Loop, pacer: Decides) -> None:
        self._loop = loop
        self._pacer = pacer

    def __call__(self, item: Any) -> Any:
        """An iteration begins."""
        loop = self._loop
        loop.iterations = count = loop.iterations + 1
        if count >= loop.next and not loop.may_go_on(sys._getframe(1)):
            self._pacer.arrive(id(self), loop, sys._getframe(1))
        return item

    def __del__(self) -> None:
        if self._pacer.pauser == id(self):
            self._pacer.ended(self._loop, sys._getframe(1))


KINDS: dict[str, type[Tally]] = {"loop": Loop, "while": While}
"""What counts a block of a kind; all others have a Tally."""
