"""How much room text, code and results have on a wide terminal, as the learner wants it.

By keys, or by dragging the frame between two parts. Kept as percentages, so that they suit a window
of any size, and remembered from one day to the next.
"""

from math import ceil

from textual import events, on

from tensortutor.ui.screens.places import PlacesScreen

WIDTH, HEIGHT = "lesson.text", "lesson.results"
"""What is remembered: the text's share of the width, the results' share of the height."""
USUAL = 40
STEP = 5
LEAST, MOST = 15, 85


class SizedScreen(PlacesScreen):
    """A lesson's screen whose parts can be made larger and smaller."""

    _dragged = ""
    _dragged_to: int | None = None

    def share(self, name: str) -> int:
        """The percentage of WIDTH or HEIGHT."""
        percent = self.tutor.remembered.get(name, USUAL)
        if name == self._dragged and self._dragged_to is not None:
            percent = self._dragged_to
        return min(max(percent, LEAST), MOST)

    def apply_sizes(self) -> None:
        """Give every part its room. Fractions: a part that shows alone takes everything."""
        text, results = self.share(WIDTH), self.share(HEIGHT)
        self.reader.styles.width = f"{text}fr"
        self.query_one("#work").styles.width = f"{100 - text}fr"
        self.editor.styles.height = f"{100 - results}fr"
        self.results.styles.height = f"{results}fr"

    def _resize(self, name: str, percent: int) -> None:
        self.tutor.remembered.put(name, min(max(percent, LEAST), MOST))
        self.apply_sizes()

    def _can_share(self) -> bool:
        if not self.is_wide:
            self.tutor.tell("In a window this narrow each part has all the room there is.")
        elif not self.has_code:
            self.tutor.tell("This step has text alone.")
        return self.is_wide and self.has_code

    def action_widen(self, steps: int) -> None:
        """More room for the text, or less."""
        if self._can_share():
            self._resize(WIDTH, self.share(WIDTH) + steps * STEP)

    def action_heighten(self, steps: int) -> None:
        """More room for the results, or less."""
        if self._can_share():
            self._resize(HEIGHT, self.share(HEIGHT) + steps * STEP)

    def action_usual_sizes(self) -> None:
        """As at first."""
        if self._can_share():
            self._resize(WIDTH, USUAL)
            self._resize(HEIGHT, USUAL)

    # The mouse

    def edge_at(self, x: int, y: int) -> str:
        """Which share the frame at a place of the screen decides on: WIDTH, HEIGHT or ""."""
        if not self.is_wide or not self.has_code or not self.query("#results"):
            return ""
        text, code, results = self.reader.region, self.editor.region, self.results.region
        if x in (text.right - 1, code.x) and text.y <= y < text.bottom:
            return WIDTH
        if y in (code.bottom - 1, results.y) and code.x < x < code.right:
            return HEIGHT
        return ""

    @on(events.MouseDown)
    def _take_edge(self, event: events.MouseDown) -> None:
        on_tab = "@click" in event.style.meta  # the tabs of the results stand in their frame
        self._dragged = "" if on_tab else self.edge_at(event.screen_x, event.screen_y)
        if self._dragged:
            self.clear_selection()
            self.capture_mouse()

    @on(events.MouseMove)
    def _drag_edge(self, event: events.MouseMove) -> None:
        if not self._dragged:
            return
        body = self.query_one("#body").region
        # The first of two parts is rounded down, so its share is rounded up: the frame stays
        # under the pointer.
        if self._dragged == WIDTH:
            percent = ceil(100 * (event.screen_x + 1 - body.x) / max(body.width, 1))
        else:
            percent = 100 - ceil(100 * (event.screen_y - body.y) / max(body.height, 1))
        self._dragged_to = percent
        self.apply_sizes()

    @on(events.MouseUp)
    def _let_edge_go(self) -> None:
        if not self._dragged:
            return
        name, percent = self._dragged, self.share(self._dragged)
        self._dragged, self._dragged_to = "", None
        self.release_mouse()
        self._resize(name, percent)
