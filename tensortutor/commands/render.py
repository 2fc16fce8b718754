"""A lesson as text: the accessible path through a course."""

import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.console import Console
from rich.markdown import Markdown
from rich.syntax import Syntax

from tensortutor.course.material import (
    OTHER_PYTORCH,
    Failure,
    Look,
    Pane,
    Prose,
    Quiz,
    Try,
)
from tensortutor.course.model import JUDGED, Lesson
from tensortutor.learner import answers
from tensortutor.report import Printer, hanging, to_do

DO = {
    "run": "Run it",
    "predict": "Answer first, then run it",
    "derive": "Run it if you like: this step may be skipped",
    "fix": "Run it and see it fail, mend it, check it",
    "exercise": "Write it, check it",
}


class Writer:
    """Renders Markdown and code as lines."""

    def __init__(self, printer: Printer) -> None:
        self._printer = printer

    def prose(self, block: Prose, index: int | None = None) -> Iterator[str]:
        """Markdown as a terminal shows it: a title in italics stands on a line of its own.

        Without colours, pieces of code keep their backticks.
        """
        del index
        markdown = Markdown(block.markdown, hyperlinks=False, code_theme="ansi_dark")
        markdown.parsed = list(_with_titles(markdown.parsed))
        if not self._printer.colour:
            _keep_backticks(markdown.parsed)
        yield from self._render(markdown)

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
    that the commands named on it need, each after a space. begins: the code that a step begins with
    for this learner; None: as the lesson's file has it.
    """

    def __init__(
        self,
        printer: Printer,
        lesson: Lesson,
        given: dict[tuple[int, int], tuple[str, bool]],
        again: str = "",
        begins: Callable[[Lesson, int], str] | None = None,
    ) -> None:
        super().__init__(printer)
        self._lesson = lesson
        self._begins = begins
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
        yield from self.code(self._begins(lesson, index) if self._begins else pane.source)
        yield ""
        if pane.on_cuda:
            yield from self.prose(Prose(pane.on_cuda, pane.line))
            yield ""
        command = f"tensortutor run --lesson {lesson.id} --step {index + 1}{self._again}"
        if pane.kind in JUDGED:
            command = f"tensortutor check {lesson.id}{self._again}"
        yield from to_do(f"{DO[pane.kind]}:", command, self._printer.width)

    def look(self, look: Look, index: int) -> Iterator[str]:
        """Where to look, what is to be seen there, and the command that shows it."""
        yield from self.prose(Prose(look.markdown, look.line))
        if look.tab not in ("output", "plot"):
            option = "--profile" if look.tab == "profile" else "--lens"
            command = f"tensortutor run --lesson {self._lesson.id} --step {index + 1} {option}"
            yield from to_do("See it:", f"{command}{self._again}", self._printer.width)

    def experiment(self, experiment: Try, index: int) -> Iterator[str]:
        """An edit to make. What comes of it is for the learner to see."""
        for token in MarkdownIt("commonmark").parse(experiment.markdown):
            if token.type == "fence":
                yield from self.code(token.content)
            elif token.type == "inline":
                yield from self.prose(Prose(token.content, index))

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


_BLOCKS: dict[type, Callable[[Page, Any, int], Iterator[str]]] = {
    Prose: Page.prose,
    Pane: Page.pane,
    Quiz: Page.quiz,
    Failure: Page.failure,
    Look: Page.look,
    Try: Page.experiment,
}


def _with_titles(tokens: Sequence[Token]) -> Iterator[Token]:
    """The tokens, with each `*Title.*` that begins a paragraph made a heading above it."""
    place = 0
    while place < len(tokens):
        token = tokens[place]
        inline = tokens[place + 1].children if token.type == "paragraph_open" else None
        end = _title_end(inline or [])
        if not inline or not end or token.level:
            yield token
            place += 1
            continue
        title, rest = inline[1:end], inline[end + 1 :]
        yield from _block("heading", "h3", title)
        while rest and rest[0].type in ("softbreak", "text") and not rest[0].content.strip():
            rest = rest[1:]
        if rest:
            rest[0].content = rest[0].content.lstrip()
            yield from _block("paragraph", "p", rest)
        place += 3


def _title_end(children: Sequence[Token]) -> int:
    """Where the emphasis ends that begins a paragraph with a whole sentence; 0 if none does."""
    if not children or children[0].type != "em_open":
        return 0
    end = next((n for n, child in enumerate(children) if child.type == "em_close"), 0)
    return end if end and children[end - 1].content.rstrip().endswith((".", "?")) else 0


def _block(kind: str, tag: str, children: list[Token]) -> Iterator[Token]:
    yield Token(f"{kind}_open", tag, 1, block=True)
    yield Token("inline", "", 0, children=children, block=True, level=1)
    yield Token(f"{kind}_close", tag, -1, block=True)


def _keep_backticks(tokens: Iterable[Token]) -> None:
    for token in tokens:
        if token.type == "code_inline":
            sign = "``" if "`" in token.content else "`"
            token.content = f"{sign}{token.content}{sign}"
        _keep_backticks(token.children or ())
