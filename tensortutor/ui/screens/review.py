"""What is due: one card after another, a question, a drill, or an exercise to be written anew."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import ClassVar

from textual import on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.widgets import Static

from tensortutor.course.material import Prose
from tensortutor.learner import answers
from tensortutor.learner.errors import StorageError
from tensortutor.learner.review import Card, Due, cards, record_drill
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.question_page import show_question
from tensortutor.ui.widgets.drill import DrillView
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.markdown import Text
from tensortutor.ui.widgets.questions import Question


class ReviewScreen(TutorScreen):
    """Asks the questions and drills that are due, then offers the exercises."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.REVIEW]
    CSS_PATH = "../styles/lesson.tcss"
    ABOUT = (
        "Questions that you answered some time ago come again when they are about to be "
        "forgotten, and exercises to be written anew. A drill draws a tensor that one line of "
        "PyTorch makes. Leave whenever you like: what is not answered stays due."
    )

    def __init__(self, due: Due | None, title: str = "Review") -> None:
        super().__init__()
        self._title = title
        self._due = due or Due()
        self._cards = sorted(self._due.cards, key=lambda card: card.is_exercise)
        self._index = 0

    def compose(self) -> ComposeResult:
        """The card, between the usual lines."""
        yield TopLine()
        yield VerticalScroll(id="review")
        yield KeyBar()
        yield self.too_small()

    async def on_mount(self) -> None:
        """The first card."""
        await self._show()

    @property
    def card(self) -> Card | None:
        """The card that is shown; None when all are done."""
        return self._cards[self._index] if self._index < len(self._cards) else None

    async def _show(self) -> None:
        page = self.query_one("#review", VerticalScroll)
        await page.remove_children()
        card = self.card
        self.keys.names = {
            "review.answer": "Answer" if card and card.drill else "",
            "review.next": "Next" if card else "",
        }
        if card is None:
            self.top.place = (self._title,)
            done = "That is all for today." if self._cards else "Nothing is due."
            done += self._when_next()
            if self._due.waiting > self._due.new:
                done += f" {self._due.words}; the others come on the days after."
            await page.mount(
                Static(f"{done} {self.key_for('review.back')} leads back.", markup=False)
            )
            page.focus()
            return
        name = describe.short_name(self.tutor.course, card.lesson)
        self.top.place = (self._title, f"{self._index + 1} of {len(self._cards)}: {name}")
        self.top.word = self._due.words
        if card.drill is not None:
            entitle(page, OutsideText(f"Drill: {card.drill.id}"))
            view = DrillView(card.drill, self.tutor.runner, seed=card.reviews)
            await page.mount(view)
            view.field.focus(scroll_visible=False)
            return
        step = card.lesson.steps[card.step]
        if card.is_exercise:
            entitle(page, OutsideText(step.title))
            text = "\n\n".join(b.markdown for b in step.blocks if isinstance(b, Prose))
            await page.mount(Text(text), Static(self._how(), markup=False))
            page.focus()
            return
        await show_question(page, step, card.quiz)

    def _when_next(self) -> str:
        """When the next card is due, as a sentence behind another; "" if there is none."""
        now = datetime.now(timezone.utc)
        try:
            later = [one.due for one in cards(self.tutor.course, self.tutor.progress)]
        except StorageError:
            return ""
        coming = next((due for due in later if due > now), None)
        if coming is None:
            return "" if later else " Questions that you answer come back here."
        local = coming.astimezone()
        return f" The next card is due on {local:%A, %B} {local.day}, at {local:%H:%M}."

    def _how(self) -> str:
        return (
            f"You have solved this. {self.key_for('review.open')} opens it as it began, and keeps "
            f"your solution in a backup. {self.key_for('review.next')} leaves it for later."
        )

    @on(Question.Answered)
    async def _answered(self, event: Question.Answered) -> None:
        card = self.card
        if card is None:
            return
        quiz, value = event.question.quiz, event.value
        try:
            self.tutor.progress.record_answer(
                card.lesson.id, card.step, card.quiz, answers.written(quiz, value),
                answers.is_right(quiz, value),
            )  # fmt: skip
        except StorageError as error:
            self.tutor.tell(str(error))
        await event.question.judge(value)
        page = self.query_one("#review", VerticalScroll)
        page.focus()
        page.scroll_to_widget(event.question, animate=False)

    @on(DrillView.Checked)
    def _checked(self, event: DrillView.Checked) -> None:
        try:
            record_drill(self.tutor.progress, event.drill, event.line, event.correct)
        except StorageError as error:
            self.tutor.tell(str(error))

    def action_answer(self) -> None:
        """Say a right line of the drill. That is no right answer."""
        card = self.card
        if card is None or card.drill is None:
            self.tutor.tell("Drills have an answer to be shown; questions explain theirs.")
            return
        view = self.query_one(DrillView)
        view.post_message(DrillView.Checked(card.drill, "", correct=False))
        view.show_answer()

    async def action_next(self) -> None:
        """The next card."""
        if self.card is not None:
            self._index += 1
            await self._show()

    @work
    async def action_open(self) -> None:
        """Open the exercise afresh; what is there moves to a backup."""
        card = self.card
        if card is None or not card.is_exercise:
            return
        question = Confirm(
            "Write it anew",
            "The code of this exercise goes back to what it began with. Your solution is kept in a "
            "backup folder.",
            "Begin",
        )
        if not await self.app.push_screen_wait(question):
            return
        tutor = self.tutor
        try:
            kept = tutor.workspace.reset(card.lesson, card.step)
            tutor.progress.set_place(card.lesson.id, card.step)
        except StorageError as error:
            tutor.tell(str(error))
            return
        if kept is not None:
            tutor.tell(f"Your solution is kept in {kept}")
        self._index += 1
        await self._show()
        tutor.open_lesson(card.lesson)

    def action_back(self) -> None:
        """Back to where one was."""
        self.app.pop_screen()
