"""What a program's function was called with, told by values if the check then fails.

Tensors are held weakly and never copied at the call: a check may measure what lives, what is
allocated and which operations run.
"""

import math
import weakref
from collections.abc import Callable, Iterator
from types import CodeType
from typing import Any, NamedTuple

import torch

MOST_VALUES = 24
"""A tensor with more is told by its shape alone."""
MOST_TENSORS = 4
DIGITS = 4


# By name, before a program of a learner's can put something else in their place.
_detach, _tolist = torch.Tensor.detach, torch.Tensor.tolist


class Given(NamedTuple):
    """A small tensor that was passed. version: goes up when its values change."""

    name: str
    tensor: "weakref.ref[torch.Tensor]"
    version: int


def noted(function: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> tuple[Given, ...]:
    """The small tensors among the arguments of a call that begins."""
    code = getattr(function, "__code__", None)
    names = code.co_varnames[: code.co_argcount] if isinstance(code, CodeType) else ()
    named = [(names[i] if i < len(names) else f"#{i + 1}", arg) for i, arg in enumerate(args)]
    found: list[Given] = []
    for name, value in [*named, *kwargs.items()]:
        if type(value) is torch.Tensor:
            try:
                if math.prod(value.shape) <= MOST_VALUES:
                    found.append(Given(name, weakref.ref(value), value._version))
            except RuntimeError:
                continue  # nested, without a shape; or of inference mode, without a version
    return tuple(found[:MOST_TENSORS])


def told(given: tuple[Given, ...]) -> str:
    """Their values, a tensor on a line; without those that are gone or have changed since."""
    return "\n".join(_lines(given))


def _lines(given: tuple[Given, ...]) -> Iterator[str]:
    for name, held, version in given:
        tensor = held()
        if tensor is None:
            continue
        try:
            if tensor._version == version:
                yield f"{name} = {_written(_tolist(_detach(tensor)))}"
        except Exception:  # of a kind without values, as on the meta device: its shape is told
            continue


def _written(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_written, value))}]"
    return f"{value:.{DIGITS}g}" if isinstance(value, float) else str(value)
