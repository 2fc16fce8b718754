"""What a check file declares, as data. Everything here is frozen; `judgefile` makes it."""

from dataclasses import dataclass
from pathlib import Path


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
class CheckFile:
    """What a check file declares, read from its syntax tree without running it."""

    path: Path
    source: str
    checks: tuple[str, ...]
    mutants: tuple[Variant, ...]
    accepted: tuple[Variant, ...]
    shortcuts: tuple[Shortcut, ...] = ()
    equivalents: tuple[Equivalent, ...] = ()
