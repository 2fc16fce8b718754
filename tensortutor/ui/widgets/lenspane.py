"""What the tabs of the lens have in common."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from textual.app import ComposeResult
from textual.containers import Vertical
from textual.widgets import Static

from tensortutor.ui.widgets.panes import Occasion, ResultPane

if TYPE_CHECKING:
    from tensortutor.protocol.events import Event


class LensPane(ResultPane):
    """A tab that shows the last event of its kinds; until then a word."""

    NOTHING = ""
    KINDS: tuple[type, ...] = ()

    _room: Vertical

    def compose(self) -> ComposeResult:
        """A word as long as there is nothing, and room below it."""
        yield Static(self.nothing, classes="lens-word", markup=False)
        self._room = Vertical(classes="lens-room")
        yield self._room

    @property
    def nothing(self) -> str:
        """The word as long as there is nothing."""
        return self.NOTHING

    @property
    def room(self) -> Vertical:
        """Where the pane shows what it has."""
        return self._room

    def empty(self) -> None:
        """Let go of all that stands in the room.

        The room itself is exchanged: its widgets take a while to go, and a short run may come to
        its end before they have gone; two of one id in one place end the app.
        """
        old, self._room = self._room, Vertical(classes="lens-room")
        self.mount(self._room, after=old)
        old.remove()

    def begin(self, occasion: Occasion) -> None:
        """What the last run showed goes."""
        del occasion
        self.forget()

    def forget(self) -> None:
        """Show the word alone."""
        self.empty()
        self.query_one(".lens-word", Static).update(self.nothing)
        self.query_one(".lens-word").display = True

    def concerns(self, event: Event) -> bool:
        """Its kinds, when there is something in them."""
        return isinstance(event, self.KINDS) and has_content(event)

    def relevant(self, events: Sequence[Event]) -> list[Event]:
        """Those of the events that concern this pane; if there are any, the word goes."""
        mine = [event for event in events if self.concerns(event)]
        if mine:
            self.query_one(".lens-word").display = False
        return mine


def has_content(event: Event) -> bool:
    """Whether an event of the lens has anything to be shown."""
    return any(
        getattr(event, name, ())
        for name in ("tensors", "modules", "optimizers", "roots", "rows", "note")
    )
