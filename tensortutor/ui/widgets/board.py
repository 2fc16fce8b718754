"""The text of a step as one shows it to a room: a block at a time."""

from dataclasses import replace
from typing import ClassVar

from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from tensortutor.course.material import Pane, Quiz
from tensortutor.learner import answers
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.markdown import Text
from tensortutor.ui.widgets.questions import Question
from tensortutor.ui.widgets.reader import Hint, Reader, passage, written


class CodeMark(Static):
    """Stands in the text where the step's code belongs."""


class Board(Reader):
    """Shows paragraphs, code and questions one after the other; answers when they are asked for."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *key_bindings.BOARD,
        replace(key_bindings.named("teach.more"), action="screen.more"),  # no page of the text
    ]

    class Code(Message):
        """The step's code is to be seen from now on, or not any more."""

        def __init__(self, shown: bool) -> None:
            super().__init__()
            self.shown = shown

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self._blocks: list[Widget] = []
        self.shown = 0

    @property
    def total(self) -> int:
        """How many blocks the step has."""
        return len(self._blocks)

    @property
    def is_at_code(self) -> bool:
        """Whether the code is what was shown last."""
        return bool(self.shown) and isinstance(self._blocks[self.shown - 1], CodeMark)

    async def show(self, session: LessonSession) -> None:
        """Begin a step: its first block stands, the others wait."""
        with self.app.batch_update():
            await super().show(session)
            page = self.query_one("#page")
            self._blocks = [block for part in page.children for block in _apart(part)]
            for block in self._blocks:
                block.display = False
            self.shown = 0
            self.more()

    def parts(self, session: LessonSession) -> list[Widget]:
        """The step's blocks in the order of the file, with a mark where the code belongs."""
        step = session.step
        parts: list[Widget] = []
        questions = 0
        for block in step.blocks:
            if isinstance(block, Pane):
                name = session.code().name
                parts.append(CodeMark(f"{symbols.current().pointer} {name}", markup=False))
            elif isinstance(block, Quiz):
                predicts = step.pane is not None and step.pane.kind == "predict"
                parts.append(Question(block, questions, None, predicts))
                questions += 1
            else:
                parts += passage(written(block))
        hints = step.hints[: session.hints_shown]
        return parts + [Hint(n, len(step.hints), hint) for n, hint in enumerate(hints, 1)]

    def more(self) -> bool:
        """Show the next block. Returns whether there was one."""
        if self.shown >= self.total:
            return False
        block = self._blocks[self.shown]
        self.shown += 1
        self._turn(block, True)
        block.call_after_refresh(block.scroll_visible, animate=False)
        return True

    def less(self) -> bool:
        """Take the last block back. Returns whether another one is left."""
        if self.shown <= 1:
            return False
        self.shown -= 1
        self._turn(self._blocks[self.shown], False)
        return True

    def everything(self) -> None:
        """Show all blocks at once."""
        while self.more():
            pass

    def _turn(self, block: Widget, shown: bool) -> None:
        block.display = shown
        if isinstance(block, CodeMark):
            self.post_message(self.Code(shown))

    async def answer(self) -> bool:
        """Show the answer to the first question that stands without one."""
        waiting = [one for one in self.questions if one.display and not one.has_class("-told")]
        if not waiting:
            return False
        question = waiting[0]
        question.add_class("-told")
        quiz = question.quiz
        question.field.show(quiz.answer)
        await question.judge(quiz.answer)
        wanted = answers.shown(quiz, quiz.answer)
        between = ":\n" if "\n" in wanted else " "
        verdict = question.query_one(".verdict", Static)
        verdict.update(
            OutsideText(f"{symbols.current().passed} The answer is{between}{wanted}").content
        )
        question.call_after_refresh(self.scroll_to_widget, question, animate=False)
        return True


def _apart(part: Widget) -> list[Widget]:
    """What is shown at a time: each block of a passage, or the whole of anything else."""
    return list(part.children) if isinstance(part, Text) else [part]
