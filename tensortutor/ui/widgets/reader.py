"""The text of a step: prose, failing programs, questions and hints, in the order of the file."""

from textual.containers import Vertical, VerticalScroll
from textual.widget import Widget

from tensortutor.course.material import Block, Failure, Pane, Prose, Quiz
from tensortutor.ui.session import LessonSession
from tensortutor.ui.widgets.markdown import Text, fenced
from tensortutor.ui.widgets.questions import Question


class Reader(VerticalScroll, can_focus=True):
    """Shows one step at a time."""

    async def show(self, session: LessonSession) -> None:
        """Replace what is shown by the session's step, from its top."""
        step = session.step
        self.border_title = step.title
        gate = step.pane is not None and step.pane.kind == "predict"
        parts: list[Widget] = []
        prose: list[str] = []
        questions = 0
        for block in step.blocks:
            if not isinstance(block, Quiz):
                prose += _markdown(block)
                continue
            parts += _passage(prose)
            prose = []
            given = session.given(questions)
            parts.append(Question(block, questions, given[0] if given else None, gate))
            questions += 1
        parts += _passage(prose)
        hints = step.hints[: session.hints_shown]
        parts += [Hint(number, len(step.hints), hint) for number, hint in enumerate(hints, 1)]
        async with self.batch():
            await self.remove_children()
            await self.mount(Vertical(*parts, id="page"))
        self.scroll_home(animate=False)

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
        self.border_title = f"Hint {number} of {total}"


def _markdown(block: Block) -> list[str]:
    if isinstance(block, Prose):
        return [block.markdown]
    if isinstance(block, Failure):
        return [fenced(block.source, "python"), fenced(block.message, "text")]
    # A pane's code is in the editor.
    assert isinstance(block, (Pane, Quiz)), block
    return []


def _passage(prose: list[str]) -> list[Widget]:
    text = "\n\n".join(part.strip("\n") for part in prose if part.strip())
    return [Text(text)] if text else []
