"""A drill: tensors drawn as grids, and a field for the line that makes one of the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Container, Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Input, Static

from tensortutor.course.drills import Drill, answer_job, not_a_line, picture_job
from tensortutor.drawing import cell_grid
from tensortutor.drawing.spans import Look
from tensortutor.drawing.text import natural_height
from tensortutor.protocol.drawings import CellGrid, Drawing
from tensortutor.protocol.events import Event, Finished, Judged, Output, Verdict
from tensortutor.protocol.jobs import Job
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.protocols import Starter
from tensortutor.ui.running.event_batcher import Feed
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.drawings import DrawingView, look_of, view_for
from tensortutor.ui.widgets.markdown import Text

NARROWEST = 30
"""Columns of a grid beside others."""
GUTTER = 2
"""Columns between two grids; lesson.tcss has it, too."""
PROMPT = "one line of PyTorch, then Enter"
PARTS = ("input", "got", "expected", "where", "cause", "hint")


class Grids(Container):
    """Grids beside each other as far as there is room, each as high as it needs."""

    def show(self, grids: Sequence[CellGrid]) -> None:
        """Show these."""
        self.mount_all([view_for(grid) for grid in grids])
        self.share_out()

    def on_resize(self, _: events.Resize) -> None:
        """The room is another."""
        self.share_out()

    def share_out(self) -> None:
        """Find out how many stand beside each other, and how high each row is."""
        views = list(self.query(DrawingView))
        if not views:
            return
        room, look = max(self.size.width, NARROWEST), look_of(self.app)
        most = min(len(views), (room + GUTTER) // (NARROWEST + GUTTER))
        # Columns that are left out are worse than a grid below another.
        widths = {across: (room + GUTTER) // across - GUTTER for across in range(most, 0, -1)}
        across = next(
            (
                n
                for n, each in widths.items()
                if all(_shows_all(v.drawing, each, look) for v in views)
            ),
            1,
        )
        needs = [natural_height(view.drawing, widths[across], look) + 1 for view in views]
        rows = [max(needs[n : n + across]) for n in range(0, len(needs), across)]
        self.styles.grid_size_columns = across
        self.styles.grid_rows = " ".join(map(str, rows))
        self.styles.height = sum(rows)


def _shows_all(drawing: Drawing, width: int, look: Look) -> bool:
    return not isinstance(drawing, CellGrid) or cell_grid.shows_all_columns(drawing, width, look)


class DrillView(Vertical):
    """One drill. Runs programs while it is mounted, and none afterwards."""

    class Checked(Message):
        """A line was checked."""

        def __init__(self, drill: Drill, line: str, correct: bool) -> None:
            super().__init__()
            self.drill = drill
            self.line = line
            self.correct = correct

    class Waiting(Message):
        """Events wait in the feed."""

        def __init__(self, feed: Feed, heard: Callable[[list[Event]], None]) -> None:
            super().__init__()
            self.feed = feed
            self.heard = heard

    def __init__(self, drill: Drill, starter: Starter, seed: int) -> None:
        """seed: of the inputs that are drawn."""
        super().__init__(classes="drill")
        self.drill = drill
        self._starter = starter
        self._seed = seed
        self._feed: Feed | None = None
        self._heard: list[Event] = []
        self._line = ""

    def compose(self) -> ComposeResult:
        """What is wanted, the grids, the field, and what came of a line."""
        yield Text(self.drill.ask)
        yield Grids(classes="drill-grids")
        yield Static(classes="drill-inputs", markup=False)
        yield Input(placeholder=PROMPT, compact=True, classes="drill-line")
        yield Static(classes="drill-verdict")

    def on_mount(self) -> None:
        """Draw the inputs and what is wanted."""
        self._start(picture_job(self.drill, self._seed), self._draw)

    def on_unmount(self) -> None:
        """No program may run without its view."""
        if self._feed is not None:
            self._feed.close()

    @property
    def field(self) -> Input:
        """Where the line is written."""
        return self.query_one(Input)

    @property
    def verdict(self) -> str:
        """What is said of the last line."""
        return str(self.query_one(".drill-verdict", Static).content)

    def _start(self, job: Job, heard: Callable[[list[Event]], None]) -> None:
        if self._feed is not None:
            self._feed.close()
        self._heard = []

        def ready() -> None:
            self.post_message(self.Waiting(feed, heard))

        self._feed = feed = Feed(self._starter, job, ready)
        self.run_worker(feed.pump, thread=True, exit_on_error=False, group="drill")

    @on(Waiting)
    def _waiting(self, message: Waiting) -> None:
        message.stop()
        if message.feed is not self._feed:
            return
        self._heard += message.feed.take()
        if any(isinstance(event, Finished) for event in self._heard):
            self._feed = None
            message.heard(self._heard)

    def _draw(self, heard: list[Event]) -> None:
        grids = {event.title: event for event in heard if isinstance(event, CellGrid)}
        self.query_one(Grids).show(list(grids.values()))
        words = "".join(event.text for event in heard if isinstance(event, Output)).strip()
        if not grids:
            words = next(event.sentence for event in heard if isinstance(event, Finished))
        inputs = self.query_one(".drill-inputs", Static)
        inputs.display = bool(words)
        inputs.update(OutsideText(words).content)

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        line = event.value.strip()
        if problem := not_a_line(line):
            self._say([("", problem)], "calm")
            return
        self._line = line
        self._say([("", f"{symbols.current().running} running")], "calm")
        self._start(answer_job(self.drill, line), self._judge)

    def _judge(self, heard: list[Event]) -> None:
        judged = next((event for event in heard if isinstance(event, Judged)), None)
        if judged is None:
            sentence = next(event.sentence for event in heard if isinstance(event, Finished))
            self._say([("", sentence)], "calm")
            return
        if judged.ok:
            self._say([("", f"{symbols.current().passed} Right.{self._others()}")], "good")
        else:
            self._say(self._wrong(heard), "bad")
        self.post_message(self.Checked(self.drill, self._line, judged.ok))

    def _others(self) -> str:
        """Other right lines."""
        others = "; ".join(self.drill.others(self._line))
        return f" Also right: {others}" if others else ""

    def _wrong(self, heard: list[Event]) -> list[tuple[str, str]]:
        """Labels and texts: what is known of this line, or what the first check says."""
        failed = next((e for e in heard if isinstance(e, Verdict) and not e.passed), None)
        said = failed.message if failed is not None else "The program ended before the checks."
        rows = [("", f"{symbols.current().failed} {self.drill.because(self._line) or said}")]
        if failed is not None:
            rows += [(part, getattr(failed, part)) for part in PARTS if getattr(failed, part)]
        return rows

    def show_answer(self) -> None:
        """Say a right line."""
        self._line = self.drill.answer
        self._say([("", f"{self.drill.answer} is right.{self._others()}")], "calm")

    def _say(self, rows: Sequence[tuple[str, str]], kind: str) -> None:
        panel = self.query_one(".drill-verdict", Static)
        for one in ("good", "bad", "calm"):
            panel.set_class(one == kind, f"-{one}")
        lines = [
            Content(f"{label:<10}" if label else "") + OutsideText(text).content
            for label, text in rows
        ]
        panel.update(Content("\n").join(lines))
        panel.call_after_refresh(panel.scroll_visible, animate=False)
