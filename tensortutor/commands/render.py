"""A lesson as text: the accessible path through a course."""

import io
from collections.abc import Callable, Iterator
from typing import Any

from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

from tensortutor.course.material import OTHER_PYTORCH, Failure, Pane, Prose, Quiz, Step
from tensortutor.course.model import JUDGED, Lesson
from tensortutor.learner import answers
from tensortutor.report import Printer, hanging, to_do

DO = {
    "run": "Run it",
    "predict": "Answer first, then run it",
    "fix": "Run it and see it fail, mend it, check it",
    "exercise": "Write it, check it",
}


class Writer:
    """Renders Markdown and code as lines."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def prose(self, block: Prose, index: int | None = None) -> Iterator[str]:
        """Markdown as a terminal shows it."""
        del index
        yield from self._render(Markdown(block.markdown, hyperlinks=False, code_theme="ansi_dark"))

    def code(self, source: str) -> Iterator[str]:
        """Python, indented by four."""
        if not self._printer.colour:
            yield from (f"    {line}".rstrip() for line in source.rstrip().splitlines())
            return
        syntax = Syntax(source.rstrip(), "python", theme="ansi_dark", background_color="default")
        for line in self._render(syntax):
            yield f"    {line}"

    def _render(self, what: Any) -> Iterator[str]:
        text = io.StringIO()
        console = Console(
            file=text,
            width=self._printer.width,
            force_terminal=self._printer.colour,
            color_system="standard" if self._printer.colour else None,
            legacy_windows=False,
        )
        console.print(what)
        yield from (line.rstrip() for line in text.getvalue().strip("\n").splitlines())


class Page(Writer):
    """Renders parts of a lesson as lines.

    given: the learner's answers, (step, quiz) -> (answer, correct), counted from 0. again: options
    that the commands named on it need, each after a space.
    """

    def __init__(
        self,
        printer: Printer,
        lesson: Lesson,
        given: dict[tuple[int, int], tuple[str, bool]],
        again: str = "",
    ) -> None:
        super().__init__(printer)
        self._lesson = lesson
        self._given = given
        self._again = again

    def title(self, state: str) -> Iterator[str]:
        """What the lesson is."""
        lesson = self._lesson
        yield self._printer.paint(lesson.title, "bold")
        yield lesson.goal
        yield self._printer.paint(f"{lesson.id} · {lesson.minutes} min · {state}", "dim")

    def step(self, index: int) -> Iterator[str]:
        """A whole step. Outputs are left out: they are for the learner to see."""
        step = self._lesson.steps[index]
        yield self.heading(index)
        for block in step.blocks:
            yield ""
            yield from _BLOCKS[type(block)](self, block, index)

    def step_until(self, index: int, quiz: int) -> Iterator[str]:
        """A step's text and code up to one of its questions, as if it had never been answered."""
        step = self._lesson.steps[index]
        yield self.heading(index)
        asked = -1
        for block in step.blocks:
            asked += isinstance(block, Quiz)
            if isinstance(block, Quiz) and asked != quiz:
                continue
            yield ""
            yield from _BLOCKS[type(block)](self, block, index)
            if asked == quiz:
                return

    def heading(self, index: int) -> str:
        """Where one is in the lesson."""
        text = f"Step {index + 1} of {len(self._lesson.steps)}: {self._lesson.steps[index].title}"
        return self._printer.paint(text, "bold")

    def pane(self, pane: Pane, index: int) -> Iterator[str]:
        """The code of a step, and what to do with it."""
        lesson = self._lesson
        yield from self.code(pane.source)
        yield ""
        command = f"tensortutor run --lesson {lesson.id} --step {index + 1}{self._again}"
        if pane.kind in JUDGED:
            command = f"tensortutor check {lesson.id}{self._again}"
        yield from to_do(f"{DO[pane.kind]}:", command, self._printer.width)

    def failure(self, failure: Failure, index: int | None = None) -> Iterator[str]:
        """A program that fails or warns, and its message."""
        del index
        yield from self.code(failure.source)
        yield ""
        yield "This warns, and goes on:" if failure.warns else "This fails with:"
        yield ""
        yield from hanging(failure.message, self._printer.width, 4)
        for other in failure.others:
            yield from ("", OTHER_PYTORCH, "")
            yield from hanging(other, self._printer.width, 4)

    def quiz(self, quiz: Quiz, index: int) -> Iterator[str]:
        """A question, and how to answer it."""
        quizzes = self._lesson.steps[index].quizzes
        number = quizzes.index(quiz)
        label = "Question" if len(quizzes) == 1 else f"Question {number + 1}"
        yield self._printer.paint(f"{label}:", "bold")
        yield from self.prose(Prose(quiz.ask, quiz.line))
        for place, choice in enumerate(quiz.choices, 1):
            yield f"  {place}. {choice}"
        which = "" if len(quizzes) == 1 else f" --question {number + 1}"
        yield answers.how(quiz)
        command = f"tensortutor answer {self._lesson.id} {index + 1} VALUE{which}{self._again}"
        yield from to_do("Answer:", command, self._printer.width)
        given = self._given.get((index, number))
        if given is not None:
            yield f"You answered {given[0]}, which is {'right' if given[1] else 'not right'}."

    def solution(self, step: Step) -> Iterator[str]:
        """The author's answer."""
        yield from self.code(step.solution or "")


_BLOCKS: dict[type, Callable[[Page, Any, int], Iterator[str]]] = {
    Prose: Page.prose,
    Pane: Page.pane,
    Quiz: Page.quiz,
    Failure: Page.failure,
}
