"""Text, code and results: all at once on a wide terminal, one in front on a narrow one."""

from textual import events, on
from textual.content import Content

from tensortutor.ui import glyphs
from tensortutor.ui.outside import subtitle
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.reader import Reader
from tensortutor.ui.widgets.results import Results

PLACES = {"reader": "Text", "editor": "Code", "results": "Results"}
"""The parts by id, and what the frames call them. `-reader` is the class when it is in front."""


class PlacesScreen(TutorScreen):
    """Knows which part is in front and has the keys."""

    has_code = True
    """Whether there is more than text."""
    count = ""
    """Which step of how many, for the frame of the text."""

    @property
    def reader(self) -> Reader:
        """The text."""
        return self.query_one(Reader)

    @property
    def editor(self) -> Editor:
        """The code."""
        return self.query_one(Editor)

    @property
    def results(self) -> Results:
        """The output and the checks."""
        return self.query_one(Results)

    @property
    def place(self) -> str:
        """The part in front, one of PLACES."""
        return next((name for name in PLACES if self.has_class(f"-{name}")), "reader")

    def turn_to(self, place: str) -> None:
        """Bring a part to the front (on a narrow terminal) and give it the keys."""
        self._to_front(place)
        self.name_places()
        if place == "results":
            self.results.front.turn_to()
        else:
            self.query_one(f"#{place}").focus(scroll_visible=False)

    def _to_front(self, place: str) -> None:
        for name in PLACES:
            self.set_class(name == place, f"-{name}")

    def action_turn(self) -> None:
        """The next of text, code and results."""
        places = list(PLACES) if self.has_code else ["reader"]
        here = places.index(self.place) if self.place in places else 0
        self.turn_to(places[(here + 1) % len(places)])

    def action_leave(self) -> None:
        """Out of a field, to the text."""
        self.turn_to("reader")

    @on(Editor.Left)
    def _editor_left(self) -> None:
        self.action_leave()

    @on(events.DescendantFocus)
    def _focus_moved(self, event: events.DescendantFocus) -> None:
        for node in event.widget.ancestors_with_self:
            if node.id in PLACES:
                self._to_front(node.id)

    def name_places(self) -> None:
        """On a narrow terminal the frames say what there is to turn to."""
        for name in PLACES:
            subtitle(self.query_one(f"#{name}"), self._frame_words(name))

    def _frame_words(self, here: str) -> Content:
        if self.is_wide or not self.has_code:
            return Content(self.count if here == "reader" else "")
        words = [
            Content.styled(word, "bold $accent" if name == here else "$foreground 60%")
            for name, word in PLACES.items()
        ]
        return Content(f" {glyphs.current().dot} ").join(words)

    @on(events.Resize)
    def _resized(self) -> None:
        if self.query("#results"):
            self.name_places()
