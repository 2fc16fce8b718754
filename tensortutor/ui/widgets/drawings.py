"""The tab that shows what the program draws, while it runs: plots and pictures by title."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tensortutor.drawing.picture import BROKEN
from tensortutor.drawing.spans import Look, Row, Span, clean
from tensortutor.drawing.text import drawing_rows
from tensortutor.protocol.drawings import DRAWINGS, MOST_SERIES, Drawing, Picture
from tensortutor.protocol.events import Event, Raised
from tensortutor.ui import glyphs, graphics
from tensortutor.ui.widgets.panes import Occasion, ResultPane

LEAST_HEIGHT = 10
"""Rows of a drawing among others; if they do not fit, the pane scrolls."""
SIDE_BY_SIDE = 88
"""From so many columns on, two drawings stand beside each other."""
NOTHING = (
    "Nothing is drawn yet. After `from tensortutor.lab import plot, image, show`, plot(losses) "
    "draws here while the program runs; image(tensor) and show(tensor) draw a tensor."
)


class Sheet(Widget):
    """One drawing, as large as there is room."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "sheet--dim", *(f"sheet--{number}" for number in range(MOST_SERIES))
    }  # fmt: skip

    def __init__(self, drawing: Drawing) -> None:
        super().__init__(classes="sheet")
        self._drawing = drawing
        self._drawn: tuple[object, list[Row]] = (None, [])

    @property
    def drawing(self) -> Drawing:
        """What it shows."""
        return self._drawing

    def show(self, drawing: Drawing) -> None:
        """Show the drawing's newer state."""
        self._drawing = drawing
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """One row; the rows are made anew for another state or another size."""
        rows = self._rows(self.size)
        ground = self.rich_style
        segments = (
            [Segment(span.text, self._style(span)) for span in rows[y]] if y < len(rows) else []
        )
        return Strip(segments).adjust_cell_length(self.size.width, ground)

    def _rows(self, size: Size) -> list[Row]:
        known = (self._drawing, size)
        if self._drawn[0] != known:
            look = Look(not glyphs.current().ascii, not self.app.no_color)
            self._drawn = known, drawing_rows(self._drawing, size.width, size.height, look)
        return self._drawn[1]

    def _style(self, span: Span) -> Style:
        style = self.rich_style
        if span.series >= 0:
            style += self.get_component_rich_style(f"sheet--{span.series % MOST_SERIES}")
        elif span.dim:
            style += self.get_component_rich_style("sheet--dim")
        if span.fore is not None:
            style += Style(color=f"rgb{span.fore}".replace(" ", ""))
        if span.back is not None:
            style += Style(bgcolor=f"rgb{span.back}".replace(" ", ""))
        return style


class Pixels(Vertical):
    """A picture in a terminal that has pixels: its title, the picture, what is said below it."""

    def __init__(self, drawing: Picture, image: type[Widget]) -> None:
        super().__init__(classes="pixels")
        self.drawing: Drawing = drawing
        self._image = image

    def compose(self) -> ComposeResult:
        """Words above and below."""
        yield Static(classes="pixels-title", markup=False)
        yield self._image(classes="pixels-image")
        yield Static(classes="pixels-words", markup=False)

    def on_mount(self) -> None:
        """Show the first state."""
        self._draw()

    def show(self, drawing: Drawing) -> None:
        """Show the picture's newer state."""
        self.drawing = drawing
        if self.is_mounted:
            self._draw()

    def _draw(self) -> None:
        if not isinstance(self.drawing, Picture):
            return
        look = Look(not glyphs.current().ascii)
        try:
            bitmap, words = graphics.bitmap(self.drawing), clean(self.drawing.caption, look)
        except ValueError as error:
            bitmap, words = None, f"{BROKEN}: {error}."
        self.query_one(".pixels-title", Static).update(clean(self.drawing.title, look))
        self.query_one(".pixels-words", Static).update(words)
        image: Any = self.query_one(".pixels-image")
        image.image = bitmap


