"""A lesson in front of a room: stepped block by block, answers on demand, nothing kept."""

from typing import ClassVar, cast

from textual import on
from textual.binding import BindingType

from tensortutor.ui import keys
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.session import LessonSession
from tensortutor.ui.widgets.board import Board


class TeachSession(LessonSession):
    """Nothing waits for anything: not the run for a prediction, not the solution for the checks."""

    @property
    def must_answer_first(self) -> bool:
        """The room predicts aloud."""
        return False

    @property
    def is_held(self) -> bool:
        """Answers stand at once."""
        return False

    @property
    def is_passed(self) -> bool:
        """Who teaches has passed."""
        return True


class TeachScreen(LessonScreen):
    """The lesson's screen with a board in the place of the text."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.TEACH, *keys.LESSON]
    CSS_PATH: ClassVar[list[str]] = ["../styles/lesson.tcss", "../styles/teach.tcss"]  # type: ignore[assignment]
    ABOUT = (
        "A lesson in front of a room: its blocks come one by one, and answers when you ask for "
        "them. Edit and run what you like; nothing that you do here is kept."
    )
    READER = Board
    SESSION = TeachSession

    @property
    def board(self) -> Board:
        """The text."""
        return cast(Board, self.reader)

    async def action_more(self) -> None:
        """The next block; when all are shown, the next step."""
        if self.board.total > self.board.shown:
            self.turn_to("reader")
            self.board.more()
            self._describe()
        else:
            await self.action_next()

    async def action_less(self) -> None:
        """One block back; from the first one, to all of the step before."""
        if self.board.less():
            self.turn_to("reader")
            self._describe()
        elif self.session.index:
            await self.action_previous()
            self.action_everything()

    def action_everything(self) -> None:
        """Show the whole step."""
        self.board.everything()
        self._describe()

    async def action_answer(self) -> None:
        """Show the answer to the question that the room thinks about."""
        self.turn_to("reader")
        if not await self.board.answer():
            self.tutor.tell("No question on the board waits for its answer.")

    @on(Board.Code)
    def _code_turned(self, event: Board.Code) -> None:
        self.set_class(not event.shown, "-covered")
        if event.shown and self.board.is_at_code and not self.is_wide:
            # Without the focus: the next key is for the board, not for the program.
            self._to_front("editor")

    async def _show_step(self) -> None:
        self.set_class(self.session.step.pane is not None, "-covered")
        await super()._show_step()

    def _describe(self) -> None:
        super()._describe()
        shown, total = self.board.shown, self.board.total
        more = f"More {shown}/{total}" if shown < total else "Next step"
        answer = "Answer" if self.session.step.quizzes else ""
        self.keys.ahead = ("teach.more", "teach.answer")
        self.keys.names = {**self.keys.names, "teach.more": more, "teach.answer": answer}
