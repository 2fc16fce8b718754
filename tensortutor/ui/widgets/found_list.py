"""A field, and the list of what fits what is typed into it."""

from __future__ import annotations

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Input, OptionList

from tensortutor.ui.outside import OutsideText, entitle, subtitle
from tensortutor.ui.widgets.pointed import PointedList


class FoundList(Vertical):
    """The left part of the search and of the reference.

    title: of the list. list_id: its id. prompt: what can be typed. words: what stands in the field
    at first.
    """

    def __init__(self, title: str, *, list_id: str, prompt: str, words: str = "") -> None:
        super().__init__(id="found")
        self.field = Input(words, placeholder=prompt, compact=True)
        self.field.cursor_blink = False
        self.options: OptionList = PointedList(id=list_id, markup=False)
        entitle(self, OutsideText(title))

    def compose(self) -> ComposeResult:
        """The field above the list."""
        yield self.field
        yield self.options

    def count(self, words: str) -> None:
        """Say below the list how much is found."""
        subtitle(self, OutsideText(words))

    def begin_typing(self) -> None:
        """To the field, with what is in it selected."""
        self.field.focus()
        self.field.select_all()
