"""Lines of one file by `sys.monitoring`, from Python 3.12 on.

Events are switched on for the code objects of the learner's file alone: everything else runs at
full speed.
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


class Monitor:
    """Feeds a recorder from the thread that it was made in."""

    def __init__(self, recorder: Recorder, code: CodeType) -> None:
        self._recorder = recorder
        self._codes = [one for one in codes(code) if one.co_name not in INNER_FRAMES]
        self._calls: dict[int, Activation | None] = {}
        self._thread = threading.get_ident()
        self._api: Any = sys.monitoring  # type: ignore[attr-defined]
        self._tool = 0
        self._paused = False
        self._disable = self._api.DISABLE

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Follow what is called inside."""
        api = self._api
        free = [tool for tool in TOOLS if api.get_tool(tool) is None]
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
            for code in self._codes:
                self._api.set_local_events(self._tool, code, 0)
            self._api.free_tool_id(self._tool)
            self._tool = 0

    def pause(self) -> None:
        """Let each event that still comes be the last of its kind, until `resume`."""
        self._paused = True

    def resume(self) -> None:
        """Let the events come again."""
        self._paused = False
        self._api.restart_events()

    def following(self) -> bool:
        """Events come."""
        return bool(self._tool) and not self._paused

    def activation(self, frame: FrameType) -> Activation | None:
        """What a frame is followed with."""
        return self._calls.get(id(frame))

    def follow(self, frame: FrameType) -> Activation | None:
        """Follow a frame that has begun unfollowed."""
        found = self._calls[id(frame)] = self._recorder.enter(frame)
        return found

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

    def _start(self, code: CodeType, _offset: int) -> Any:
        if self._paused:
            return self._disable
        if threading.get_ident() != self._thread:
            return None
        head = self._recorder.functions.get(code.co_firstlineno)
        if head is not None and head.statement.straight and head.count + 1 < head.next:
            head.count += 1
            return None
        frame = sys._getframe(1)
        self._calls[id(frame)] = self._recorder.enter(frame)
        return None

    def _line(self, _code: CodeType, _line: int) -> Any:
        if self._paused:
            return self._disable
        frame = sys._getframe(1)
        activation = self._calls.get(id(frame))
        if activation is not None:
            activation.trace(frame, "line", None)
        return None

    def _return(self, _code: CodeType, _offset: int, value: Any) -> Any:
        if self._paused:
            return self._disable
        self._end(value)
        return None

    def _yield(self, _code: CodeType, _offset: int, value: Any) -> Any:
        if self._paused:
            return self._disable
        frame = sys._getframe(1)
        activation = self._calls.get(id(frame))
        if activation is not None:
            activation.leave(frame, value)
            activation.pending = self._recorder.waiting.pop(id(frame), None)
        return None

    def _end(self, value: Any) -> None:
        frame = sys._getframe(2)
        activation = self._calls.pop(id(frame), None)
        if activation is not None:
            activation.leave(frame, value)

    def _unwind(self, code: CodeType, _offset: int, _error: BaseException) -> None:
        if code.co_filename == self._recorder.path:
            self._end(None)

    def _raise(self, code: CodeType, _offset: int, error: BaseException) -> None:
        if code.co_filename == self._recorder.path:
            frame = sys._getframe(1)
            activation = self._calls.get(id(frame))
            if activation is not None:
                activation.fail(type(error))
