"""Watches the single numbers of a loop that is not followed, so that its first NaN is not missed.

A loss is where a NaN of a training step arrives. It is asked when an iteration begins what
the one before left in it: that costs about a microsecond.
"""

import itertools
import math
from collections.abc import Container, Iterable
from types import FrameType
from typing import Any

import torch

from tensortutor.worker.lens import peek
from tensortutor.worker.lens.looks import Tensor, may_compute, modes_on
from tensortutor.worker.lens.recorder import Record
from tensortutor.worker.lens.statements import Path

ASK_S = 2e-6
"""What it costs to ask."""
SHARE = 0.01
"""Of an iteration's time, for asking."""
FREE = 2000
"""So many questions are asked in any case: it takes milliseconds."""
MOST = 2
"""Names that are asked."""


class Sentinel:
    """The names to ask in one loop. stride: so many iterations lie between two questions."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.stride = 1
        self._left = FREE
        self._sound: dict[str, int] = {}

    def every(self, seconds: float) -> int:
        """The stride for iterations that take so long."""
        if self._left <= 0:
            self.stride = max(1, round(ASK_S * len(self.names) / (SHARE * max(seconds, 1e-8))))
        return self.stride

    def ask(self, frame: FrameType, done: int, known: Container[str]) -> str:
        """The name that has become NaN or infinite; "" if none has, or only of a kind in `known`.

        done: the iterations that are over.
        """
        self._left -= 1
        held = frame.f_locals
        for name in self.names:
            number = number_of(held.get(name))
            if number is None:
                continue
            if math.isfinite(number):
                self._sound[name] = done
            elif kind_of(number) not in known:
                return name
        return ""

    def witness(self, name: str, done: int) -> tuple[str, int]:
        """The name, and how many iterations before `done` it was finite; "" if it never was."""
        return (name, max(1, done - self._sound[name])) if name in self._sound else ("", 0)


def chosen(
    last: Iterable[tuple[Record, frozenset[Path]]], frame: FrameType, known: Container[str]
) -> tuple[str, ...]:
    """Of what a loop stores, the single numbers: those that a gradient can be taken of before all.

    last: the statements in the order of the file.
    """
    held = frame.f_locals
    losses: list[str] = []
    others: list[str] = []
    for _, paths in last:
        for path in sorted(paths):
            value = held.get(path[0]) if len(path) == 1 else None
            number = number_of(value)
            if number is None or (not math.isfinite(number) and kind_of(number) not in known):
                continue
            is_loss = type(value) is Tensor and peek.get_requires_grad(value)
            (losses if is_loss else others).append(path[0])
    return tuple(itertools.islice(dict.fromkeys(reversed(losses or others)), MOST))


def number_of(value: Any) -> float | None:
    """The number in a float, or in a tensor on the CPU that holds only one; None elsewhere."""
    kind = type(value)
    if kind is float:
        return float(value)
    if kind is not Tensor or peek.get_shape(value).numel() != 1:
        return None
    if peek.get_dtype(value).is_floating_point and peek.get_device(value).type == "cpu":
        return _read(value)
    return None


def _read(value: Any) -> float | None:
    if not may_compute() or peek.get_layout(value) is not torch.strided:
        return None
    try:
        if modes_on():
            with torch._C.DisableTorchFunction():
                return float(value.item())
        return float(value.item())
    except Exception:  # its storage is gone
        return None


def kind_of(number: float) -> str:
    """ "nan" or "inf"."""
    return "nan" if math.isnan(number) else "inf"
