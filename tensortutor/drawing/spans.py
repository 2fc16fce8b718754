"""What drawings are made of: rows of spans. And text from outside, measured in cells."""

import os
import unicodedata
from collections.abc import Iterable, Iterator
from typing import NamedTuple, TextIO

RGB = tuple[int, int, int]


class Span(NamedTuple):
    """A piece of a row.

    series: the number of the series whose colour it has, or -1. dim: an axis, or words beside the
    matter. fore, back: colours of their own, as pictures have.
    """

    text: str
    series: int = -1
    dim: bool = False
    fore: RGB | None = None
    back: RGB | None = None


Row = list[Span]


class Look(NamedTuple):
    """What the place can show. unicode: braille and blocks. colour: so many that pictures work."""

    unicode: bool = True
    colour: bool = True


def text_of(row: Row) -> str:
    """A row without its colours."""
    return "".join(span.text for span in row)


def cell_width(char: str) -> int:
    """How many cells of a terminal a character takes."""
    if char.isascii():
        return 1
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("W", "F") else 1


def width_of(text: str) -> int:
    """How many cells a text takes."""
    return len(text) if text.isascii() else sum(map(cell_width, text))


def clean(text: str, look: Look) -> str:
    """One line without anything that acts on a terminal, in signs that it can show."""
    text = " ".join(text.split())
    shown = (c if c.isprintable() and (look.unicode or c.isascii()) else "?" for c in text)
    return "".join(shown)


def clip(text: str, width: int) -> str:
    """The beginning of a text that fits so many cells."""
    if width_of(text) <= width:
        return text
    kept, taken = "", 0
    for char in text:
        taken += cell_width(char)
        if taken > width:
            break
        kept += char
    return kept


def cut(row: Row, width: int) -> Row:
    """The beginning of a row that fits so many cells."""
    kept: Row = []
    for span in row:
        text = clip(span.text, max(width, 0))
        kept.append(span._replace(text=text))
        width -= width_of(text)
    return kept


def wrap(words: Iterable[str], width: int) -> Iterator[str]:
    """Words as lines of so many cells; what is longer than a line is cut."""
    line = ""
    for word in words:
        longer = f"{line} {word}" if line else word
        if width_of(longer) <= width or not line:
            line = clip(longer, width)
        else:
            yield line
            line = clip(word, width)
    if line:
        yield line


def is_unicode(stream: TextIO) -> bool:
    """The stream takes any character, and nobody has asked for ASCII."""
    if os.environ.get("TENSORTUTOR_ASCII", "0") not in ("", "0"):
        return False
    return (getattr(stream, "encoding", "") or "utf-8").lower().replace("-", "") == "utf8"
