"""What a program has drawn: numbers, pixels or cells, bounded like all events.

A drawing is known by its title: a later one of the same title takes the place of the earlier.
"""

import math
from dataclasses import dataclass

from tensortutor.protocol.framing import ProtocolError

MOST_POINTS = 1024
"""Points of one series."""
MOST_SERIES = 8
MOST_DRAWINGS = 24
"""Drawings of one program, by title."""
LONGEST_WORDS = 200
"""Characters of a title, a label or a caption."""
MOST_PICTURE = 960_000
"""Characters of a picture's PNG in base64: with the rest it fits a frame of the protocol."""
STYLES = ("line", "points")
PICTURES = ("image", "heat")
MOST_BINS = 200
"""Bins of a histogram."""
MOST_AREAS = 16
"""Different areas of one map: bands between contour levels, or classes."""
MOST_ROWS, MOST_COLUMNS, MOST_BLOCKS = 16, 24, 8
"""Cells of one block of a grid, and blocks."""
LONGEST_CELL = 12
"""Characters of a cell of a grid."""
AREA_MAPS = ("contour", "regions")
MOST_BOXES, MOST_LINES = 24, 6
"""Boxes of a graph, and lines of text in a box."""


def require(right: bool, sentence: str) -> None:
    """Raise ProtocolError with this sentence unless it is right."""
    if not right:
        raise ProtocolError(sentence)


@dataclass(frozen=True)
class Series:
    """One line, or one cloud of points, of a plot.

    label: "" for none. style: "line" or "points". xs, ys: as many of one as of the other; finite,
    and None in ys where there is no number: a gap. count: how many values there were before they
    were downsampled. nan, inf: how many of these were NaN or infinite; first: the x of the first.
    low, high: the ends of a band around the curve, as many as ys; empty for none.
    """

    label: str
    xs: tuple[float, ...]
    ys: tuple[float | None, ...]
    style: str = "line"
    count: int = 0
    nan: int = 0
    inf: int = 0
    first: float = 0.0
    low: tuple[float | None, ...] = ()
    high: tuple[float | None, ...] = ()

    def __post_init__(self) -> None:
        require(len(self.label) <= LONGEST_WORDS, "Series.label is too long")
        require(len(self.xs) == len(self.ys), "Series.xs and Series.ys differ in length")
        require(len(self.xs) <= MOST_POINTS, "Series has too many points")
        require(self.style in STYLES, f"there is no style {self.style[:20]!r} of a series")
        ends = (self.low, self.high)
        require(all(len(e) in (0, len(self.ys)) for e in ends), "Series.low or .high has a gap")
        require(len(self.low) == len(self.high), "Series.low and Series.high differ in length")
        numbers = [*self.xs, self.first]
        numbers += [y for part in (self.ys, *ends) for y in part if y is not None]
        require(all(map(math.isfinite, numbers)), "Series has a number that is not finite")


@dataclass(frozen=True)
class Plot:
    """A plot as it is now. left_out: series beyond the first MOST_SERIES, which are not drawn."""

    title: str
    series: tuple[Series, ...]
    left_out: int = 0

    def __post_init__(self) -> None:
        require(len(self.title) <= LONGEST_WORDS, "Plot.title is too long")
        require(len(self.series) <= MOST_SERIES, "Plot has too many series")
        require(self.left_out >= 0, "Plot.left_out is less than nothing")


@dataclass(frozen=True)
class Picture:
    """A picture as it is now.

    kind: "image" (colours are meant as they are) or "heat" (brightness stands for values from
    `low`, black, to `high`, white; a transparent pixel for what is not finite). png: base64; ""
    where there is nothing to see but the caption. caption: what it shows, in a few words.
    """

    title: str
    kind: str
    png: str
    caption: str = ""
    low: float = 0.0
    high: float = 0.0

    def __post_init__(self) -> None:
        require(len(self.title) <= LONGEST_WORDS, "Picture.title is too long")
        require(len(self.caption) <= LONGEST_WORDS, "Picture.caption is too long")
        require(self.kind in PICTURES, f"there is no kind {self.kind[:20]!r} of a picture")
        require(len(self.png) <= MOST_PICTURE, "Picture.png is too long")
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(finite, "Picture has a number that is not finite")


