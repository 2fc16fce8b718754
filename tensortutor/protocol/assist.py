"""Questions of the editor about names, and what the assistant answers.

The assistant is a process that has PyTorch but runs no program of the learner's.
"""

from dataclasses import dataclass

LONGEST_SOURCE = 200_000
"""Characters of a program that may be asked about."""
LONGEST_TEXT = 20_000
"""Characters of a description."""
MOST_NAMES = 3_000
MOST_TYPES = 400


@dataclass(frozen=True)
class Typed:
    """What kind of thing a name held in the last run.

    name: a global as `x`, or what a function was called with or held as `f.x`. type: as in an
    annotation, with full names: `torch.Tensor`, `list[torch.nn.modules.linear.Linear]`.
    """

    name: str
    type: str


@dataclass(frozen=True)
class Types:
    """The types of a program's names when it had ended, if the job asked for them."""

    names: tuple[Typed, ...]


@dataclass(frozen=True)
class Question:
    """About a place in a program. kind: "complete" or "explain".

    number: comes back with the answer. line: from 1. column: from 0, in characters. known: what the
    last run said of the program's names.
    """

    kind: str
    number: int
    source: str
    line: int
    column: int
    known: tuple[Typed, ...] = ()


@dataclass(frozen=True)
class Completions:
    """Names that may stand at the place. start: the column at which the word to complete begins.

    learning: PyTorch's text is still being read, which takes seconds; there may be more soon.
    """

    number: int
    start: int
    names: tuple[str, ...]
    learning: bool = False


@dataclass(frozen=True)
class Documentation:
    """What is known of the name at the place; all is "" or () if nothing is.

    name: in full, as `torch.relu`. kind: "function", "class", "module", ... signatures:
    how it is called, one or more ways. text: what it says of itself, as written there. learning: as
    in Completions.
    """

    number: int
    name: str = ""
    kind: str = ""
    signatures: tuple[str, ...] = ()
    text: str = ""
    learning: bool = False


Answer = Completions | Documentation
