"""The first screen: where to go on, and the whole course."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Input, Static

from tensortutor.course.model import Lesson
from tensortutor.course.problems import CourseError
from tensortutor.learner.errors import StorageError
from tensortutor.learner.unlock import state
from tensortutor.ui import describe, glyphs, keys
from tensortutor.ui.outline import ChapterRow, ContinueRow, LessonRow, Row, rows
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.widgets.courselist import CourseList
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar

if TYPE_CHECKING:
    from tensortutor.learner.review import Card

DUE = "   "


class HomeScreen(TutorScreen):
    """Chapters and lessons, what they ask for and what they open."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.HOME]
    ABOUT = (
        "The whole course. The first row goes on where you were. A lesson opens when the lessons "
        "that it builds on are passed; the frame beside the list says which."
    )

    def __init__(self) -> None:
        super().__init__()
        self._passed: frozenset[str] = frozenset()
        self._place: tuple[str, int] | None = None
        self._unfolded: set[str] = set()
        self._due: list[Card] = []

    def compose(self) -> ComposeResult:
        """The list, and beside it what the row under the cursor is about."""
        yield TopLine()
        with Horizontal(id="home"):
            with Vertical(id="course"):
                yield Input(placeholder="a word of a title, a goal or an id", compact=True)
                yield CourseList()
            with VerticalScroll(id="detail", can_focus=False):
                yield Static(id="about")
        yield KeyBar()
        yield self.too_small()

    @property
    def courses(self) -> CourseList:
        """The list."""
        return self.query_one(CourseList)

    @property
    def filter(self) -> Input:
        """The field to filter with."""
        return self.query_one(Input)

    def on_mount(self) -> None:
        """Start on the row that goes on."""
        self.filter.cursor_blink = False
        self.filter.display = False
        self.query_one("#course").border_title = self.tutor.course.title
        self.top.place = ("tensortutor",)
        self.watch(self.app, "device_word", self._show_device)
        self.courses.focus()

    def _show_device(self, word: str) -> None:
        self.keys.word = word

    @on(events.ScreenResume)
    def renew(self) -> None:
        """Read what was passed, here or in another session; if that is news, to the first row."""
        tutor = self.tutor
        before = (self._passed, self._place)
        try:
            self._passed = tutor.progress.passed()
            self._place = tutor.progress.place()
        except StorageError as error:
            tutor.tell(str(error))
        lessons = tutor.course.lessons
        done = sum(lesson.id in self._passed for lesson in lessons)
        self.top.word = f"{done} of {len(lessons)} lessons done"
        self.call_after_refresh(self._count_due)
        first = self._rows()[:1]
        if first and isinstance(first[0], ContinueRow):
            self._unfolded.add(first[0].lesson.chapter)
        self.courses.show(self._rows(), None if before == (self._passed, self._place) else 0)

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _count_due(self) -> None:
        """Find what is due, after the list stands: lessons are read for it."""
        from tensortutor.learner.review import due

        try:
            self._due = due(self.tutor.course, self.tutor.progress)
        except (StorageError, CourseError):
            return  # told elsewhere: what cannot be read is not due
        self.app.call_from_thread(self._show_due)

    def _show_due(self) -> None:
        count = len(self._due)
        if count and self.is_mounted:
            base = self.top.word.partition(DUE)[0]
            self.top.word = f"{base}{DUE}{count} due for review: {self.key_for('home.review')}"

    def action_review(self) -> None:
        """Ask what is due."""
        from tensortutor.ui.screens.review import ReviewScreen

        self.app.push_screen(ReviewScreen(self._due))

    def _rows(self) -> list[Row]:
        wanted = self.filter.value if self.filter.display else ""
        return rows(self.tutor.course, self._passed, self._place, self._unfolded, wanted)

    # Keys

    def action_open(self) -> None:
        """Open the lesson under the cursor, or fold the chapter."""
        if self.courses.row is not None:
            self._choose(self.courses.row)

    def action_fold(self) -> None:
        """Show or hide the lessons of the chapter under the cursor."""
        row = self.courses.row
        if isinstance(row, (ChapterRow, LessonRow)):
            self._fold(row.chapter.id, row.chapter.id not in self._unfolded)

    def action_continue(self) -> None:
        """Go on where the learner was."""
        self.action_clear()
        self.courses.action_edge(-1)
        self.action_open()

    def action_filter(self) -> None:
        """Show the field that filters."""
        self.filter.display = True
        self.filter.focus()

    def action_clear(self) -> None:
        """Show everything again."""
        if self.filter.display:
            self.filter.value = ""
            self.filter.display = False
            self.courses.show(self._rows())
        self.courses.focus()

    @on(Input.Changed)
    def _filter(self) -> None:
        found = self._rows()
        first = next((i for i, row in enumerate(found) if isinstance(row, LessonRow)), 0)
        self.courses.show(found, first if self.filter.value else 0)
        self.query_one("#course").border_subtitle = "" if found else "no lesson has these words"

    @on(Input.Submitted)
    def _filtered(self) -> None:
        self.courses.focus()

    # The list

    @on(CourseList.Chosen)
    def _chosen(self, event: CourseList.Chosen) -> None:
        self._choose(event.row)

    def _choose(self, row: Row) -> None:
        if isinstance(row, ChapterRow):
            self._fold(row.chapter.id, row.chapter.id not in self._unfolded)
        else:
            self.tutor.open_lesson(row.lesson)

    @on(CourseList.Folded)
    def _folded(self, event: CourseList.Folded) -> None:
        self._fold(event.chapter, event.show)

    def _fold(self, chapter: str, show: bool) -> None:
        if self.filter.display and self.filter.value:
            return
        (self._unfolded.add if show else self._unfolded.discard)(chapter)
        row = self.courses.row
        cursor = None
        if not show and isinstance(row, LessonRow):
            remaining = self._rows()
            heads = (i for i, r in enumerate(remaining) if _is_head(r, chapter))
            cursor = next(heads, None)
        self.courses.show(self._rows(), cursor)

    @on(CourseList.Highlighted)
    def _highlighted(self, event: CourseList.Highlighted) -> None:
        row = event.row
        detail = self.query_one("#detail")
        if isinstance(row, ChapterRow):
            detail.border_title = f"Chapter {row.chapter.number}"
            self.query_one("#about", Static).update(self._about_chapter(row))
        else:
            detail.border_title = describe.short_name(self.tutor.course, row.lesson)
            self.query_one("#about", Static).update(self._about_lesson(row.lesson))

    def _about_chapter(self, row: ChapterRow) -> Content:
        lessons = row.chapter.lessons
        left = sum(lesson.minutes for lesson in lessons if lesson.id not in self._passed)
        count = f"{row.done} of {len(lessons)} lessons done"
        if left:
            count += f" {glyphs.current().dot} {describe.minutes(left)} to go"
        parts = [
            Content.styled(row.chapter.title, "bold"),
            Content(row.chapter.blurb.strip()),
            Content.styled(count, "$foreground 60%"),
        ]
        return Content("\n\n").join(parts)

    def _about_lesson(self, lesson: Lesson) -> Content:
        signs = glyphs.current()
        facts = [describe.minutes(lesson.minutes), describe.needs(lesson)]
        parts = [
            Content(lesson.goal),
            Content.styled(f" {signs.dot} ".join(facts), "$foreground 60%"),
            self._state(lesson),
        ]
        if self.is_wide:
            parts.append(Content.styled(contents_of(lesson), "$foreground 75%"))
        return Content("\n\n" if self.is_wide else "\n").join(parts)

    def _state(self, lesson: Lesson) -> Content:
        signs = glyphs.current()
        now = state(lesson, self._passed)
        if now == "done":
            return Content.styled(f"{signs.passed} done", "$text-success")
        if now == "open":
            return Content.styled(f"{signs.ahead} open", "$accent")
        return Content.styled(f"{signs.locked} locked: {self.tutor.opens(lesson)}", "$text-warning")


def contents_of(lesson: Lesson) -> str:
    """The titles of a lesson's steps, or what is wrong with it."""
    try:
        return "\n".join(f"{i}  {step.title}" for i, step in enumerate(lesson.steps, 1))
    except CourseError as error:
        return str(error)


def _is_head(row: Row, chapter: str) -> bool:
    return isinstance(row, ChapterRow) and row.chapter.id == chapter
