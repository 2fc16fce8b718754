"""One question of a lesson on a page of its own, below the text and the code that it is about."""

from textual.containers import VerticalScroll

from tensortutor.course.material import Pane, Prose, Quiz, Step
from tensortutor.course.prose import fenced
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.widgets.markdown import Text
from tensortutor.ui.widgets.questions import Question


async def show_question(page: VerticalScroll, step: Step, number: int) -> None:
    """Fill an empty page with a step's text and code and its question of this number, from 0."""
    entitle(page, OutsideText(step.title))
    shown = [
        block.markdown if isinstance(block, Prose) else fenced(block.source, "python")
        for block in step.blocks if isinstance(block, (Prose, Pane))
    ]  # fmt: skip
    quizzes = [block for block in step.blocks if isinstance(block, Quiz)]
    question = Question(quizzes[number], number, None, gate=False)
    await page.mount(Text("\n\n".join(shown)), question)
    question.field.focus(scroll_visible=False)
    page.scroll_to_widget(question, animate=False)
