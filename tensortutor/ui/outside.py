"""Text that comes from outside the project, on its way to Textual and Rich.

Textual reads a plain `str` as markup in many places: titles of frames, cells of tables, labels,
options. Text of a program, a course, a file, an exception or the environment is wrapped in
`OutsideText`, which none of them can read as markup, and which holds nothing that acts on a
terminal. The functions here stand before those places and take no `str`, so mypy finds who forgets.
"""

from collections.abc import Container, Iterable, Iterator
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.color import Color
from textual.content import Content
from textual.filter import LineFilter
from textual.widget import Widget

from tensortutor.plaintext import ACTIVE, one_line, visible

if TYPE_CHECKING:
    from textual.widgets import DataTable


class OutsideText:
    """One text from outside, safe to show."""

    __slots__ = ("_raw",)

    def __init__(self, text: object) -> None:
        self._raw = str(text)

    def __str__(self) -> str:
        return visible(self._raw)

    @property
    def line(self) -> str:
        """The text as one line of bounded length. It may still look like markup."""
        return one_line(self._raw)

    @property
    def content(self) -> Content:
        """The whole text for Textual."""
        return Content(str(self))

    @property
    def title(self) -> Content:
        """One line for Textual: titles, labels, options."""
        return Content(self.line)

    def styled(self, style: str) -> Content:
        """One line for Textual, in a style."""
        return Content.styled(self.line, style)

    def rich(self, style: Style | str = "") -> Text:
        """One line for Rich: cells of tables, labels of trees."""
        return Text(self.line, style)


Shown = OutsideText | Content


def content(text: Shown) -> Content:
    """One line for Textual."""
    return text.title if isinstance(text, OutsideText) else text


def entitle(widget: Widget, title: Shown) -> None:
    """Write a title into the upper edge of a frame."""
    widget.border_title = content(title)


def subtitle(widget: Widget, words: Shown) -> None:
    """Write words into the lower edge of a frame."""
    widget.border_subtitle = content(words)


def add_columns(
    table: "DataTable[Text]", names: Iterable[OutsideText], right: Container[int] = ()
) -> None:
    """Name the columns of a table. right: which of them end at the right, from 0."""
    table.add_columns(*_cells(names, right))


def add_row(
    table: "DataTable[Text]", cells: Iterable[OutsideText], key: str, right: Container[int] = ()
) -> None:
    """Add a row to a table. right: which of the cells end at the right, from 0."""
    table.add_row(*_cells(cells, right), key=key)


def _cells(texts: Iterable[OutsideText], right: Container[int]) -> Iterator[Text]:
    for place, text in enumerate(texts):
        cell = text.rich()
        cell.justify = "right" if place in right else None
        yield cell


@lru_cache(1024)
def harmless(text: str) -> str:
    """A piece of a line in which nothing acts on the terminal, as many cells wide."""
    return ACTIVE.sub(lambda match: "\ufffd" * cell_len(match.group()), text)


class Harmless(LineFilter):
    """The last door to the terminal: what no widget has made visible is left out here."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        """The same line. Sequences of our own travel as control segments and pass."""
        del background
        if not any(ACTIVE.search(segment.text) and not segment.control for segment in segments):
            return segments
        return [
            segment
            if segment.control
            else Segment(harmless(segment.text), segment.style, segment.control)
            for segment in segments
        ]
