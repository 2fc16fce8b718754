"""A picture as rows of text: two pixels to a cell in colour, else a sign for each brightness."""

import base64
from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from tensortutor.drawing.colours import NOT_FINITE, RAMP, brightness, palette
from tensortutor.drawing.png import Pixels, decode
from tensortutor.drawing.scale import written
from tensortutor.drawing.spans import RGB, Look, Row, Span, clean, clip, wrap
from tensortutor.protocol.drawings import Picture

UPPER = "▀"
BROKEN = "This picture cannot be shown"
LARGEST_PIXEL = 16
"""Cells across that one pixel may take when a small picture is enlarged."""
NOT_FINITE_SIGN = "?"

GREYS: tuple[RGB, ...] = tuple((n, n, n) for n in range(256))
Grid = list[list[RGB | None]]
"""Colours by row; None for what is not finite."""


def picture_rows(
    picture: Picture, width: int, height: int, look: Look, *, titled: bool = True
) -> list[Row]:
    """At most `height` rows of at most `width` cells, words included."""
    width, height = max(width, 1), max(height, 1)
    title = clip(clean(picture.title, look), width) if titled else ""
    head: list[Row] = [[Span(title)]] if title else []
    tail = words_below(picture, width, look)
    room = height - 1
    head = head[: max(room, 0)]
    tail = tail[: max(room - len(head), 0)]
    if not picture.png:
        return [*head, *tail]
    try:
        pixels = pixels_of(picture.png)
    except ValueError as error:
        return [*head, [Span(clip(f"{BROKEN}: {error}.", width), dim=True)], *tail]
    rows = height - len(head) - len(tail)
    columns, lines = fit(pixels, width, 2 * rows)
    grid = resized(coloured(pixels, picture, look), columns, lines)
    return [*head, *(blocks(grid) if look.unicode and look.colour else signs(grid)), *tail]


def words_below(picture: Picture, width: int, look: Look) -> list[Row]:
    """The caption, and what the colours stand for."""
    lines = wrap(clean(picture.caption, look).split(), width)
    rows: list[Row] = [[Span(line, dim=True)] for line in lines]
    if picture.kind == "heat" and picture.low < picture.high:
        rows.append(scale_row(picture, width, look))
    return rows


@lru_cache(maxsize=8)
def pixels_of(png: str) -> Pixels:
    """The pixels of a picture in base64. Raises ValueError."""
    return decode(base64.b64decode(png, validate=True))


def fit(pixels: Pixels, width: int, height: int) -> tuple[int, int]:
    """The largest size within width by height that keeps the shape; whole steps when larger."""
    share = min(width / pixels.width, height / pixels.height)
    if share >= 1:
        share = min(int(share), LARGEST_PIXEL)
    return max(round(pixels.width * share), 1), max(round(pixels.height * share), 1)


def coloured(pixels: Pixels, picture: Picture, look: Look) -> Grid:
    """The colour of each pixel."""
    data, step = pixels.data, pixels.channels
    colours: list[RGB | None]
    if step >= 3:
        colours = list(zip(data[::step], data[1::step], data[2::step], strict=True))
    elif picture.kind == "heat":
        colours = list(map(heat_colours(picture, look).__getitem__, data[::step]))
    else:
        colours = [(grey, grey, grey) for grey in data[::step]]
    if step in (2, 4):
        seen = data[step - 1 :: step]
        colours = [c if opaque else None for c, opaque in zip(colours, seen, strict=True)]
    return [colours[at : at + pixels.width] for at in range(0, len(colours), pixels.width)]


def plain_pixels(picture: Picture) -> Pixels:
    """Red, green and blue of each pixel, for terminals with graphics. Raises ValueError."""
    grid = coloured(pixels_of(picture.png), picture, Look())
    colours = [colour or NOT_FINITE for row in grid for colour in row]
    return Pixels(len(grid[0]), len(grid), 3, bytes(part for colour in colours for part in colour))


def heat_colours(picture: Picture, look: Look) -> Sequence[RGB]:
    """The colours of values; without colours brightness alone, which must grow from low to high."""
    return palette(picture.low, picture.high) if look.colour else GREYS


def resized(grid: Grid, width: int, height: int) -> Grid:
    """The grid in another size: pixels repeated, or each the mean of those that it stands for."""
    tall, wide = len(grid), len(grid[0])
    if height >= tall and width >= wide:
        across = [n * wide // width for n in range(width)]
        return [[grid[n * tall // height][x] for x in across] for n in range(height)]
    down = [n * tall // height for n in range(height + 1)]
    across = [n * wide // width for n in range(width + 1)]
    rows = (grid[top : max(bottom, top + 1)] for top, bottom in pairwise(down))
    parts = [(left, max(right, left + 1)) for left, right in pairwise(across)]
    return [
        [mean([colour for row in block for colour in row[left:right]]) for left, right in parts]
        for block in rows
    ]


def mean(colours: list[RGB | None]) -> RGB | None:
    """The mean colour, None if one of them is not finite: it must not vanish among the others."""
    if None in colours:
        return None
    count = len(colours)
    red, green, blue = (sum(part) // count for part in zip(*colours, strict=True))
    return red, green, blue


def blocks(grid: Grid) -> list[Row]:
    """Two pixels to a cell, the upper one as the sign and the lower one as its ground."""
    rows: list[Row] = []
    for top in range(0, len(grid), 2):
        upper = grid[top]
        lower = grid[top + 1] if top + 1 < len(grid) else None
        row: Row = []
        for column, colour in enumerate(upper):
            fore = colour or NOT_FINITE
            back = None if lower is None else (lower[column] or NOT_FINITE)
            if row and (row[-1].fore, row[-1].back) == (fore, back):
                row[-1] = row[-1]._replace(text=row[-1].text + UPPER)
            else:
                row.append(Span(UPPER, fore=fore, back=back))
        rows.append(row)
    return rows


def signs(grid: Grid) -> list[Row]:
    """Two pixels to a cell as one sign, the denser the brighter."""
    rows: list[Row] = []
    for top in range(0, len(grid), 2):
        pairs = zip(grid[top], grid[min(top + 1, len(grid) - 1)], strict=True)
        rows.append([Span("".join(sign(upper, lower) for upper, lower in pairs))])
    return rows


def sign(upper: RGB | None, lower: RGB | None) -> str:
    """The sign for two pixels above each other."""
    if upper is None or lower is None:
        return NOT_FINITE_SIGN
    share = (brightness(upper) + brightness(lower)) / 2
    return RAMP[min(int(share * len(RAMP)), len(RAMP) - 1)]


def scale_row(picture: Picture, width: int, look: Look) -> Row:
    """What the colours stand for."""
    low, high = written(picture.low), written(picture.high)
    size = min(width - len(low) - len(high) - 2, 24)
    if size < 2:
        return [Span(clip(f"{low} {high}", width), dim=True)]
    colours = heat_colours(picture, look)
    steps = [colours[n * 255 // (size - 1)] for n in range(size)]
    if look.unicode and look.colour:
        bar = [Span(UPPER, fore=colour, back=colour) for colour in steps]
    else:
        bar = [Span("".join(sign(colour, colour) for colour in steps))]
    return [Span(f"{low} ", dim=True), *bar, Span(f" {high}", dim=True)]
