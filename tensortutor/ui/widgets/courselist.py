"""The list of chapters and lessons, drawn line by line."""

from collections.abc import Sequence
from functools import singledispatchmethod
from typing import Any, ClassVar

from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from tensortutor.plaintext import one_line
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.course_rows import ChapterRow, ContinueRow, LessonRow, ReviewRow, Row
from tensortutor.ui.terminal import symbols

BAR = 12
HEAD = 10
STATE = 7
TIME = 8
LOOKS = ("accent", "dim", "strong", "done", "locked", "cursor", "idle")
Piece = tuple[str, str]
"""A text and the name of its look, "" for the plain one."""


class CourseList(ScrollView, can_focus=True):
    """Rows with a cursor. It knows nothing of courses beyond the rows it is given."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.COURSE_LIST]
    COMPONENT_CLASSES: ClassVar[set[str]] = {f"courses--{look}" for look in LOOKS}

    class Highlighted(Message):
        """The cursor is on another row."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class Chosen(Message):
        """A row was clicked."""

        def __init__(self, row: Row) -> None:
            super().__init__()
            self.row = row

    class Folded(Message):
        """A chapter is to show its lessons, or to hide them."""

        def __init__(self, chapter: str, show: bool) -> None:
            super().__init__()
            self.chapter = chapter
            self.show = show

    def __init__(self, *, id: str | None = None) -> None:
        self._styles: dict[str, Style] = {}
        super().__init__(id=id)
        self._rows: list[Row] = []
        self._cursor = 0

    @property
    def row(self) -> Row | None:
        """The row under the cursor."""
        return self._rows[self._cursor] if self._cursor < len(self._rows) else None

    @property
    def rows(self) -> list[Row]:
        """All rows, top to bottom."""
        return self._rows

    def show(self, rows: Sequence[Row], cursor: int | None = None) -> None:
        """Show other rows; the cursor stays on the same lesson or chapter if that is there."""
        before = _identity(self.row)
        self._rows = list(rows)
        if cursor is None:
            same = (i for i, row in enumerate(self._rows) if _identity(row) == before)
            cursor = next(same, 0)
        self.virtual_size = Size(self.size.width, self._line_of(len(self._rows)))
        self._go(cursor)

    @property
    def _heads(self) -> int:
        """How many rows stand above the course, with a blank line below them."""
        return sum(isinstance(row, (ContinueRow, ReviewRow)) for row in self._rows[:2])

    def _line_of(self, index: int) -> int:
        return index + (0 < self._heads <= index)

    def _index_at(self, line: int) -> int | None:
        """The row on a line, None for the blank one and below the last."""
        heads = self._heads
        index = line - (0 < heads < line)
        return None if line == heads > 0 or index >= len(self._rows) else index

    # Moving

    def action_move(self, steps: int) -> None:
        """Up or down by rows."""
        self._go(self._cursor + steps)

    def action_page(self, pages: int) -> None:
        """Up or down by what is visible."""
        self._go(self._cursor + pages * max(1, self.size.height - 1))

    def action_edge(self, side: int) -> None:
        """To the first row or to the last."""
        self._go(0 if side < 0 else len(self._rows) - 1)

    def action_unfold(self, show: bool) -> None:
        """Show or hide the lessons of the chapter under the cursor."""
        row = self.row
        if isinstance(row, (ChapterRow, LessonRow)):
            self.post_message(self.Folded(row.chapter.id, show))

    def _go(self, cursor: int) -> None:
        self._cursor = max(0, min(cursor, len(self._rows) - 1))
        self.refresh()
        self.scroll_to_region(
            Region(0, self._line_of(self._cursor), 1, 1), animate=False, immediate=True
        )
        if self.row is not None:
            self.post_message(self.Highlighted(self.row))

    def on_resize(self) -> None:
        """Columns follow the width."""
        self.virtual_size = Size(self.size.width, self._line_of(len(self._rows)))
        self._go(self._cursor)

    def on_click(self, event: events.Click) -> None:
        """One click moves the cursor, a second one opens."""
        index = self._index_at(int(event.y) + self.scroll_offset.y)
        if index is None:
            return
        again = index == self._cursor
        self._go(index)
        if again or isinstance(self._rows[index], ChapterRow):
            self.post_message(self.Chosen(self._rows[index]))

    # Drawing

    def render_line(self, y: int) -> Strip:
        """One row."""
        index = self._index_at(y + self.scroll_offset.y)
        width = self.size.width
        if index is None:
            return Strip.blank(width, self.rich_style)
        left, right = self._pieces(self._rows[index])
        here = index == self._cursor
        sign = symbols.current().pointer if here else " "
        ground = Style()
        if here:
            look = "cursor" if self.has_focus else "idle"
            ground = Style(bgcolor=self._style(look).bgcolor)
        pieces = _fitted([(f" {sign} ", "accent"), *left], right, width)
        segments = [Segment(text, self._style(look) + ground) for text, look in pieces]
        return Strip(segments).adjust_cell_length(width, self.rich_style + ground)

    def _style(self, look: str) -> Style:
        if look not in self._styles:
            self._styles[look] = (
                self.get_component_rich_style(f"courses--{look}") if look else self.rich_style
            )
        return self._styles[look]

    def notify_style_update(self) -> None:
        """Another theme, other colours."""
        self._styles = {}
        super().notify_style_update()

    @singledispatchmethod
    def _pieces(self, row: Any) -> tuple[list[Piece], list[Piece]]:
        """The left and the right part of a row."""
        raise TypeError(f"{row!r} is no row")

    @_pieces.register
    def _(self, row: ContinueRow) -> tuple[list[Piece], list[Piece]]:
        word = "Continue" if row.begun else "Begin"
        step = f"  step {row.step + 1} of {len(row.lesson.steps)}" if row.begun else ""
        return [
            (f"{word:<{HEAD}}", "accent"),
            (one_line(row.lesson.title), "strong"),
            (step, "dim"),
        ], []

    @_pieces.register
    def _(self, row: ReviewRow) -> tuple[list[Piece], list[Piece]]:
        due = describe.due(*row)
        look = "strong" if row.questions or row.exercises or row.drills else "dim"
        return [(f"{'Review':<{HEAD}}", "accent"), (due, look)], []

    @_pieces.register
    def _(self, row: ChapterRow) -> tuple[list[Piece], list[Piece]]:
        signs = symbols.current()
        total = len(row.chapter.lessons)
        fold = signs.opened if row.open else signs.closed
        full, empty = describe.bar(row.done, total, BAR)
        count = f"{row.done}/{total}"
        left = [
            (f"{fold} {row.chapter.number:>2}  ", "dim"),
            (one_line(row.chapter.title), "strong"),
        ]
        return left, [(full, "accent"), (empty, "dim"), (f"{count:>{TIME}} ", "dim")]

    @_pieces.register
    def _(self, row: LessonRow) -> tuple[list[Piece], list[Piece]]:
        signs = symbols.current()
        sign, look = {
            "done": (signs.passed, "done"),
            "known": (signs.known, "done"),
            "open": (signs.ahead, ""),
            "locked": (signs.locked, "locked"),
        }[row.state]
        left = [
            (f"      {sign} ", look),
            (f"{row.number:>2}  ", "dim"),
            (one_line(row.lesson.title), "locked" if row.state == "locked" else ""),
        ]
        time = f"{row.lesson.minutes} min"
        device = describe.special(row.lesson)
        return left, [
            (f"{device}  " if device else "", "dim"),
            (f"{row.state:<{STATE}}", look or "dim"),
            (f"{time:>{TIME}} ", "dim"),
        ]


def _fitted(left: list[Piece], right: list[Piece], width: int) -> list[Piece]:
    """Both parts on one line; what is too long loses its end, then the right part goes."""
    need = sum(cell_len(text) for text, _ in left)
    tail = sum(cell_len(text) for text, _ in right)
    if width < 40:
        right, tail = [], 0
    room = width - tail - 1
    if need <= room:
        return [*left, (" " * (width - need - tail), ""), *right]
    fitted: list[Piece] = []
    for text, look in left:
        free = room - sum(cell_len(done) for done, _ in fitted)
        if cell_len(text) > free:
            cut = symbols.current().cut
            fitted.append((set_cell_size(text, max(0, free - 1)) + cut, look))
            break
        fitted.append((text, look))
    used = sum(cell_len(text) for text, _ in fitted)
    return [*fitted, (" " * max(0, width - used - tail), ""), *right]


def _identity(row: Row | None) -> str:
    if isinstance(row, ChapterRow):
        return row.chapter.id
    if isinstance(row, ReviewRow):
        return "review"
    return f"{type(row).__name__} {row.lesson.id}" if row else ""
