"""A field of dots, several to a cell: braille has 2 by 4, ASCII 1 by 2."""

from typing import NamedTuple


class Dots(NamedTuple):
    """The dots of a cell. signs: the character for each set of bits; bits: by column and row."""

    across: int
    down: int
    bits: tuple[tuple[int, ...], ...]
    signs: str


BRAILLE = Dots(
    2, 4, ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80)),
    " " + "".join(chr(0x2800 + n) for n in range(1, 256)),
)  # fmt: skip
ASCII = Dots(1, 2, ((1, 2),), " '.:")
COARSE = Dots(1, 1, ((1,),), " *")
"""A dot is a cell, for whoever writes a sign of its own there."""


class Canvas:
    """`columns` by `rows` cells. Dots are counted from the top left.

    paths: for each owner, the row of a cell that it has touched, by column.
    """

    def __init__(self, columns: int, rows: int, dots: Dots) -> None:
        self.columns, self.rows, self.dots = columns, rows, dots
        self.width, self.height = columns * dots.across, rows * dots.down
        self._bits = [[0] * columns for _ in range(rows)]
        self._owners = [[-1] * columns for _ in range(rows)]
        self.paths: dict[int, dict[int, int]] = {}

    def upright(self, x: int, top: int, bottom: int, owner: int) -> None:
        """A stroke down one column of dots, both ends included."""
        column, across = divmod(x, self.dots.across)
        down, bits = self.dots.down, self.dots.bits[across]
        self.paths.setdefault(owner, {})[column] = (top + bottom) // 2 // down
        for row in range(top // down, bottom // down + 1):
            first, last = max(top - row * down, 0), min(bottom - row * down, down - 1)
            self._bits[row][column] |= sum(bits[first : last + 1])
            self._owners[row][column] = owner

    def line(self, start: tuple[int, int], end: tuple[int, int], owner: int) -> None:
        """A line without holes from dot to dot."""
        (x0, y0), (x1, y1) = sorted((start, end))
        if x0 == x1:
            self.upright(x0, min(y0, y1), max(y0, y1), owner)
            return
        slope = (y1 - y0) / (x1 - x0)
        if abs(slope) <= 1:
            for x in range(x0, x1 + 1):
                y = round(y0 + slope * (x - x0))
                self.upright(x, y, y, owner)
            return
        step = 1 if slope > 0 else -1
        start_y = y0
        for x in range(x0, x1 + 1):
            # Each column reaches half way to the next one, which goes on from there.
            end_y = y1 if x == x1 else round(y0 + slope * (x - x0 + 0.5))
            self.upright(x, min(start_y, end_y), max(start_y, end_y), owner)
            start_y = min(max(end_y + step, min(y0, y1)), max(y0, y1))

    def cell(self, column: int, row: int) -> tuple[str, int]:
        """The character of a cell and the owner of its last dot, -1 for none."""
        return self.dots.signs[self._bits[row][column]], self._owners[row][column]
