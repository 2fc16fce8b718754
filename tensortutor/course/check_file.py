"""What a check file declares, as data. Everything here is frozen; `judgefile` makes it."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Variant:
    """An answer that takes the place of the solution's function of the same name.

    A mutant: caught_by names the check that must fail, misconception the lesson whose subject its
    author has not understood, or "", like the mutant of that lesson that makes the same mistake.
    An accepted alternative: none of these. An answer that follows a hint: hint is its number from
    1, reaches the check that it passes, with all before it.
    """

    name: str
    function: str
    line: int
    caught_by: str = ""
    misconception: str = ""
    like: str = ""
    hint: int = 0
    reaches: str = ""


@dataclass(frozen=True)
class Quote:
    """Words of the task that a check holds the program to.

    side: which side of the sentence it tries, "" if it has one side. both_sides: it tries both.
    """

    check: str
    words: str
    line: int
    side: str = ""
    both_sides: bool = False


@dataclass(frozen=True)
class Declared:
    """A text of the check file with its line. because: the reason that is given, or ""."""

    text: str
    line: int
    because: str = ""


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
class CheckFile:
    """What a check file declares, read from its syntax tree without running it.

    background: beginnings of sentences of the task that state no rule. key_lines_shown: calls of
    the solution that the lesson may show. shows: ids of lessons for which passing this
    one is evidence.
    """

    path: Path
    source: str
    checks: tuple[str, ...]
    mutants: tuple[Variant, ...]
    accepted: tuple[Variant, ...]
    shortcuts: tuple[Shortcut, ...] = ()
    equivalents: tuple[Equivalent, ...] = ()
    hinted: tuple[Variant, ...] = ()
    quotes: tuple[Quote, ...] = ()
    background: tuple[Declared, ...] = ()
    key_lines_shown: tuple[Declared, ...] = ()
    shows: tuple[Declared, ...] = ()
