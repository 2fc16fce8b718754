"""The text of a step: prose, failing programs, questions and hints, in the order of the file."""

from typing import ClassVar

from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from tensortutor.course.material import OTHER_PYTORCH, Block, Failure, Look, Pane, Prose, Quiz, Try
from tensortutor.course.prose import fenced
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.widgets.markdown import MESSAGE, Text
from tensortutor.ui.widgets.pointers import Pointer, Pointers
from tensortutor.ui.widgets.questions import Question


class Reader(VerticalScroll, can_focus=True):
    """Shows one step at a time."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.READER]

    _pointers = Pointers([])

    async def show(self, session: LessonSession) -> None:
        """Replace what is shown by the session's step, from its top."""
        optional = " (may be skipped)" if session.step.optional else ""
        entitle(self, OutsideText(f"{session.step.title}{optional}"))
        parts = self.parts(session)
        self._pointers = Pointers([part for part in parts if isinstance(part, Pointer)])
        async with self.batch():
            await self.remove_children()
            await self.mount(Vertical(*parts, id="page"))
        self.scroll_home(animate=False)

    def parts(self, session: LessonSession) -> list[Widget]:
        """What the session's step consists of, from top to bottom."""
        step = session.step
        gate = step.pane is not None and step.pane.kind == "predict"
        parts: list[Widget] = []
        prose: list[str] = []
        questions = 0
        for block in step.blocks:
            if not isinstance(block, (Quiz, Look, Try)):
                prose += written(block)
                continue
            parts += passage(prose)
            prose = []
            if not isinstance(block, Quiz):
                parts.append(Pointer(block))
                continue
            given = session.given(questions)
            answer = given[0] if given else None
            question = Question(block, questions, answer, gate, held=session.is_held)
            questions += 1
            if len(step.quizzes) > 1:
                count = f"{questions} of {len(step.quizzes)}"
                entitle(question, OutsideText(f"{question.border_title}: {count}"))
            parts.append(question)
        parts += passage(prose)
        hints = step.hints[: session.hints_shown]
        return parts + [Hint(n, len(step.hints), hint) for n, hint in enumerate(hints, 1)]

    def next_pointer(self) -> Pointer | None:
        """The look or try that the lesson's key for it means now, scrolled into view."""
        pointer = self._pointers.next(self.screen.focused)
        if pointer is not None:
            pointer.scroll_visible(animate=False)
        return pointer

    def pointer_missed(self, pointer: Pointer) -> None:
        """This look found nothing: the key means it again."""
        self._pointers.missed(pointer)

    async def add_hint(self, number: int, total: int, text: str) -> None:
        """Show one more hint, and scroll to it."""
        hint = Hint(number, total, text)
        await self.query_one("#page").mount(hint)
        hint.call_after_refresh(hint.scroll_visible, animate=False)

    @property
    def questions(self) -> list[Question]:
        """The step's questions, in order."""
        return list(self.query(Question))


class Hint(Vertical):
    """One hint."""

    def __init__(self, number: int, total: int, text: str) -> None:
        super().__init__(Text(text), classes="hint")
        entitle(self, OutsideText(f"Hint {number} of {total}"))


def written(block: Block) -> list[str]:
    """A block as Markdown; nothing for what has a widget of its own."""
    if isinstance(block, (Prose, Look, Try)):
        return [block.markdown]
    if isinstance(block, Failure):
        first, *others = (fenced(said.expandtabs(4), MESSAGE) for said in block.messages)
        instead = [part for other in others for part in (OTHER_PYTORCH, other)]
        return [fenced(block.source, "python"), first, *instead]
    if isinstance(block, Pane):  # its code is in the editor
        return [block.on_cuda]
    assert isinstance(block, Quiz), block
    return []


def passage(prose: list[str]) -> list[Widget]:
    """Pieces of Markdown as one text, if there are any."""
    text = "\n\n".join(part.strip("\n") for part in prose if part.strip())
    return [Text(text)] if text else []
