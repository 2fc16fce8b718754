"""Search of the whole course: titles, text, reference and errors, as one types."""

from __future__ import annotations

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.events import Key
from textual.timer import Timer
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tensortutor.course.model import Lesson
from tensortutor.course.search import LESSON, STEP, CourseIndex, Found, Place
from tensortutor.ui import describe, key_bindings, search_rows
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.search_rows import HeadRow, MoreRow, Row
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.found_list import FoundList
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar

READING_S = 0.1
"""How often to look whether more of the course has been read."""
PAUSE_S = 0.03
"""Letters that come within this time are searched together, as those of a text that is pasted."""
DIM = "$foreground 66%"


class SearchScreen(TutorScreen):
    """A field, what is found in groups, and the words around what was sought.

    query: what to begin with, selected, so that typing replaces it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.SEARCH]
    ABOUT = (
        "Everything in the course that has your words: lessons by title and goal, their text, the "
        "reference, errors. A name finds its call, a printed message its error. Enter goes there."
    )
    CSS_PATH = "../styles/reference.tcss"
    is_passing = True

    def __init__(self, query: str = "") -> None:
        super().__init__()
        self._query = query
        self._early = ""
        self._groups: list[search_rows.Group] = []
        self._unfolded: set[str] = set()
        self._rows: list[Row] = []
        self._reading: Timer | None = None
        self._waiting: Timer | None = None

    def compose(self) -> ComposeResult:
        """The list on the left, or above on a narrow terminal; the words around what is found."""
        yield TopLine()
        with Horizontal(id="search"):
            yield FoundList(
                "Search the course", list_id="places", prompt="words, a name, an error",
                words=self._query,
            )  # fmt: skip
            with VerticalScroll(id="place", can_focus=False):
                yield Static(id="place-text")
        yield KeyBar()
        yield self.too_small()

    @property
    def found(self) -> FoundList:
        """The field, and what fits."""
        return self.query_one(FoundList)

    @property
    def field(self) -> Input:
        """Where one types."""
        return self.found.field

    @property
    def places(self) -> OptionList:
        """What is found."""
        return self.found.options

    @property
    def rows(self) -> list[Row]:
        """All rows, top to bottom."""
        return self._rows

    @property
    def chosen(self) -> Row | None:
        """The row under the cursor."""
        at = self.places.highlighted
        return self._rows[at] if at is not None and at < len(self._rows) else None

    @property
    def text(self) -> str:
        """What is said of the row under the cursor, or instead of rows."""
        return str(self.query_one("#place-text", Static).content)

    @property
    def _index(self) -> CourseIndex:
        return self.tutor.course_index

    def take_stray(self, key: Key) -> bool:
        """Whatever is typed here is sought, even right after the key that leads here."""
        if not key.is_printable or key.character in (None, "/"):
            return False
        if not self.query(Input):
            self._early += key.character or ""
            return True
        self.field.focus()
        self.field.replace(key.character or "", *self.field.selection)
        return True

    def on_mount(self) -> None:
        """Begin to read the course, if that has not begun."""
        self.top.place = ("Search",)
        self.set_focus(self.field)
        self.field.select_all()
        if self._early:
            self.field.value = self._early
            self.field.action_end()
        self._index.begin()
        if not self._index.is_complete:
            self._reading = self.set_interval(READING_S, self._more_is_read)
        self._search()

    def _more_is_read(self) -> None:
        """Look again, in what has been read by now."""
        if self._index.is_complete and self._reading is not None:
            self._reading.stop()
        self._search()

    # The list

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if event.value != self._query:
            self._unfolded.clear()
            self._query = self.tutor.sought = event.value
            self._waiting = self._waiting or self.set_timer(PAUSE_S, self._search)

    def _catch_up(self) -> None:
        """The list is to be that of the words as they stand now."""
        if self._waiting is not None:
            self._search()

    def _search(self) -> None:
        """Show what fits; the cursor stays on its place if that is still there."""
        if self._waiting is not None:
            self._waiting.stop()
            self._waiting = None
        before = self.chosen
        self._groups = search_rows.groups(self._index.search(self._query, search_rows.EVERYTHING))
        self._show(before if self._unfolded or not self._index.is_complete else None)

    def _show(self, cursor: Row | None = None) -> None:
        self._rows = search_rows.rows(self._groups, self._unfolded)
        self.places.clear_options()
        self.places.add_options(
            Option(self._drawn(row), disabled=isinstance(row, HeadRow)) for row in self._rows
        )
        place = cursor.place if isinstance(cursor, Found) else None
        same = (
            n for n, row in enumerate(self._rows) if isinstance(row, Found) and row.place == place
        )
        self.places.highlighted = next(same, 1 if self._rows else None)
        count = sum(len(group.found) for group in self._groups)
        words = [
            f"{count} found" if self._query.strip() else "",
            search_rows.still_reading(self._index),
        ]
        dot = f" {symbols.current().dot} "
        self.found.count(dot.join(word for word in words if word))
        if not self._rows:
            self._say_none()

    def _say_none(self) -> None:
        """What is searched, and that there is nothing if something was sought."""
        searched = search_rows.searched(self._index)
        reading = search_rows.still_reading(self._index)
        rest = "" if not reading else f" The rest of the course is being read ({reading})."
        if self._query.strip():
            near = self._index.index.nearest(self._query) if not reading else []
            hint = f"\n\nNames like it: {', '.join(near)}." if near else ""
            text = f'Nothing has "{self._query.strip()}". Searched: {searched}.{rest}{hint}'
        else:
            text = f"Searched as you type: {searched}.{rest}"
        entitle(
            self.query_one("#place"),
            OutsideText("Nothing found" if self._query.strip() else "Search"),
        )
        self.query_one("#place-text", Static).update(Content(text))

    def _drawn(self, row: Row) -> Content:
        if isinstance(row, HeadRow):
            count = Content.styled(f"  {len(row.group.found)}", DIM)
            return Content.styled(row.group.title, "bold $accent") + count
        if isinstance(row, MoreRow):
            rest = len(row.group.found) - search_rows.FEW
            return Content.styled(f"  {symbols.current().cut} {rest} more: Enter shows them", DIM)
        title = Content("  ") + OutsideText(search_rows.title(self.tutor.course, row.place)).title
        return title + Content.styled(f"  {search_rows.kind(row.place)}", DIM)

    @on(OptionList.OptionHighlighted)
    def _highlighted(self) -> None:
        row = self.chosen
        if isinstance(row, Found):
            entitle(self.query_one("#place"), OutsideText(search_rows.kind(row.place).capitalize()))
            self.query_one("#place-text", Static).update(self._about(row))

    def _about(self, found: Found) -> Content:
        """The words around what was sought, and where Enter leads."""
        place = found.place
        snippet = OutsideText(found.snippet).content
        for start, end in found.marks:
            snippet = snippet.stylize("bold underline", start, end)
        lesson = describe.lesson_by_id(self.tutor.course, place.lesson)
        parts = [
            OutsideText(search_rows.title(self.tutor.course, place)).styled("bold"),
            snippet,
            self._leads(place, lesson),
        ]
        return Content("\n\n" if self.is_wide else "\n").join(parts)

    def _leads(self, place: Place, lesson: Lesson | None) -> Content:
        if place.kind not in (LESSON, STEP):
            return Content.styled("Enter opens it in the reference.", DIM)
        where = f"step {place.step + 1}" if place.kind == STEP else "the lesson"
        opens = self.tutor.opens(lesson) if lesson is not None else ""
        lock = f" It is locked: {opens}." if opens else ""
        return Content.styled(f"Enter opens {where}.{lock}", DIM)

    # Keys

    def action_move(self, steps: int) -> None:
        """Another row, while one types."""
        self._catch_up()
        last = len(self._rows) - 1
        at = max(0, min((self.places.highlighted or 0) + steps, last))
        if at < last and isinstance(self._rows[at], HeadRow):
            at = max(1, at + (1 if steps > 0 else -1))
        self.places.highlighted = at if self._rows else None

    def action_page(self, pages: int) -> None:
        """Several rows on or back."""
        self.action_move(pages * max(1, self.places.size.height - 1))

    @on(Input.Submitted)
    @on(OptionList.OptionSelected)
    def _enter(self) -> None:
        """Go to the place under the cursor, or show the rest of its group."""
        self._catch_up()
        row = self.chosen
        if isinstance(row, Found):
            self.tutor.go(row.place)
        elif isinstance(row, MoreRow):
            self._unfolded.add(row.group.title)
            self._show(row.group.found[search_rows.FEW])

    def action_search(self) -> None:
        """To the field, with what is in it selected."""
        self.found.begin_typing()

    def action_back(self) -> None:
        """Back to where one was."""
        self.app.pop_screen()
