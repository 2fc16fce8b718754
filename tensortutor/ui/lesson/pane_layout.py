"""Where text, code and results stand, how much room they have, and which one has the keys.

All at once on a wide terminal, one in front on a narrow one. Sizes are kept as percentages, so that
they suit a window of any size, and remembered from one day to the next.
"""

from collections.abc import Callable
from math import ceil
from typing import Protocol

from textual.content import Content
from textual.widget import Widget

from tensortutor.ui.outside import subtitle
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.results import Results

PARTS = {"reader": "Text", "editor": "Code", "results": "Results"}
"""The parts by id, and what the frames call them. `-reader` is the class when it is in front."""
WIDTH, HEIGHT = "lesson.text", "lesson.results"
"""What is remembered: the text's share of the width, the results' share of the height."""
USUAL = 40
STEP = 5
LEAST, MOST = 15, 85


class Sizes(Protocol):
    """Small numbers that outlive the app."""

    def get(self, name: str, usual: int) -> int:
        """A number, or the usual one."""

    def put(self, name: str, value: int) -> None:
        """Remember a number."""


class PaneLayout:
    """The three parts of a lesson's screen.

    set_front: marks the part in front for the style sheet. is_wide: whether everything can be seen
    at once. tell: shows a sentence. has_code: whether there is more than text. count: which step of
    how many, for the frame of the text.
    """

    def __init__(
        self,
        reader: Widget,
        editor: Widget,
        results: Results,
        sizes: Sizes,
        set_front: Callable[[str], None],
        is_wide: Callable[[], bool],
        tell: Callable[[str], None],
    ) -> None:
        self._parts: dict[str, Widget] = {"reader": reader, "editor": editor, "results": results}
        self._results = results
        self._sizes = sizes
        self._set_front = set_front
        self._is_wide = is_wide
        self._tell = tell
        self._dragged = ""
        self._dragged_to: int | None = None
        self.front = "reader"
        self.has_code = True
        self.count = ""

    # Which part is in front

    def bring_forward(self, part: str) -> None:
        """Bring a part to the front; the focus stays where it is."""
        self.front = part
        self._set_front(part)

    def turn_to(self, part: str) -> None:
        """Bring a part to the front (on a narrow terminal) and give it the keys."""
        self.bring_forward(part)
        self.name_parts()
        if part == "results":
            self._results.front.turn_to()
        else:
            self._parts[part].focus(scroll_visible=False)

    def turn(self) -> None:
        """The next of text, code and results."""
        parts = list(PARTS) if self.has_code else ["reader"]
        here = parts.index(self.front) if self.front in parts else 0
        self.turn_to(parts[(here + 1) % len(parts)])

    def focus_moved(self, widget: Widget) -> None:
        """The part with the focus is the one in front."""
        for node in widget.ancestors_with_self:
            if node.id in PARTS:
                self.bring_forward(node.id)

    def name_parts(self) -> None:
        """On a narrow terminal the frames say what there is to turn to."""
        for name, part in self._parts.items():
            subtitle(part, self._frame_words(name))

    def _frame_words(self, here: str) -> Content:
        if self._is_wide() or not self.has_code:
            return Content(self.count if here == "reader" else "")
        words = [
            Content.styled(word, "bold $accent" if name == here else "$foreground 60%")
            for name, word in PARTS.items()
        ]
        return Content(f" {symbols.current().dot} ").join(words)

    # Sizes

    def share(self, name: str) -> int:
        """The percentage of WIDTH or HEIGHT."""
        percent = self._sizes.get(name, USUAL)
        if name == self._dragged and self._dragged_to is not None:
            percent = self._dragged_to
        return min(max(percent, LEAST), MOST)

    def apply_sizes(self) -> None:
        """Give every part its room. Fractions: a part that shows alone takes everything."""
        text, results = self.share(WIDTH), self.share(HEIGHT)
        editor = self._parts["editor"]
        self._parts["reader"].styles.width = f"{text}fr"
        if isinstance(editor.parent, Widget):
            editor.parent.styles.width = f"{100 - text}fr"
        editor.styles.height = f"{100 - results}fr"
        self._results.styles.height = f"{results}fr"

    def widen(self, steps: int) -> None:
        """More room for the text, or less."""
        if self._can_share():
            self._resize(WIDTH, self.share(WIDTH) + steps * STEP)

    def heighten(self, steps: int) -> None:
        """More room for the results, or less."""
        if self._can_share():
            self._resize(HEIGHT, self.share(HEIGHT) + steps * STEP)

    def reset_sizes(self) -> None:
        """As at first."""
        if self._can_share():
            self._resize(WIDTH, USUAL)
            self._resize(HEIGHT, USUAL)

    def _resize(self, name: str, percent: int) -> None:
        self._sizes.put(name, min(max(percent, LEAST), MOST))
        self.apply_sizes()

    def _can_share(self) -> bool:
        if not self._is_wide():
            self._tell("In a window this narrow each part has all the room there is.")
        elif not self.has_code:
            self._tell("This step has text alone.")
        return self._is_wide() and self.has_code

    # The mouse

    @property
    def is_dragging(self) -> bool:
        """Whether the pointer holds the frame between two parts."""
        return bool(self._dragged)

    def edge_at(self, x: int, y: int) -> str:
        """Which share the frame at a place of the screen decides on: WIDTH, HEIGHT or ""."""
        if not self._is_wide() or not self.has_code or not self._results.is_mounted:
            return ""
        text, code, results = (part.region for part in self._parts.values())
        if x in (text.right - 1, code.x) and text.y <= y < text.bottom:
            return WIDTH
        if y in (code.bottom - 1, results.y) and code.x < x < code.right:
            return HEIGHT
        return ""

    def grab(self, x: int, y: int) -> bool:
        """Take hold of the frame at a place. Returns whether there is one."""
        self._dragged = self.edge_at(x, y)
        return self.is_dragging

    def drag(self, x: int, y: int) -> None:
        """Move the frame that is held under the pointer."""
        body = self._parts["reader"].parent
        if not self._dragged or not isinstance(body, Widget):
            return
        # The first of two parts is rounded down, so its share is rounded up: the frame stays
        # under the pointer.
        if self._dragged == WIDTH:
            percent = ceil(100 * (x + 1 - body.region.x) / max(body.region.width, 1))
        else:
            percent = 100 - ceil(100 * (y - body.region.y) / max(body.region.height, 1))
        self._dragged_to = percent
        self.apply_sizes()

    def let_go(self) -> None:
        """The frame stays where it is, and is remembered."""
        if self._dragged:
            name, percent = self._dragged, self.share(self._dragged)
            self._dragged, self._dragged_to = "", None
            self._resize(name, percent)