def has_extent(low: float, high: float) -> bool:
    """An axis can reach from low to high. Halved, as `Scale` does it: the difference may be inf."""
    return high / 2 - low / 2 > max(abs(low), abs(high)) * 1e-15 + 1e-300


@dataclass(frozen=True)
class Bars:
    """One series of a histogram.

    counts: how many values fall into each bin. count: how many values there were; nan, inf: how
    many of these have no bin. mean, std: of the finite ones.
    """

    label: str
    counts: tuple[int, ...]
    count: int = 0
    nan: int = 0
    inf: int = 0
    mean: float = 0.0
    std: float = 0.0

    def __post_init__(self) -> None:
        require(len(self.label) <= LONGEST_WORDS, "Bars.label is too long")
        require(len(self.counts) <= MOST_BINS, "Bars has too many bins")
        require(all(count >= 0 for count in self.counts), "Bars has a negative count")
        finite = math.isfinite(self.mean) and math.isfinite(self.std)
        require(finite, "Bars has a number that is not finite")


@dataclass(frozen=True)
class Histogram:
    """Counts of values by bin, all series in the same bins.

    edges: from the lower end of the first bin to the upper end of the last; empty where there is
    no finite value. left_out: series beyond the first MOST_SERIES, which are not drawn.
    """

    title: str
    edges: tuple[float, ...]
    series: tuple[Bars, ...]
    left_out: int = 0

    def __post_init__(self) -> None:
        require(len(self.title) <= LONGEST_WORDS, "Histogram.title is too long")
        require(len(self.series) <= MOST_SERIES, "Histogram has too many series")
        bins = max(len(self.edges) - 1, 0)
        fits = all(len(bars.counts) == bins for bars in self.series)
        require(fits, "Histogram.edges do not fit the counts")
        require(all(map(math.isfinite, self.edges)), "Histogram has an edge that is not finite")
        rising = all(a < b for a, b in zip(self.edges, self.edges[1:], strict=False))
        require(rising, "Histogram.edges do not rise")
        wide = bins == 0 or has_extent(self.edges[0], self.edges[-1])
        require(wide, "Histogram has no extent")


@dataclass(frozen=True)
class AreaMap:
    """A plane divided into areas, with curves and points over it.

    kind: "contour" (areas are the bands between `levels`, the first below the first level) or
    "regions" (areas are classes, called `names`). png: base64 of a grey picture, the top row at
    `high_y`; a pixel is the number of its area, a transparent one has none. low_x, high_x, low_y,
    high_y: what the outer edges of the picture stand for. series: styles as in a plot; in a map of
    regions the points of class N are the series N.
    """

    title: str
    kind: str
    png: str
    low_x: float
    high_x: float
    low_y: float
    high_y: float
    levels: tuple[float, ...] = ()
    names: tuple[str, ...] = ()
    series: tuple[Series, ...] = ()
    left_out: int = 0
    caption: str = ""

    def __post_init__(self) -> None:
        words = (self.title, self.caption, *self.names)
        require(all(len(text) <= LONGEST_WORDS for text in words), "AreaMap has too long a text")
        require(self.kind in AREA_MAPS, f"there is no kind {self.kind[:20]!r} of a map")
        require(len(self.png) <= MOST_PICTURE, "AreaMap.png is too long")
        require(len(self.series) <= MOST_AREAS, "AreaMap has too many series")
        few = len(self.levels) < MOST_AREAS and len(self.names) <= MOST_AREAS
        require(few, "AreaMap has too many areas")
        ends = (self.low_x, self.high_x, self.low_y, self.high_y)
        finite = all(map(math.isfinite, (*ends, *self.levels)))
        require(finite, "AreaMap has a number that is not finite")
        wide = has_extent(self.low_x, self.high_x) and has_extent(self.low_y, self.high_y)
        require(wide, "AreaMap has no extent")


