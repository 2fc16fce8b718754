"""Plots: series of numbers by label, on one plot per title."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import torch

from tensortutor.lab import downsample
from tensortutor.lab.isolation import never_traced, hidden_from_modes
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.numbers import Snapshot, snapshot, is_number, number, numbers
from tensortutor.protocol.drawings import LONGEST_WORDS, MOST_SERIES, Plot, Series

Numbers = Iterable[Any] | torch.Tensor | float


@dataclass
class Line:
    """A series as it was handed in. count: how many values it had then."""

    style: str
    ys: Snapshot
    xs: Snapshot | None
    count: int

    @property
    def is_emptied(self) -> bool:
        """The program has taken values out of the list since then."""
        return len(self.ys) < self.count or (self.xs is not None and len(self.xs) < self.count)

    def read(self, label: str) -> Series:
        """The series as an event holds it."""
        ys = numbers(self.ys, self.count)
        xs = None if self.xs is None else numbers(self.xs, self.count)
        return downsample.series(label, self.style, xs, ys)


@dataclass
class Curves:
    """What has been plotted under one title. read: each line that was read last, and its series."""

    title: str
    lines: dict[str, Line] = field(default_factory=dict)
    read: dict[str, tuple[Line, Series]] = field(default_factory=dict)
    grown: dict[str, tuple[list[float], list[float]]] = field(default_factory=dict)
    left_out: set[str] = field(default_factory=set)

    def make(self) -> Plot:
        """The plot as it is now."""
        with hidden_from_modes():
            series = tuple(self._series(label, line) for label, line in list(self.lines.items()))
        return Plot(self.title, series, len(self.left_out))

    def _series(self, label: str, line: Line) -> Series:
        before = self.read.get(label)
        if before is not None and (line is before[0] or line.is_emptied):
            return before[1]
        if line.is_emptied:
            line.count = min(len(line.ys), len(line.ys if line.xs is None else line.xs))
        series = line.read(label)
        self.read[label] = line, series
        return series

    def grow(self, label: str, y: float, x: float | None) -> tuple[list[float], list[float]]:
        """Add a single point to those of this label."""
        ys, xs = self.grown.setdefault(label, ([], []))
        xs.append(float(len(ys)) if x is None else x)
        ys.append(y)
        return ys, xs


_plots: dict[str, Curves] = {}


@never_traced
def plot(
    ys: Numbers, xs: Numbers | None = None, *, label: str = "", title: str = "",
    points: bool = False,
) -> None:  # fmt: skip
    """Draw a series of numbers, in the tutor at once and while the program runs.

    ys: numbers, or tensors of no dimension, in a list or anything else that can be gone through;
    a tensor of one dimension, on any device, of any real dtype, with or without gradients. A
    single number is added to those that this label had before, so `plot(loss)` in a loop draws a
    curve. xs: where they stand, as many; 0, 1, 2, ... if left out.
    label: calls with different labels draw beside each other, calls with the same label take each
    other's place. At most 8 of them. title: calls with different titles draw different plots.
    points: draw dots, and no line from one to the next.

    NaN and infinite values leave a gap and are counted. Many values are downsampled so that the highest
    and lowest of each stretch stay. A call costs microseconds, however long the list has become:
    it is read some 20 times a second at most, and last when the program ends.

    Raises TypeError for what are no numbers, ValueError for xs of another length than ys, or for
    a tensor of more than one dimension.
    """
    label, title = str(label)[:LONGEST_WORDS], str(title)[:LONGEST_WORDS]
    curves = _plots.get(title)
    if curves is None:
        curves = _plots[title] = Curves(title)
    if label not in curves.lines and len(curves.lines) == MOST_SERIES:
        curves.left_out.add(label)
        return
    style = "points" if points else "line"
    if is_number(ys):
        own, places = curves.grow(label, number(ys), None if xs is None else number(xs))
        curves.lines[label] = Line(style, own, places, len(own))
    else:
        curves.lines[label] = line(style, ys, xs)
    DISPLAY.draw(title, curves.make, at_end=True)


def line(style: str, ys: Any, xs: Any) -> Line:
    """A series to be read later. Raises ValueError if xs and ys differ in length."""
    if xs is not None and is_number(xs):
        raise TypeError("plot got many ys and a single x. Give it as many xs, or none.")
    ys = snapshot(ys)
    xs = None if xs is None else snapshot(xs)
    if xs is not None and len(xs) != len(ys):
        raise ValueError(f"plot got {len(ys)} ys and {len(xs)} xs; it needs as many of both.")
    return Line(style, ys, xs, len(ys))
