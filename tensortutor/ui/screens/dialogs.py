"""The small screens that lie over another one: a question, and a page to read."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, TypeVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Button, Static

from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText, entitle, subtitle

if TYPE_CHECKING:
    from tensortutor.ui.terminal.terminal_app import TerminalApp

T = TypeVar("T")


class Dialog(ModalScreen[T]):
    """What lies over a screen and knows how its own keys are written."""

    CSS_PATH = "../styles/dialogs.tcss"

    def key_for(self, name: str) -> str:
        """The key that a binding has now."""
        return cast("TerminalApp", self.app).key_name(name)


class Confirm(Dialog[bool]):
    """Asks one question. Escape and the first button mean no."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.DIALOG]
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
            entitle(dialog, OutsideText(self._title))
            yield Static(OutsideText(self._text).content)
            with Horizontal(classes="buttons"):
                yield Button(
                    self._label(self._no, "dialog.no"),
                    id="no",
                    compact=True,
                )
                yield Button(
                    self._label(self._yes, "dialog.yes"),
                    id="yes",
                    compact=True,
                )

    def _label(self, words: str, key: str) -> Content:
        return OutsideText(f"{words}  {self.key_for(key)}").title

    def action_answer(self, yes: bool) -> None:
        """A key was pressed."""
        self.dismiss(yes)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss(event.button.id == "yes")


class Locked(Dialog[str]):
    """What to do with a locked lesson: gives "read", "skip" or "", which leads back."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.LOCKED]
    AUTO_FOCUS = "#read"

    def __init__(self, title: str, text: str, skip: str) -> None:
        """skip: what skipping ahead is called here, "" where there is nothing to be asked."""
        super().__init__()
        self._title = title
        self._text = text
        words = {"back": "Back", "skip": skip, "read": "Read it"}
        self._words = {choice: label for choice, label in words.items() if label}

    def compose(self) -> ComposeResult:
        """Sentences and three buttons."""
        with Vertical(classes="dialog") as dialog:
            entitle(dialog, OutsideText(self._title))
            yield Static(OutsideText(self._text).content)
            with Horizontal(classes="buttons"):
                for name, words in self._words.items():
                    label = OutsideText(f"{words}  {self.key_for(f'locked.{name}')}").title
                    yield Button(label, id=name, compact=True)

    def action_answer(self, choice: str) -> None:
        """A key was pressed."""
        if not choice or choice in self._words:
            self.dismiss(choice)

    @on(Button.Pressed)
    def _pressed(self, event: Button.Pressed) -> None:
        self.dismiss("" if event.button.id == "back" else str(event.button.id))


class Page(Dialog[None]):
    """Something to read, closed with Escape."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.PAGE]
    ABOUT = ""
    """What the page is for, if it has keys of its own to be told by the help."""
    AUTO_FOCUS = "VerticalScroll"

    def __init__(self, title: str, *content: Widget) -> None:
        super().__init__()
        self._title = title
        self._content = content

    def compose(self) -> ComposeResult:
        """A frame that scrolls."""
        with VerticalScroll(classes="dialog page") as page:
            entitle(page, OutsideText(self._title))
            subtitle(page, OutsideText(f"{self.key_for('page.close')} closes"))
            yield from self._content

    def action_close(self) -> None:
        """Done reading."""
        self.dismiss(None)
