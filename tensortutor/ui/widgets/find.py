"""Finding text in the editor: one line below it, the matches shown while one types."""

import re
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.content import Content
from textual.widgets import Input, Static

from tensortutor.ui import key_bindings
from tensortutor.ui.widgets.code import CodeArea

MOST = 9_999
"""Matches that are counted."""
Match = tuple[int, int, int]
"""A row and two columns, from 0."""


def matches(lines: list[str], wanted: str) -> list[Match]:
    """Where a text is. Capitals count as soon as there is one in what is wanted."""
    if not wanted:
        return []
    pattern = re.compile(re.escape(wanted), 0 if has_capitals(wanted) else re.IGNORECASE)
    found = []
    for row, line in enumerate(lines):
        found += [(row, match.start(), match.end()) for match in pattern.finditer(line)]
        if len(found) > MOST:
            break
    return found[:MOST]


def has_capitals(text: str) -> bool:
    """Whether capitals matter in a search for this."""
    return text != text.lower()


class FindBar(Horizontal):
    """Asks for a text and goes from match to match in an editor."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.FIND]

    def __init__(self, editor: CodeArea) -> None:
        super().__init__(id="find")
        self._editor = editor
        self._from = editor.selection.start
        self._found: list[Match] = []

    def compose(self) -> ComposeResult:
        """A word, a field, and what was found."""
        yield Static("Find", id="find-word")
        chosen = self._editor.selected_text
        yield Input("" if "\n" in chosen else chosen, id="find-text", compact=True)
        yield Static(id="find-count")

    def on_mount(self) -> None:
        """What was selected is looked for at once; typing replaces it."""
        field = self.query_one(Input)
        field.focus()
        field.action_select_all()
        self.look_again()

    def look_again(self) -> None:
        """The text of the editor has changed."""
        self._search(self.query_one(Input).value)

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        event.stop()
        self._search(event.value)
        self._go(self._first_from(self._from))

    @on(Input.Submitted)
    def _submitted(self, event: Input.Submitted) -> None:
        event.stop()
        self.action_step(1)

    def _search(self, wanted: str) -> None:
        lines = self._editor.document.lines
        self._found = matches(lines, wanted)
        spans: dict[int, list[tuple[int, int]]] = {}
        for row, start, end in self._found:
            spans.setdefault(row, []).append((start, end))
        self._editor.paint("found", spans)
        self._count()

    def _first_from(self, place: tuple[int, int]) -> int:
        """The first match from a place on; the very first one behind the last."""
        return next(
            (i for i, (row, start, _) in enumerate(self._found) if (row, start) >= place), 0
        )

    def _here(self) -> int | None:
        """Which match is selected."""
        start, end = sorted(self._editor.selection)
        here = (start[0], start[1], end[1])
        return self._found.index(here) if start[0] == end[0] and here in self._found else None

    def _go(self, number: int) -> None:
        if self._found:
            row, start, end = self._found[number % len(self._found)]
            self._editor.move_cursor((row, start))
            self._editor.move_cursor((row, end), select=True, center=True)
        self._count()

    def _count(self) -> None:
        wanted = self.query_one(Input).value
        rule = "exact case" if has_capitals(wanted) else "any case"
        here = self._here()
        place = "no match" if wanted else ""
        if self._found:
            more = "+" if len(self._found) == MOST else ""
            place = f"{'-' if here is None else here + 1} of {len(self._found)}{more}"
        style = "$text-error" if place == "no match" else "$foreground 66%"
        self.query_one("#find-count", Static).update(
            Content.styled(f"{place}  ", style) + Content.styled(rule, "$foreground 66%")
        )

    def action_step(self, steps: int) -> None:
        """The next match, or the one before; behind the last comes the first."""
        here = self._here()
        if here is not None:
            self._go(here + steps)
        else:
            number = self._first_from(sorted(self._editor.selection)[0])
            self._go(number if steps > 0 else number - 1)
        self._from = sorted(self._editor.selection)[0]

    def action_close(self) -> None:
        """Back to the editor; the match stays selected."""
        self.close()
        self._editor.focus()

    def close(self) -> None:
        """Go away."""
        self._editor.paint("found", {})
        self.remove()
