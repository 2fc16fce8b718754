"""Lines of one file by `sys.settrace`, for Python below 3.12.

Tracing slows every Python function, and a training step runs hundreds of torch's own. So it is
switched off while a call runs that, as has been seen a few times, leads to no code of the
learner's, or to the same straight functions every time; those are then counted without being
followed, but for a call now and then. (A call: from this place in the learner's code to that
function, or of that module.) A call that runs untraced has an object in the place of its
frame's trace function. The object goes when the frame goes, and switches tracing on again.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

import torch

from tensortutor.worker.lens.counters import Turn
from tensortutor.worker.lens.recorder import GENERATOR, Activation, Record, Recorder
from tensortutor.worker.lens.statements import INNER_FRAMES

OBSERVED = 3
"""So many times a call is followed before it is taken to lead nowhere."""
REGULAR = 8
"""So many times, before it is taken to lead to the same functions always."""
MOST_ENTERED = 8
PATIENCE = 2000
"""Calls without one of the learner's until one is taken to lead nowhere while it still runs."""
MOST_CALLS = 20_000
QUIET = (
    "<frozen importlib", "/torch/_dynamo/", "/torch/_inductor/", "/torch/_logging/",
    "/torch/utils/data/_utils/collate.py",
)  # fmt: skip
"""Files whose functions are not followed: importing, compiling, making batches of samples."""
FOLLOW_S = 2e-5
"""What it costs to follow a regular call."""
OWN = Turn.__call__.__code__.co_filename
OPEN, CLOSED, KNOWN = -1, -2, -3
Call = tuple[int, int, int]
Heads = tuple[Record, ...]
Trace = Callable[[FrameType, str, Any], Any]


class Site:
    """A call that leads to the learner's functions. hits: so many times to just these.

    passes: how often it came; next: at which it is followed again.
    """

    __slots__ = ("heads", "hits", "next", "passes")

    def __init__(self, heads: Heads) -> None:
        self.heads = heads
        self.hits = 1
        self.passes = 0
        self.next = 0


