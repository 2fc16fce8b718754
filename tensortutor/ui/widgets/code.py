"""A text area for Python that draws fast: a line is coloured, and drawn, when it has changed.

Textual's own repaints every visible line at every key, and parses the whole text for its colours.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import groupby
from operator import itemgetter
from typing import ClassVar

from rich.cells import cell_len
from rich.segment import Segment
from rich.style import Style
from textual.cache import LRUCache
from textual.geometry import Region
from textual.reactive import Reactive, reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import (
    Document,
    DocumentNavigator,
    Edit,
    EditResult,
    Location,
    Selection,
    WrappedDocument,
)

from tensortutor.ui.editing import bracket_matching, line_lexer
from tensortutor.ui.terminal import symbols

COLOURS = ("keyword", "string", "number", "call", "definition", "decorator", "comment", "plain")
"""What the lexer calls the parts of a program; the style sheet says how they look."""
MARKS = ("failed", "called")
"""Kinds of lines that stand out."""
NOTE = "note"
URGENT = ("NaN", "Inf")
"""What stands behind the code of a line, dimmed."""
LAYERS = ("found", "problem")
"""Kinds of stretches that stand out within lines, the upper ones last."""
OWN = {
    "cursor": "text-area--cursor",
    "selection": "text-area--selection",
    "bracket": "text-area--matching-bracket",
    "cursor-line": "text-area--cursor-line",
    "gutter": "text-area--gutter",
    "cursor-gutter": "text-area--cursor-gutter",
}
"""What Textual's text area has styles for."""
CUT = "cut"
"""The sign at the edge where a line goes on."""
LEAST_NOTE = 10
"""Cells; less says nothing."""
LINE_END = re.compile("\r\n|\r|\n")
Spans = Mapping[int, Iterable[tuple[int, int]]]
"""Stretches of lines: columns by row, all from 0."""