def sheet_for(drawing: Drawing) -> "Sheet | Pixels":
    """The widget for a drawing in this terminal."""
    image = graphics.widget()
    if image is not None and isinstance(drawing, Picture) and drawing.png:
        return Pixels(drawing, image)
    return Sheet(drawing)


class Sheets(VerticalScroll):
    """Drawings below each other, or two beside each other where there is room."""

    def on_resize(self) -> None:
        """The room is another."""
        self.share_out()

    def share_out(self) -> None:
        """Share the room among the drawings."""
        sheets = self.query(".sheet, .pixels")
        size = self.scrollable_content_region.size
        across = 2 if size.width >= SIDE_BY_SIDE and len(sheets) > 1 else 1
        down = -(-len(sheets) // across)
        height = max(size.height // max(down, 1), min(LEAST_HEIGHT, size.height), 1)
        self.styles.grid_size_columns = across
        self.styles.grid_rows = str(height)


class DrawingsPane(ResultPane):
    """Plots and pictures, the newest state of each."""

    TITLE = "Plot"

    def __init__(self) -> None:
        super().__init__(id="pane-drawings")
        self._sheets: dict[str, Sheet | Pixels] = {}
        self._may_ask = False

    def compose(self) -> ComposeResult:
        """A word as long as there is nothing, and room for the drawings."""
        with Sheets(id="sheets"):
            yield Static(NOTHING, id="sheets-word", markup=False)

    @property
    def label(self) -> str:
        """ "Plot 2" when there are several."""
        return f"{self.TITLE} {len(self._sheets)}" if len(self._sheets) > 1 else self.TITLE

    @property
    def sheets(self) -> list[Sheet | Pixels]:
        """The drawings, in the order in which they were begun."""
        return list(self._sheets.values())

    def begin(self, occasion: Occasion) -> None:
        """Start with nothing. In a check run the checks keep the front."""
        self.forget()
        self._may_ask = not occasion.checking

    def forget(self) -> None:
        """Take all drawings away."""
        for sheet in self._sheets.values():
            sheet.remove()
        self._sheets = {}
        self._may_ask = False
        self.query_one("#sheets-word").display = True
        self.post_message(self.Relabelled())

    def take(self, events: Sequence[Event]) -> None:
        """Show the newest state of each drawing."""
        newest = {e.title: e for e in events if isinstance(e, DRAWINGS)}
        new = [sheet_for(newest[title]) for title in newest if title not in self._sheets]
        for title in newest.keys() & self._sheets.keys():
            self._sheets[title].show(newest[title])
        if new:
            self._add(new)
        if any(isinstance(event, Picture) and event.png for event in newest.values()):
            graphics.ask(self.app, self._renew)

    def _add(self, sheets: Iterable[Sheet | Pixels]) -> None:
        for sheet in sheets:
            self._sheets[sheet.drawing.title] = sheet
        self.query_one("#sheets-word").display = False
        room = self.query_one(Sheets)
        room.mount_all(sheets)
        room.share_out()
        self.post_message(self.Relabelled())

    def _renew(self) -> None:
        """The terminal has pixels: what is shown already gets them, too."""
        drawings = [sheet.drawing for sheet in self._sheets.values()]
        for sheet in self._sheets.values():
            sheet.remove()
        self._sheets = {}
        if drawings and self.is_mounted:
            self._add([sheet_for(drawing) for drawing in drawings])

    def concerns(self, event: Event) -> bool:
        """Drawings are shown here."""
        return isinstance(event, DRAWINGS)

    def asks(self, events: Sequence[Event]) -> bool:
        """The first drawing of a run comes to the front, unless there is an error to be read."""
        if any(isinstance(event, Raised) for event in events):
            self._may_ask = False
        if not self._may_ask or not self._sheets:
            return False
        self._may_ask = False
        return True
