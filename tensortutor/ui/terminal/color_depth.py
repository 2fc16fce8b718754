"""Terminals with few colours or none: what is drawn is brought down to what they have.

Sixteen colours are chosen by hue, and never a text on a ground of its own colour, which is what
the nearest of the sixteen would often be. Without colours a ground that stands out from the
widget's own (the row of a cursor, a selection) is shown reversed, and a faint text dim.
"""

import colorsys
from bisect import bisect
from collections.abc import Callable
from functools import lru_cache

from rich.color import Color as RichColor
from rich.segment import Segment
from rich.style import Style
from textual.color import Color
from textual.filter import LineFilter

HUES = (1, 3, 2, 6, 4, 5, 1)
"""Red, yellow, green, cyan, blue, magenta and red again, as terminals number them."""
ENDS = (20, 75, 165, 205, 255, 335)
"""Where each of them but the last ends, in degrees of the colour circle, as people name them."""
BLACK, GREY, WHITE, BRIGHT = 0, 8, 7, 15
LIGHTER = 8
"""What leads from a colour to its brighter one."""
COLOURLESS = ("vt", "xterm-mono", "ansi-m", "linux-m", "screen-m")
"""How the names begin of terminals without colours that are believed to have sixteen."""
STANDS_OUT = 0.05
"""From so much difference in brightness on, a ground is one that means something."""
GRIP = "@mouse.down"
"""What the parts of a scrollbar have in their style: no text stands on it, and it is to be calm."""
FAINT = 0.45
"""A text with less contrast than this share of the full one is dim."""


@lru_cache(4096)
def sixteen(red: int, green: int, blue: int) -> int:
    """The number of the terminal colour that comes nearest in kind: hue first, then lightness."""
    hue, saturation, value = colorsys.rgb_to_hsv(red / 255, green / 255, blue / 255)
    if value < 0.16:
        return BLACK
    if saturation * value > 0.12:  # the keywords of our themes are just above
        return HUES[bisect(ENDS, hue * 360)] + (LIGHTER if value > 0.6 else 0)
    return GREY if value < 0.55 else WHITE if value < 0.88 else BRIGHT


@lru_cache(4096)
def few(style: Style, behind: Color) -> Style:
    """A style in sixteen colours. behind: the ground of the widget."""
    fore, back = _visible(style, behind)
    text, ground = sixteen(*fore), sixteen(*back)
    if ground == GREY and GRIP not in style.meta:
        ground = 4  # grey is what faint text has, and it has to be read on the cursor's row
    if ground not in (BLACK, WHITE, BRIGHT) and text in (GREY, ground, ground + LIGHTER):
        text = BRIGHT
    elif text == ground or (ground in (WHITE, BRIGHT) and text in (GREY, WHITE, BRIGHT)):
        text = BLACK if ground else GREY
    return _uncoloured(style) + Style(
        color=RichColor.from_ansi(text), bgcolor=RichColor.from_ansi(ground), reverse=False
    )


@lru_cache(4096)
def none(style: Style, behind: Color) -> Style:
    """A style without colours. behind: the ground of the widget."""
    fore, back = _visible(style, behind)
    usual = Color(*back).brightness
    marked = abs(usual - behind.brightness) > STANDS_OUT
    contrast = abs(Color(*fore).brightness - usual)
    dim = not marked and not style.bold and contrast < FAINT
    return _uncoloured(style) + Style(reverse=marked, dim=dim)


def _visible(style: Style, behind: Color) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
    """The text's colour and the ground's as they are seen."""
    light = behind.brightness > 0.5
    fore = _triplet(style.color) or ((0, 0, 0) if light else (255, 255, 255))
    back = _triplet(style.bgcolor) or behind.rgb
    return (back, fore) if style.reverse else (fore, back)


def _triplet(colour: RichColor | None) -> tuple[int, int, int] | None:
    if colour is None or colour.is_default:
        return None
    red, green, blue = colour.triplet or colour.get_truecolor()
    return red, green, blue


def _uncoloured(style: Style) -> Style:
    """What a style says beside colours. Actions for the mouse stay; what blinks does not."""
    bare = style.without_color + Style(blink=False, blink2=False)
    return bare + Style.from_meta(style.meta) if style.meta else bare


class Fewer(LineFilter):
    """Brings every line down to what the terminal has."""

    def __init__(self, change: Callable[[Style, Color], Style]) -> None:
        super().__init__()
        self._change = change

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same text in other styles."""
        change = self._change
        return [
            Segment(text, change(style or Style(), background), control)
            for text, style, control in segments
        ]


def filters(term: str, colours: str | None, no_color: bool) -> list[LineFilter]:
    """What a terminal needs.

    term: its name, as in TERM. colours: what Rich knows of it: "standard" stands for sixteen, None
    for none. no_color: whether NO_COLOR is set.
    """
    if no_color or colours is None or term.startswith(COLOURLESS) or term.endswith("-m"):
        return [Fewer(none)]
    return [Fewer(few)] if colours == "standard" else []
