"""Which of many tensors are shown, and in which order."""

from collections.abc import Callable, Iterable
from typing import Any

from tensortutor.lens.tables import full_name
from tensortutor.protocol.lens import TensorInfo

HELP = "a name, dtype:f32, shape:64, device:cuda, grad, nan, inf"
ORDERS: tuple[tuple[str, Callable[[TensorInfo], Any]], ...] = (
    ("name", lambda one: full_name(one).lower()),
    ("memory", lambda one: -one.bytes),
    ("dtype", lambda one: one.dtype),
    ("number of NaN and Inf", lambda one: -oddities(one)),
    ("largest value", lambda one: -_value(one, "maximum")),
    ("smallest value", lambda one: _value(one, "minimum")),
    ("storage", lambda one: one.storage),
)
"""The orders that a table can be put into, by what they are called."""


def oddities(one: TensorInfo) -> int:
    """How many of its values are no numbers."""
    return 0 if one.stats is None else one.stats.nan + one.stats.inf


def _value(one: TensorInfo, which: str) -> float:
    """What has no values comes last in either order."""
    found = None if one.stats is None else getattr(one.stats, which)
    if found is None:
        return float("inf") if which == "minimum" else float("-inf")
    return float(found)


def matching_rows(tensors: Iterable[TensorInfo], wanted: str) -> list[int]:
    """The positions of the tensors that every word of `wanted` holds for; all for no words."""
    words = wanted.lower().split()
    return [
        position for position, one in enumerate(tensors) if all(holds(one, word) for word in words)
    ]


def holds(one: TensorInfo, word: str) -> bool:
    """`dtype:f32`, `shape:64`, `shape:[64,1]`, `device:cuda`, `grad`, `nan`, `inf`, else a name."""
    field, colon, value = word.partition(":")
    if colon and field == "dtype":
        return value in one.dtype or one.words.lower().startswith(value)
    if colon and field == "shape":
        inner = value.strip("[](),")
        shape = ",".join(map(str, one.shape))
        return f",{inner}," in f",{shape}," if inner else True
    if colon and field == "device":
        return value in one.device
    stats = one.stats
    if word == "nan" and stats is not None and stats.nan:
        return True
    if word == "inf" and stats is not None and stats.inf:
        return True
    if word == "grad" and one.requires_grad:
        return True
    if one.words.lower().startswith(f"{word}["):  # `f32`
        return True
    return word in full_name(one).lower()
