"""What the two large screens share: sizes, the line at the top, the keys at the bottom."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.events import Key
from textual.screen import Screen
from textual.widgets import Static

from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.window_size import SMALLEST, WIDE

if TYPE_CHECKING:
    from tensortutor.ui.tutor import Tutor

TOO_SMALL = (
    f"This window is too small for tensortutor: it needs {SMALLEST[0]} columns and "
    f"{SMALLEST[1]} rows. Make it larger; nothing is lost."
)


class TutorScreen(Screen[None]):
    """A screen of the app. Its style classes say how much room there is."""

    HORIZONTAL_BREAKPOINTS = [  # noqa: RUF012
        (0, "-cramped"),
        (SMALLEST[0], "-narrow"),
        (WIDE, "-wide"),
    ]
    VERTICAL_BREAKPOINTS = [(0, "-flat"), (SMALLEST[1], "-high")]  # noqa: RUF012
    AUTO_FOCUS = ""
    ABOUT = ""
    """What the screen is for, in the words of its help page."""
    is_passing = False
    """Whether the screen goes away when a lesson opens from it."""

    def __init__(self) -> None:
        # Textual looks at the size after the first paint only, and would paint twice.
        size = self.app.size
        super().__init__(
            classes=f"{_fitting(size.width, self.HORIZONTAL_BREAKPOINTS)} "
            f"{_fitting(size.height, self.VERTICAL_BREAKPOINTS)}"
        )

    @property
    def tutor(self) -> Tutor:
        """The app, as its parts see it."""
        return cast("Tutor", self.app)

    @property
    def is_wide(self) -> bool:
        """Whether everything can be seen at once."""
        return self.app.size.width >= WIDE

    @property
    def top(self) -> TopLine:
        """The line at the top."""
        return self.query_one(TopLine)

    @property
    def keys(self) -> KeyBar:
        """The line at the bottom."""
        return self.query_one(KeyBar)

    @property
    def is_for_programs(self) -> bool:
        """Whether the learner may be about to run what they see."""
        return False

    def take_stray(self, key: Key) -> bool:
        """A key that no widget has taken, or another screen's. Returns whether it is taken."""
        del key
        return False

    @property
    def at_stake(self) -> str:
        """What ends or is lost when the app is left now, as a sentence; "" if nothing is."""
        return ""

    def offer_stop(self) -> bool:
        """Ask whether what runs is to be stopped. Returns whether anything runs."""
        return False

    def leave(self) -> bool:
        """Keep what the learner did here. Returns whether that worked."""
        return True

    def share(self) -> None:
        """Tell the learner's class where they are, if this screen knows."""

    def too_small(self) -> Static:
        """What shows instead of everything when the window is too small."""
        return Static(TOO_SMALL, id="too-small", markup=False)

    def key_for(self, name: str) -> str:
        """The key that a binding has now, for a sentence."""
        return self.tutor.key_name(name)


def _fitting(length: int, breakpoints: list[tuple[int, str]]) -> str:
    return [name for least, name in breakpoints if length >= least][-1]
