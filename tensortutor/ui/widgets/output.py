"""The tab that shows what the program wrote, and how it ended."""

from collections.abc import Callable, Sequence
from functools import singledispatchmethod
from typing import Any

from textual.app import ComposeResult

from tensortutor.plaintext import visible
from tensortutor.protocol.events import Event, Explained, Finished, Notice, Output, Raised
from tensortutor.ui.plain import Writer
from tensortutor.ui.widgets.explanation import lines_of
from tensortutor.ui.widgets.panes import Occasion, ResultPane
from tensortutor.ui.widgets.transcript import MAX_LINES, Line, Transcript

STREAMS = {"stdout": "out", "stderr": "err"}


class OutputPane(ResultPane):
    """Standard output and error in one log, a traceback below, tensortutor's own words dimmed."""

    TITLE = "Output"

    def __init__(self) -> None:
        super().__init__(id="pane-output")
        self._writers = {stream: Writer() for stream in STREAMS}
        self._new: list[Line] = []
        self._skipped = 0
        self._message_at: int | None = None
        self._is_plain_run = True
        self._about: Callable[[str], str] = str

    def compose(self) -> ComposeResult:
        """One log."""
        yield Transcript(id="transcript")

    @property
    def transcript(self) -> Transcript:
        """The log."""
        return self.query_one(Transcript)

    def begin(self, occasion: Occasion) -> None:
        """Start with an empty log."""
        self._about = occasion.about
        self.forget()
        self._is_plain_run = occasion.checked is None

    def forget(self) -> None:
        """Empty the log."""
        self._writers = {stream: Writer() for stream in STREAMS}
        self.transcript.clear()

    def take(self, events: Sequence[Event]) -> None:
        """Write a batch at once."""
        self._new, self._skipped, self._message_at = [], 0, None
        for event in events:
            self._write(event)
        unfinished = [
            (STREAMS[stream], writer.open)
            for stream, writer in self._writers.items()
            if writer.open
        ]
        self.transcript.add(
            self._new, unfinished, skipped=self._skipped, keep_in_view=self._message_at
        )

    def remark(self, lines: list[Line]) -> None:
        """Add lines of our own below what the program wrote."""
        self.transcript.add(lines, [])

    def concerns(self, event: Event) -> bool:
        """Text is shown here."""
        return isinstance(event, (Output, Notice, Raised))

    def asks(self, events: Sequence[Event]) -> bool:
        """A traceback is not to stay hidden."""
        return self._is_plain_run and any(
            isinstance(event, Raised) and event.type != "KeyboardInterrupt" for event in events
        )

    @singledispatchmethod
    def _write(self, event: Any) -> None:
        """Events that are no text belong to other panes."""

    @_write.register
    def _(self, event: Output) -> None:
        stream = event.stream if event.stream in STREAMS else "stdout"
        lines = self._writers[stream].feed(event.text)
        if len(lines) > MAX_LINES:
            self._skipped += len(self._new) + len(lines) - MAX_LINES
            self._new, lines = [], lines[-MAX_LINES:]
        self._new += [(STREAMS[stream], line) for line in lines]

    @_write.register
    def _(self, event: Notice) -> None:
        self._new += [("note", line) for line in visible(event.text).splitlines()]

    @_write.register
    def _(self, event: Raised) -> None:
        self._end_streams()
        self._new += [("error", line) for line in visible(event.text).splitlines()]
        self._message_at = len(self._new) - max(1, len(visible(event.message).splitlines()))

    @_write.register
    def _(self, event: Explained) -> None:
        if not event.check:  # an error within a check stands under the check
            self._new += lines_of(event, self._about)

    @_write.register
    def _(self, event: Finished) -> None:
        self._end_streams()
        if event.dropped:
            self._new.append(("note", f"{event.dropped:,} more characters were not kept"))

    def _end_streams(self) -> None:
        for stream, writer in self._writers.items():
            self._new += [(STREAMS[stream], line) for line in writer.end()]