class Tracer:
    """Feeds a recorder from one thread."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._path = recorder.path
        self._fates: dict[Call, int] = {}
        self._sites: dict[Call, Site] = {}
        self._known: list[CodeType] = []
        self._entered: list[Record | None] = []
        self._straight: dict[int, Record] = {}
        self._is_active: list[bool] = []
        self._era = 0
        self._quiet = 0
        self.call = self._make_call()

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Trace what is called inside."""
        self._is_active.append(True)
        sys.settrace(self.call)
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Trace no more, in this process."""
        self._is_active.clear()
        sys.settrace(None)

    def pause(self) -> None:
        """Trace nothing until `resume`."""
        self._is_active.clear()  # so that no frame's end switches tracing on
        sys.settrace(None)

    def resume(self) -> None:
        """Trace again; the frames of before still have their trace functions."""
        self._is_active.append(True)
        sys.settrace(self.call)

    def following(self) -> bool:
        """This call is traced."""
        return sys.gettrace() is self.call

    def activation(self, frame: FrameType) -> Activation | None:
        """What a frame is traced with."""
        found = getattr(frame.f_trace, "__self__", None)
        return found if type(found) is Activation else None

    def follow(self, frame: FrameType) -> Activation | None:
        """Trace a frame that has begun untraced."""
        found = self._recorder.enter(frame)
        if found is not None:
            frame.f_trace = found.trace
        return found

    def _make_call(self) -> Trace:
        """The global trace function: every Python function that begins pays for it.

        A closure, and with the frequent ways written out, for that is what makes it fast.
        """
        path, settrace, learners = self._path, sys.settrace, self._learners
        fates, sites, foreign, deeper = self._fates, self._sites, self._foreign, self._deeper
        module_call = torch.nn.Module._wrapped_call_impl.__code__
        straight, entered = self._straight, self._entered
        is_active, thread, get_ident = self._is_active, threading.get_ident(), threading.get_ident

        class Resume(Untraced):
            __slots__ = ()

            def __del__(self) -> None:
                if is_active and get_ident() == thread:
                    settrace(call)

        self._resume = Resume

        def call(frame: FrameType, _event: str, _arg: Any) -> Any:
            try:
                code = frame.f_code
                if code.co_filename == path:
                    head = straight.get(id(code))
                    if head is None or head.count + 1 >= head.next:
                        return learners(frame, code)
                    head.count += 1
                    entered.append(head)
                    return None
                back = frame.f_back
                if back is None or back.f_code.co_filename != path:
                    return deeper(frame, code)
                # By their ids: to hash a code object takes a while.
                if code is module_call:
                    module = frame.f_locals["self"]
                    key = (id(code), id(module), id(type(module)))
                else:
                    key = (id(code), id(back.f_code), back.f_lasti)
                fate = fates.get(key, 0)
                if fate == KNOWN:
                    site = sites[key]
                    site.passes += 1
                    if site.passes < site.next:
                        for head in site.heads:
                            head.count += 1
                        fate = CLOSED
                if fate == CLOSED:
                    frame.f_trace_lines = False
                    settrace(None)
                    return Resume()
                return None if fate == OPEN else foreign(frame, code, key, fate)
            except RecursionError:
                return None  # so deep, the program is about to find its limit by itself

        return call

    def _learners(self, frame: FrameType, code: CodeType) -> Any:
        self._quiet = 0
        if len(self._entered) > MOST_CALLS:
            self._entered.clear()
            self._era += 1
        if code.co_name in INNER_FRAMES:
            self._entered.append(None)
            return None
        head = self._recorder.functions.get(code.co_firstlineno)
        self._entered.append(head)
        if head is not None and head.statement.straight:
            self._straight[id(code)] = head
        activation = self._recorder.enter(frame)
        return None if activation is None else activation.trace

    def _deeper(self, frame: FrameType, code: CodeType) -> Any:
        """A function that somebody else's function calls, inside a call that is followed."""
        self._quiet += 1
        if self._quiet > PATIENCE and self._leave_long_call(frame):
            return None
        fate = self._fates.get((id(code), 0, 0))
        if fate is None:
            self._known.append(code)
            fate = self._fates[id(code), 0, 0] = CLOSED if is_quiet(code) else OPEN
        return self._close(frame) if fate == CLOSED else None

    def _foreign(self, frame: FrameType, code: CodeType, call: Call, fate: int) -> Any:
        """Somebody else's function that one of the learner's calls, and that is not closed."""
        self._quiet += 1
        if fate == KNOWN:
            return self._known_call(frame, call)
        if call not in self._fates:
            self._known.append(code)  # while it lives, its id is nobody else's
            if is_quiet(code):
                self._fates[call] = CLOSED
                return None
            own = code.co_filename == OWN  # these may switch tracing off and on themselves
            if own or code.co_flags & GENERATOR or len(self._fates) > MOST_CALLS:
                self._fates[call] = OPEN
                return None
            self._fates[call] = 0
        return self._observe(frame, call)

    def _close(self, frame: FrameType) -> Any:
        frame.f_trace_lines = False
        sys.settrace(None)
        return self._resume()

    def _observe(self, frame: FrameType, call: Call) -> Trace:
        """Follow a call to its end: did it lead to the learner's functions, and to which?"""
        frame.f_trace_lines = False
        first, quiet, era = len(self._entered), self._quiet, self._era
        raised = False

        def trace(_frame: FrameType, event: str, _arg: Any) -> Any:
            nonlocal raised
            if event == "exception":
                raised = True
            elif event == "return":
                heads = tuple(self._entered[first : first + MOST_ENTERED + 1])
                del self._entered[first + len(heads) :]
                self._judge(call, heads, quiet, raised=raised or era != self._era)
            return trace

        return trace

    def _judge(
        self, call: Call, heads: tuple[Record | None, ...], quiet: int, *, raised: bool
    ) -> None:
        fate = self._fates[call]
        if fate in (OPEN, CLOSED) or raised:
            return
        if not heads and fate != KNOWN:
            # One that makes no calls costs less if it is traced.
            leaf = fate == 0 and self._quiet == quiet
            self._fates[call] = OPEN if leaf else CLOSED if fate + 1 >= OBSERVED else fate + 1
            return
        site = self._sites.get(call)
        straight = tuple(head for head in heads if head is not None and head.statement.straight)
        if len(straight) < len(heads) or not 0 < len(heads) <= MOST_ENTERED:
            self._fates[call] = OPEN
        elif site is None and fate == 0:
            self._sites[call] = Site(straight)
            self._fates[call] = KNOWN
        elif site is None or site.heads != straight:
            self._fates[call] = OPEN
        else:
            site.hits += 1

    def _known_call(self, frame: FrameType, call: Call) -> Any:
        """A call that has led to the same functions so far."""
        site, recorder = self._sites[call], self._recorder
        if site.hits >= REGULAR:
            recorder.charge(FOLLOW_S)
            site.next = site.passes + 1 + (0 if recorder.affordable() else site.passes >> 3)
        return self._observe(frame, call)

    def _leave_long_call(self, frame: FrameType) -> bool:
        """The call that the learner's line made has been under way for long, all in others' code.

        Then the rest of it is not traced. The first time only a mark is left on it, for the calls
        counted so far may have been those of many short ones.
        """
        self._quiet = 0
        outer = frame
        while outer.f_back is not None and outer.f_back.f_code.co_filename != self._path:
            outer = outer.f_back
        if outer is frame or outer.f_back is None:
            return False
        outer.f_trace_lines = False
        if type(outer.f_trace) is not Long:
            outer.f_trace = Long(outer.f_trace)
            return False
        outer.f_trace = self._resume()
        sys.settrace(None)
        return True


def is_quiet(code: CodeType) -> bool:
    """It need not be followed. A generator's frame stays when it yields: its end comes too late."""
    return not code.co_flags & GENERATOR and any(part in code.co_filename for part in QUIET)


class Long:
    """A trace function that marks its frame and asks the one before it."""

    def __init__(self, before: Any) -> None:
        self._before = before

    def __call__(self, frame: FrameType, event: str, arg: Any) -> Any:
        """What a trace function does."""
        if self._before is not None:
            self._before(frame, event, arg)
        return self


class Untraced:
    """In the place of a trace function that is never called."""

    __slots__ = ()

    def __call__(self, *_: Any) -> None:
        """A trace function must be callable."""
