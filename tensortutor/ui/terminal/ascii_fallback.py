"""Every sign as ASCII, for terminals that have nothing else.

What means something has a sign of its own in `glyphs`. This is for the rest: the frames, bars and
marks of Textual's widgets, the dashes of a text, what a program prints. No cell is gained or lost.
"""

import unicodedata
from functools import lru_cache

from rich.cells import cell_len
from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

from tensortutor.plaintext import SIGNS


@lru_cache(4096)
def lettered(text: str) -> str:
    """The text in ASCII, as many cells wide."""
    if text.isascii():
        return text
    text = text.translate(SIGNS)
    return text if text.isascii() else "".join(map(_letter, text))


def _letter(sign: str) -> str:
    """One sign: its letter without accents, or a question mark, as wide as it is."""
    if sign.isascii():
        return sign
    plain = unicodedata.normalize("NFKD", sign).encode("ascii", "ignore").decode()
    width = cell_len(sign)
    return plain if len(plain) == width and plain.isprintable() else "?" * width


class AsciiFallback(LineFilter):
    """Writes every line in ASCII."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same lines in other signs."""
        del background
        return [Segment(lettered(text), style, control) for text, style, control in segments]
