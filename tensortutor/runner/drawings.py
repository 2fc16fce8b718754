"""Keeps a program's drawings to what a face can follow, whatever the program sends."""

import time
from collections.abc import Callable, Iterator

from tensortutor.protocol.drawings import (
    MOST_DRAWINGS,
    AreaMap,
    BoxGraph,
    CellGrid,
    Drawing,
    Histogram,
    Picture,
)
from tensortutor.protocol.events import Notice

EVERY_S = 0.025
"""A drawing that changes faster than that is passed on less often, the latest state last."""
BYTES_PER_S = 4_000_000
"""Of all drawings together, beyond the first state of each."""
TOO_MANY = (
    f"The program drew more than {MOST_DRAWINGS} plots and pictures with titles of their own; "
    "those after the first are left out."
)


class Drawings:
    """The drawings of one run, by title."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._due: dict[str, float] = {}
        self._held: dict[str, Drawing] = {}
        self._free = 0.0
        self._has_told = False

    def take(self, drawing: Drawing) -> Iterator[Drawing | Notice]:
        """What of it is to be shown now."""
        title, now = drawing.title, self._clock()
        if title not in self._due and len(self._due) == MOST_DRAWINGS:
            if not self._has_told:
                self._has_told = True
                yield Notice(TOO_MANY)
        elif title in self._due and now < max(self._due[title], self._free):
            self._held[title] = drawing
        else:
            self._held.pop(title, None)
            self._due[title] = now + EVERY_S
            self._free = max(self._free, now) + size_of(drawing) / BYTES_PER_S
            yield drawing

    def rest(self) -> Iterator[Drawing]:
        """The latest states that have not been shown."""
        yield from self._held.values()
        self._held.clear()


def size_of(drawing: Drawing) -> int:
    """About as many bytes as it takes on its way."""
    if isinstance(drawing, CellGrid):
        return sum(40 * len(block.texts) for block in drawing.blocks)
    if isinstance(drawing, BoxGraph):
        return sum(40 + sum(map(len, box.lines)) for box in drawing.boxes)
    if isinstance(drawing, Histogram):
        return sum(8 * len(bars.counts) for bars in drawing.series) + 20 * len(drawing.edges)
    size = len(drawing.png) if isinstance(drawing, (Picture, AreaMap)) else 0
    series = () if isinstance(drawing, Picture) else drawing.series
    return size + sum(20 * len(one.xs) * (3 if one.low else 1) for one in series)
