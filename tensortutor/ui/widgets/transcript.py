"""A log of lines that stays fast and small: wrapped once, cut at the front, drawn line by line."""

import re
import textwrap
from collections.abc import Iterable
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.geometry import Size
from textual.scroll_view import ScrollView
from textual.selection import Selection
from textual.strip import Strip

from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.wrapping import margin, pieces

Line = tuple[str, str]
"""A kind (one of KINDS) and a text without line breaks or control characters."""

KINDS = ("out", "err", "note", "error", "head", "why")
WRAPPED = ("note", "head", "why")
"""Kinds that are prose: they wrap between words, and stay indented as they begin. Others break
with a mark at the margin."""
HANGING = re.compile(r"\s*(?:\S+(?: \S+)?  +(?=\S))?")
"""Wrapped lines go on below this: the indentation, and a label that is set off by blanks."""
MAX_LINES = 10_000
SLACK = 1_000
"""Lines beyond MAX_LINES before the oldest are dropped: dropping costs a pass over all."""


class Transcript(ScrollView, can_focus=True):
    """Lines of several kinds, the newest at the bottom, at most MAX_LINES of them."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {f"transcript--{kind}" for kind in KINDS}
    ALLOW_SELECT = True

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._lines: list[Line] = []
        self._rows: list[Line] = []
        self._open: list[Line] = []
        self._wrapped_at = 0
        self._following = True
        self._kept_in_view: int | None = None
        self.left_out = 0

    @property
    def lines(self) -> list[Line]:
        """What is held, the lines that have not ended yet last."""
        return self._lines + self._open

    def clear(self) -> None:
        """Forget everything."""
        self._lines, self._rows, self._open = [], [], []
        self.left_out = 0
        self._following = True
        self._kept_in_view = None
        self._lay_out()

    def add(
        self,
        lines: Iterable[Line],
        unfinished: Iterable[Line] = (),
        *,
        skipped: int = 0,
        keep_in_view: int | None = None,
    ) -> None:
        """Add ended lines. `unfinished` replaces the lines at the bottom that had not ended.

        skipped: so many lines came before these and are counted only. keep_in_view: the index of
        the new line that lines below it do not push out of sight.
        """
        new = list(lines)
        if skipped:
            self.left_out += skipped + len(self._lines)
            self._lines, self._rows = [], []
        if keep_in_view is not None:
            self._kept_in_view = len(self._lines) + keep_in_view
        self._lines += new
        self._rows += self._wrap(new)
        self._open = list(unfinished)
        if len(self._lines) > MAX_LINES + SLACK:
            self._drop(len(self._lines) - MAX_LINES)
        self._lay_out()

    def _drop(self, surplus: int) -> None:
        """Forget the oldest lines, and the rows that they are wrapped to."""
        rows = surplus
        if len(self._rows) != len(self._lines):
            rows = len(self._wrap(self._lines[:surplus]))
        del self._lines[:surplus]
        del self._rows[:rows]
        self.left_out += surplus
        if self._kept_in_view is not None:
            self._kept_in_view = max(0, self._kept_in_view - surplus)

    def _wrap(self, lines: Iterable[Line]) -> list[Line]:
        """Rows for lines. A line that fits is its own row: thousands of new objects would make
        the collector of garbage look through the whole app.
        """
        width = self._wrapped_at
        if not width:
            return list(lines)
        rows: list[Line] = []
        for line in lines:
            kind, text = line
            if len(text) <= width and text.isascii():
                rows.append(line)
            else:
                rows += [(kind, row) for row in _cut(kind, text, width)]
        return rows

    def _rewrap(self) -> None:
        self._wrapped_at = self.scrollable_content_region.width
        self._rows = self._wrap(self._lines)

    def _lay_out(self) -> None:
        height = bool(self.left_out) + len(self._rows) + len(self._wrap(self._open))
        self.virtual_size = Size(self._wrapped_at, height)
        if self._following:
            self._follow()
        self.refresh()

    def _follow(self) -> None:
        """Show the last row, or have the line that is kept in view on top."""
        if self._kept_in_view is not None:
            above = bool(self.left_out) + len(self._wrap(self._lines[: self._kept_in_view]))
            if above < self.max_scroll_y:
                self.scroll_to(y=above, animate=False, immediate=True, force=True)
                return
        self.scroll_end(animate=False, immediate=True, x_axis=False, force=True)

    def on_resize(self) -> None:
        """Wrap anew when the width has changed, and stay at the end if that is what shows."""
        if self.scrollable_content_region.width != self._wrapped_at:
            self._rewrap()
        self._lay_out()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """New lines are followed as long as the last one shows."""
        super().watch_scroll_y(old_value, new_value)
        self._following = self.is_vertical_scroll_end

    def _row(self, y: int) -> Line | None:
        if self.left_out:
            if y == 0:
                cut = symbols.current().cut
                return "note", f"{cut} {self.left_out:,} earlier lines are left out"
            y -= 1
        if y < len(self._rows):
            return self._rows[y]
        tail = self._wrap(self._open)
        return tail[y - len(self._rows)] if y - len(self._rows) < len(tail) else None

    def render_line(self, y: int) -> Strip:
        """One row of the visible part."""
        y += self.scroll_offset.y
        row = self._row(y)
        width = self.size.width
        if row is None:
            return Strip.blank(width, self.rich_style)
        kind, text = row
        style = self.rich_style + self.get_component_rich_style(f"transcript--{kind}")
        segments = self._segments(text, style, y)
        strip = Strip(segments, cell_len(text)).adjust_cell_length(width, self.rich_style)
        return strip.apply_offsets(0, y)

    def _segments(self, text: str, style: Style, y: int) -> list[Segment]:
        selection = self.text_selection
        span = selection.get_span(y) if selection is not None else None
        if span is None:
            return [Segment(text, style)]
        start, end = span
        end = len(text) if end == -1 else end
        chosen = style + self.screen.get_component_rich_style("screen--selection")
        parts = ((text[:start], style), (text[start:end], chosen), (text[end:], style))
        return [Segment(part, look) for part, look in parts if part]

    def get_selection(self, selection: Selection) -> tuple[str, str] | None:
        """The text under the mouse's selection."""
        rows = self._rows + self._wrap(self._open)
        head = [self._row(0)] if self.left_out else []
        return selection.extract("\n".join(row[1] for row in (*head, *rows) if row)), "\n"

    def selection_updated(self, _selection: Selection | None) -> None:
        """Draw the selection."""
        self.refresh()


def _cut(kind: str, text: str, width: int) -> list[str]:
    if kind in WRAPPED:
        found = HANGING.match(text)
        indent = " " * (found.end() if found and found.end() < width // 2 else 0)
        return textwrap.wrap(text, width, subsequent_indent=indent) or [""]
    first, *others = pieces(text, width)
    return [first, *(margin() + other for other in others)]
