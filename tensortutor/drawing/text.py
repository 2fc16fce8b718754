"""A drawing as lines of text for a stream: a terminal, a pipe, a file."""

import os
import shutil
from collections.abc import Sequence
from typing import TextIO

from tensortutor.drawing import box_graph, cell_grid, histogram
from tensortutor.drawing.area_map import area_map_rows
from tensortutor.drawing.box_graph import box_graph_rows
from tensortutor.drawing.cell_grid import cell_grid_rows
from tensortutor.drawing.histogram import histogram_rows
from tensortutor.drawing.picture import picture_rows
from tensortutor.drawing.plot import plot_rows
from tensortutor.drawing.spans import RGB, Look, Row, Span, cut, is_unicode
from tensortutor.protocol.drawings import (
    AreaMap,
    BoxGraph,
    CellGrid,
    Drawing,
    Histogram,
    Plot,
    Series,
)

WIDEST, PLOT_HEIGHT, PICTURE_HEIGHT = 80, 16, 24
SERIES = ("36", "33", "35", "32", "34", "31", "96", "93")
"""The colours of series, as the terminal's own palette has them."""
RESET = "\x1b[0m"


def drawing_rows(
    drawing: Drawing,
    width: int,
    height: int,
    look: Look,
    *,
    titled: bool = True,
    earlier: Sequence[Series] = (),
) -> list[Row]:
    """Any drawing in at most so many rows and cells. earlier: behind a plot, as for `plot_rows`."""
    if isinstance(drawing, Plot):
        return plot_rows(drawing, width, height, look, titled=titled, earlier=earlier)
    if isinstance(drawing, Histogram):
        rows = histogram_rows(drawing, width, height, look, titled=titled)
    elif isinstance(drawing, AreaMap):
        rows = area_map_rows(drawing, width, height, look, titled=titled)
    elif isinstance(drawing, CellGrid):
        rows = cell_grid_rows(drawing, width, height, look, titled=titled)
    elif isinstance(drawing, BoxGraph):
        rows = box_graph_rows(drawing, width, height, look, titled=titled)
    else:
        rows = picture_rows(drawing, width, height, look, titled=titled)
    return [cut(row, width) for row in rows[: max(height, 1)]]


def natural_height(drawing: Drawing, width: int, look: Look) -> int:
    """So many rows show it well, words included."""
    if isinstance(drawing, CellGrid):
        return cell_grid.natural_height(drawing, width, look)
    if isinstance(drawing, BoxGraph):
        return box_graph.natural_height(drawing, width, look)
    if isinstance(drawing, Histogram):
        return histogram.natural_height(drawing)
    return PLOT_HEIGHT if isinstance(drawing, Plot) else PICTURE_HEIGHT


def lines(drawing: Drawing, look: Look, columns: int) -> list[str]:
    """A drawing as text, as wide as is good to read; with colour sequences if it may have them."""
    width = min(columns, WIDEST)
    rows = drawing_rows(drawing, width, natural_height(drawing, width, look), look)
    return ["".join(paint(span) if look.colour else span.text for span in row) for row in rows]


def paint(span: Span) -> str:
    """A span with the sequences of its colours."""
    codes = [f"{ground};{code(c)}" for ground, c in ((38, span.fore), (48, span.back)) if c]
    if span.series >= 0:
        codes.append(SERIES[span.series % len(SERIES)])
    if span.dim:
        codes.append("2")
    if not codes or not span.text.strip():
        return span.text
    return f"\x1b[{';'.join(codes)}m{span.text}{RESET}"


def code(colour: RGB) -> str:
    """A colour as the terminal takes it: exactly, or as one of the 240 that all have."""
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return "2;{};{};{}".format(*colour)
    if max(colour) - min(colour) < 10:
        return f"5;{232 + min(colour[1] * 24 // 256, 23)}"
    red, green, blue = (round(part / 51) for part in colour)
    return f"5;{16 + 36 * red + 6 * green + blue}"


def for_stream(drawing: Drawing, stream: TextIO) -> list[str]:
    """A drawing for this stream."""
    terminal = stream.isatty()
    plain = bool(os.environ.get("NO_COLOR")) or os.environ.get("TERM", "dumb") == "dumb"
    columns = shutil.get_terminal_size().columns if terminal else WIDEST
    return lines(drawing, Look(is_unicode(stream), terminal and not plain), columns)
