"""Only the cells that differ go to the terminal, and only what differs of their colours. Pure.

Textual repaints whole regions, and says foreground, background and reset for each piece of text: a
step of the cursor in a list of 30 rows is 18 KB. Slow links feel that. Here the cells that the
terminal shows are remembered, and a frame is brought down to what is new in it.

What is no frame (a change of modes, pixels, a cleared screen) passes as it is. Whatever may have
changed cells in a way that is not understood makes all of them unknown, and they are sent again.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len

MOVE = r"\x1b\[(?P<row>\d+);(?P<column>\d+)H"
COLOURS = r"\x1b\[(?P<style>[0-9;]*)m"
TEXT = r"(?P<text>[^\x00-\x1f\x7f-\x9f]+)"
PIECE = re.compile(rf"{MOVE}|{COLOURS}|{TEXT}|(?P<line>\n)|\r")
SETTING = re.compile(
    # Modes but those that change to the other screen; questions; names and the clipboard (OSC, but
    # not 8, which is a link in the text).
    r"(?:\x1b\[\?(?!1049|1047|47)[0-9;]*[hl]|\x1b\[[?>=<]?[0-9;]*[$ ]?[cnpqtu]"
    r"|\x1b\](?!8;)[^\x07\x1b]*(?:\x07|\x1b\\))+"
)
SEEN_ON_BLANKS = frozenset({"4", "7", "9", "21", "53"})
"""Underlined, reversed, struck out, underlined twice, overlined."""
NEAR = 4
"""Cells that are sent again rather than jumped over, if they need no other colours."""


class Style(NamedTuple):
    """A style taken apart, each part as the numbers that ask for it."""

    attributes: frozenset[str]
    foreground: str
    background: str


@lru_cache(4096)
def parts(style: str) -> Style:
    """The parts of a style, which is the numbers between `ESC [` and `m`."""
    attributes: set[str] = set()
    foreground = background = ""
    numbers = iter([number for number in style.split(";") if number])
    for number in numbers:
        if number in ("38", "48", "58"):
            kind = next(numbers, "")
            rest = [next(numbers, "0") for _ in range(3 if kind == "2" else 1)]
            colour = ";".join((number, kind, *rest))
            if number == "38":
                foreground = colour
            elif number == "48":
                background = colour
            else:
                attributes.add(colour)
        elif number == "0":
            attributes, foreground, background = set(), "", ""
        elif len(number) > 1 and number[:-1] in ("3", "9"):
            foreground = "" if number == "39" else number
        elif len(number) > 1 and number[:-1] in ("4", "10"):
            background = "" if number == "49" else number
        else:
            attributes.add(number)
    return Style(frozenset(attributes), foreground, background)


@lru_cache(4096)
def blank(style: str) -> str:
    """The style of a blank: it has no foreground, unless it is underlined or the like."""
    found = parts(style)
    return style if found.attributes & SEEN_ON_BLANKS else found.background


@lru_cache(8192)
def change(before: str | None, after: str) -> str:
    """What leads from one style to another. before: None if it is not known."""
    afresh = f"\x1b[0;{after}m" if after else "\x1b[m"
    if before is None:
        return afresh
    old, new = parts(before), parts(after)
    if old == new:
        return ""
    if old.attributes - new.attributes:
        return afresh
    numbers = [*sorted(new.attributes - old.attributes)]
    if old.foreground != new.foreground:
        numbers.append(new.foreground or "39")
    if old.background != new.background:
        numbers.append(new.background or "49")
    return min(f"\x1b[{';'.join(numbers)}m", afresh, key=len)


class CellDiff:
    """The cells of a terminal, as far as they are known.

    A cell holds its sign and its style. A sign of several cells stands in its first; the others
    hold "". None: not known.
    """

    def __init__(self) -> None:
        self._size = (0, 0)
        self._signs: list[list[str | None]] = []
        self._styles: list[list[str]] = []
        self._at: tuple[int, int] | None = None
        self._style: str | None = None

    def forget(self) -> None:
        """Nothing is known any more: everything that comes is sent."""
        columns, rows = self._size
        self._signs = [[None] * columns for _ in range(rows)]
        self._styles = [[""] * columns for _ in range(rows)]
        self._at = self._style = None

    def reduce(self, data: str, size: tuple[int, int]) -> str:
        """What to send in place of some output. size: columns and rows of the terminal."""
        if size != self._size:
            self._size = size
            self.forget()
        if SETTING.fullmatch(data):
            return data
        pieces = _pieces(data)
        if pieces is None:
            self.forget()
            return data
        out: list[str] = []
        row, column, style = 0, 0, ""
        if self._at is not None:
            row, column = self._at
        for piece in pieces:
            kind = piece.lastgroup
            if kind == "text":
                column += self._write(row, column, piece["text"], style, out)
            elif kind == "style":
                style = piece["style"]
            elif kind == "column":
                row, column = int(piece["row"]) - 1, int(piece["column"]) - 1
            elif kind == "line":
                row, column = row + 1, 0
        self._move(row, column, out)
        return "".join(out)

    def _write(self, row: int, column: int, text: str, style: str, out: list[str]) -> int:
        """Bring a text to its place. Returns how many cells it takes."""
        signs = _cells(text)
        width = len(signs)
        unseen = blank(style)
        styles = [unseen if sign == " " else style for sign in signs]
        columns, rows = self._size
        if row >= rows or column + width > columns:
            # Larger than the terminal is said to be: where it ends up is the terminal's affair.
            self._move(row, column, out)
            out += (change(self._style, style), text)
            self._style, self._at = style, None
            if row < rows:
                self._signs[row] = [None] * columns
            return width
        old_signs, old_styles = self._signs[row], self._styles[row]
        end = column + width
        if old_signs[column:end] == signs and old_styles[column:end] == styles:
            return width
        self._break(old_signs, column)
        if end < columns:
            self._break(old_signs, end)
        index = 0
        while index < width:
            at = column + index
            if old_signs[at] == signs[index] and old_styles[at] == styles[index]:
                index += 1
                continue
            while signs[index] == "" and index:
                index -= 1  # the whole sign, from its first cell
            self._move(row, column + index, out)
            self._send(signs[index] or " ", styles[index], out)
            index += 1
            while index < width and signs[index] == "":
                index += 1
            self._at = (row, column + index) if column + index < columns else None
        old_signs[column:end], old_styles[column:end] = signs, styles
        return width

    def _break(self, signs: list[str | None], column: int) -> None:
        """Half of a sign that begins before this cell is overwritten: what stays is not known."""
        if signs[column] != "":
            return
        while column and signs[column] == "":
            signs[column] = None
            column -= 1
        signs[column] = None

    def _send(self, sign: str, style: str, out: list[str]) -> None:
        if self._style is None or (blank(self._style) if sign == " " else self._style) != style:
            out.append(change(self._style, style))
            self._style = style
        out.append(sign)

    def _move(self, row: int, column: int, out: list[str]) -> None:
        """Bring the cursor to a cell."""
        if self._at == (row, column):
            return
        if self._at is not None and self._at[0] == row and column > self._at[1]:
            between = slice(self._at[1], column)
            signs, styles = self._signs[row][between], self._styles[row][between]
            if len(signs) <= NEAR and all(map(self._is_ready, signs, styles)):
                out += [sign or "" for sign in signs]
            else:
                out.append(f"\x1b[{len(signs)}C" if len(signs) > 1 else "\x1b[C")
        else:
            out.append(f"\x1b[{row + 1};{column + 1}H")
        self._at = (row, column)

    def _is_ready(self, sign: str | None, style: str) -> bool:
        """Whether a cell is known, is one sign, and needs no other colours."""
        if not sign or self._style is None:
            return False
        return style == (blank(self._style) if sign == " " else self._style)


def _pieces(data: str) -> list[re.Match[str]] | None:
    """The pieces of a frame; None if it is none."""
    found = list(_matches(data))
    return found if sum(len(piece[0]) for piece in found) == len(data) else None


def _matches(data: str) -> Iterator[re.Match[str]]:
    """The pieces up to the first thing that is none."""
    at = 0
    while piece := PIECE.match(data, at):
        yield piece
        at = piece.end()


@lru_cache(4096)
def _cells(text: str) -> list[str]:
    """A text by cells. What holds marks that have no cell of their own stays together."""
    if text.isascii():
        return list(text)
    widths = [cell_len(sign) for sign in text]
    if 0 in widths or sum(widths) != cell_len(text):
        return [text, *[""] * (cell_len(text) - 1)]
    cells: list[str] = []
    for sign, width in zip(text, widths, strict=True):
        cells += [sign, *[""] * (width - 1)]
    return cells
