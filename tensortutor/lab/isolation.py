"""Keeps what drawing does out of what a program watches, records or compiles."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

compiler: Any = torch.compiler  # in part untyped
hidden_from_modes = torch._C.DisableTorchFunction
"""Inside of `with hidden_from_modes():` calls do not reach a mode or a subclass that watches."""
shown_to_modes: Any = getattr(torch._C, "_EnableTorchFunction", nullcontext)
"""The opposite, inside of it; nothing where this PyTorch has no such thing."""


def never_traced(function: Callable[P, R]) -> Callable[P, R]:
    """The function, never traced by torch.compile, and hidden from modes and subclasses."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        with hidden_from_modes():
            return function(*args, **keywords)

    return outside_graphs(call)


def outside_graphs(function: Callable[P, R]) -> Callable[P, R]:
    """The function, never traced by torch.compile: compiled code is left for it, as for a print."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            untraced: Callable[P, R] = compiler.disable(call)
            return untraced(*args, **keywords)
        return function(*args, **keywords)

    return call


def visible(function: Callable[P, R]) -> Callable[P, R]:
    """The program's own function, called as the program would: modes see what it does.

    Without that, a default device would not hold inside of it.
    """

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        with shown_to_modes():
            return function(*args, **keywords)

    return call
