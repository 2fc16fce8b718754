"""The pieces under one heading to a Step, with the rules that hold inside a step."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from tensortutor.course.fences import Fence, Heading, Piece, Text
from tensortutor.course.look_and_try import read_look, read_try
from tensortutor.course.material import Block, Failure, Pane, Prose, Step
from tensortutor.course.model import JUDGED
from tensortutor.course.problems import Report
from tensortutor.course.quiz import read_quiz

HINTS = (2, 3)
DERIVATION = "Derivation:"
"""How the heading of a step begins that derives something."""
PROSE_LINES = 40
CODE_LINES = 60
CODE_COLUMNS = 72
PRINTING = ("run", "predict", "derive")


class StepReader:
    """Puts a step together from its pieces, in their order."""

    def __init__(self, heading: Heading, report: Report) -> None:
        self.heading = heading
        self.report = report
        self.blocks: list[Block] = []
        self.hints: list[Fence] = []
        self.solutions: list[Fence] = []
        self.asks = False
        self.before: Piece | None = None

    def read(self, pieces: Sequence[Piece]) -> Step:
        """The step that the pieces below its heading make."""
        if not self.heading.title:
            self.report.add(self.heading.line, "this step has no title: write ## and a title")
        takers: dict[str, Callable[[Fence], None]] = {
            "output": self._output,
            "message": self._message,
            "error": self._code,
            "quiz": self._quiz,
            "hint": self._hint,
            "solution": self._solution,
            "look": self._look,
            "try": self._try,
        }
        for piece in pieces:
            self._want_message(piece)
            if isinstance(piece, Text):
                self.blocks.append(Prose(piece.markdown, piece.line))
            elif isinstance(piece, Fence):
                self._want_body(piece)
                takers.get(piece.kind, self._pane)(piece)
            self.before = piece
        self._want_message(None)
        self._check_length()
        self._check_task()
        solution = self.solutions[0] if self.solutions else None
        return Step(
            title=self.heading.title,
            blocks=tuple(self.blocks),
            line=self.heading.line,
            hints=tuple(hint.body.strip() for hint in self.hints),
            solution=solution.body if solution else None,
            solution_line=solution.line if solution else 0,
        )

    @property
    def panes(self) -> list[Pane]:
        """The step's code so far: more than one is a problem."""
        return [block for block in self.blocks if isinstance(block, Pane)]

    def _pane(self, fence: Fence) -> None:
        if self.panes:
            self.report.add(
                fence.line,
                f"this step has code in line {self.panes[0].line} already: "
                "begin a step above this fence with ## and a title",
            )
        self._code(fence)
        self.blocks.append(Pane(fence.kind, fence.body, fence.line, needs=fence.needs))

    def _output(self, fence: Fence) -> None:
        pane = self.blocks[-1] if self.blocks else None
        if not self._follows(*PRINTING) or not isinstance(pane, Pane):
            self.report.add(
                fence.line,
                "this output belongs to no program: put it right below a "
                "`python run`, `python predict` or `python derive` fence",
            )
            return
        self.blocks[-1] = replace(
            pane, output=fence.body, output_line=fence.line, output_needs=fence.needs
        )

    def _message(self, fence: Fence) -> None:
        told = self.blocks[-1] if self.blocks else None
        if self._follows("message") and isinstance(told, Failure):
            self.blocks[-1] = replace(told, others=(*told.others, fence.body.strip()))
            return
        if not isinstance(self.before, Fence) or self.before.kind != "error":
            self.report.add(
                fence.line,
                "this message belongs to no program: put it right below a `python error` fence",
            )
            return
        error = self.before
        self.blocks.append(
            Failure(error.body, fence.body.strip(), error.line, fence.line, needs=error.needs)
        )

    def _follows(self, *kinds: str) -> bool:
        return isinstance(self.before, Fence) and self.before.kind in kinds

    def _want_message(self, after: Piece | None) -> None:
        found = isinstance(after, Fence) and after.kind == "message"
        if self.before is not None and self._follows("error") and not found:
            self.report.add(
                self.before.line,
                "this program's error is not said: add a `message` fence right below it "
                "that shows how its last line begins",
            )

    def _quiz(self, fence: Fence) -> None:
        self.asks = True
        quiz = read_quiz(fence, self.report)
        if quiz is not None:
            self.blocks.append(quiz)

    def _look(self, fence: Fence) -> None:
        look = read_look(fence, self.report)
        if self._program(fence) is not None and look is not None:
            self.blocks.append(look)

    def _try(self, fence: Fence) -> None:
        pane = self._program(fence)
        experiment = read_try(fence, pane.source if pane else None, self.report)
        if pane is not None and experiment is not None:
            self.blocks.append(experiment)

    def _program(self, fence: Fence) -> Pane | None:
        """The step's program, which must stand above what is to be done with it."""
        pane = next((pane for pane in self.panes if pane.kind in PRINTING), None)
        if pane is None:
            self.report.add(
                fence.line,
                f"this {fence.kind} has no program: put it below the step's "
                "`python run`, `python predict` or `python derive` fence",
            )
        return pane

    def _hint(self, fence: Fence) -> None:
        self.hints.append(fence)

    def _solution(self, fence: Fence) -> None:
        self._code(fence)
        self.solutions.append(fence)

    def _code(self, fence: Fence) -> None:
        """The rules for every program."""
        lines = fence.body.split("\n")[:-1]
        if len(lines) > CODE_LINES:
            self.report.add(
                fence.line, f"this code has {len(lines)} lines: {CODE_LINES} are the most"
            )
        for number, line in enumerate(lines, fence.line + 1):
            if len(line) > CODE_COLUMNS:
                self.report.add(
                    number, f"this code is {len(line)} columns wide: {CODE_COLUMNS} are the most"
                )

    def _want_body(self, fence: Fence) -> None:
        # A program that prints nothing may say so: `output` alone can be empty.
        if fence.kind != "output" and not fence.body.strip():
            self.report.add(fence.line, f"this {fence.kind} fence is empty: fill it or remove it")

    def _check_length(self) -> None:
        prose = [block for block in self.blocks if isinstance(block, Prose)]
        count = sum(block.markdown.count("\n") + 1 for block in prose)
        if count > PROSE_LINES:
            self.report.add(
                self.heading.line,
                f"this step has {count} lines of text, {PROSE_LINES} are the most: "
                "cut it or split the step",
            )

    def _check_task(self) -> None:
        """Hints and a solution come with a judged pane, and only there; predicting needs a quiz."""
        judged = next((pane for pane in self.panes if pane.kind in JUDGED), None)
        if judged is None:
            for fence in (*self.hints, *self.solutions):
                self.report.add(
                    fence.line,
                    f"this {fence.kind} belongs to no task: put it into the step with the "
                    "`python exercise` or `python fix` fence",
                )
        else:
            self._check_help(judged)
        for pane in self.panes:
            if pane.kind == "predict" and not self.asks:
                self.report.add(pane.line, "there is nothing to predict: add a quiz to this step")
            if pane.kind == "derive" and not self.heading.title.startswith(DERIVATION):
                self.report.add(
                    self.heading.line,
                    "this step may be skipped, and its title must say so: begin it with "
                    f"'{DERIVATION}'",
                )

    def _check_help(self, judged: Pane) -> None:
        least, most = HINTS
        if not least <= len(self.hints) <= most:
            self.report.add(
                judged.line,
                f"{least} or {most} hints are wanted, this task has {len(self.hints)}",
            )
        if not self.solutions:
            self.report.add(judged.line, "this task has no solution: add a `python solution` fence")
        for extra in self.solutions[1:]:
            self.report.add(
                extra.line,
                f"this task has a solution in line {self.solutions[0].line} already: "
                "another way to write it is an @accepted function of the check file",
            )
