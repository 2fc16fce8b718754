"""Plots: series of numbers by label, on one plot per title."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch

from tensortutor.lab import downsample
from tensortutor.lab.display import DISPLAY
from tensortutor.lab.isolation import hidden_from_modes, never_traced
from tensortutor.lab.numbers import Snapshot, is_number, number, numbers, snapshot
from tensortutor.protocol.drawings import LONGEST_WORDS, MOST_SERIES, Plot, Series

Numbers = Iterable[Any] | torch.Tensor | float


@dataclass
class Line:
    """A series as it was handed in. count: how many values it had then."""

    style: str
    ys: Snapshot
    xs: Snapshot | None
    count: int
    low: Snapshot | None = None
    high: Snapshot | None = None

    @property
    def is_emptied(self) -> bool:
        """The program has taken values out of the list since then."""
        return len(self.ys) < self.count or any(len(v) < self.count for v in self.beside)

    @property
    def beside(self) -> list[Snapshot]:
        """What has a value for each y: xs and the ends of the band, as far as they were given."""
        return [values for values in (self.xs, self.low, self.high) if values is not None]

    def read(self, label: str) -> Series:
        """The series as an event holds it."""
        ys = numbers(self.ys, self.count)
        xs = None if self.xs is None else numbers(self.xs, self.count)
        low = None if self.low is None else numbers(self.low, self.count)
        high = None if self.high is None else numbers(self.high, self.count)
        return downsample.series(label, self.style, xs, ys, low, high)


class Point(NamedTuple):
    """A single point, and the ends of a band there."""

    y: float
    x: float | None
    low: float | None
    high: float | None


class Grown(NamedTuple):
    """The points of a label that were handed in one by one."""

    ys: list[float]
    xs: list[float]
    low: list[float] | None
    high: list[float] | None


@dataclass
class Curves:
    """What has been plotted under one title. read: each line that was read last, and its series."""

    title: str
    lines: dict[str, Line] = field(default_factory=dict)
    read: dict[str, tuple[Line, Series]] = field(default_factory=dict)
    grown: dict[str, Grown] = field(default_factory=dict)
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
            line.count = min(map(len, [line.ys, *line.beside]))
        series = line.read(label)
        self.read[label] = line, series
        return series

    def grow(self, label: str, style: str, point: Point) -> Line:
        """Add a single point to those of this label."""
        grown = self.grown.get(label)
        if grown is None:
            band: list[list[float] | None] = [None, None] if point.low is None else [[], []]
            grown = self.grown[label] = Grown([], [], *band)
        if (grown.low is None) != (point.low is None):
            raise ValueError(f"plot got a band for some of the numbers of {label!r} only.")
        grown.xs.append(float(len(grown.ys)) if point.x is None else point.x)
        grown.ys.append(point.y)
        for values, value in ((grown.low, point.low), (grown.high, point.high)):
            if values is not None and value is not None:
                values.append(value)
        return Line(style, grown.ys, grown.xs, len(grown.ys), grown.low, grown.high)


_plots: dict[str, Curves] = {}


@never_traced
def plot(
    ys: Numbers, xs: Numbers | None = None, *, label: str = "", title: str = "",
    points: bool = False, low: Numbers | None = None, high: Numbers | None = None,
) -> None:  # fmt: skip
    """Draw a series of numbers, in the tutor at once and while the program runs.

    ys: numbers, or tensors of no dimension, in a list or anything else that can be gone through;
    a tensor of one dimension, on any device, of any real dtype, with or without gradients. A
    single number is added to those that this label had before, so `plot(loss)` in a loop draws a
    curve. xs: where they stand, as many; 0, 1, 2, ... if left out.
    label: calls with different labels draw beside each other, calls with the same label take each
    other's place. At most 8 of them. title: calls with different titles draw different plots.
    points: draw dots, and no line from one to the next. low, high: the ends of a band around the
    curve, as many numbers as ys; both or none. For single numbers they are single numbers, too.

    NaN and infinite values leave a gap and are counted; the band has a gap where one of its ends is
    not finite. Many values are downsampled so that the
    highest and lowest of each stretch stay. A call costs microseconds, however long the list has
    become: it is read some 20 times a second at most, and last when the program ends.

    Raises TypeError for what are no numbers, ValueError for xs, low or high of another length than
    ys, for one of low and high alone, and for a tensor of more than one dimension.
    """
    label, title = str(label)[:LONGEST_WORDS], str(title)[:LONGEST_WORDS]
    curves = _plots.get(title)
    if curves is None:
        curves = _plots[title] = Curves(title)
    if label not in curves.lines and len(curves.lines) == MOST_SERIES:
        curves.left_out.add(label)
        return
    style = "points" if points else "line"
    if (low is None) != (high is None):
        missing = "high" if high is None else "low"
        raise ValueError(f"plot got one end of a band. Give it `{missing}` as well, or neither.")
    if is_number(ys):
        x, *ends = (None if value is None else number(value) for value in (xs, low, high))
        curves.lines[label] = curves.grow(label, style, Point(number(ys), x, *ends))
    else:
        curves.lines[label] = line(style, ys, xs, low, high)
    DISPLAY.draw(title, curves.make, at_end=True)


def line(style: str, ys: Any, xs: Any, low: Any = None, high: Any = None) -> Line:
    """A series to be read later. Raises ValueError if what belongs to the ys differs in length."""
    ys = snapshot(ys)
    beside: list[Snapshot | None] = []
    for name, values in (("xs", xs), ("low", low), ("high", high)):
        if values is not None and is_number(values):
            one = "a single x" if name == "xs" else f"a single `{name}`"
            raise TypeError(f"plot got many ys and {one}. Give it as many, or none.")
        held = None if values is None else snapshot(values)
        if held is not None and len(held) != len(ys):
            words = name if name == "xs" else f"numbers in `{name}`"
            raise ValueError(
                f"plot got {len(ys)} ys and {len(held)} {words}; it needs as many of both."
            )
        beside.append(held)
    places, lowest, highest = beside
    return Line(style, ys, places, len(ys), lowest, highest)
