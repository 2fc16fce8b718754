"""The line at the top: where the learner is, how far, and where programs run."""

from textual import events
from textual.app import RenderResult
from textual.content import Content
from textual.message import Message
from textual.reactive import reactive
from textual.widget import Widget

from tensortutor.plaintext import one_line, visible
from tensortutor.ui.terminal import symbols


class TopLine(Widget):
    """Left: a place, inner parts last. Middle: the rail of steps. Right: device and sandbox.

    Before them all: teach mode while it is on, or that the learner shares with their class.
    A step on the rail can be clicked.
    """

    class Chosen(Message):
        """A step was clicked. index: from 0."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    ALLOW_SELECT = False
    _rail_at = 0
    place: reactive[tuple[str, ...]] = reactive(tuple)
    rail: reactive[tuple[str, ...]] = reactive(tuple)
    word = reactive("")

    def render(self) -> RenderResult:
        """All three if they fit; a long place is cut first, then the word at the right goes."""
        signs = symbols.current()
        marks = {"done": signs.done, "here": signs.here, "ahead": signs.ahead}
        looks = {"done": "$accent", "here": "bold $foreground", "ahead": "$foreground 66%"}
        rail = Content(" ").join([Content.styled(marks[s], looks[s]) for s in self.rail])
        word = Content.styled(self.word, "$foreground 66%")
        badge = Content.styled(f" {self._badge} ", "bold reverse") if self._badge else Content()
        room = self.size.width - 2 - badge.cell_length
        if rail.cell_length + word.cell_length + 24 > room:
            word = Content()
        gap = 3 if rail else 0
        place = self._place(room - rail.cell_length - word.cell_length - gap - 3)
        space = room - place.cell_length - gap - rail.cell_length - word.cell_length
        self._rail_at = badge.cell_length + 1 + place.cell_length + gap
        parts = [badge, Content(" "), place, Content(" " * gap), rail, Content(" " * space), word]
        return Content("").join(parts)

    def on_click(self, event: events.Click) -> None:
        """A mark of the rail, or the space behind it."""
        index = (event.x - self._rail_at) // 2
        if event.x >= self._rail_at and index < len(self.rail):
            self.post_message(self.Chosen(index))

    @property
    def _badge(self) -> str:
        sharing = getattr(self.app, "sharing", None)
        if getattr(self.app, "teaching", False):
            return "teach mode"
        return "class" if sharing is not None and sharing.is_on else ""

    def _place(self, room: int) -> Content:
        """The place in as many words as there is room for."""
        if not self.place:
            return Content()
        outer, inner = " ".join(self.place[:-1]), self.place[-1]
        # "3 Autograd: leaves, graphs, hooks", then "3 Autograd", then "3", then nothing.
        shorter = (outer, outer.partition(":")[0], outer.partition(" ")[0], "")
        for before in shorter:
            joint = f"{before} {symbols.current().pointer} " if before else ""
            place = Content.styled(visible(joint, tabs=1), "$foreground 66%") + Content.styled(
                one_line(inner), "bold $foreground"
            )
            if place.cell_length <= room:
                return place
        return place.truncate(max(0, room), ellipsis=True)
