"""What a lesson's steps are made of, as data. Everything here is frozen; `parse` makes it."""

import re
from dataclasses import dataclass
from typing import Any

from tensortutor.course.prose import fenced

RAISED = re.compile(r"([A-Za-z_][\w.]*)(?::|$)", re.MULTILINE)
"""The type that the report of an exception begins with."""
QUIZZES = ("number", "truth", "choice", "order", "text", "shape")


@dataclass(frozen=True)
class Prose:
    """Markdown between two fences that mean something. Plain fences stay inside it."""

    markdown: str
    line: int


@dataclass(frozen=True)
class CudaOutput:
    """What a program printed on a CUDA GPU. card: its name. date: of the run, as 2026-11-24."""

    printed: str
    card: str
    torch: str
    date: str


@dataclass(frozen=True)
class Pane:
    """The code of a step. kind: one of PANES. output: what it prints, or None if not said.

    Lines are those of the opening fences; the text begins one line below. needs, output_needs:
    "cuda" if only a CUDA device can prove that it runs, or that it prints this. recorded: what it
    printed on such a device, if that is known.
    """

    kind: str
    source: str
    line: int
    output: str | None = None
    output_line: int = 0
    needs: str = ""
    output_needs: str = ""
    recorded: CudaOutput | None = None

    @property
    def on_cuda(self) -> str:
        """What a reader without a CUDA GPU is told of the program, in Markdown; "" if nothing.

        The answers to the questions of a `predict` program are not given away.
        """
        opening = "This program needs a CUDA GPU. " if self.needs else ""
        if self.kind == "predict" or not (self.needs or self.output_needs):
            return opening.strip()
        known = self.recorded
        if known is not None:
            where = f"recorded on {known.card}, PyTorch {known.torch}, {known.date}"
            printed = fenced(known.printed, "text")
            return f"{opening}On a CUDA GPU it prints ({where}):\n\n{printed}"
        if self.output is not None:
            return f"{opening}On a CUDA GPU it prints:\n\n" + fenced(self.output, "text")
        return f"{opening}What it prints there is not recorded yet."


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
    needs: str = ""


LOOK_TABS = ("output", "tensors", "modules", "graph", "profile", "plot", "notes")
"""Where a `look` may send the reader: the tabs of the results, and the notes at the code."""


@dataclass(frozen=True)
class Look:
    """Sends the reader to a row of an instrument, after the step's program has run.

    tab: one of LOOK_TABS. row: the row's name; of "output" and "notes" a part of the line. expect:
    text that the row shows, white space folded. say: what is to be seen there, Markdown.
    """

    tab: str
    row: str
    expect: str
    say: str
    line: int
    needs: str = ""

    @property
    def place(self) -> str:
        """Where to look, in Markdown: "the Tensors tab, row `y`"."""
        if self.tab == "notes":
            return f"the notes beside the code, line `{self.row}`"
        kind = "line" if self.tab == "output" else "row"
        return f"the {self.tab.capitalize()} tab, {kind} `{self.row}`"

    @property
    def markdown(self) -> str:
        """The whole, for faces without instruments."""
        return f"**Look:** {self.place}. {self.say}"


@dataclass(frozen=True)
class Try:
    """An edit of the step's program, and what the program then does.

    edits: (old, new) in turn; each old text stands in the program once. Of output (all that is
    printed), shows (a part of it) and error (how the report of its exception begins) one is set.
    """

    say: str
    edits: tuple[tuple[str, str], ...]
    line: int
    output: str | None = None
    shows: str | None = None
    error: str | None = None
    result_line: int = 0
    needs: str = ""

    def edited(self, source: str) -> str:
        """The program with the edits made. Raises ValueError where a text is not there once."""
        for old, new in self.edits:
            if source.count(old) != 1:
                raise ValueError(old)
            source = source.replace(old, new)
        return source

    @property
    def markdown(self) -> str:
        """The experiment without its result, for faces that cannot edit a program."""
        return "\n\n".join((f"**Try:** {self.say}", *(_edit(*edit) for edit in self.edits)))


def _edit(old: str, new: str) -> str:
    """What to replace by what, in Markdown."""
    if "\n" in f"{old}{new}".strip("\n"):
        by = f"by\n\n```python\n{new.strip(chr(10))}\n```" if new.strip() else "by nothing."
        return f"Replace\n\n```python\n{old.strip(chr(10))}\n```\n\n{by}"
    return f"Replace `{old.strip()}` by " + (f"`{new.strip()}`." if new.strip() else "nothing.")


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
    needs: str = ""

    @property
    def messages(self) -> tuple[str, ...]:
        """The message, and what is said instead of it."""
        return self.message, *self.others

    @property
    def warns(self) -> bool:
        """The message is a warning's: the program goes on after it."""
        kind = RAISED.match(self.message)
        return kind is None or kind[1].endswith("Warning")


Block = Prose | Pane | Quiz | Failure | Look | Try


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
    def looks(self) -> tuple[Look, ...]:
        """Where the step sends its reader, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Look))

    @property
    def tries(self) -> tuple[Try, ...]:
        """The step's experiments, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Try))

    @property
    def optional(self) -> bool:
        """The step may be skipped: it derives what the others use."""
        return self.pane is not None and self.pane.kind == "derive"

    @property
    def failures(self) -> tuple[Failure, ...]:
        """The step's failing programs, in order."""
        return tuple(b for b in self.blocks if isinstance(b, Failure))
