"""What is known well and what is not, what it took, and how to begin a lesson again."""

from __future__ import annotations

from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tensortutor.learner.errors import StorageError
from tensortutor.learner.mastery import ChapterStanding, Standing, standings
from tensortutor.learner.reset import reset_lesson
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.progress_rows import (
    KINDS,
    Entry,
    about_chapter,
    about_lesson,
    entries,
    overall,
    standing_rows,
)
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar


class ProgressScreen(TutorScreen):
    """Chapters with time and attempts, their lessons, and what keeps one from being known well."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.PROGRESS]
    CSS_PATH = "../styles/progress.tcss"
    ABOUT = (
        "What you know well and what not. Known well is a lesson passed within three checks, "
        "without a hint, with three of four answers right at first. Time counts while you do "
        "something: a pause counts for five minutes at most. No days are counted: come when you "
        "like."
    )

    def __init__(self) -> None:
        super().__init__()
        self._standings: tuple[ChapterStanding, ...] = ()
        self._unfolded: frozenset[str] = frozenset()
        self._entries: list[Entry] = []
        self._kind = 0

    def compose(self) -> ComposeResult:
        """The list, and beside it what the row under the cursor is about."""
        yield TopLine()
        with Horizontal(id="progress"):
            with Vertical(id="standings"):
                yield OptionList(id="standing-list", compact=True)
                yield Static(id="standing-nothing")
            with VerticalScroll(id="standing", can_focus=False):
                yield Static(id="standing-about")
        yield KeyBar()
        yield self.too_small()

    @property
    def rows(self) -> OptionList:
        """The list."""
        return self.query_one(OptionList)

    @property
    def chosen(self) -> Entry | None:
        """What the cursor is on."""
        at = self.rows.highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    def on_mount(self) -> None:
        """Name the place and take the keys."""
        self.top.place = ("Progress",)
        self.rows.focus()

    @on(events.ScreenResume)
    def renew(self) -> None:
        """Read the record."""
        tutor = self.tutor
        try:
            self._standings = standings(tutor.course, tutor.progress)
            place = tutor.progress.place()
        except StorageError as error:
            tutor.tell(str(error))
            return
        if place is not None and not self._entries:
            lesson = describe.lesson_by_id(tutor.course, place[0])
            self._unfolded = frozenset({lesson.chapter}) if lesson is not None else frozenset()
        self.top.word = overall(self._standings)
        self._fill()

    @on(events.Resize)
    def _refit(self) -> None:
        self.call_after_refresh(self._fill)

    def _fill(self) -> None:
        """Make the rows anew; the cursor stays where it was."""
        before, kind, rows = self.rows.highlighted, KINDS[self._kind], self.rows
        self._entries = entries(self._standings, kind, self._unfolded)
        rows.clear_options()
        width = max(rows.scrollable_content_region.width - 2, 20)
        names = {
            one.lesson.id: describe.short_name(self.tutor.course, one.lesson)
            for one in self._entries
            if isinstance(one, Standing)
        }
        drawn = standing_rows(self._entries, names, self._unfolded, width)
        rows.add_options(Option(row) for row in drawn)
        if self._entries:
            rows.highlighted = min(before or 0, len(self._entries) - 1)
        nothing = self.query_one("#standing-nothing", Static)
        nothing.display = not self._entries
        nothing.update(kind.nothing)
        entitle(self.query_one("#standings"), OutsideText(kind.title))
        self._describe()

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        chosen, frame = self.chosen, self.query_one("#standing")
        about = self.query_one("#standing-about", Static)
        if isinstance(chosen, ChapterStanding):
            entitle(frame, OutsideText(f"Chapter {chosen.chapter.number}"))
            about.update(about_chapter(chosen))
        elif chosen is not None:
            entitle(frame, OutsideText(describe.short_name(self.tutor.course, chosen.lesson)))
            about.update(about_lesson(chosen))
        else:
            entitle(frame, OutsideText("What known well means"))
            about.update(self.ABOUT)

    # Keys

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        # The cursor may have gone on in the meantime: what was under it then is meant.
        chosen = self._entries[event.option_index]
        if isinstance(chosen, ChapterStanding):
            self._unfolded ^= {chosen.chapter.id}
            self._fill()
        else:
            self.tutor.leave_reference(chosen.lesson)

    def action_kind(self, steps: int) -> None:
        """Show other lessons: all, those known well, those worth another look, those begun."""
        self._kind = (self._kind + steps) % len(KINDS)
        self.rows.highlighted = None
        self._fill()

    def action_back(self) -> None:
        """Back to where one was."""
        self.app.pop_screen()

    @work
    async def action_begin_again(self) -> None:
        """Put the lesson under the cursor back to what it was at first, after a question."""
        chosen, tutor = self.chosen, self.tutor
        if not isinstance(chosen, Standing):
            tutor.tell("Put the cursor on a lesson: Enter shows those of a chapter.")
            return
        lesson = chosen.lesson
        if any(getattr(screen, "lesson", None) is lesson for screen in tutor.screen_stack):
            tutor.tell("This lesson is open. Go to the list of lessons, and come back from there.")
            return
        question = Confirm(
            f"Begin {describe.short_name(tutor.course, lesson)} again",
            "Its code goes back to what it began with; answers, hints, attempts and passing are "
            "forgotten, and files that its programs wrote are removed. Your code and a copy of "
            "your progress are kept in a backup folder.",
            "Begin again",
        )
        if not await self.app.push_screen_wait(question):
            return
        try:
            kept = reset_lesson(tutor.course, lesson, tutor.progress, tutor.workspace)
        except StorageError as error:
            tutor.tell(str(error))
            return
        tutor.tell(f"Your code and a copy of your progress are kept in {kept}")
        self.renew()
