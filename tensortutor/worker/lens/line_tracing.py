"""Follows a program's lines with what this Python offers for it."""

import ast
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensortutor.worker.lens.compile_skip import skip_lens_functions
from tensortutor.worker.lens.recorder import Recorder

OWN_TRACING = ("settrace", "setprofile", "gettrace", "getprofile", "sys.monitoring")
TRACES_ITSELF = "The program deals with tracing itself, so its lines were not followed."
GAVE_UP = (
    "The program calls its functions so often that following it was ended: what began later was "
    "not seen."
)
FOLLOWING: list[Any] = []
"""The engines at work in this process."""
REGISTERED: list[bool] = []
"""Not empty when children that the process forks have been seen to."""


class LineTracing:
    """The lines of one program. recorder: what was seen. note: why something was not, or ""."""

    def __init__(
        self,
        source: str,
        code: CodeType,
        on_leave: Callable[[FrameType], None] | None = None,
        *,
        everything: bool = False,
    ) -> None:
        self.tree = ast.parse(source)
        self.note = TRACES_ITSELF if any(word in source for word in OWN_TRACING) else ""
        self.recorder = Recorder(self.tree, code, on_leave, everything=everything)
        self._engine = engine(self.recorder)

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow what is called inside. A child that the program forks is not followed."""
        if self.note:
            yield
            return
        skip_lens_functions()
        if not REGISTERED:  # once: what has been registered stays for good
            REGISTERED.append(True)
            os.register_at_fork(after_in_child=stop_following)
        FOLLOWING.append(self._engine)
        try:
            with self._engine.following():
                yield
        finally:
            FOLLOWING.remove(self._engine)

    def finish(self, namespace: dict[str, Any]) -> None:
        """The program has ended: see what its names hold. Call it once."""
        if self._engine.misses_calls:
            self.recorder.mark_missed_calls()
        self.recorder.last_values(self.recorder.code, namespace, namespace)
        if self._engine.stopped:
            self.note = GAVE_UP


def stop_following() -> None:
    """In a child of the program: nothing is followed there."""
    for one in FOLLOWING:
        one.stop()


def engine(recorder: Recorder) -> Any:
    """`sys.monitoring` where it is there, else `sys.settrace`."""
    if sys.version_info >= (3, 12):
        from tensortutor.worker.lens.monitoring import MonitoringEngine

        return MonitoringEngine(recorder)
    from tensortutor.worker.lens.settrace import SettraceEngine

    return SettraceEngine(recorder)
