"""Follows the lines of one file by `sys.monitoring`, from Python 3.12 on.

Events are switched on for the code objects of the learner's file alone, and switched off for each
line that has been let go: everything else runs at full speed.
"""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Any

from tensortutor.worker.lens.recorder import Activation, Recorder
from tensortutor.worker.lens.statements import INNER_FRAMES, codes

NAME = "tensortutor"
TOOLS = (4, 3)
"""Numbers that the interpreter leaves to anybody."""


class MonitoringEngine:
    """Feeds a recorder from the thread that it was made in. stopped, misses_calls: see settrace."""

    stopped = False
    misses_calls = False

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._codes = [one for one in codes(recorder.code) if one.co_name not in INNER_FRAMES]
        self._calls: dict[int, Activation] = {}
        self._thread = threading.get_ident()
        self._api: Any = sys.monitoring  # type: ignore[attr-defined]
        self._tool = 0
        self._has_disabled = False

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow what is called inside."""
        free = [tool for tool in TOOLS if self._api.get_tool(tool) is None]
        if free:
            self._tool = free[0]
            self._begin()
        try:
            yield
        finally:
            self.stop()

    def stop(self) -> None:
        """Follow no more, in this process."""
        if self._tool:
            self._api.set_events(self._tool, 0)
            for code in self._codes:
                self._api.set_local_events(self._tool, code, 0)
            self._api.free_tool_id(self._tool)
            self._tool = 0

    def _begin(self) -> None:
        api, events = self._api, self._api.events
        api.use_tool_id(self._tool, NAME)
        for event, callback in (
            (events.PY_START, self._start), (events.LINE, self._line),
            (events.PY_RETURN, self._return), (events.PY_YIELD, self._yield),
            (events.PY_UNWIND, self._unwind), (events.RAISE, self._raise),
        ):  # fmt: skip
            api.register_callback(self._tool, event, callback)
        local = events.PY_START | events.LINE | events.PY_RETURN | events.PY_YIELD
        for code in self._codes:
            api.set_local_events(self._tool, code, local)
        api.set_events(self._tool, events.PY_UNWIND | events.RAISE)

    def _start(self, _code: CodeType, _offset: int) -> Any:
        if threading.get_ident() == self._thread:
            frame = sys._getframe(1)
            activation = self._recorder.enter(frame)
            if activation is None:
                self._calls.pop(id(frame), None)
                return self._disable()
            self._calls[id(frame)] = activation
        return None

    def _line(self, _code: CodeType, line: int) -> Any:
        if threading.get_ident() != self._thread:
            return None
        frame = sys._getframe(1)
        activation = self._calls.get(id(frame))
        record = self._recorder.by_line.get(line)
        if activation is None:
            # A call that is not followed: its lines cost nothing once they have been let go.
            if record is not None and self._recorder.is_let_go(record):
                return self._disable()
            return None
        if activation.line(frame, line):
            return self._disable()
        if record is not None and self._has_disabled:
            # What this line stores is looked at when the next one begins, let go or not.
            self._has_disabled = False
            self._api.restart_events()
        return None

    def _disable(self) -> Any:
        self._has_disabled = True
        return self._api.DISABLE

    def _return(self, _code: CodeType, _offset: int, value: Any) -> None:
        self._end(sys._getframe(1), value)

    def _yield(self, _code: CodeType, _offset: int, value: Any) -> None:
        frame = sys._getframe(1)
        activation = self._calls.get(id(frame))
        if activation is not None:
            activation.leave(frame, value)
            activation.pending = self._recorder.waiting.pop(id(frame), None)

    def _end(self, frame: FrameType, value: Any) -> None:
        activation = self._calls.pop(id(frame), None)
        if activation is not None:
            activation.leave(frame, value)

    def _unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if code.co_filename == self._recorder.path:
            self._end(sys._getframe(1), None)

    def _raise(self, code: CodeType, _offset: int, error: BaseException) -> None:
        if code.co_filename == self._recorder.path:
            activation = self._calls.get(id(sys._getframe(1)))
            if activation is not None:
                activation.fail(type(error))
