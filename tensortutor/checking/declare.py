"""What a check file declares: checks, and answers with what must become of them."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar

import torch

from tensortutor.checking.answer import Answer

CheckFunction = Callable[[Answer, random.Random, torch.device], None]
C = TypeVar("C", bound=CheckFunction)
F = TypeVar("F", bound=Callable[..., Any])


PREFIXED = ("linalg", "fft", "special")
"""Modules of torch whose functions carry the module's name in their own."""


@dataclass(frozen=True)
class Check:
    """One named judgement. forbid: base names of torch functions that the program may not call."""

    name: str
    run: CheckFunction
    forbid: frozenset[str]
    counts_calls: bool = False
    hint: str = ""
    subclasses: bool = False

    @property
    def watched(self) -> bool:
        """The program's calls of torch functions must be seen."""
        return self.counts_calls or bool(self.forbid)


@dataclass(frozen=True)
class Substitute:
    """A function or class that takes the place of the program's own of the same name."""

    name: str
    value: Any


@dataclass
class Declarations:
    """What the check file that is being executed has declared so far."""

    checks: list[Check] = field(default_factory=list)
    substitutes: list[Substitute] = field(default_factory=list)


declared = Declarations()


def check(
    name: str,
    *,
    forbid: Iterable[str] = (),
    counts_calls: bool = False,
    subclasses: bool = False,
    hint: str = "",
    holds: str | Iterable[str] = (),
    side: str = "",
    both_sides: bool = False,
) -> Callable[[C], C]:
    """Declare a check.

    forbid: shortcuts that the lesson is about building, as "torch.softmax". They are caught when
    the learner's code calls them, under any alias, as method or operator, by the last part of
    the name. counts_calls: fill `answer.calls`; off by default, because it slows every call.
    subclasses: the program's functions may return tensors of a subclass of its own; otherwise they
    come as plain tensors, since a subclass may answer every question about itself as it likes.
    hint: what helps whenever this check fails. It is shown where the expectation that failed has no
    hint, and where the check's own code raises on what the program has made.
    holds: the words of the task that this check holds the program to, as they stand there. side:
    which side of a sentence with two sides it tries, as "off" of "on or off". both_sides: it tries
    both.
    """
    del holds, side, both_sides  # the author's gate reads them from the syntax tree
    names = frozenset(name for path in forbid for name in names_of(path))

    def declare(function: C) -> C:
        declared.checks.append(Check(name, function, names, counts_calls, hint, subclasses))
        return function

    return declare


def mutant(
    name: str, *, caught_by: CheckFunction, misconception: str = "", like: str = ""
) -> Callable[[F], F]:
    """Declare a plausible wrong answer; `caught_by` is the check that must fail on it.

    misconception: the id of the lesson whose subject the answer gets wrong. like: the name of that
    lesson's own mutant that makes the same mistake.
    """
    del caught_by, misconception, like  # the author's gate reads them from the syntax tree
    return _substitute(name)


def hinted(number: int, *, reaches: CheckFunction) -> Callable[[F], F]:
    """Declare the answer of someone who follows the hint of this number to the letter.

    number: from 1. reaches: a check that it must pass, with every check before it. It may fail
    later ones, but none before: a hint leads on.
    """
    del reaches  # the author's gate reads it from the syntax tree

    def declare(value: F) -> F:
        name = f"follows hint {number} in {value.__name__}"
        return _substitute(name)(value)

    return declare


def accepted(name: str) -> Callable[[F], F]:
    """Declare a right answer that is written another way; every check must pass it."""
    return _substitute(name)


def equivalent(before: str, after: str, *, because: str) -> None:
    """Declare an edit of the solution that every check passes, and rightly so.

    before, after: the edited statement, as `tensortutor verify --mutate` prints it. because: why
    the two programs cannot be told apart, or why the difference is none of the lesson's.
    """
    del before, after, because  # the author's gate reads them from the syntax tree


def background(*sentences: str) -> None:
    """Name sentences of the task, by their beginnings, that state no rule to be checked."""
    del sentences  # the author's gate reads them from the syntax tree


def key_line_shown(call: str, *, because: str) -> None:
    """Allow the lesson to show a decisive call of the solution.

    call: as "torch.where". because: what the exercise asks for beyond that call.
    """
    del call, because  # the author's gate reads them from the syntax tree


def _substitute(name: str) -> Callable[[F], F]:
    def declare(value: F) -> F:
        declared.substitutes.append(Substitute(name, value))
        return value

    return declare


def names_of(path: str) -> set[str]:
    """The names under which torch's functions go: "torch.linalg.inv" is `linalg_inv` inside."""
    name = base_name(path)
    folder = base_name(path.rpartition(".")[0])
    return {name, f"{folder}_{name}"} if folder in PREFIXED else {name}


def base_name(path: str) -> str:
    """ "torch.Tensor.add_" -> "add": the part by which aliases and in-place forms agree."""
    return path.rpartition(".")[2].strip("_")
