"""The reference: calls, terms, recipes and errors, searched as one types."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Markdown, OptionList, Static
from textual.widgets.option_list import Option

from tensortutor.course.prose import fenced
from tensortutor.course.search import ENTRY, ERROR, EXACT, RECIPE, TERM, CourseIndex, Place
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.widgets.found_list import FoundList
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.markdown import Text
from tensortutor.ui.widgets.pointed import PointedList

KINDS = (ENTRY, TERM, RECIPE, ERROR)
MOST_HITS = 200
ERRORS = "Error atlas"
NONE = "This course has no reference."
HOW = "Type a name, as view or Tensor.view, or words. Enter goes to the lesson."


class ReferenceScreen(TutorScreen):
    """A field to search in, what fits, and the page of what is chosen.

    names: what to open at, the first that is known; () for everything. place: the entry to open.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.REFERENCE]
    ABOUT = (
        "Calls, terms and errors. Type to search; the entry under the cursor stands beside the "
        "list, and Enter opens the lesson that it comes from."
    )
    CSS_PATH = "../styles/reference.tcss"
    is_passing = True

    def __init__(self, names: Sequence[str] = (), place: Place | None = None) -> None:
        super().__init__()
        self._names = tuple(names)
        self._place = place
        self._shown: list[Place | None] = []
        self._lessons: tuple[str, ...] = ()
        self._pages: dict[str, str] = {}

    def compose(self) -> ComposeResult:
        """The list on the left, or above on a narrow terminal; an entry and its lessons."""
        yield TopLine()
        with Horizontal(id="reference"):
            yield FoundList("Look up", list_id="hits", prompt="a name, a term, an error")
            with VerticalScroll(id="entry"):
                yield Static(id="entry-title")
                yield Text("", classes="entry-text")
                yield PointedList(id="entry-lessons", markup=False)
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

    def action_search(self) -> None:
        """To the field, with what is in it selected."""
        self.found.begin_typing()

    @property
    def hits(self) -> OptionList:
        """What fits."""
        return self.found.options

    @property
    def lessons(self) -> OptionList:
        """Where the chosen entry leads."""
        return self.query_one("#entry-lessons", OptionList)

    @property
    def chosen(self) -> Place | None:
        """The entry whose page is shown."""
        at = self.hits.highlighted
        return self._shown[at] if at is not None and at < len(self._shown) else None

    @property
    def _index(self) -> CourseIndex:
        return self.tutor.reference_index

    def on_mount(self) -> None:
        """Read the reference, if it has not been read, and open it."""
        self.top.place = ("Reference",)
        self.set_focus(self.field)
        self._open()

    @work(exit_on_error=False)
    async def _open(self) -> None:
        index = self._index
        if not index.is_complete:
            await asyncio.to_thread(index.wait)
        self._pages = {page.id: page.title for page in index.pages}
        term = self._known_name()
        if term:
            self.field.value = term
        else:
            self._list("")
        if self._place is not None and self._place in self._shown:
            self.hits.highlighted = self._shown.index(self._place)
            self.hits.focus()
        if not len(index.index):
            self.query_one("#entry-title", Static).update(NONE)

    def _known_name(self) -> str:
        """The first of the names that something is called, else the first that is found."""
        hits = {name: self._index.search(name, 1, KINDS) for name in self._names}
        exact = (name for name, found in hits.items() if found and found[0].score >= EXACT)
        return next(exact, next((name for name, found in hits.items() if found), ""))

    # The list

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        self._list(event.value)

    def _list(self, query: str) -> None:
        """Show what fits; everything by page if nothing is sought."""
        if query.strip():
            found = self._index.search(query, MOST_HITS, KINDS)
            rows: list[tuple[Place | None, Content]] = [
                (hit.place, self._row(hit.place, with_page=True)) for hit in found
            ]
        else:
            rows = self._all()
        self._shown = [place for place, _ in rows]
        self.hits.clear_options()
        self.hits.add_options(Option(row, disabled=place is None) for place, row in rows)
        first = next((n for n, place in enumerate(self._shown) if place is not None), None)
        self.hits.highlighted = first
        count = sum(place is not None for place in self._shown)
        self.found.count(f"{count} found" if query.strip() else "")
        if first is None and self._index.is_complete and query.strip():
            near = self._index.index.nearest(query)
            hint = f" The nearest: {', '.join(near)}." if near else ""
            self._show(None, f"Nothing is called so.{hint}")

    def _all(self) -> list[tuple[Place | None, Content]]:
        """Every place below the name of its page."""
        rows: list[tuple[Place | None, Content]] = []
        heading = ""
        for place in self._index.index.places(KINDS):
            page = self._page_of(place)
            if page != heading:
                heading = page
                rows.append((None, OutsideText(page).styled("bold $accent")))
            rows.append((place, self._row(place)))
        return rows

    def _row(self, place: Place, with_page: bool = False) -> Content:
        row = OutsideText(place.title.replace("`", "")).title
        if with_page:
            row += Content("  ") + OutsideText(self._page_of(place)).styled("$foreground 66%")
        return row

    def _page_of(self, place: Place) -> str:
        return ERRORS if place.kind == ERROR else self._pages.get(place.page, place.page)

    @on(OptionList.OptionHighlighted, "#hits")
    def _highlighted(self) -> None:
        place = self.chosen
        if place is not None:
            self._show(place)

    # The page

    @work(exclusive=True, exit_on_error=False)
    async def _show(self, place: Place | None, instead: str = HOW) -> None:
        """Show the page of a place, or a sentence."""
        title, text, self._lessons = ("", instead, ()) if place is None else self._content(place)
        frame = self.query_one("#entry", VerticalScroll)
        entitle(frame, OutsideText(self._page_of(place) if place is not None else ""))
        self.query_one("#entry-title", Static).update(OutsideText(title).styled("bold"))
        self.lessons.clear_options()
        self.lessons.add_options(self._lesson_word(id) for id in self._lessons)
        self.lessons.display = bool(self._lessons)
        await self.query_one(Text).update(text)
        frame.scroll_home(animate=False)

    def _content(self, place: Place) -> tuple[str, str, tuple[str, ...]]:
        """Title, Markdown and lessons of a place."""
        title = place.title.replace("`", "")
        if place.kind == ERROR:
            error = next(error for error in self._index.errors if error.id == place.page)
            return title, f"{error.means}\n\n{error.way_out}", (error.lesson,)
        entries = [e for page in self._index.pages if page.id == place.page for e in page.entries]
        entry = next(entry for entry in entries if entry.title == place.title)
        code = [fenced(sample.source, "python") for sample in entry.samples]
        return title, "\n\n".join([entry.meaning, *code]), entry.lessons

    def _lesson_word(self, id: str) -> str:
        lesson = describe.lesson_by_id(self.tutor.course, id)
        if lesson is None:
            return f"Lesson {id}: still to come"
        return f"Lesson {describe.short_name(self.tutor.course, lesson)}"

    # Keys

    def action_move(self, steps: int) -> None:
        """Another entry of the list, while one types."""
        move = self.hits.action_cursor_down if steps > 0 else self.hits.action_cursor_up
        move()

    def action_scroll_page(self, pages: int) -> None:
        """The page up or down."""
        frame = self.query_one("#entry", VerticalScroll)
        frame.scroll_relative(y=pages * max(1, frame.size.height - 1), animate=False)

    @on(Input.Submitted)
    @on(OptionList.OptionSelected, "#hits")
    def _to_lessons(self) -> None:
        """To the lessons of the chosen entry."""
        if self._lessons:
            self.lessons.highlighted = 0
            self.lessons.focus()

    @on(OptionList.OptionSelected, "#entry-lessons")
    def _open_lesson(self, event: OptionList.OptionSelected) -> None:
        id = self._lessons[event.option_index]
        lesson = describe.lesson_by_id(self.tutor.course, id)
        if lesson is None:
            self.tutor.tell(f"The lesson {id} is still to come.")
        else:
            self.tutor.leave_reference(lesson)

    @on(Markdown.LinkClicked)
    def _link(self, event: Markdown.LinkClicked) -> None:
        """An address is copied, for the browser is on another machine."""
        event.stop()
        self.tutor.copy_to_clipboard(event.href)

    def action_back(self) -> None:
        """Back to where one was."""
        self.tutor.leave_reference()
