"""Skipping ahead: one question of each lesson that a locked one builds on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tensortutor.course.model import Course, Lesson
from tensortutor.course.problems import CourseError, listed
from tensortutor.learner.errors import StorageError
from tensortutor.learner.skipping import (
    SkipQuestion,
    answer,
    is_locked,
    question_of,
    skipped,
    to_be_done,
)
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.question_page import show_question
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.questions import Question

MOST_NAMES = 3


def lesson_names(course: Course, lessons: Sequence[Lesson]) -> str:
    """The first few lessons by name, and how many more there are."""
    names = [describe.short_name(course, one) for one in lessons[:MOST_NAMES]]
    more = len(lessons) - len(names)
    return listed([*names, f"{more} more"] if more else names)


class SkipScreen(TutorScreen):
    """Asks a question of each lesson that does not count, then says whether the lesson is open."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.SKIP]
    CSS_PATH = "../styles/lesson.tcss"
    ABOUT = (
        "One question of each lesson that you skip. A right answer makes that lesson count, a "
        "wrong one is explained. Leave whenever you like: what was answered right counts."
    )
    is_passing = True

    def __init__(self, lesson: Lesson, step: int | None) -> None:
        super().__init__()
        self._lesson = lesson
        self._step = step
        self._lessons: tuple[Lesson, ...] = ()
        self._index = 0
        self._question: SkipQuestion | None = None

    def compose(self) -> ComposeResult:
        """The question, between the usual lines."""
        yield TopLine()
        yield VerticalScroll(id="review")
        yield KeyBar()
        yield self.too_small()

    async def on_mount(self) -> None:
        """The first lesson's question."""
        try:
            self._lessons = skipped(self.tutor.course, self._lesson, self.tutor.progress)
        except StorageError as error:
            self.tutor.tell(str(error))
        await self._show()

    async def _show(self) -> None:
        tutor, page = self.tutor, self.query_one("#review", VerticalScroll)
        await page.remove_children()
        self._question = None
        if self._index >= len(self._lessons):
            self.top.place = ("Skip ahead",)
            entitle(page, OutsideText(""))  # it was the last question's
            await page.mount(Static(self._end(), markup=False))
            page.focus()
            locked = bool(tutor.opens(self._lesson))
            # Nothing comes next, and a locked lesson does not open.
            self.query_one(KeyBar).names = {"skip.next": ""} | ({"skip.open": ""} if locked else {})
            return
        lesson = self._lessons[self._index]
        name = describe.short_name(tutor.course, lesson)
        self.top.place = ("Skip ahead", f"{self._index + 1} of {len(self._lessons)}: {name}")
        try:
            self._question = question_of(lesson, tutor.progress)
        except (CourseError, StorageError) as error:
            tutor.tell(str(error))
        if self._question is None:
            entitle(page, OutsideText(name))
            words = f"{to_be_done(name)} {self.key_for('skip.next')} goes on."
            await page.mount(Static(OutsideText(words).content))
            page.focus()
            return
        await show_question(page, lesson.steps[self._question.step], self._question.number)

    def _end(self) -> str:
        tutor, back = self.tutor, self.key_for("skip.back")
        try:
            left = skipped(tutor.course, self._lesson, tutor.progress)
            locked = is_locked(tutor.course, self._lesson, tutor.progress)
        except StorageError as error:
            return str(error)
        name = describe.short_name(tutor.course, self._lesson)
        still = ""
        if left:
            still = f" Of those that it builds on, {describe.count(len(left), 'lesson')} "
            still += f"{'does' if len(left) == 1 else 'do'} not count: "
            still += f"{lesson_names(tutor.course, left)}."
        if locked:
            return f"{name} stays locked.{still} {back} leads back."
        return f"{name} is open.{still} {self.key_for('skip.open')} opens it, {back} leads back."

    @on(Question.Answered)
    async def _answered(self, event: Question.Answered) -> None:
        if self._question is not None:
            try:
                answer(self._question, event.value, self.tutor.progress)
            except StorageError as error:
                self.tutor.tell(str(error))
            self._question = None  # asked once
        await event.question.judge(event.value)
        page = self.query_one("#review", VerticalScroll)
        page.focus()
        page.scroll_to_widget(event.question, animate=False)

    async def action_next(self) -> None:
        """The next lesson's question."""
        if self._index < len(self._lessons):
            self._index += 1
            await self._show()

    def action_open(self) -> None:
        """Open the lesson that this is about, if it is open now."""
        if self.tutor.opens(self._lesson):
            self.tutor.tell(f"This lesson is still locked: {self.tutor.opens(self._lesson)}.")
        else:
            self.tutor.open_lesson(self._lesson, self._step)

    def action_back(self) -> None:
        """Back to where one was."""
        self.app.pop_screen()
