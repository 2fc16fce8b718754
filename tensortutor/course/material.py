"""What a lesson's steps are made of, as data. Everything here is frozen; `parse` makes it."""

import re
from dataclasses import dataclass
from typing import Any

RAISED = re.compile(r"([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
"""The type that the report of an exception begins with."""
QUIZZES = ("number", "truth", "choice", "order", "text", "shape")


@dataclass(frozen=True)
class Prose:
    """Markdown between two fences that mean something. Plain fences stay inside it."""

    markdown: str
    line: int


@dataclass(frozen=True)
class Pane:
    """The code of a step. kind: one of PANES. output: what it prints, or None if not said.

    Lines are those of the opening fences; the text begins one line below.
    """

    kind: str
    source: str
    line: int
    output: str | None = None
    output_line: int = 0


@dataclass(frozen=True)
class Quiz:
    """A question. kind: one of QUIZZES.

    answer: number -> float, truth -> bool, choice -> the text of the right choice, order -> the
    lines in the right order, text -> str, shape -> list of ints. choices: for choice (all) and
    order (as shown, shuffled). proof: Python whose last expression must equal the answer, run
    after the step's code. wrong: explanations that belong to particular wrong answers.
    """

    kind: str
    ask: str
    answer: Any
    proof: str
    explain: str
    line: int
    choices: tuple[str, ...] = ()
    tolerance: float = 1e-4
    wrong: tuple[tuple[str, str], ...] = ()


OTHER_PYTORCH = "Or, with another version or build of PyTorch:"
"""Stands above what is said there instead of a message."""


@dataclass(frozen=True)
class Failure:
    """A program that fails or warns, and how the last line of its report begins, word for word.

    others: what other versions or builds of PyTorch say instead.
    """

    source: str
    message: str
    line: int
    message_line: int = 0
    others: tuple[str, ...] = ()

    @property
    def messages(self) -> tuple[str, ...]:
        """The message, and what is said instead of it."""
        return self.message, *self.others

    @property
    def warns(self) -> bool:
        """The message is a warning's: the program goes on after it."""
        kind = RAISED.match(self.message)
        return kind is None or kind[1].endswith("Warning")


Block = Prose | Pane | Quiz | Failure


@dataclass(frozen=True)
class Step:
    """One heading of a lesson: text with at most one code pane."""

    title: str
    blocks: tuple[Block, ...]
    line: int
    hints: tuple[str, ...] = ()
    solution: str | None = None
    solution_line: int = 0

    @property
    def pane(self) -> Pane | None:
        """The step's code, if it has any."""
        return next((b for b in self.blocks if isinstance(b, Pane)), None)

    @property
    def quizzes(self) -> tuple[Quiz, ...]:
        """The step's questions, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Quiz))

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The step's failing programs, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Failure))
