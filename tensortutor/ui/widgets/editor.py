"""The code editor: a text area that knows Python's indentation and shows the lines that failed."""

from collections.abc import Mapping
from typing import ClassVar

from textual.binding import BindingType
from textual.document._document import Selection
from textual.events import Key
from textual.geometry import Region
from textual.message import Message

from tensortutor.ui import indent, keys
from tensortutor.ui.widgets.code import CodeArea


class Editor(CodeArea):
    """Edits one pane of a lesson."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.EDITOR]

    class Left(Message):
        """The learner wants out of the editor."""

    def mark(self, lines: Mapping[int, str]) -> None:
        """Mark lines (from 1): "failed" where the error was raised, "called" on the way there.

        The failed line comes into view. The cursor goes there too unless somebody is typing.
        """
        self.mark_lines(lines)
        failed = [line - 1 for line, kind in lines.items() if kind == "failed"]
        if not failed or failed[0] >= self.document.line_count:
            return
        if self.has_focus:
            self.scroll_to_region(Region(0, failed[0], 1, 1), animate=False)
        else:
            self.move_cursor((failed[0], 0), center=True)

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
