"""What the app offers to a learner who shares with a class: the palette's entries, one key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from textual.app import SystemCommand
from textual.screen import Screen

from tensortutor.learner.lesson_session import NO_CLASS

if TYPE_CHECKING:
    from tensortutor.ui.tutor import Tutor


def turn(app: Tutor) -> None:
    """Stop sharing with the class, or begin again. What that means is told by the sharing."""
    if app.sharing is None:
        app.tell(NO_CLASS)
        return
    if app.sharing.is_on:
        app.sharing.stop()
    else:
        app.sharing.start()
    show(app)


def show(app: Tutor) -> None:
    """Bring the first line of every screen up to date."""
    from tensortutor.ui.screens.home import HomeScreen
    from tensortutor.ui.widgets.header import TopLine

    for screen in app.screen_stack:
        if isinstance(screen, HomeScreen):
            screen.show_place()
        for line in screen.query(TopLine):
            line.refresh()


def commands(app: Tutor, screen: Screen[Any]) -> Iterator[SystemCommand]:
    """What the palette offers to who has a class."""
    from tensortutor.ui.screens.lesson import LessonScreen

    if app.sharing is None or app.teaching:
        return
    folder = str(app.sharing.folder)
    if not app.sharing.is_on:
        yield SystemCommand("Share with the class", folder, lambda: turn(app))
        return
    yield SystemCommand("Stop sharing with the class", folder, lambda: turn(app))
    if isinstance(screen, LessonScreen):
        yield SystemCommand("Hand in your code", "The code that is checked", screen.hand_in)
        yield SystemCommand("No more help needed", "Takes the call back", screen.withdraw_help)
