"""A lesson in front of a room: stepped block by block, answers on demand, nothing kept."""

from typing import ClassVar, cast

from textual import on
from textual.binding import BindingType

from tensortutor.course.model import JUDGED, Lesson
from tensortutor.learner.lesson_session import LessonSession, LessonStore
from tensortutor.ui import key_bindings
from tensortutor.ui.lesson.code_statements import statements
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.widgets.board import Board
from tensortutor.ui.widgets.questions import Question

NO_CODE = "No code is on the board yet."


class TeachStore(LessonStore):
    """Of a step's code nothing is on the board at first."""

    def load(self, key: int) -> str:
        """What was shown so far."""
        return super().load(key) if self.path(key).exists() else ""


class TeachSession(LessonSession):
    """Nothing waits for anything: not the run for a prediction, not the solution for the checks.

    The code of a step is what was shown of it so far, and what the teacher made of that.
    """

    STORE = TeachStore

    @property
    def pieces(self) -> tuple[str, ...]:
        """What is shown at a time of this step's code; an exercise begins as a whole."""
        pane = self.step.pane
        if pane is None:
            return ()
        return (self.begins_with(),) if pane.kind in JUDGED else statements(pane.source)

    def pieces_in(self, text: str) -> int:
        """How many pieces a text holds. Who has changed them is shown no more of them."""
        beginnings = ["".join(self.pieces[:n]) for n in range(len(self.pieces) + 1)]
        return beginnings.index(text) if text in beginnings else len(self.pieces)

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

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.TEACH, *key_bindings.LESSON]
    CSS_PATH: ClassVar[list[str]] = ["../styles/lesson.tcss", "../styles/teach.tcss"]  # type: ignore[assignment]
    ABOUT = (
        "A lesson in front of a room: text and questions come block by block, code statement by "
        "statement, and answers when you ask for them. A run takes the code as far as it is shown. "
        "Edit and run what you like; nothing that you do here is kept."
    )
    READER = Board
    SESSION = TeachSession

    def __init__(self, lesson: Lesson, step: int | None = None) -> None:
        super().__init__(lesson, step)
        self._shown: dict[int, int] = {}
        self._is_covered = False

    @property
    def board(self) -> Board:
        """The text."""
        return cast(Board, self.reader)

    @property
    def _teaching(self) -> TeachSession:
        return cast(TeachSession, self.session)

    @property
    def pieces_shown(self) -> int:
        """How many pieces of this step's code stand in the editor."""
        return self._shown.get(self.session.index, 0)

    @property
    def _has_code(self) -> bool:
        return super()._has_code and not self._is_covered

    def _focus_first(self) -> None:
        """The keys are the board's: questions are answered aloud."""
        self.panes.turn_to("reader")

    def _ask(self, question: Question) -> None:
        del question  # the room answers it
        self.board.focus(scroll_visible=False)

    def _show_code(self) -> None:
        """Show the code as far as it had come."""
        super()._show_code()
        if self.session.step.pane is not None:
            self._shown[self.session.index] = self._teaching.pieces_in(self.editor.text)

    def _more_code(self, pieces: int = 1) -> bool:
        """Show more of the code. Returns whether there was more."""
        shown = self.pieces_shown
        more = "".join(self._teaching.pieces[shown : shown + pieces])
        if not more:
            return False
        before = self.editor.text
        between = "" if not before or before.endswith("\n") else "\n"
        self._shown[self.session.index] = min(shown + pieces, len(self._teaching.pieces))
        self.editor.renew(f"{before}{between}{more}")
        self.editor.move_cursor(self.editor.document.end if shown else (0, 0))
        return True

    def _less_code(self) -> bool:
        """Take a piece of the code back. Returns whether there was one besides the first."""
        shown = self.pieces_shown
        piece = "".join(self._teaching.pieces[shown - 1 : shown])
        if shown < 2 or not self.editor.text.endswith(piece):
            return False  # the teacher has written on: that stays
        self._shown[self.session.index] = shown - 1
        self.editor.renew(self.editor.text.removesuffix(piece))
        return True

    async def action_more(self) -> None:
        """The next block or piece of code; when all are shown, the next step."""
        if self.board.is_at_code and self._more_code():
            self._turn_to_code()
            self._describe()
        elif self.board.total > self.board.shown:
            self.panes.turn_to("reader")
            self.board.more()
            self._describe()
        else:
            await self.action_next()

    async def action_less(self) -> None:
        """One block or piece of code back; from the first one, to all of the step before."""
        if self.board.is_at_code and self._less_code():
            self._turn_to_code()
            self._describe()
        elif self.board.less():
            self.panes.turn_to("reader")
            self._describe()
        elif self.session.index:
            await self.action_previous()
            self.action_everything()

    def action_everything(self) -> None:
        """Show the whole step."""
        self.board.everything()
        self._more_code(len(self._teaching.pieces))
        self._describe()

    def action_whole_code(self) -> None:
        """Show all of the code, if it has come so far."""
        if self._is_covered or not self._more_code(len(self._teaching.pieces)):
            self.tutor.tell(NO_CODE if self._is_covered else "All of the code is shown.")
            return
        self._turn_to_code()
        self._describe()

    def _may_run(self) -> bool:
        """The code runs as far as it is shown."""
        if self._is_covered:
            self.tutor.tell(NO_CODE)
        return not self._is_covered

    async def action_answer(self) -> None:
        """Show the answer to the question that the room thinks about."""
        self.panes.turn_to("reader")
        if not await self.board.answer():
            self.tutor.tell("No question on the board waits for its answer.")

    @on(Board.Code)
    def _code_turned(self, event: Board.Code) -> None:
        self._is_covered = not event.shown
        self.panes.has_code = self._has_code
        self.panes.apply_sizes()
        if event.shown and not self.pieces_shown:
            self._more_code()
            self._describe()
        if event.shown and self.board.is_at_code:
            self._turn_to_code()

    def _turn_to_code(self) -> None:
        if not self.is_wide:
            # Without the focus: the next key is for the board, not for the program.
            self.panes.show_code()

    async def _show_step(self) -> None:
        self._is_covered = self.session.step.pane is not None
        await super()._show_step()

    def _describe(self) -> None:
        super()._describe()
        pieces = max(0, len(self._teaching.pieces) - 1)  # the first comes with the block
        shown = self.board.shown + min(pieces, max(0, self.pieces_shown - 1))
        total = self.board.total + pieces
        more = f"More {shown}/{total}" if shown < total else "Next step"
        answer = "Answer" if self.session.step.quizzes else ""
        self.keys.ahead = ("teach.more", "teach.answer")
        self.keys.names = {**self.keys.names, "teach.more": more, "teach.answer": answer}
