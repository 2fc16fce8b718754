"""Follows some iterations of a loop and lets the others run at full speed.

The first iterations are followed. Then as many as keep following within its share of the time;
between them nothing is traced, and the counters of the blocks go on counting. A branch that has
not been seen often is followed when it is reached. When the loop ends, however it does, following
begins again, and what its names hold at that moment is what they held last.
"""

import ast
import threading
import time
from collections.abc import Iterator, Sequence
from types import FrameType
from typing import Protocol

from tensortutor.worker.lens import sentinels
from tensortutor.worker.lens.blocks import MARK, Block, Blocks, with_counters
from tensortutor.worker.lens.counters import CHEAPEST_S, KINDS, WAIT, Loop, Tally, While
from tensortutor.worker.lens.recorder import Activation, Record, Recorder
from tensortutor.worker.lens.sentinels import Sentinel
from tensortutor.worker.lens.statements import Path

FOLLOWED = 8
"""The first iterations of a loop."""
SHARE = 0.015
"""Of a loop's time, for following it; the iteration after one that is followed is slower, too."""
LINE_S = 1e-5
"""What it costs to follow a statement, until it has been measured."""
NOBODY = ("", 0)
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
        self._tallies = [KINDS.get(block.kind, Tally)(block, self) for block in self.blocks.all]
        code = compile(tree, path, "exec", dont_inherit=True)
        self.code = with_counters(
            code, {f"{MARK}{number}": tally for number, tally in enumerate(self._tallies)}
        )
        self._loops = [tally for tally in self._tallies if isinstance(tally, Loop)]
        self._thread = 0
        self._paused_at = (0, 0.0)
        self._heads: list[tuple[Record, Tally]] = []
        self._whiles: list[tuple[Record, Tally]] = []

    def attach(self, recorder: Recorder, engine: Engine) -> None:
        """Know the records of the statements, and what follows them."""
        self._recorder, self._engine = recorder, engine
        for record in recorder.by_line.values():
            line = record.statement.line
            is_head = record.is_block or line in self.blocks.whiles
            block = self.blocks.heads.get(line) if is_head else None
            block = block or self.blocks.innermost.get(line)
            if block is not None:
                self._tallies[block.number].records.append(record)
                record.is_paced = True
                if line in self.blocks.whiles:
                    self._whiles.append((record, self._tallies[block.number]))
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

    def is_here(self) -> bool:
        """This is the thread that is followed."""
        return threading.get_ident() == self._thread

    def arrive(self, run: int, loop: Loop, frame: FrameType) -> None:
        """A loop asks at the beginning of an iteration. run: its id."""
        count = loop.iterations
        if not self.is_here():
            loop.next = count + WAIT
        elif self.pauser is not None:
            sentinel = loop.sentinel
            ill = sentinel.ask(frame, count - 1, self._recorder.firsts) if sentinel else ""
            if ill or (self.pauser == run and count >= loop.sample):
                self._follow(run, loop, frame, ill)
            else:
                loop.next = count + (WAIT if sentinel is None else sentinel.stride)
                loop.quiet = loop.sample if self.pauser == run else count + WAIT
                loop.next = min(loop.next, loop.quiet)
        elif not self._engine.following():
            loop.next = count + WAIT
        elif self._is_next(loop, count):
            loop.since, loop.next = clock(), count + 1
        else:
            self._pause(run, loop, frame)

    def _pause(self, run: int, loop: Loop, frame: FrameType) -> None:
        """Follow nothing from the iteration that begins now, until one is worth it."""
        count, known = loop.iterations, self._recorder.firsts
        if loop.sentinel is None:
            names = sentinels.chosen(loop.last, frame, known)
            loop.sentinel = Sentinel(names) if names else None
        every = WAIT
        if loop.sentinel is not None:
            loop.sentinel.ask(frame, count - 1, known)
            every = loop.sentinel.every(loop.per)
        self._recorder.witness = NOBODY
        loop.since, loop.next = 0.0, min(loop.sample, count + every)
        self.pauser, loop.quiet = run, loop.sample
        self.used = True
        self._engine.pause()
        self._paused_at = (count, clock())

    def _ask(self, loop: Loop, frame: FrameType, done: int) -> str:
        """The number of the loop that became NaN or infinite while nothing was followed.

        done: the iterations that are over.
        """
        if loop.sentinel is None:
            return ""
        return loop.sentinel.ask(frame, done, self._recorder.firsts)

    def _follow(self, run: int, loop: Loop, frame: FrameType, ill: str) -> None:
        """Follow the iteration that begins. ill: a number that became NaN or infinite before."""
        now, done = clock(), loop.iterations - 1
        if self.pauser == run:
            begun, at = self._paused_at
            loop.per = (now - at) / (done + 1 - begun)
        else:
            self._forget()
        self._resume(frame, beginning=loop.block)
        self._say(loop, frame, ill, done)
        loop.since, loop.next = now, done + 2
        if isinstance(loop, While):
            begin_line(self._engine.activation(frame), frame)

    def _say(self, loop: Loop, frame: FrameType, ill: str, done: int) -> None:
        """Following begins: what the numbers of the loop tell of the time before."""
        if ill:
            self._look(loop, frame, ill, done)
        elif loop.sentinel is not None:
            self._recorder.witness = loop.sentinel.witness(loop.sentinel.names[0], done + 1)

    def _look(self, loop: Loop, frame: FrameType, ill: str, done: int) -> None:
        """Look at what the loop's last iteration has stored. ill, done: see `_ask`."""
        recorder = self._recorder
        if ill and loop.sentinel is not None:
            recorder.witness = loop.sentinel.witness(ill, done)
        for record, names in loop.last:
            if record.count and (ill or record.looked < record.count):
                recorder.look(record, frame, names)
        recorder.witness = NOBODY

    def _forget(self) -> None:
        """Whichever loop begins an iteration next decides anew."""
        for loop in self._loops:
            loop.next, loop.since = 0, 0.0

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
        if not self.is_here():
            return
        try:
            self._forget()
            self._resume(frame, beginning=tally.block)
            loop = self._tallies[tally.block.loop.number] if tally.block.loop is not None else None
            if isinstance(loop, Loop):
                done = loop.iterations - 1
                self._say(loop, frame, self._ask(loop, frame, done), done)
            activation = self._engine.activation(frame)
            if activation is None and tally.block.kind == "function":
                head = self._recorder.functions.get(frame.f_code.co_firstlineno)
                if head is not None:
                    head.count -= 1  # it is counted again now
                activation = self._engine.follow(frame)
            begin_line(activation, frame)
        except Exception:
            self._recorder.failures += 1

    def ended(self, loop: Loop, frame: FrameType, line: int | None = None) -> None:
        """The loop that was not followed is over. line: where it raised, if it did."""
        if not self.is_here():
            return
        try:
            self._resume(frame, line)
            activation = self._engine.activation(frame)
            if activation is None or frame.f_code.co_filename != self._path:
                return
            activation.pending = None
            ill, outer = self._ask(loop, frame, loop.iterations), loop.block.parent
            is_inner = outer is not None and outer.loop is not None
            if ill or not is_inner or self._recorder.affordable():
                self._look(loop, frame, ill, loop.iterations)  # else the loop around it will
        except Exception:
            self._recorder.failures += 1

    def _resume(
        self, frame: FrameType, line: int | None = None, beginning: Block | None = None
    ) -> None:
        self.pauser = None
        for loop in self._loops:
            loop.quiet = 0
        opened = []
        one: FrameType | None = frame
        while one is not None:
            if one.f_code.co_filename == self._path:
                opened.append(one.f_lineno if line is None else line)
            one, line = one.f_back, None
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

    def finish(self, lines: Sequence[int]) -> None:
        """The program has ended; these lines raised, the innermost first."""
        if self.used:
            self.settle(lines)
            self._confess()
        for record, tally in self._whiles:
            looked, record.count = record.count, tally.count  # not as often as its line came
            for glimpse in record.glimpses.values():
                glimpse.at = record.count if glimpse.at == looked else glimpse.at

    def _confess(self) -> None:
        """Mark what has been counted only while it was followed."""
        every = (*self._recorder.by_line.values(), *self._recorder.functions.values())
        for record in every:
            line = record.statement.line
            uncounted = any(line in lines for lines in self.blocks.uncounted)
            record.at_least = uncounted and not record.is_paced


def begin_line(activation: Activation | None, frame: FrameType) -> None:
    """Follow the statement that the frame has begun, whose event has gone by unseen."""
    if activation is not None:
        activation.pending = None
        activation.trace(frame, "line", None)


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
    for record in sorted(found, key=lambda one: one.statement.line):
        yield record, frozenset(found[record])


def is_in(block: Block | None, outer: Block) -> bool:
    """It is the outer one, or stands inside it."""
    while block is not None and block is not outer:
        block = block.parent
    return block is outer
