"""The results of a run: a tab per pane, and how the run ended below them all."""

import time
from collections.abc import Callable, Sequence

from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.timer import Timer
from textual.widgets import ContentSwitcher, Static

from tensortutor.plaintext import visible
from tensortutor.protocol.events import Event, Finished, Judged
from tensortutor.protocol.jobs import Job
from tensortutor.ui.outside import entitle
from tensortutor.ui.protocols import Starter
from tensortutor.ui.running.event_batcher import Feed
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.checks import ChecksPane
from tensortutor.ui.widgets.drawings import DrawingsPane
from tensortutor.ui.widgets.lens import LENS_PANES
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import Occasion, ResultPane

PANES: tuple[type[ResultPane], ...] = (OutputPane, ChecksPane, DrawingsPane, *LENS_PANES)
"""The tabs, from left to right."""

FRAME_S = 1 / 30
"""Events are shown in batches, at most one per frame."""

SIGNS: dict[str, Callable[[], tuple[str, str]]] = {
    "done": lambda: (symbols.current().passed, "-good"),
    "stopped": lambda: (symbols.current().stopped, "-calm"),
}


def _failed() -> tuple[str, str]:
    return symbols.current().failed, "-bad"


class Results(Vertical):
    """Shows one pane at a time, and hands every event to all of them."""

    class Heard(Message):
        """Events of the run, after the panes have shown them."""

        def __init__(self, events: tuple[Event, ...]) -> None:
            super().__init__()
            self.events = events

    class Waiting(Message):
        """Events wait in the feed."""

        def __init__(self, feed: Feed) -> None:
            super().__init__()
            self.feed = feed

    def __init__(self, panes: Sequence[type[ResultPane]] = PANES, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.panes = [pane() for pane in panes]
        self._feed: Feed | None = None
        self._clock: Timer | None = None
        self._began = 0.0
        self._drained = 0.0
        self._judged: Judged | None = None
        self._has_turned = False
        self._unseen: set[ResultPane] = set()

    def compose(self) -> ComposeResult:
        """The panes, one visible, and a line for the end of the run."""
        with ContentSwitcher(initial=self.panes[0].id):
            yield from self.panes
        yield Static(id="ended", markup=False)

    def on_mount(self) -> None:
        """Name the tabs."""
        self._label()

    def on_unmount(self) -> None:
        """No program may run without a screen."""
        if self._feed is not None:
            self._feed.close()

    @property
    def front(self) -> ResultPane:
        """The pane that shows."""
        current = self.query_one(ContentSwitcher).current
        return next(pane for pane in self.panes if pane.id == current)

    def show(self, kind: type[ResultPane]) -> None:
        """Bring a pane to the front."""
        self._show(next(pane for pane in self.panes if isinstance(pane, kind)))

    def turn(self, steps: int) -> None:
        """Bring the pane so many tabs to the right to the front."""
        self._has_turned = True
        index = self.panes.index(self.front) + steps
        self._show(self.panes[index % len(self.panes)])

    def turn_to(self, number: int) -> None:
        """Bring a pane to the front by its number, from 1; nothing if there are fewer."""
        if number <= len(self.panes):
            self._has_turned = True
            self._show(self.panes[number - 1])

    def action_show(self, id: str) -> None:
        """A tab was clicked."""
        self._has_turned = True
        self._show(next(pane for pane in self.panes if pane.id == id))

    def _show(self, pane: ResultPane) -> None:
        had_focus = self.has_focus_within
        self.query_one(ContentSwitcher).current = pane.id
        self._unseen.discard(pane)
        self._label()
        if had_focus:
            pane.turn_to()

    # Running

    @property
    def is_running(self) -> bool:
        """Whether a program is on its way."""
        return self._feed is not None

    def start(self, runner: Starter, job: Job, occasion: Occasion) -> None:
        """Run a job and show what it does. Nothing else may be running."""
        self._has_turned = False
        self._unseen.clear()
        for pane in self.panes:
            pane.begin(occasion)
        feed = Feed(runner, job, lambda: self._ready(feed))
        self._feed = feed
        self._began = time.monotonic()
        self._judged = None
        self._wait()
        self._clock = self.set_interval(1.0, self._wait)
        self.run_worker(feed.pump, thread=True, exit_on_error=False, group="run")

    def stop(self) -> None:
        """End the program; its last events still come."""
        if self._feed is not None:
            self._feed.stop()

    def abandon(self, word: str) -> None:
        """End the program and forget it, and what the last one left. word: shown instead."""
        if self._feed is not None:
            self._feed.close()
        self._over()
        for pane in self.panes:
            pane.forget()
        self._unseen.clear()
        self._show(self.panes[0])
        self._say(word, "-calm")

    def _over(self) -> None:
        self._feed = None
        if self._clock is not None:
            self._clock.stop()
            self._clock = None

    def _ready(self, feed: Feed) -> None:
        """In the run's thread: something waits."""
        self.post_message(self.Waiting(feed))

    @on(Waiting)
    def _waiting(self, message: Waiting) -> None:
        message.stop()
        since = time.monotonic() - self._drained
        if since >= FRAME_S:
            self._drain(message.feed)
        else:
            self.set_timer(FRAME_S - since, lambda: self._drain(message.feed))

    def _drain(self, feed: Feed) -> None:
        if feed is not self._feed:
            return
        self._drained = time.monotonic()
        events = feed.take()
        for pane in self.panes:
            pane.take(events)
        self._bring_forward(events)
        for event in events:
            if isinstance(event, Judged):
                self._judged = event
            elif isinstance(event, Finished):
                self._over()
                self._end(event)
        self.post_message(self.Heard(tuple(events)))

    def _bring_forward(self, events: Sequence[Event]) -> None:
        """Show the pane that asks for it; mark those that have news behind it."""
        asking = [pane for pane in self.panes if pane.asks(events)]
        if asking and not self._has_turned:
            self._show(asking[0])
        front = self.front
        news = {pane for pane in self.panes if any(map(pane.concerns, events))} - {front}
        if not news <= self._unseen:
            self._unseen |= news
            self._label()

    def _wait(self) -> None:
        """Say that the program runs, and for how long if that is long."""
        seconds = time.monotonic() - self._began
        passed = f" for {seconds:.0f} s" if seconds >= 1 else ""
        self._say(f"{symbols.current().running} running{passed}", "-calm")

    def _end(self, event: Finished) -> None:
        judged = self._judged
        refused = judged is not None and not judged.ok and event.outcome == "done"
        sign, look = _failed() if refused else SIGNS.get(event.outcome, _failed)()
        count = ""
        if judged is not None:
            total = len(judged.passed) + len(judged.failed) + len(judged.missing)
            count = f"{len(judged.passed)} of {total} checks passed. "
        self._say(f"{sign} {count}{visible(event.sentence)}", look)

    def _say(self, text: str, look: str) -> None:
        ended = self.query_one("#ended", Static)
        for name in ("-good", "-bad", "-calm"):
            ended.set_class(name == look, name)
        ended.update(text)
        ended.display = bool(text)

    @on(ResultPane.Relabelled)
    def _relabelled(self, event: ResultPane.Relabelled) -> None:
        event.stop()
        self._label()

    def _label(self) -> None:
        front = self.front
        mark = f" {symbols.current().news}"
        labels = [
            Content.from_markup(
                f"[@click=show('{pane.id}')]$label[/]",
                label=pane.label + (mark if pane in self._unseen else ""),
            ).stylize("bold $foreground" if pane is front else "$foreground 66%")
            for pane in self.panes
        ]
        entitle(self, Content("   ").join(labels))
