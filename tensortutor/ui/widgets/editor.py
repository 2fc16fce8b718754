"""The code editor: a text area that knows Python's indentation and shows the lines that failed."""

from importlib.resources import files
from typing import ClassVar

import tree_sitter_python
from rich.segment import Segment
from rich.style import Style
from textual.binding import BindingType
from textual.document._document import Selection
from textual.events import Key
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip
from textual.widgets import TextArea
from textual.widgets.text_area import TextAreaTheme
from tree_sitter import Language

from tensortutor.ui import glyphs, indent, keys

MARGIN = 40
"""Lines above and below the visible ones that are coloured along with them."""
COLOURS = ("keyword", "string", "number", "call", "definition", "decorator", "comment", "plain")
"""The names that python.scm gives to parts of a program; the style sheet says how they look."""


class Editor(TextArea):
    """Edits one pane of a lesson."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.EDITOR]
    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "editor--failed",
        "editor--called",
        *(f"editor--{name}" for name in COLOURS),
    }
    _stale = True

    class Left(Message):
        """The learner wants out of the editor."""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(
            id=id,
            soft_wrap=False,
            tab_behavior="indent",
            show_line_numbers=True,
            compact=True,
            max_checkpoints=200,
        )
        self._coloured = range(0)
        self._marks: dict[int, str] = {}
        self.cursor_blink = False
        self.indent_width = indent.WIDTH
        self._colours: dict[str, Style] = {}
        self.register_theme(TextAreaTheme("tutor", syntax_styles=self._colours))
        self.theme = "tutor"
        query = files("tensortutor.ui.widgets").joinpath("python.scm").read_text("utf-8")
        self.register_language("tutor-python", Language(tree_sitter_python.language()), query)
        self.language = "tutor-python"

    def notify_style_update(self) -> None:
        """The app's theme has changed, or the styles were read for the first time."""
        self._stale = True
        super().notify_style_update()

    def _read_colours(self) -> None:
        self._stale = False
        for name in COLOURS:
            style = self.get_component_rich_style(f"editor--{name}")
            self._colours[name] = Style(color=style.color, bold=style.bold, italic=style.italic)

    # Colours: only what can be seen is asked for, the whole tree would cost 250 ms a key

    def _build_highlight_map(self) -> None:
        top, bottom = self._visible_line_indices
        self._colour(range(max(0, top - MARGIN), bottom + MARGIN))

    def _colour(self, lines: range) -> None:
        self._line_cache.clear()
        self._highlights.clear()
        self._coloured = lines
        if self._highlight_query is None:
            return
        captures = self.document.query_syntax_tree(
            self._highlight_query, (lines.start, 0), (lines.stop, 0)
        )
        for name, nodes in captures.items():
            for node in nodes:
                first, last = node.start_point.row, node.end_point.row
                for row in range(max(first, lines.start), min(last, lines.stop) + 1):
                    start = node.start_point.column if row == first else 0
                    end = node.end_point.column if row == last else None
                    self._highlights[row].append((start, end, name))

    def render_lines(self, crop: Region) -> list[Strip]:
        """Colour what has been scrolled to, then draw."""
        if self._stale:
            self._read_colours()
        top, bottom = self._visible_line_indices
        last = min(bottom, self.document.line_count)
        if top < self._coloured.start or last > self._coloured.stop:
            self._build_highlight_map()
        return super().render_lines(crop)

    # Lines that failed

    def mark(self, lines: dict[int, str]) -> None:
        """Mark lines (from 1): "failed" where the error was raised, "called" on the way there.

        The failed line comes into view. The cursor goes there too unless somebody is typing.
        """
        self._marks = {line - 1: kind for line, kind in lines.items()}
        self._line_cache.clear()
        self.refresh()
        failed = [line for line, kind in self._marks.items() if kind == "failed"]
        if not failed or failed[0] >= self.document.line_count:
            return
        if self.has_focus:
            self.scroll_to_region(Region(0, failed[0], 1, 1), animate=False)
        else:
            self.move_cursor((failed[0], 0), center=True)

    @property
    def marks(self) -> dict[int, str]:
        """The marked lines, from 1."""
        return {line + 1: kind for line, kind in self._marks.items()}

    def _render_line(self, y: int) -> Strip:
        strip = super()._render_line(y)
        kind = self._marks.get(self.scroll_offset.y + y)
        if kind is None or self.scroll_offset.y + y >= self.document.line_count:
            return strip
        look = self.get_component_rich_style(f"editor--{kind}")
        edge = self.gutter_width - 1
        gutter, rest = strip.divide([edge, strip.cell_length])[:2]
        sign = glyphs.current().failed if kind == "failed" else glyphs.current().pointer
        marked = Segment(gutter.text[:-1] + sign, self.rich_style + look)
        ground = Style(bgcolor=look.bgcolor)
        tinted = [Segment(s.text, (s.style or Style()) + ground, s.control) for s in rest]
        return Strip([marked, *tinted], strip.cell_length)

    # Keys

    async def _on_key(self, event: Key) -> None:
        # A binding runs before or after this widget gets the keys around it: fast typing would
        # come out in another order. What belongs between two letters is done here, in its turn.
        act = {
            "enter": self.action_newline,
            "tab": self.action_indent,
            "shift+tab": self.action_dedent,
            "backspace": self.action_delete_left,
        }.get(event.key)
        if act is None:
            await super()._on_key(event)
            return
        event.stop()
        event.prevent_default()
        act()

    def action_newline(self) -> None:
        """Break the line and indent the new one as Python wants it."""
        if self.read_only:
            return
        start, end = sorted(self.selection)
        before = self.document[start[0]][: start[1]]
        space = indent.after(before) if before.strip() else before
        result = self.replace("\n" + space, start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def action_indent(self) -> None:
        """Indent the selected lines, or go to the next stop."""
        if self.read_only:
            return
        start, end = self.selection
        if start[0] != end[0]:
            self._rewrite(indent.indented)
            return
        width = indent.WIDTH - min(start, end)[1] % indent.WIDTH
        result = self.replace(" " * width, start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def action_dedent(self) -> None:
        """Take one stop of indentation away from the selected lines."""
        if not self.read_only:
            self._rewrite(indent.dedented)

    def action_comment(self) -> None:
        """Comment the selected lines out, or in again."""
        if not self.read_only:
            self._rewrite(indent.toggled)

    def action_delete_left(self) -> None:
        """Delete a character; within the indentation, back to the last stop."""
        row, column = self.cursor_location
        before = self.document[row][:column]
        if self.read_only or not self.selection.is_empty or before.strip(" ") or not column:
            super().action_delete_left()
            return
        start = (row, column - indent.to_previous_stop(column))
        self.delete(start, (row, column), maintain_selection_offset=False)

    def action_leave(self) -> None:
        """Give the focus away."""
        self.post_message(self.Left())

    def _rewrite(self, change: "indent.Change") -> None:
        """Change whole lines, as one edit, and keep the selection on the same text."""
        start, end = self.selection
        top, bottom = sorted((start, end))
        last = bottom[0]
        # A selection that ends before a line's first character does not mean that line.
        if last > top[0] and bottom[1] == 0:
            last -= 1
        old = [self.document[row] for row in range(top[0], last + 1)]
        new = change(old)
        if new == old:
            return
        grown = {top[0] + i: len(b) - len(a) for i, (a, b) in enumerate(zip(old, new, strict=True))}
        self.replace(
            "\n".join(new), (top[0], 0), (last, len(old[-1])), maintain_selection_offset=False
        )
        moved = [(row, max(0, column + grown.get(row, 0))) for row, column in (start, end)]
        self.selection = Selection(moved[0], moved[1])