@dataclass(frozen=True)
class Block:
    """A matrix of a grid: its cells row by row.

    label: "" or its place in the tensor, as "[0]". rows, columns: the index of each that is shown.
    texts: what stands in the cells. values: the same as numbers; None for what is not finite.
    marks: the number of the mark on each cell, -1 for none; empty where no cell is marked.
    """

    label: str
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    texts: tuple[str, ...]
    values: tuple[float | None, ...]
    marks: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        require(len(self.label) <= LONGEST_WORDS, "Block.label is too long")
        small = len(self.rows) <= MOST_ROWS and len(self.columns) <= MOST_COLUMNS
        require(small, "Block has too many cells")
        cells = len(self.rows) * len(self.columns)
        same = len(self.texts) == len(self.values) == cells and len(self.marks) in (0, cells)
        require(same, "Block does not have one text, value and mark for each cell")
        require(all(len(text) <= LONGEST_CELL for text in self.texts), "Block has too long a cell")
        finite = all(value is None or math.isfinite(value) for value in self.values)
        require(finite, "Block has a number that is not finite")


@dataclass(frozen=True)
class CellGrid:
    """A tensor as cells with their values.

    about: its dtype and shape. caption: the program's own words. dims: how many dimensions the
    tensor has; rows have an index from two on. low, high: of all its finite values. marks: what
    each mark is called. note: what is left out, or "".
    """

    title: str
    blocks: tuple[Block, ...]
    dims: int = 2
    low: float = 0.0
    high: float = 0.0
    marks: tuple[str, ...] = ()
    about: str = ""
    caption: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        words = (self.title, self.about, self.caption, self.note, *self.marks)
        require(all(len(text) <= LONGEST_WORDS for text in words), "CellGrid has too long a text")
        require(len(self.blocks) <= MOST_BLOCKS, "CellGrid has too many blocks")
        shapes = {(block.rows, block.columns, bool(block.label)) for block in self.blocks}
        require(len(shapes) <= 1, "CellGrid has blocks that differ in shape")
        require(len(self.marks) <= MOST_SERIES, "CellGrid has too many marks")
        finite = math.isfinite(self.low) and math.isfinite(self.high)
        require(finite, "CellGrid has a number that is not finite")


@dataclass(frozen=True)
class Box:
    """A box of a graph.

    lines: what stands in it below its name. parents: the numbers of the boxes that it is computed
    from, each once.
    """

    name: str
    lines: tuple[str, ...]
    parents: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        words = (self.name, *self.lines)
        require(all(len(text) <= LONGEST_WORDS for text in words), "Box has too long a text")
        require(len(self.lines) <= MOST_LINES, "Box has too many lines")


@dataclass(frozen=True)
class BoxGraph:
    """A graph: boxes, those first that others are computed from. caption: the program's words."""

    title: str
    boxes: tuple[Box, ...]
    caption: str = ""

    def __post_init__(self) -> None:
        short = max(len(self.title), len(self.caption)) <= LONGEST_WORDS
        require(short, "BoxGraph has too long a text")
        require(len(self.boxes) <= MOST_BOXES, "BoxGraph has too many boxes")
        for number, box in enumerate(self.boxes):
            earlier = all(0 <= parent < number for parent in box.parents)
            once = len(set(box.parents)) == len(box.parents)
            require(earlier and once, "BoxGraph has a parent that is no earlier box")


Drawing = Plot | Picture | Histogram | AreaMap | CellGrid | BoxGraph
DRAWINGS = (Plot, Picture, Histogram, AreaMap, CellGrid, BoxGraph)
