"""Watches the single numbers of a loop that is not followed, so that its first NaN is not missed.

A loss is where a NaN of a training step arrives. It is asked when an iteration begins what
the one before left in it: that costs a few microseconds.
"""

import ctypes
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

ASK_S = 4e-6
"""What it costs to ask, amid other work."""
SHARE = 0.01
"""Of an iteration's time, for asking."""
FREE = 500
"""So many questions are asked in any case: it takes milliseconds."""
MOST = 2
"""Names that are asked."""
LOWEST = 1 << 20
"""Below lies nothing: it is an offset into a storage that has been freed."""
READ = {torch.float32: ctypes.c_float.from_address, torch.float64: ctypes.c_double.from_address}
item, dimensions, pointer = peek.Base.item, peek.Base.dim, peek.Base.data_ptr
is_cpu, get_dtype = peek.get_is_cpu, peek.get_dtype


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

    def is_well(self, frame: FrameType, done: int) -> bool:
        """All of them are tensors that hold one finite number; `ask` knows more where not.

        Every iteration pays for this. So the number is read from memory: an operator would need to
        make sure that no mode or profiler of the program sees it, which takes longer than reading.
        """
        held = frame.f_locals
        try:
            for name in self.names:
                value = held[name]
                if type(value) is not Tensor or dimensions(value) or not is_cpu(value):
                    return False
                place = pointer(value)
                if place < LOWEST or not math.isfinite(READ[get_dtype(value)](place).value):
                    return False
                self._sound[name] = done
        except Exception:  # none of that name, no memory, another dtype
            return False
        self._left -= 1
        return True

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
    if kind is not Tensor or not is_cpu(value) or not may_compute():
        return None
    try:
        if modes_on():
            with torch._C.DisableTorchFunction():
                number = item(value)
        else:
            number = item(value)
    except Exception:  # more than one, none, nothing that can be read
        return None
    return number if type(number) is float else None


def kind_of(number: float) -> str:
    """ "nan" or "inf"."""
    return "nan" if math.isnan(number) else "inf"
