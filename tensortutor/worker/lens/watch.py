"""Follows a program's lines with what this Python offers for it."""

import ast
import contextlib
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType, TracebackType
from typing import Any

from tensortutor.worker.lens.blocks import READS_CODE
from tensortutor.worker.lens.hiding import hide
from tensortutor.worker.lens.pacing import Pacer
from tensortutor.worker.lens.recorder import Recorder

OWN_TRACING = ("settrace", "setprofile", "gettrace", "getprofile", "sys.monitoring")
BUSY = "The program deals with tracing itself, so its lines were not followed."


class Watch:
    """The lines of one program. recorder: what was seen. note: why nothing was, or "".

    code: what to run in place of the program's own code: the same, with counters.
    """

    def __init__(
        self, source: str, code: CodeType, on_leave: Callable[[FrameType], None] | None = None
    ) -> None:
        self.tree = ast.parse(source)
        self.note = BUSY if any(word in source for word in OWN_TRACING) else ""
        self._pacer = None if self.note else pacer(source, code.co_filename)
        self.code = code if self._pacer is None else self._pacer.code
        self.recorder = Recorder(self.tree, self.code, on_leave)
        self._engine = engine(self.recorder, self.code)
        if self._pacer is not None:
            self._pacer.attach(self.recorder, self._engine)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow what is called inside. A child that the program forks is not followed."""
        if self.note:
            yield
            return
        hide()
        os.register_at_fork(after_in_child=self._stop)
        if self._pacer is not None:
            self._pacer.start()
        with self._engine.watching():
            yield

    def settle(self, error: BaseException | None) -> None:
        """The program has ended, with `error` if it raised: bring all counts up to date."""
        self.recorder.settle()
        if self._pacer is not None:
            self._pacer.finish(list(lines_of(error, self.recorder.path)))

    def _stop(self) -> None:
        if self._pacer is not None:
            self._pacer.stop()
        self._engine.stop()


def pacer(source: str, path: str) -> Pacer | None:
    """What leaves iterations unfollowed; None where a program must be followed all the time."""
    if READS_CODE.search(source):
        return None
    # The program's own compilation has warned of what there is to warn of.
    show, warnings.showwarning = warnings.showwarning, lambda *_, **__: None
    try:
        # What cannot be compiled with counters is followed without.
        with contextlib.suppress(SyntaxError, ValueError, RecursionError):
            return Pacer(ast.parse(source), path)
    finally:
        warnings.showwarning = show
    return None


def lines_of(error: BaseException | None, path: str) -> Iterator[int]:
    """The lines of a file that an exception went through."""
    trace: TracebackType | None = None if error is None else error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            yield trace.tb_lineno
        trace = trace.tb_next


def engine(recorder: Recorder, code: CodeType) -> Any:
    """`sys.monitoring` where it is there, else `sys.settrace`."""
    if sys.version_info >= (3, 12):
        from tensortutor.worker.lens.monitoring import Monitor

        return Monitor(recorder, code)
    from tensortutor.worker.lens.settrace import Tracer

    return Tracer(recorder)
