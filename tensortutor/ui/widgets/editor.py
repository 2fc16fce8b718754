"""The code editor: a text area that knows how Python is typed, one program after the other."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.binding import BindingType
from textual.events import Key, MouseDown
from textual.geometry import Offset, Region
from textual.message import Message
from textual.widgets import TextArea
from textual.widgets.text_area import EditHistory, Location, Selection

from tensortutor.ui import key_bindings
from tensortutor.ui.editing import bracket_closing, indentation, text_diff
from tensortutor.ui.widgets.checked import CheckedCode
from tensortutor.ui.widgets.code import CodeDocument
from tensortutor.ui.widgets.completer import Completer

if TYPE_CHECKING:
    from tensortutor.ui.widgets.find import FindBar


@dataclass(frozen=True)
class Draft:
    """A program that is not shown just now, with all that can be undone in it."""

    document: CodeDocument
    history: EditHistory
    selection: Selection
    scroll: Offset


class Editor(CheckedCode):
    """Edits the panes of a lesson.

    closes_brackets: what is opened by a key is closed with it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.EDITOR]
    closes_brackets = True

    class Left(Message):
        """The learner wants out of the editor."""

    def __init__(self, *, id: str | None = None) -> None:
        self.completer = Completer(self)
        self._drafts: dict[Hashable, Draft] = {}
        self._shown: Hashable = None
        self._bound: tuple[Mapping[str, str], dict[str, str]] | None = None
        self._bar: FindBar | None = None
        super().__init__(id=id)

    def mark(self, lines: Mapping[int, str]) -> None:
        """Mark lines (from 1): "failed" where the error was raised, "called" on the way there.

        The failed line comes into view. The cursor stays where it is.
        """
        self.mark_lines(lines)
        failed = [line - 1 for line, kind in lines.items() if kind == "failed"]
        if not failed or failed[0] >= self.document.line_count:
            return
        self.scroll_to_region(Region(0, failed[0], 1, 1), animate=False)

    # Programs

    @property
    def shown(self) -> Hashable:
        """The key of the program that is shown."""
        return self._shown

    def show(self, key: Hashable, text: str) -> None:
        """Show a program. key: under which it comes back later with its undo history."""
        self.completer.close()
        if self._bar is not None and self._bar.is_attached:
            self._bar.close()
        self._drafts[self._shown] = Draft(
            self.document, self.history, self.selection, self.scroll_offset
        )
        self._shown = key
        draft = self._drafts.get(key)
        if draft is None or draft.document.newline != CodeDocument(text).newline:
            self.history = EditHistory(
                self.history.max_checkpoints, self.history.checkpoint_timer,
                self.history.checkpoint_max_characters,
            )  # fmt: skip
            self.load_text(text)
            return
        self.history = draft.history
        self.adopt(draft.document)
        self.selection = draft.selection
        self.scroll_to(*draft.scroll, animate=False)
        self.renew(text)

    def renew(self, text: str) -> None:
        """Put another version of the same program in place, as one step that can be undone."""
        old = self.text
        if text == old:
            return
        if CodeDocument(text).newline != self.document.newline:
            self.load_text(text)
            return
        change = text_diff.between(old, text)
        cursor = text_diff.follow(old, text, self.cursor_location)
        self.history.checkpoint()
        self.replace(change.text, change.start, change.end, maintain_selection_offset=False)
        self.history.checkpoint()
        self.move_cursor(cursor)

    # Keys

    def on_mouse_down(self, event: MouseDown) -> None:
        """A press on the frame is not for the text: the frame can be dragged."""
        if event.get_content_offset(self) is None:
            event.prevent_default()

    async def _on_key(self, event: Key) -> None:
        # The app runs a binding after the key has gone through the whole screen, when later keys
        # may have been written here already: what is typed fast would come out in another order.
        # So every key that the editor binds is done here, in its turn.
        handled = self.completer.handle(event.key)
        if not handled and (action := self._actions().get(event.key)):
            handled = await self.app.run_action(action, self)
        elif not handled and event.character and event.is_printable and not self.read_only:
            self.type_character(event.character)
            self.completer.typed(event.character)
            handled = True
        if handled:
            event.stop()
            event.prevent_default()
        else:
            await super()._on_key(event)

    def _actions(self) -> dict[str, str]:
        """What the editor does, by key, as the learner has it."""
        keymap = self.app._keymap
        if self._bound is None or self._bound[0] is not keymap:
            bindings = self._bindings.copy()
            bindings.apply_keymap(dict(keymap))
            self._bound = (keymap, {key: b.action for key, b in bindings if not b.priority})
        return self._bound[1]

    def type_character(self, character: str) -> None:
        """Type a character; what it opens is closed, what it closes is stepped over."""
        start, end = sorted(self.selection)
        if not self.closes_brackets:
            self.replace(character, start, end, maintain_selection_offset=False)
        elif start != end and character in bracket_closing.PAIRS:
            self._surround(character, start, end)
        else:
            row, column = start
            line, state = self.document[row], self.document.state(row)
            if start == end and bracket_closing.is_typed_over(character, line, state, column):
                self.move_cursor((row, column + 1))
                return
            rest = line[:column] + line[end[1] :] if end[0] == row else line
            closer = bracket_closing.closing(character, rest, state, column)
            self.replace(character + closer, start, end, maintain_selection_offset=False)
            if closer:
                self.move_cursor((row, column + 1))

    def _surround(self, opener: str, start: Location, end: Location) -> None:
        """Put a pair around the selected text, which stays selected."""
        inner = self.selected_text
        self.replace(
            opener + inner + bracket_closing.PAIRS[opener],
            start,
            end,
            maintain_selection_offset=False,
        )
        last = (end[0], end[1] + (start[0] == end[0]))
        self.selection = Selection((start[0], start[1] + 1), last)

    def action_newline(self) -> None:
        """Break the line and indent the new one as Python wants it."""
        if self.read_only:
            return
        start, end = sorted(self.selection)
        before = self.document[start[0]][: start[1]]
        space = indentation.after(before) if before.strip() else before
        line = self.document[start[0]]
        spread = self.closes_brackets and start == end
        if spread and bracket_closing.is_spread(line, self.document.state(start[0]), start[1]):
            tail = "\n" + indentation.leading(before)
            self.replace(f"\n{space}{tail}", start, end, maintain_selection_offset=False)
            self.move_cursor((start[0] + 1, len(space)))
            return
        result = self.replace("\n" + space, start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def action_indent(self) -> None:
        """Indent the selected lines, or go to the next stop."""
        if self.read_only:
            return
        start, end = self.selection
        if start[0] != end[0]:
            self._rewrite(indentation.indented)
            return
        width = indentation.WIDTH - min(start, end)[1] % indentation.WIDTH
        result = self.replace(" " * width, start, end, maintain_selection_offset=False)
        self.move_cursor(result.end_location)

    def action_dedent(self) -> None:
        """Take one stop of indentation away from the selected lines."""
        if not self.read_only:
            self._rewrite(indentation.dedented)

    def action_comment(self) -> None:
        """Comment the selected lines out, or in again."""
        if not self.read_only:
            self._rewrite(indentation.toggled)

    def action_delete_left(self) -> None:
        """Delete a character; within the indentation, back to the last stop."""
        row, column = self.cursor_location
        line = self.document[row]
        before = line[:column]
        empty = self.closes_brackets and bracket_closing.is_empty(
            line, self.document.state(row), column
        )
        if empty and self.selection.is_empty and not self.read_only:
            self.delete((row, column - 1), (row, column + 1), maintain_selection_offset=False)
            return
        if self.read_only or not self.selection.is_empty or before.strip(" ") or not column:
            super().action_delete_left()
            return
        start = (row, column - indentation.to_previous_stop(column))
        self.delete(start, (row, column), maintain_selection_offset=False)

    def action_edge(self, side: int, select: bool = False) -> None:
        """To the first line (-1) or the end of the last (1). select: what lies between, too."""
        self.move_cursor((0, 0) if side < 0 else self.document.end, select=select)

    async def action_find(self) -> None:
        """Ask for a text to look for, in a line below."""
        from tensortutor.ui.widgets.find import FindBar  # loaded when it is wanted

        if self._bar is None or not self._bar.is_attached:
            self._bar = FindBar(self)
            await self.parent.mount(self._bar, after=self)  # type: ignore[union-attr]
        self._bar.query_one("Input").focus()

    @on(TextArea.Changed)
    def _find_again(self) -> None:
        if self._bar is not None and self._bar.is_attached:
            self._bar.look_again()

    def action_leave(self) -> None:
        """Give the focus away; what lies over the code goes first."""
        if not self.completer.handle("escape"):
            self.post_message(self.Left())

    # Names

    def action_complete(self) -> None:
        """Offer the names that may stand here; of the chosen one say everything."""
        if self.completer.is_open:
            self.completer.explain()
        elif not self.read_only:
            self.completer.ask(wanted=True)

    def action_explain(self) -> None:
        """Say what is known of the name at the cursor."""
        self.completer.explain()

    @on(TextArea.SelectionChanged)
    def _moved(self) -> None:
        self.completer.moved()

    def watch_has_focus(self, has_focus: bool) -> None:
        """Names are offered to those who type."""
        super().watch_has_focus(has_focus)
        if not has_focus:
            self.completer.close()

    def _rewrite(self, change: "indentation.Change") -> None:
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
