"""Follows the lines of one file by `sys.settrace`, for Python below 3.12.

Tracing slows every Python function, and a training step runs hundreds of torch's own. So it is
switched off while a line that has been let go calls a function of somebody else's. A call that
runs untraced has an object in the place of its frame's trace function: the object goes when the
frame goes, and switches tracing on again.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensortutor.worker.lens.recorder import GENERATOR, Recorder
from tensortutor.worker.lens.statements import INNER_FRAMES

LONG_CALL = 2000
"""After so many calls inside one call of the learner's, none of them the learner's, its rest is
not traced."""
HOT_LINES = 20_000
"""After so many lines in a row that have been let go, in a frame, its lines are not traced until it
calls a function at a line that has not: to tell Python so often to go on takes too long."""
MOST_CALLS = 300_000
"""After so many calls of or by what has been let go, nothing is traced any more."""
UNTRACED = (
    "<frozen importlib", "/torch/_dynamo/", "/torch/_inductor/", "/torch/_logging/",
    "/torch/utils/data/_utils/collate.py",
)  # fmt: skip
"""Files whose functions are not traced: importing, compiling, making batches of samples."""
TraceFunction = Callable[[FrameType, str, Any], Any]


class SettraceEngine:
    """Feeds a recorder from the thread that it was made in.

    stopped: it gave up early. misses_calls: those that lines make which have been let go.
    """

    misses_calls = True

    def __init__(self, recorder: Recorder) -> None:
        self.stopped = False
        self._recorder = recorder
        self._is_active: list[bool] = []
        self._calls = 0
        self._untraced = self._make_marker()
        self._call = self._make_call()

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow what is called inside."""
        self._is_active.append(True)
        sys.settrace(self._call)
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Follow no more, in this process."""
        self._is_active.clear()
        sys.settrace(None)

    def _make_marker(self) -> Callable[[], Any]:
        """The class of the objects that switch tracing on again."""
        is_active, thread = self._is_active, threading.get_ident()

        class Untraced:
            __slots__ = ()

            def __call__(self, *_: Any) -> None:
                """A trace function must be callable; this one is never called."""

            def __del__(_self) -> None:
                if is_active and threading.get_ident() == thread:
                    sys.settrace(self._call)

        return Untraced

    def _make_call(self) -> TraceFunction:
        """The global trace function: every Python function that begins pays for it."""
        path, recorder, follow, untraced = (
            self._recorder.path, self._recorder, self._follow, self._untraced,
        )  # fmt: skip
        settrace, by_line, everything = sys.settrace, recorder.by_line, recorder.everything
        left = MOST_CALLS

        def call(frame: FrameType, _event: str, _arg: Any) -> Any:
            nonlocal left
            code = frame.f_code
            back = frame.f_back
            if code.co_filename == path:
                trace = follow(frame, code)
                if trace is None:
                    left -= 1
                return trace if left else self._give_up()
            if back is None or back.f_code.co_filename != path:
                self._calls += 1
                if self._calls > LONG_CALL and not everything:
                    return self._leave_long_call(frame)
                if not is_untraced(code):
                    return None
            else:
                self._calls = 0
                record = by_line.get(back.f_lineno)
                if record is None or not record.let_go:
                    back.f_trace_lines = True
                    if not is_untraced(code):
                        return None
                elif code.co_flags & GENERATOR:
                    return None  # its frame stays when it yields: its end comes too late
            frame.f_trace_lines = False
            settrace(None)
            left -= 1
            return untraced() if left else self._give_up()

        return call

    def _give_up(self) -> None:
        self.stopped = True
        self.stop()

    def _follow(self, frame: FrameType, code: CodeType) -> Any:
        """The trace function for a frame of the learner's."""
        self._calls = 0
        if code.co_name in INNER_FRAMES:
            return None
        try:
            activation = self._recorder.enter(frame)
        except RecursionError:
            return None  # so deep, the program is about to find its limit by itself
        if activation is None:
            return None
        hot, by_line = 0, self._recorder.by_line

        def trace(frame: FrameType, event: str, value: Any) -> None:
            """None tells Python to go on with the same function."""
            nonlocal hot
            try:
                if event == "line":
                    line = frame.f_lineno
                    record = by_line.get(line)
                    is_let_go = record is not None and record.let_go and not activation.pending
                    if is_let_go or activation.line(frame, line):
                        hot += 1
                        if hot > HOT_LINES:
                            hot = 0
                            frame.f_trace_lines = False
                    else:
                        hot = 0
                elif event == "exception":
                    activation.fail(value[0])
                elif event == "return":
                    activation.leave(frame, value)
            except RecursionError:
                activation.pending = None

        return trace

    def _leave_long_call(self, frame: FrameType) -> None:
        """Do not trace the rest of the call that the learner's line made."""
        self._calls = 0
        outer = frame
        while outer.f_back is not None and outer.f_back.f_code.co_filename != self._recorder.path:
            outer = outer.f_back
        if outer is not frame and outer.f_back is not None:
            outer.f_trace_lines = False
            outer.f_trace = self._untraced()
            sys.settrace(None)


def is_untraced(code: CodeType) -> bool:
    """It is code that no tracing needs to enter. Generators excepted: see above."""
    return not code.co_flags & GENERATOR and any(part in code.co_filename for part in UNTRACED)
