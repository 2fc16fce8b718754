"""The small screens that lie over another one: a question, and a page to read."""

from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Static

from tensortutor.ui import keys


class Confirm(ModalScreen[bool]):
    """Asks one question. Escape and the first button mean no."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.DIALOG]
    CSS_PATH = "../styles/dialogs.tcss"
    AUTO_FOCUS = "#yes"

    def __init__(self, title: str, text: str, yes: str, no: str = "Back") -> None:
        super().__init__()
        self._title = title
        self._text = text
        self._yes = yes
        self._no = no

    def compose(self) -> ComposeResult:
        """A sentence and two buttons."""
        with Vertical(classes="dialog") as dialog:
            dialog.border_title = self._title
            yield Static(self._text, markup=False)
            with Horizontal(classes="buttons"):
                yield Button(f"{self._no}  Esc", id="no", compact=True)
                yield Button(f"{self._yes}  y", id="yes", compact=True)

    def action_answer(self, yes: bool) -> None:
        """A key was pressed."""
        self.dismiss(yes)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


class Page(ModalScreen[None]):
    """Something to read, closed with Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [*keys.PAGE]
    CSS_PATH = "../styles/dialogs.tcss"
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, title: str, *content: Widget) -> None:
        super().__init__()
        self._title = title
        self._content = content

    def compose(self) -> ComposeResult:
        """A frame that scrolls."""
        with VerticalScroll(classes="dialog page") as page:
            page.border_title = self._title
            page.border_subtitle = "Esc closes"
            yield from self._content

    def action_close(self) -> None:
        """Done reading."""
        self.dismiss(None)
