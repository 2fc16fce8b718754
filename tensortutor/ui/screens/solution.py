"""After the checks have passed: a solution beside the learner's own, and what others get wrong."""

from textual.app import ComposeResult
from textual.content import Content
from textual.widgets import Static

from tensortutor.course.model import Lesson
from tensortutor.learner.solution_diff import beside, common_mistakes, differs
from tensortutor.plaintext import visible
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.comparison import Comparison

EQUAL = "Line by line, your code is the solution of the course."
OTHER = "Whatever passes the checks is right; it need not be like this. Docstrings are left out."


class SolutionPage(Page):
    """As wide as the terminal allows."""

    def __init__(self, lesson: Lesson, own: str) -> None:
        """own: the learner's program."""
        pairs = beside(own, lesson.solution)
        words = Static(OTHER if differs(pairs) else EQUAL, classes="dim", markup=False)
        super().__init__("Another way", words, Comparison(pairs), *_mistakes(lesson))

    def compose(self) -> ComposeResult:
        """The page, with room for two programs."""
        self.add_class("-broad")
        yield from super().compose()


def _mistakes(lesson: Lesson) -> list[Static]:
    """What others commonly get wrong, each with the check that is there for it."""
    mistakes = common_mistakes(lesson)
    if not mistakes:
        return []
    lines = [Content.styled("What others commonly get wrong", "bold")]
    for mistake in mistakes:
        lines.append(Content(f"{symbols.current().news} {mistake.name}"))
        if mistake.caught_by:
            lines.append(Content.styled(f"    found by: {mistake.caught_by}", "$foreground 66%"))
        for line in mistake.code.splitlines():
            lines.append(Content.styled(f"      {visible(line)}", "$foreground 80%"))
    return [Static(Content("\n").join(lines), classes="mistakes")]
