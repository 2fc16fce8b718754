"""When the collector of garbage may look through the whole app.

A full collection takes 60 ms or more, in which no key is seen, and by itself it comes at any time:
in the middle of a program's output above all. So it comes after a screen has been closed, which is
what leaves something to collect; what is short-lived is collected all along. While the app starts
nothing is: it makes many objects and no garbage.
"""

import gc
from typing import Any

from textual.app import App

NEVER = 1_000_000
PAUSE_S = 1.0
"""After a screen has closed: what shows instead has been drawn."""


def only_when_told() -> None:
    """From now on, for this process, full collections come from `collect_soon` alone."""
    young, middle, _ = gc.get_threshold()
    gc.set_threshold(young, middle, NEVER)


def from_now_on() -> None:
    """The app stands: what there is stays, so that nobody looks through it again."""
    if not gc.isenabled():  # an app in somebody else's process leaves the collector alone
        gc.freeze()
        gc.enable()


def collect_soon(app: App[Any]) -> None:
    """A screen has closed: collect what it was, once the next one stands."""
    if gc.get_threshold()[2] == NEVER:
        app.set_timer(PAUSE_S, gc.collect)
