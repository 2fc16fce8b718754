"""Where text, code and results stand, how much room they have, and which one has the keys.

Side by side on a wide terminal. On a narrow one they stand above each other, and the part that has
the keys gets most of the rows. Sizes on a wide terminal are kept as percentages, so that they suit
a window of any size, and remembered from one day to the next.
"""

from collections.abc import Callable
from math import ceil
from typing import Protocol

from textual.content import Content
from textual.widget import Widget

from tensortutor.ui.outside import subtitle
from tensortutor.ui.widgets.questions import Question
from tensortutor.ui.widgets.results import Results

PARTS = {"reader": "Text", "editor": "Code", "results": "Results"}
"""The parts by id, and what the footer calls them."""
WIDTH, HEIGHT = "lesson.text", "lesson.results"
"""What is remembered: the text's share of the width, the results' share of the height."""
USUAL = 40
STEP = 5
LEAST, MOST = 15, 85
CLOSED = 3
"""Rows of the results as long as there are none: their tabs, and how to get some."""
LOW = 26
"""Rows; with fewer, the text that is read has them all."""
LOWEST = 18
"""Rows; with fewer, code and results take the text's."""


class Sizes(Protocol):
    """Small numbers that outlive the app."""

    def get(self, name: str, usual: int) -> int:
        """A number, or the usual one."""

    def put(self, name: str, value: int) -> None:
        """Remember a number."""


class PaneLayout:
    """The three parts of a lesson's screen.

    front: the part with the keys. is_asking: whether a question of the text has them. is_wide:
    whether they stand side by side. rows: how many rows they share. tell: shows a sentence.
    has_code: whether there is more than text. has_questions: whether the text asks. count: which
    step of how many, for the frame of the text.
    """

    def __init__(
        self,
        reader: Widget,
        editor: Widget,
        results: Results,
        sizes: Sizes,
        is_wide: Callable[[], bool],
        rows: Callable[[], int],
        tell: Callable[[str], None],
    ) -> None:
        self._parts: dict[str, Widget] = {"reader": reader, "editor": editor, "results": results}
        self._results = results
        self._sizes = sizes
        self._is_wide = is_wide
        self._rows = rows
        self._tell = tell
        self._dragged = ""
        self._dragged_to: int | None = None
        self._focused: dict[str, Widget] = {}
        self._is_reading = True
        self.is_asking = False
        self._shows_text = False
        self._results_open = False
        self.front = "reader"
        self.has_code = True
        self.has_questions = False
        self.count = ""

    # Which part is in front

    def begin_step(self, *, has_code: bool, has_questions: bool, count: str) -> None:
        """Another step is shown: there are no results yet."""
        self.has_code, self.has_questions, self.count = has_code, has_questions, count
        self._focused.clear()
        self._results_open = self._shows_text = False
        subtitle(self._parts["reader"], Content(count))

    def turn_to(self, part: str) -> None:
        """Give a part the keys: the text as a whole, the code, the tab of the results in front."""
        self.front = part
        self._is_reading = part == "reader"
        self.is_asking = False
        self._results_open |= part == "results"
        self.apply_sizes()
        if part == "results":
            self._results.front.turn_to()
        else:
            self._parts[part].focus(scroll_visible=False)

    def ask(self, question: Question) -> None:
        """Give a question of the text the keys."""
        self.front, self._is_reading, self.is_asking = "reader", False, True
        self.apply_sizes()
        question.field.focus(scroll_visible=False)

    def turn(self) -> None:
        """From the code to the results, from anywhere else to the code."""
        if self.has_code:
            self.turn_to("results" if self.front == "editor" else "editor")
        else:
            self._tell("This step has text alone.")

    def leave(self) -> None:
        """From code or results to what had the keys in the text; from a question to the text."""
        last = self._focused.get("reader")
        questions = [n for n in last.ancestors if isinstance(n, Question)] if last else []
        if self.front != "reader" and questions and questions[0].is_attached:
            self.ask(questions[0])
        else:
            self.turn_to("reader")

    def focus_moved(self, widget: Widget) -> None:
        """The part with the focus is the one in front."""
        for node in widget.ancestors_with_self:
            if node.id in PARTS:
                self._focused[node.id] = widget
                self.front = node.id
        asking = any(isinstance(node, Question) for node in widget.ancestors)
        if self.front != "reader" or asking:
            self._is_reading = False
        self._results_open |= self.front == "results"
        self.is_asking = asking
        self.apply_sizes()

    def show_results(self) -> None:
        """Results come, or are asked for: they get their room. The focus stays where it is."""
        self._results_open, self._is_reading, self._shows_text = True, False, False
        self.apply_sizes()

    def show_code(self) -> None:
        """The code is to be seen below the text. The focus stays where it is."""
        self._is_reading = False
        self.apply_sizes()

    def show_text(self) -> None:
        """Something is new in the text: it gets room. The focus stays where it is."""
        self._shows_text = True
        self.apply_sizes()

    # Sizes

    def share(self, name: str) -> int:
        """The percentage of WIDTH or HEIGHT."""
        percent = self._sizes.get(name, USUAL)
        if name == self._dragged and self._dragged_to is not None:
            percent = self._dragged_to
        return min(max(percent, LEAST), MOST)

    def apply_sizes(self) -> None:
        """Give every part its room."""
        reader, editor = self._parts["reader"], self._parts["editor"]
        work = editor.parent
        if not isinstance(work, Widget):
            return
        results = self.share(HEIGHT)
        self._results.set_class(not self._results_open, "-closed")
        if self._is_wide():
            text = self.share(WIDTH)
            reader.display, work.display, editor.display = True, self.has_code, True
            reader.styles.width, work.styles.width = f"{text}fr", f"{100 - text}fr"
            reader.styles.height = work.styles.height = "1fr"
            editor.styles.height = f"{100 - results}fr"
            self._results.styles.height = f"{results}fr" if self._results_open else CLOSED
            return
        text, code, results = self._stacked()
        reader.styles.width = work.styles.width = "1fr"
        reader.display, work.display, editor.display = text > 0, code > 0, True
        reader.styles.height, work.styles.height = text or 1, "1fr"
        editor.styles.height, self._results.styles.height = "1fr", results

    def _stacked(self) -> tuple[int, int, int]:
        """Rows of text, code and results above each other; 0 for what does not show."""
        rows = max(self._rows(), 8)
        is_low = rows < LOW
        if not self.has_code or (self._is_reading and is_low):
            return rows, 0, 0
        if self._is_reading:
            text = rows * 11 // 20
        elif self.is_asking:
            text = rows * 9 // 20
        elif self._shows_text or self.has_questions:
            text = rows * 7 // 20
        elif self.front == "reader":
            text = rows * 5 // 20
        elif rows < LOWEST or (is_low and self._results_open):
            text = 0
        else:
            text = rows * 6 // 20
        rest = rows - text
        if self.front == "results" or (is_low and self.front == "reader" and self._results_open):
            results = rest * 13 // 20
        elif self._results_open:
            results = rest // 2
        else:
            results = CLOSED
        return text, rest - results, results

    def widen(self, steps: int) -> None:
        """More room for the text, or less."""
        if self._can_share():
            self._resize(WIDTH, self.share(WIDTH) + steps * STEP)

    def heighten(self, steps: int) -> None:
        """More room for the results, or less."""
        if self._can_share():
            self._results_open = True
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
            self._tell("In a window this narrow the parts share the room by themselves.")
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
        self._results_open |= self._dragged == HEIGHT
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
