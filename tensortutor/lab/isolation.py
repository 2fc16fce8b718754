"""Keeps what drawing does out of what a program watches, records or compiles."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import torch

P = ParamSpec("P")
R = TypeVar("R")

compiler: Any = torch.compiler  # in part untyped
hidden_from_modes = torch._C.DisableTorchFunction
"""Calls inside of `with hidden_from_modes():` do not reach a mode or a subclass that watches calls."""


def never_traced(function: Callable[P, R]) -> Callable[P, R]:
    """The function, never traced by torch.compile: compiled code is left for it, as for a print."""

    @wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> R:
        if torch.compiler.is_compiling():
            untraced: Callable[P, R] = compiler.disable(function)
            return untraced(*args, **keywords)
        with hidden_from_modes():
            return function(*args, **keywords)

    return call
