"""What the search and the reference share: a field, a list of what fits, and its page beside it."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.containers import Horizontal, Vertical
from textual.widgets import Input, OptionList

from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.pointed import PointedList


class SearchBase(TutorScreen):
    """A screen that shows what fits as one types.

    NAME: in the first line; it is the id of the body, too, in small letters. TITLE: of the list.
    LIST: the list's id. PROMPT: what can be typed.
    """

    CSS_PATH = "../styles/reference.tcss"
    NAME: ClassVar[str]
    TITLE: ClassVar[str]
    LIST: ClassVar[str]
    PROMPT: ClassVar[str]
    is_passing = True

    def compose(self) -> ComposeResult:
        """The list on the left, or above on a narrow terminal; the page beside it."""
        yield TopLine()
        with Horizontal(id=self.NAME.lower()):
            with Vertical(id="found"):
                yield Input(self.first_words(), placeholder=self.PROMPT, compact=True)
                yield PointedList(id=self.LIST, markup=False)
            yield from self.page()
        yield KeyBar()
        yield self.too_small()

    def first_words(self) -> str:
        """What stands in the field at first."""
        return ""

    def page(self) -> ComposeResult:
        """What stands beside the list."""
        raise NotImplementedError

    @property
    def field(self) -> Input:
        """Where one types."""
        return self.query_one(Input)

    @property
    def listed(self) -> OptionList:
        """What fits."""
        return self.query_one(f"#{self.LIST}", OptionList)

    def prepare(self) -> None:
        """Say where one is, and let one type."""
        self.top.place = (self.NAME,)
        self.field.cursor_blink = False
        entitle(self.query_one("#found"), OutsideText(self.TITLE))
        self.set_focus(self.field)

    def action_search(self) -> None:
        """To the field, with what is in it selected."""
        self.field.focus()
        self.field.select_all()
