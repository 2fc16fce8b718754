"""Looking inside: what the lens saw of the last run, and how to ask for it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job, Look
from tensortutor.protocol.lens import Broadcast, Broadcasts, Line, Trace
from tensortutor.ui.screens.codefile import CodeScreen


class LookingScreen(CodeScreen):
    """A screen whose runs are looked into, unless the learner wants none of it."""

    def __init__(self) -> None:
        super().__init__()
        self._expressions: tuple[Broadcast, ...] = ()
        self._notes: dict[int, str] = {}
        self._lines: tuple[Line, ...] = ()

    def looked_into(self, job: Job, *, profile: bool = False) -> Job:
        """The job of a run, with what the lens is to look at."""
        self._expressions, self._notes, self._lines = (), {}, ()
        self.editor.annotate({})
        on = bool(self.tutor.remembered.get("lens", self.tutor.settings.lens))
        return replace(job, look=Look(on and not profile, on, profile))

    def gauge(self) -> None:
        """A run has begun: show the GPU's use in the footer until it ends."""
        device = self.tutor.runner.status.device
        if device is None or not device.name.startswith("cuda"):
            return
        from tensortutor.ui.gauge import Gauge

        gauge = Gauge(device.name)
        gauge.start()

        def show() -> None:
            if self.results.is_running:
                self.keys.word = gauge.word
            else:
                timer.stop()
                gauge.stop()
                self.keys.word = ""

        timer = self.set_interval(0.25, show)

    def take_lens(self, events: Iterable[Event]) -> None:
        """Keep what belongs to lines of the code."""
        for event in events:
            if isinstance(event, Trace):
                from tensortutor.lens.lines import notes

                self._notes, self._lines = notes(event), event.lines
                if self.tutor.remembered.get("notes", True):
                    self.editor.annotate(self._notes)
            elif isinstance(event, Broadcasts):
                self._expressions = event.expressions

    def action_notes(self) -> None:
        """Show the notes behind the lines, or hide them."""
        shown = not self.tutor.remembered.get("notes", True)
        self.tutor.remembered.put("notes", shown)
        self.editor.annotate(self._notes if shown else {})
        if shown and not self._notes:
            self.tutor.tell("From the next run on, shapes stand behind the lines.")

    def action_lens(self) -> None:
        """Look into runs, or do not."""
        on = not self.tutor.remembered.get("lens", self.tutor.settings.lens)
        self.tutor.remembered.put("lens", on)
        self.tutor.tell(
            "Every run is looked into." if on else "Runs are no longer looked into: no tensors, "
            "graphs or shapes are told."
        )  # fmt: skip

    def action_broadcast(self) -> None:
        """Say what is marked at the cursor's line: how shapes were broadcast, the first NaN."""
        from textual.widgets import Static

        from tensortutor.lens.aligned import aligned
        from tensortutor.plaintext import visible
        from tensortutor.ui.screens.dialogs import Page

        row, column = self.editor.cursor_location
        found = expression_at(self._expressions, row + 1, column + 1)
        marked = list(self._marked(row + 1))
        if found is None and not marked:
            self.tutor.tell(
                "Run the code, then put the cursor on an expression with two operands, such as "
                "a + b."
            )
            return
        title, text = f"Line {row + 1}", list(marked)
        if found is not None:
            title = f"Line {found.line}: {found.left.text} {found.operator} {found.right.text}"
            text = [*aligned(found), *([""] if marked else []), *marked]
        shown = Static(visible("\n".join(text)), markup=False)
        self.app.push_screen(Page(visible(title), shown))

    def _marked(self, row: int) -> Iterator[str]:
        """What the signs of a line (from 1) stand for, if it is as it was when it ran."""
        from tensortutor.lens.lines import remarks

        for line in self._lines:
            if line.line <= row <= line.end_line and self.editor.note_of(line.end_line - 1):
                yield from remarks(line)


def expression_at(found: Iterable[Broadcast], line: int, column: int) -> Broadcast | None:
    """The smallest expression around a place (from 1), else the first one of that line."""
    around = [
        one for one in found
        if (one.line, one.column) <= (line, column) <= (one.end_line, one.end_column)
    ]  # fmt: skip
    if around:
        return around[-1]  # one that contains another comes before it
    return next((one for one in found if one.line <= line <= one.end_line), None)
