"""Follows a program's lines with what this Python offers for it."""

import ast
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensortutor.worker.lens.hiding import hide
from tensortutor.worker.lens.recorder import Recorder

OWN_TRACING = ("settrace", "setprofile", "gettrace", "getprofile", "sys.monitoring")
BUSY = "The program deals with tracing itself, so its lines were not followed."


class Watch:
    """The lines of one program. recorder: what was seen. note: why nothing was, or ""."""

    def __init__(
        self, source: str, code: CodeType, on_leave: Callable[[FrameType], None] | None = None
    ) -> None:
        self.tree = ast.parse(source)
        self.recorder = Recorder(self.tree, code, on_leave)
        self.note = BUSY if any(word in source for word in OWN_TRACING) else ""
        self._engine = engine(self.recorder, code)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow what is called inside. A child that the program forks is not followed."""
        if self.note:
            yield
            return
        hide()
        os.register_at_fork(after_in_child=self._engine.stop)
        with self._engine.watching():
            yield
        self.recorder.settle()


def engine(recorder: Recorder, code: CodeType) -> Any:
    """`sys.monitoring` where it is there, else `sys.settrace`."""
    if sys.version_info >= (3, 12):
        from tensortutor.worker.lens.monitoring import Monitor

        return Monitor(recorder, code)
    from tensortutor.worker.lens.settrace import Tracer

    return Tracer(recorder)
