"""Textual's driver for Linux and macOS, made to outlive its terminal.

When a terminal goes away the kernel sends SIGHUP and then SIGCONT. Textual takes the SIGCONT for
the end of a pause and starts a second pair of threads; its writer dies of the first write, the
queue before it fills, and the app waits for ever without having saved. Here a write that nobody
can see is dropped, and the app gets to its end.
"""

import os
import time
from collections.abc import Callable, Iterable, Sequence
from typing import IO, Any

from textual._xterm_parser import XTermParser
from textual.drivers import linux_driver
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Resize
from textual.message import Message

from tensortutor.ui.terminal.cell_diff import CellDiff
from tensortutor.ui.terminal.terminal_queries import LateReplies, Question


class Lasting:
    """A terminal to write to, for as long as it is there."""

    def __init__(self, file: IO[str]) -> None:
        self._file = file
        self._is_gone = False

    def write(self, text: str) -> None:
        """Write, or drop what cannot be written any more."""
        self._try(lambda: self._file.write(text))

    def flush(self) -> None:
        """Send what was written."""
        self._try(self._file.flush)

    def fileno(self) -> int:
        """The number of the file."""
        return self._file.fileno()

    def _try(self, act: Any) -> None:
        if self._is_gone:
            return
        try:
            act()
        except (OSError, ValueError):  # ValueError: closed
            self._is_gone = True


class AskingParser(XTermParser):
    """Reads keys; what answers the driver's question is no key, nor is what answers too late."""

    def __init__(self, driver: "LastingDriver", debug: bool) -> None:
        super().__init__(debug)
        self._driver = driver
        self._late = LateReplies()

    def feed(self, data: str) -> Iterable[Message]:
        """What was read, less the replies."""
        question, now = self._driver.question, time.monotonic()
        typed = question.take(data, now) if question is not None and data else data
        if typed and (question is None or question.is_over):
            typed = self._late.take(typed, now)
        # Nothing would mean the end of the file.
        return super().feed(typed) if typed or not data else ()

    def tick(self) -> Iterable[Message]:
        """Time has passed."""
        question, now = self._driver.question, time.monotonic()
        typed = self._late.wait(now)
        if question is not None:
            typed += question.wait(now)
        if question is not None and question.is_over:
            self._driver.ask_next()
        if typed:
            yield from super().feed(typed)
        yield from super().tick()


class LastingDriver(LinuxDriver):
    """Pauses and goes on in good order, ends quietly when the terminal is gone, and sends only what
    has changed."""

    def __init__(self, *args: Any, **settings: Any) -> None:
        super().__init__(*args, **settings)
        self._file: Any = Lasting(self._file)
        self.question: Question | None = None
        self._to_ask: list[tuple[str, Callable[[Sequence[str]], object]]] = []
        self._cells = CellDiff()
        self._is_resized = False

    def write(self, data: str) -> None:
        """Send what is new in some output."""
        try:
            size = os.get_terminal_size(self.fileno)
        except OSError:  # no terminal, or none any more
            super().write(data)
            return
        if self._is_resized:
            self._is_resized = False
            self._cells.forget()
        if changed := self._cells.reduce(data, (size.columns, size.lines)):
            super().write(changed)

    def process_message(self, message: Message) -> None:
        """A terminal that was resized shows what it likes until it is painted anew."""
        if isinstance(message, Resize):
            self._is_resized = True
        super().process_message(message)

    def ask(self, text: str, then: Callable[[Sequence[str]], object]) -> None:
        """Ask the terminal something (see terminal_queries). then: is given its replies, in the
        thread that reads the keys. One question at a time: another one waits."""
        self._to_ask.append((text, then))
        if self.question is None:
            self.ask_next()

    def ask_next(self) -> None:
        """The question before has its answer, or none will come."""
        self.question = None
        if self._to_ask:
            text, then = self._to_ask.pop(0)
            self.question = Question(text, then, time.monotonic())
            super().write(text)
        self.flush()

    def _sigcont_application(self, *_: Any) -> None:
        """Somebody lets the process go on."""
        if self._auto_restart and not self._must_signal_resume:
            # No pause of ours came before: either the terminal has just gone, or a SIGSTOP from
            # outside has left the terminal as it was, and the shell has used it since; or another
            # terminal looks on from now on, as when a page in a browser is reloaded.
            try:
                os.tcgetpgrp(self.fileno)
            except OSError:
                return
            self.suspend_application_mode()
            self._must_signal_resume = True  # so that everything is drawn anew
        self._cells.forget()
        super()._sigcont_application()

    def run_input_thread(self) -> None:
        """Read keys until the end, or until there is nobody to press them."""
        # Textual makes its parser there, and offers no other way to read along.
        linux_driver.XTermParser = lambda debug: AskingParser(self, debug)  # type: ignore
        try:
            super().run_input_thread()
        except OSError:
            self._app.call_later(self._app.terminal_lost)  # type: ignore[attr-defined]
