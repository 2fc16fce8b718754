"""The names that the editor offers, in a small frame at the cursor."""

from textual import events
from textual.content import Content
from textual.geometry import Offset, Size
from textual.message import Message
from textual.widgets import Static

from tensortutor.ui.outside import OutsideText, subtitle
from tensortutor.ui.terminal import symbols

ROWS = 6
"""Names that show at a time."""
WORDS = 3
"""Lines below them about the chosen one."""
FRAME = 2
INSET = 4
"""Cells left of a name: it stands below the word that it completes."""
WIDEST = 58
HEIGHT = ROWS + WORDS + FRAME


class Popup(Static):
    """A list of names, one of them chosen, and a few words about that one."""

    ALLOW_SELECT = False

    class Clicked(Message):
        """A name was chosen with the mouse."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self) -> None:
        super().__init__(id="popup", markup=False)
        self._top = 0

    def place(self, at: Offset, screen: Size) -> None:
        """Stand below the line of a place on the screen, or above it where there is more room."""
        width = min(WIDEST, screen.width)
        below = screen.height - 1 - (at.y + 1)  # the keys stay in view
        y = at.y + 1 if below >= HEIGHT or below >= at.y else max(0, at.y - HEIGHT)
        self.styles.width = width
        self.styles.height = min(HEIGHT, max(below, at.y))
        self.absolute_offset = Offset(max(0, min(at.x - INSET, screen.width - width)), y)

    def offer(self, names: list[str], chosen: int, call: str, words: str) -> None:
        """Show these names."""
        self._top = min(max(self._top, chosen - ROWS + 1), chosen, max(0, len(names) - ROWS))
        pointer = symbols.current().pointer
        rows = []
        for number, name in enumerate(names[self._top : self._top + ROWS], self._top):
            here = number == chosen
            text = f"{pointer if here else ' '} {OutsideText(name).line}"
            rows.append(Content.styled(text, "bold $accent" if here else "$foreground"))
        rows += [Content("")] * (ROWS - len(rows))
        rows.append(Content.styled(self._fit(call, 1), "$text-primary"))
        rows.append(Content.styled(self._fit(words, WORDS - 1), "$foreground 70%"))
        subtitle(self, OutsideText(f"{chosen + 1} of {len(names)}, Tab takes it"))
        self.update(Content("\n").join(rows))

    def _fit(self, text: str, lines: int) -> str:
        room = (int(self.styles.width.value if self.styles.width else WIDEST) - 4) * lines
        return text if len(text) <= room else text[: room - 1] + symbols.current().cut

    def on_click(self, event: events.Click) -> None:
        """A row was clicked."""
        row = event.y - 1
        if 0 <= row < ROWS:
            self.post_message(self.Clicked(self._top + row))
