"""A course as data. Everything here is frozen; `parse` and `catalog` make it."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PANES = ("run", "predict", "fix", "exercise")
JUDGED = ("fix", "exercise")
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


@dataclass(frozen=True)
class Failure:
    """A program that fails or warns, and how the last line of its report begins, word for word."""

    source: str
    message: str
    line: int
    message_line: int = 0

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


@dataclass(frozen=True)
class Variant:
    """A mutant (caught_by names the check that must fail) or an accepted alternative ("")."""

    name: str
    function: str
    line: int
    caught_by: str = ""


@dataclass(frozen=True)
class Shortcut:
    """What a check does not let the program call. forbids: as written, "torch.softmax"."""

    check: str
    forbids: tuple[str, ...]
    line: int


@dataclass(frozen=True)
class Equivalent:
    """An edit of the solution that no check can tell from it, and why not.

    before, after: the edited statement, as `verify --mutate` prints it.
    """

    before: str
    after: str
    because: str
    line: int


@dataclass(frozen=True)
class JudgeFile:
    """What a check file declares, read from its syntax tree without running it."""

    path: Path
    source: str
    checks: tuple[str, ...]
    mutants: tuple[Variant, ...]
    accepted: tuple[Variant, ...]
    shortcuts: tuple[Shortcut, ...] = ()
    equivalents: tuple[Equivalent, ...] = ()


@dataclass(frozen=True)
class Lesson:
    """One lesson file and its judge. id: chapter/lesson, without the numbers.

    A lesson made by `later` reads its steps and its judge when they are first asked for: the list
    of lessons needs neither.
    """

    id: str
    title: str
    goal: str
    requires: tuple[str, ...]
    minutes: int
    device: str
    steps: tuple[Step, ...]
    judge: JudgeFile
    path: Path
    limits: tuple[tuple[str, float], ...] = ()

    @classmethod
    def later(cls, read: Callable[[], "Lesson"], **known: Any) -> "Lesson":
        """A lesson of which all but steps and judge is known; `read` gives the whole lesson.

        Asking for steps or judge raises what `read` raises.
        """
        lesson = object.__new__(cls)
        # Straight into the instance: a frozen dataclass refuses assignments, its own too.
        vars(lesson).update(known, _read=read)
        return lesson

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there yet.
        read = vars(self).get("_read")
        if read is None or name not in ("steps", "judge"):
            raise AttributeError(name)
        whole = read()
        vars(self).update(steps=whole.steps, judge=whole.judge)
        return vars(self)[name]

    @property
    def chapter(self) -> str:
        """The chapter's part of the id."""
        return self.id.partition("/")[0]

    @property
    def slug(self) -> str:
        """The lesson's part of the id."""
        return self.id.partition("/")[2]

    @property
    def task(self) -> Step:
        """The step that the checks judge: the one with an exercise or a program to fix."""
        return next(s for s in self.steps if s.pane is not None and s.pane.kind in JUDGED)


@dataclass(frozen=True)
class Chapter:
    """A folder of lessons. id: the folder's name without its number."""

    id: str
    number: int
    title: str
    blurb: str
    lessons: tuple[Lesson, ...]


@dataclass(frozen=True)
class Course:
    """Chapters in order."""

    title: str
    chapters: tuple[Chapter, ...]
    root: Path

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """All lessons, in reading order."""
        return tuple(lesson for chapter in self.chapters for lesson in chapter.lessons)