class CodeDocument(Document):
    """A program that knows which of its lines begin within a string."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        # As Python does it: Textual would also break lines at characters that a string may hold.
        self._lines = LINE_END.split(text)
        self._states = [""]

    def replace_range(self, start: Location, end: Location, text: str) -> EditResult:
        """Every edit comes through here; what lies above it stays known."""
        top, bottom = sorted((start, end))
        gone = self.get_text_range(top, bottom)
        lines, new = self._lines, LINE_END.split(text)
        before = "".join(lines[top[0] : top[0] + 1])[: top[1]]
        after = "".join(lines[bottom[0] : bottom[0] + 1])[bottom[1] :]
        new[0] = before + new[0]
        column = len(new[-1])
        new[-1] += after
        lines[top[0] : bottom[0] + 1] = new
        del self._states[top[0] + 1 :]
        return EditResult((top[0] + len(new) - 1, column), gone)

    def state(self, row: int) -> str:
        """The string that a line begins within, "" for code."""
        states = self._states
        while len(states) <= row:
            states.append(line_lexer.read(self._lines[len(states) - 1], states[-1]).state)
        return states[row]

    def known_state(self, row: int) -> str | None:
        """The same, or None if nobody has asked yet."""
        return self._states[row] if row < len(self._states) else None

    def read(self, row: int) -> line_lexer.Line:
        """What a line holds."""
        return line_lexer.read(self._lines[row], self.state(row))


class CodeArea(TextArea):
    """Python, coloured, without wrapping."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        f"editor--{name}" for name in (*COLOURS, *MARKS, *LAYERS, NOTE, CUT)
    }
    document: CodeDocument
    selection: Reactive[Selection] = reactive(
        Selection(), repaint=False, init=False, always_update=True
    )
    """As Textual's, but only the lines that it touches are drawn again."""

    def __init__(self, *, id: str | None = None) -> None:
        self._looks: dict[str, Style] = {}
        self._marks: dict[int, str] = {}
        self._layers: dict[str, dict[int, tuple[tuple[int, int], ...]]] = {}
        self._pair: tuple[Location, ...] = ()
        self._pointed: int | None = None
        self._notes: dict[int, tuple[str, str]] = {}
        super().__init__(
            id=id, soft_wrap=False, tab_behavior="indent", show_line_numbers=True, compact=True,
            max_checkpoints=200,
        )  # fmt: skip
        self._line_cache = LRUCache(1024)
        self.cursor_blink = False

    # What stands out

    @property
    def marks(self) -> dict[int, str]:
        """The marked lines, from 1, and the kind of each."""
        return {row + 1: kind for row, kind in self._marks.items()}

    def mark_lines(self, lines: Mapping[int, str]) -> None:
        """Mark lines (from 1) as one of MARKS, in place of all earlier marks."""
        if lines or self._marks:
            before, self._marks = self._marks, {line - 1: kind for line, kind in lines.items()}
            self._draw_again(before.keys() | self._marks.keys())

    def point_at(self, row: int | None) -> None:
        """Put the sign of a problem before a line, unless a mark stands there."""
        before, self._pointed = self._pointed, row
        self._draw_again({before, row})

    def _mark_of(self, row: int) -> str | None:
        return self._marks.get(row, "problem" if row == self._pointed else None)

    def annotate(self, notes: Mapping[int, str]) -> None:
        """Put notes behind lines (from 1), in place of all earlier ones.

        A note goes when its line is edited, and moves along when lines above come or go.
        """
        before = self._notes
        count = self.document.line_count
        self._notes = {
            line - 1: (self.document[line - 1], text)
            for line, text in notes.items() if 0 < line <= count
        }  # fmt: skip
        self._draw_again(before.keys() | self._notes.keys())

    def note_of(self, row: int) -> str:
        """The note behind a line (from 0), if the line is as it was."""
        text, note = self._notes.get(row, ("", ""))
        return note if note and self.document[row] == text else ""

    def paint(self, layer: str, spans: Spans) -> None:
        """Make stretches stand out, in place of all earlier ones of this layer."""
        before = self._layers.get(layer, {})
        if spans or before:
            now = {row: tuple(stretches) for row, stretches in spans.items()}
            self._layers[layer] = now
            self._draw_again(before.keys() | now.keys())

    def find_matching_bracket(self, _bracket: str, search_from: Location) -> Location | None:
        """The partner of the bracket under the cursor or just before it; Textual asks."""
        self._pair = bracket_matching.pair(self.document, search_from)
        return self._pair[1] if self._pair else None

    # What is drawn again

    def _draw_again(self, rows: Iterable[int | None]) -> None:
        top, bottom = self._visible_line_indices
        for row in rows:
            if row is not None and top <= row <= bottom:
                self.refresh_line(row)

    def _draw_from(self, row: int) -> None:
        top, bottom = self._visible_line_indices
        if row <= bottom:
            self.refresh_lines(max(row, top), bottom - max(row, top) + 1)

    def watch_selection(self, before: Selection, now: Selection) -> None:
        """The cursor has moved, and perhaps the brackets that belong together."""
        top, bottom = self._visible_line_indices
        rows = {row for row, _ in self._pair_drawn} | {row for row, _ in self._pair}
        for selection in (before, now):
            first, last = sorted((selection.start[0], selection.end[0]))
            rows.update(range(max(first, top), min(last, bottom) + 1))
        self._pair_drawn = self._pair
        self._draw_again(rows)

    _pair_drawn: tuple[Location, ...] = ()

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; the lines below are drawn again if they move or change colour."""
        document, gutter = self.document, self.gutter_width
        first, last = edit.top[0], edit.bottom[0]
        state, count = document.known_state(last + 1), document.line_count
        result = super().edit(edit)
        after = result.end_location[0] + 1
        if self._notes and (moved := document.line_count - count):
            self._notes = {
                row + (moved if row > last else 0): note for row, note in self._notes.items()
            }
        if self.gutter_width != gutter:
            self.refresh()
        elif document.line_count == count and (
            after >= document.line_count or document.state(after) == state
        ):
            self._draw_again(range(first, after))
        else:
            self._draw_from(first)
        return result

    def undo(self) -> None:
        """Take the last edits back."""
        super().undo()
        self.refresh()

    def redo(self) -> None:
        """Make the edits again that were taken back."""
        super().redo()
        self.refresh()

    def _set_document(self, text: str, _language: str | None) -> None:
        self.adopt(CodeDocument(text))
        self.move_cursor((0, 0))

    def adopt(self, document: CodeDocument) -> None:
        """Show this document from now on. The caller sees to cursor and history."""
        # The old place may be outside of the new text, and a scrollbar that comes asks for it.
        self.set_reactive(CodeArea.selection, Selection())
        self.document = document
        self.wrapped_document = WrappedDocument(document, tab_width=self.indent_width)
        self.navigator = DocumentNavigator(self.wrapped_document)
        self._rewrap_and_refresh_virtual_size()
        self.refresh()

    def _build_highlight_map(self) -> None:
        """Colours are read line by line when a line is drawn."""

    # Drawing

    def notify_style_update(self) -> None:
        """The theme has changed, the focus, or the styles were read for the first time."""
        self._looks.clear()
        super().notify_style_update()

    def _look(self, name: str) -> Style:
        """A style, only what the style sheet says of it."""
        look = self._looks.get(name)
        if look is None:
            style_class = OWN.get(name, f"editor--{name}")
            rules = self.get_component_styles(style_class)
            whole = self.get_component_rich_style(style_class)
            look = self._looks[name] = Style(
                color=whole.color if rules.has_rule("color") else None,
                bgcolor=whole.bgcolor if rules.has_rule("background") else None,
                bold=whole.bold, italic=whole.italic, underline=whole.underline,
                reverse=whole.reverse,
            )  # fmt: skip
        return look

    def render_lines(self, crop: Region) -> list[Strip]:
        """Draw some lines, without Textual's way to colours."""
        return ScrollView.render_lines(self, crop)

    def render_line(self, y: int) -> Strip:
        """A line of the visible part, from the cache if nothing about it has changed."""
        row = self.scroll_offset.y + y
        if row >= self.document.line_count:
            return Strip.blank(self.size.width, self.rich_style)
        key = (
            row, self.document[row], self.document.state(row), self.scrollable_content_region.width,
            self.scroll_offset.x, self.gutter_width, row == self.cursor_location[0],
            self._mark_of(row), self.note_of(row), *self._stretches(row),
        )  # fmt: skip
        strip = self._line_cache.get(key)
        if strip is None:
            strip = self._line_cache[key] = self._render_line(y)
        return strip

    def _stretches(self, row: int) -> list[tuple[int, int, str]]:
        """What stands out within a line: columns and the name of a style, the upper ones last."""
        found = [
            (start, end, layer)
            for layer in LAYERS
            for start, end in self._layers.get(layer, {}).get(row, ())
        ]
        top, bottom = sorted(self.selection)
        if top != bottom:
            if top[0] <= row <= bottom[0]:
                end = bottom[1] if row == bottom[0] else len(self.document[row]) + 1
                found.append((top[1] if row == top[0] else 0, end, "selection"))
        else:
            found += [(column, column + 1, "bracket") for at, column in self._pair if at == row]
        cursor_row, column = self.cursor_location
        if row == cursor_row and self._draw_cursor:
            found.append((column, column + 1, "cursor"))
        return found

    def _render_line(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        text = f"{self.document[row]} "  # the cursor may stand behind the last character
        is_current = row == self.cursor_location[0]
        mark = self._mark_of(row)
        ground = self.rich_style
        if is_current:
            ground += self._look("cursor-line")
        if mark is not None:
            ground += Style(bgcolor=self._look(mark).bgcolor)
        styles = [ground] * len(text)
        for start, end, name in self.document.read(row).tokens:
            styles[start:end] = [ground + self._look(name)] * (end - start)
        for start, end, name in self._stretches(row):
            look = self._look(name)
            styles[start:end] = [style + look for style in styles[start:end]]
        shown = zip(as_shown(text, self.indent_width), styles, strict=True)
        segments = [
            Segment("".join(map(itemgetter(0), group)), style)
            for style, group in groupby(shown, itemgetter(1))
        ]
        width = self.scrollable_content_region.width - self.gutter_width
        left = self.scroll_offset.x
        if note := self.note_of(row):
            code = sum(segment.cell_length for segment in segments)
            segments.append(Segment(fitting(note, left + width - code), ground + self._look(NOTE)))
        whole = Strip(segments)
        strip = whole.crop(left, left + width).extend_cell_length(width, ground)
        if whole.cell_length - 1 > left + width and not self._is_cursor_at(row, left + width - 1):
            # The line goes on: End leads there.
            sign = Segment(symbols.current().pointer, ground + self._look(CUT))
            strip = Strip([*strip.crop(0, width - 1), sign], width)
        return Strip.join([Strip(self._gutter(row, mark, is_current)), strip])

    def _is_cursor_at(self, row: int, cell: int) -> bool:
        """Whether the cursor stands in a cell, or behind it, of a line."""
        at, column = self.cursor_location
        return at == row and cell_len(self.document[row][:column]) >= cell

    def _gutter(self, row: int, mark: str | None, is_current: bool) -> list[Segment]:
        number = f"{row + self.line_number_start:>{self.gutter_width - 2}}"
        style = self.rich_style + self._look("cursor-gutter" if is_current else "gutter")
        if mark is None:
            return [Segment(f"{number}  ", style)]
        sign = symbols.current().pointer if mark == "called" else symbols.current().failed
        ground = Style(bgcolor=self._look(mark).bgcolor)
        return [
            Segment(number + sign, self.rich_style + self._look(mark) + Style(underline=False)),
            Segment(" ", self.rich_style + ground),
        ]


def fitting(note: str, room: int) -> str:
    """A note with space before it, cut where the room ends; nothing where there is hardly any.

    URGENT signs in the part that is cut off stand behind the cut.
    """
    if room < LEAST_NOTE:
        return ""
    text = f"   {note}"
    if len(text) <= room:
        return text
    lost = text[room - 1 :].split()
    end = symbols.current().cut + " ".join(sign for sign in URGENT if sign in lost)
    return text[: room - len(end)] + end


def as_shown(text: str, tab_width: int) -> Iterable[str]:
    """What is drawn for each character: tabs as spaces, and nothing that a terminal obeys."""
    if text.isprintable():
        return text
    shown = []
    width = 0
    for character in text:
        if character == "\t":
            drawn = " " * (tab_width - width % tab_width)
        else:
            drawn = character if character.isprintable() else "\ufffd"
        shown.append(drawn)
        width += len(drawn)
    return shown
