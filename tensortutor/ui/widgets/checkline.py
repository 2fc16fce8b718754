"""One check of the results: a line that unfolds."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import ClassVar

from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual import events
from textual.app import RenderResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tensortutor.plaintext import visible
from tensortutor.protocol.events import Verdict
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.terminal import symbols

FIRST, LAST = ("got", "expected", "hint", "cause"), ("where", "called")
"""Parts of a verdict, before and after what is known of an error."""
INPUT_LINES = 2
"""Lines of the inputs, cut at the pane's edge, until all of them are asked for."""
INDENT = 20
"""Cells before the text of a part."""
AS_ABOVE, PERHAPS = "As above.", "May have the same cause."
SIGNS: dict[str, Callable[[], str]] = {
    "waiting": lambda: symbols.current().pending,
    "running": lambda: symbols.current().running,
    "passed": lambda: symbols.current().passed,
    "failed": lambda: symbols.current().failed,
    "unknown": lambda: symbols.current().locked,
}


class CheckLine(Static, can_focus=True):
    """One check: its state in a glyph and a word, its name, and below them what is known of it.

    The first failure stands open, everything else is a line or two until it is unfolded.
    """

    COMPONENT_CLASSES: ClassVar[set[str]] = {"check--label", "check--detail"}
    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.CHECK_LIST]

    def __init__(self, name: str, catches: Sequence[str] = ()) -> None:
        """catches: wrong answers that this check is there for."""
        super().__init__(classes="check")
        self.check = name
        self.state = "waiting"
        self.verdict: Verdict | None = None
        self.alike = 1
        self.folded = ""
        self.rows: tuple[tuple[str, str], ...] = ()
        self._catches = tuple(catches)
        self._turned = False
        self._is_whole = False

    def show(
        self, state: str, verdict: Verdict | None = None, *, alike: int = 1, folded: str = ""
    ) -> None:
        """Enter a state: "waiting", "running", "passed", "failed" or "unknown".

        alike: how many checks have failed in this way so far. folded: what stands for the report of
        a failure that does not stand open.
        """
        self._turned = self._turned and state == self.state
        self._is_whole = False
        self.state = state
        self.verdict = verdict
        self.alike = alike
        self.folded = folded
        if state != "failed":
            self.rows = ()
        for word in SIGNS:
            self.set_class(word == state, f"-{word}")
        self.refresh(layout=True)

    def explain(self, rows: Iterable[tuple[str, str]]) -> None:
        """Add what is known about the error that failed the check: labels and texts."""
        self.rows = tuple(rows)
        self.refresh(layout=True)

    @property
    def is_open(self) -> bool:
        """Whether more than the line shows: a failure that is told here, or what was unfolded."""
        return (self.state == "failed" and not self.folded) != self._turned

    def action_fold(self) -> None:
        """Unfold; show all of long inputs; fold again."""
        if self.verdict is not None:
            if self.is_open and not self._is_whole and self._is_input_cut(self.verdict):
                self._is_whole = True
            else:
                self._turned, self._is_whole = not self._turned, False
            self.refresh(layout=True)
            self.call_after_refresh(self.scroll_visible, animate=False)

    def action_step(self, steps: int) -> None:
        """To the next check; through this one first, if it is longer than the pane."""
        pane = self.parent
        assert isinstance(pane, VerticalScroll), "checks stand in a list that scrolls"
        inside, shown = self.virtual_region, pane.scrollable_content_region.height
        top, bottom = pane.scroll_offset.y, pane.scroll_offset.y + shown
        if inside.bottom > bottom if steps > 0 else inside.y < top:
            pane.scroll_relative(y=steps, animate=False)
            return
        lines = list(pane.query(CheckLine))
        there = lines.index(self) + steps
        if 0 <= there < len(lines):
            lines[there].focus(scroll_visible=False)
            # A long one is entered at its nearer end.
            y = lines[there].virtual_region.y if steps > 0 else lines[there].virtual_region.bottom
            if not top <= y < bottom:
                pane.scroll_relative(y=steps * min(3, shown), animate=False)
        else:
            pane.scroll_relative(y=steps, animate=False)

    def on_click(self, event: events.Click) -> None:
        """The mouse unfolds, too."""
        if event.y == 0:
            self.action_fold()

    def render(self) -> RenderResult:
        """The line, and below it what is known if it is unfolded."""
        verdict, signs = self.verdict, symbols.current()
        head = Table.grid(expand=True, padding=(0, 1, 0, 0))
        head.add_column(width=10, no_wrap=True)
        head.add_column(ratio=1)
        head.add_column(justify="right", no_wrap=True)
        label = self.get_component_rich_style("check--label")
        detail = self.get_component_rich_style("check--detail")
        sign = f"{SIGNS[self.state]()} {self.state}"
        fold = signs.opened if self.is_open else signs.closed
        time = Text(f"{describe.milliseconds(verdict.ms)} {fold}", label) if verdict else Text()
        name = detail + Style(bold=self.has_focus)
        head.add_row(Text(sign), Text(visible(self.check), name), time)
        if verdict is None:
            return head
        if not self.is_open:
            if self.folded:
                head.add_row(None, Text(self.folded, label), None)
            return head
        if not verdict.passed:
            count = f"{self.alike} checks: " if self.alike > 1 else ""
            head.add_row(None, Text(count + visible(verdict.message), detail), None)
        rows = Table.grid(expand=True, padding=(0, 1, 0, 0))
        rows.add_column(width=10, no_wrap=True)
        rows.add_column(width=8, no_wrap=True)
        rows.add_column(ratio=1)
        for word, text, style in self._rows(verdict, label, detail):
            rows.add_row(None, Text(word, label), Text(text, style))
        if verdict.input:
            rows.add_row(None, Text("input", label), self._input(verdict, detail))
        both = Table.grid(expand=True)
        both.add_row(head)
        both.add_row(rows)
        return both

    def _rows(
        self, verdict: Verdict, label: Style, detail: Style
    ) -> Iterator[tuple[str, str, Style]]:
        """What is known, as labels and texts with the texts' styles."""
        for part in FIRST:
            if text := getattr(verdict, part):
                yield part, visible(text), detail
        for name, text in self.rows:
            yield name, text, detail
        for part in LAST:
            if text := getattr(verdict, part):
                yield part, visible(text), detail
        yield "seed", str(verdict.seed), label
        if verdict.passed and self._catches:
            yield "catches", visible("; ".join(self._catches)), detail

    def _input(self, verdict: Verdict, detail: Style) -> Text:
        """The inputs: all of them, or their first lines as far as they fit."""
        if self._is_whole:
            return Text(visible(verdict.input), detail)
        lines = visible(verdict.input).split("\n")
        short = "\n".join(lines[:INPUT_LINES])
        if len(lines) > INPUT_LINES:
            short += f" {symbols.current().cut}"
        return Text(short, detail, no_wrap=True, overflow="ellipsis")

    def _is_input_cut(self, verdict: Verdict) -> bool:
        lines = verdict.input.split("\n")
        room = self.size.width - INDENT
        return len(lines) > INPUT_LINES or any(len(line) > room for line in lines)
