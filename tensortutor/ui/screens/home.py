"""The first screen: where to go on, and the whole course."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tensortutor.course.model import Lesson
from tensortutor.course.problems import CourseError
from tensortutor.learner.errors import StorageError
from tensortutor.learner.mastery import ANSWERED
from tensortutor.learner.unlock import Credit, credit, state
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.course_rows import ChapterRow, ContinueRow, LessonRow, ReviewRow, Row, rows
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.courselist import CourseList
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar

if TYPE_CHECKING:
    from tensortutor.learner.review import Due

REVIEW = (
    "Questions come back at growing intervals once you have answered them, exercises and drills "
    "once you have passed their lesson."
)
TEACHING = "every lesson is open, nothing is kept"


class HomeScreen(TutorScreen):
    """Chapters and lessons, what they ask for and what they open."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.HOME]
    ABOUT = (
        "The whole course. The first row goes on where you were. A lesson opens when the lessons "
        "that it builds on are passed; the frame beside the list says which."
    )

    def __init__(self) -> None:
        super().__init__()
        self._earned = Credit(frozenset(), {})
        self._place: tuple[str, int] | None = None
        self._unfolded: set[str] = set()
        self._due: Due | None = None
        self._review = ReviewRow(None, 0)
        self._stands = False

    def compose(self) -> ComposeResult:
        """The list, and beside it what the row under the cursor is about."""
        yield TopLine()
        with Horizontal(id="home"):
            with Vertical(id="course"):
                yield CourseList()
            with VerticalScroll(id="detail", can_focus=False):
                yield Static(id="about")
        yield KeyBar()
        yield self.too_small()

    @property
    def courses(self) -> CourseList:
        """The list."""
        return self.query_one(CourseList)

    def on_mount(self) -> None:
        """Start on the row that goes on."""
        entitle(self.query_one("#course"), OutsideText(self.tutor.course.title))
        self.watch(self.app, "device_word", self._show_device)
        self.courses.focus()
        self.call_after_refresh(self._complete)

    def _complete(self) -> None:
        """The list stands: from now on the lesson under the cursor is read."""
        self._stands = True
        if self.courses.row is not None:
            self._tell(self.courses.row)

    def _show_device(self, word: str) -> None:
        self.keys.word = word

    @on(events.ScreenResume)
    def renew(self) -> None:
        """Read what was passed, here or in another session; if that is news, to the first row."""
        tutor = self.tutor
        before = (self._earned, self._place)
        try:
            self._earned = credit(tutor.course, tutor.progress.history())
            self._place = tutor.progress.place()
        except StorageError as error:
            tutor.tell(str(error))
        self.top.word = TEACHING if tutor.teaching else self._count_done()
        self.show_place()
        self.call_after_refresh(self._count_due)
        first = self._rows()[:1]
        if first and isinstance(first[0], ContinueRow):
            self._unfolded.add(first[0].lesson.chapter)
        self.courses.show(self._rows(), None if before == (self._earned, self._place) else 0)

    def show_place(self) -> None:
        """Name the app, and the class that the learner shares with now."""
        sharing = None if self.tutor.teaching else self.tutor.sharing
        if sharing is not None and sharing.is_on:
            self.top.place = ("tensortutor", f"shares with the class in {sharing.folder}")
        else:
            self.top.place = ("tensortutor",)

    def _count_done(self) -> str:
        lessons = self.tutor.course.lessons
        done = sum(lesson.id in self._earned.passed for lesson in lessons)
        known = f", {len(self._earned.known)} known" if self._earned.known else ""
        return f"{done} of {len(lessons)} lessons done{known}"

    @work(thread=True, exclusive=True, exit_on_error=False)
    def _count_due(self) -> None:
        """Find what is due, after the list stands: lessons are read for it."""
        from tensortutor.learner.review import due

        try:
            tutor = self.tutor
            new_per_day = tutor.settings.new_per_day
            self._due = due(tutor.course, tutor.progress, new_per_day=new_per_day)
        except (StorageError, CourseError):
            return  # told elsewhere: what cannot be read is not due
        self.app.call_from_thread(self._show_due)

    def _show_due(self) -> None:
        if self.is_mounted and self._due is not None:
            cards = self._due.cards
            self._review = ReviewRow(
                sum(card.is_question for card in cards),
                sum(card.is_exercise for card in cards),
                self._due.words,
                sum(card.drill is not None for card in cards),
            )
            self.courses.show(self._rows())

    def action_review(self) -> None:
        """Ask what is due."""
        from tensortutor.ui.screens.review import ReviewScreen

        self.app.push_screen(ReviewScreen(self._due))  # None: not found out yet

    def action_search(self) -> None:
        """Search the course."""
        self.tutor.action_search()

    def _rows(self) -> list[Row]:
        course, review = self.tutor.course, None if self.tutor.teaching else self._review
        return rows(course, self._earned, self._place, self._unfolded, review)

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
        self.courses.action_edge(-1)
        self.action_open()

    # The list

    @on(CourseList.Chosen)
    def _chosen(self, event: CourseList.Chosen) -> None:
        self._choose(event.row)

    def _choose(self, row: Row) -> None:
        if isinstance(row, ChapterRow):
            self._fold(row.chapter.id, row.chapter.id not in self._unfolded)
        elif isinstance(row, ReviewRow):
            self.action_review()
        else:
            self.tutor.open_lesson(row.lesson)

    @on(CourseList.Folded)
    def _folded(self, event: CourseList.Folded) -> None:
        self._fold(event.chapter, event.show)

    def _fold(self, chapter: str, show: bool) -> None:
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
        self._tell(event.row)

    def _tell(self, row: Row) -> None:
        """Say beside the list what a row is about."""
        detail = self.query_one("#detail")
        if isinstance(row, ChapterRow):
            entitle(detail, OutsideText(f"Chapter {row.chapter.number}"))
            self.query_one("#about", Static).update(self._about_chapter(row))
        elif isinstance(row, ReviewRow):
            entitle(detail, OutsideText("Review"))
            self.query_one("#about", Static).update(self._about_review(row))
        else:
            entitle(detail, OutsideText(describe.short_name(self.tutor.course, row.lesson)))
            self.query_one("#about", Static).update(self._about_lesson(row.lesson))

    def _about_chapter(self, row: ChapterRow) -> Content:
        lessons = row.chapter.lessons
        left = sum(lesson.minutes for lesson in lessons if lesson.id not in self._earned)
        count = f"{row.done} of {len(lessons)} lessons done"
        if row.known:
            count += f", {row.known} known"
        if left:
            count += f" {symbols.current().dot} {describe.minutes(left)} to go"
        parts = [
            OutsideText(row.chapter.title).styled("bold"),
            OutsideText(row.chapter.blurb.strip()).content,
            Content.styled(count, "$foreground 66%"),
        ]
        return Content("\n\n").join(parts)

    def _about_review(self, row: ReviewRow) -> Content:
        return Content("\n\n").join(
            [
                Content(REVIEW),
                Content.styled(describe.due(*row).capitalize(), "$foreground 66%"),
            ]
        )

    def _about_lesson(self, lesson: Lesson) -> Content:
        signs = symbols.current()
        facts = [describe.minutes(lesson.minutes), describe.needs(lesson)]
        parts = [
            OutsideText(lesson.goal).content,
            Content.styled(f" {signs.dot} ".join(facts), "$foreground 66%"),
            self._state(lesson),
        ]
        if self.is_wide and self._stands:
            parts.append(OutsideText(contents_of(lesson)).content.stylize("$foreground 75%"))
        return Content("\n\n" if self.is_wide else "\n").join(parts)

    def _state(self, lesson: Lesson) -> Content:
        signs = symbols.current()
        now = state(lesson, self._earned)
        if now == "done":
            return Content.styled(f"{signs.passed} done", "$text-success")
        if now == "known":
            by = self._earned.known[lesson.id]
            why = f"you passed {describe.names(self.tutor.course, [by])}" if by else ANSWERED
            return Content.styled(f"{signs.known} known: {why}", "$text-success")
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
