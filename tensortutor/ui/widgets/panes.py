"""What the tabs of the results have in common. A tab is a pane in `results.PANES`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from textual.containers import Vertical
from textual.message import Message

from tensortutor.course.model import Lesson
from tensortutor.protocol.events import Event


@dataclass(frozen=True)
class Occasion:
    """What a run is for. checked: the lesson whose checks are put to the program; None for none.

    about: what to say of a lesson that explains an error, by its id.
    """

    checked: Lesson | None = None
    about: Callable[[str], str] = str


class ResultPane(Vertical):
    """One tab of the results. It is told of every run and every event, and shows its part."""

    TITLE = ""

    class Relabelled(Message):
        """The pane's label has changed."""

    @property
    def label(self) -> str:
        """What stands on the tab."""
        return self.TITLE

    def begin(self, occasion: Occasion) -> None:
        """A run begins: what the last one showed goes."""

    def take(self, events: Sequence[Event]) -> None:
        """Events of the run, in order, at most one call per frame."""

    def concerns(self, event: Event) -> bool:
        """Whether this event adds something here; behind another pane, the tab is then marked."""
        del event
        return False

    def asks(self, events: Sequence[Event]) -> bool:
        """Whether to come to the front after these events, if the learner has not turned the tabs.

        The focus stays where it is. Of several panes that ask, the first has its way.
        """
        del events
        return False

    def forget(self) -> None:
        """Another step is shown: what belongs to the last one's run goes."""

    def turn_to(self) -> None:
        """The pane has come to the front and is to get the focus."""
        parts = (widget for widget in self.query("*") if widget.can_focus)
        next(parts, self).focus(scroll_visible=False)
