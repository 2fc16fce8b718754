"""What a program has drawn: plots as numbers, pictures as pixels. Bounded, like all events.

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


def require(right: bool, sentence: str) -> None:
    """Raise ProtocolError with this sentence unless it is right."""
    if not right:
        raise ProtocolError(sentence)


@dataclass(frozen=True)
class Series:
    """One line, or one cloud of points, of a plot.

    label: "" for none. style: "line" or "points". xs, ys: as many of one as of the other; finite,
    and None in ys where there is no number: a gap. count: how many values there were before they
    were thinned. nan, inf: how many of these were NaN or infinite; first: the x of the first.
    """

    label: str
    xs: tuple[float, ...]
    ys: tuple[float | None, ...]
    style: str = "line"
    count: int = 0
    nan: int = 0
    inf: int = 0
    first: float = 0.0

    def __post_init__(self) -> None:
        require(len(self.label) <= LONGEST_WORDS, "Series.label is too long")
        require(len(self.xs) == len(self.ys), "Series.xs and Series.ys differ in length")
        require(len(self.xs) <= MOST_POINTS, "Series has too many points")
        require(self.style in STYLES, f"there is no style {self.style[:20]!r} of a series")
        numbers = (*self.xs, *(y for y in self.ys if y is not None), self.first)
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


Drawing = Plot | Picture
