"""The tab that shows what the program draws, while it runs: plots and pictures by title."""

from collections.abc import Iterable, Sequence
from typing import Any, ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.app import App, ComposeResult
from textual.containers import Vertical, VerticalScroll
from textual.geometry import Size
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from tensortutor.drawing.picture import BROKEN
from tensortutor.drawing.spans import Look, Row, Span, clean
from tensortutor.drawing.text import drawing_rows, natural_height
from tensortutor.protocol.drawings import (
    DRAWINGS,
    MOST_SERIES,
    AreaMap,
    BoxGraph,
    CellGrid,
    Drawing,
    Picture,
    Plot,
    Series,
)
from tensortutor.protocol.events import Event, Raised
from tensortutor.ui.terminal import graphics, symbols
from tensortutor.ui.widgets.panes import Occasion, ResultPane

LEAST_HEIGHT = 10
"""Rows of a drawing among others; if they do not fit, the pane scrolls."""
LEAST_HEIGHT_OF_MAP = 14
SIDE_BY_SIDE = 88
"""From so many columns on, two drawings stand beside each other."""
NOTHING = (
    "Nothing is drawn yet. After `from tensortutor.lab import plot, image, show`, plot(losses) "
    "draws here while the program runs; image(tensor) and show(tensor) draw a tensor. There are "
    "hist, contour, regions, grid and graph as well."
)


def look_of(app: App[Any]) -> Look:
    """What this terminal can show."""
    return Look(not symbols.current().ascii, not app.no_color)


class DrawingView(Widget):
    """One drawing, as large as there is room. earlier: curves behind it, if it is a plot."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {
        "drawing--dim", *(f"drawing--{number}" for number in range(MOST_SERIES))
    }  # fmt: skip

    def __init__(self, drawing: Drawing, earlier: Sequence[Series] = ()) -> None:
        super().__init__(classes="drawing")
        self._drawing = drawing
        self._earlier = earlier
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
            look = look_of(self.app)
            # Curves that lie on those of the last run would be hidden by them, or hide them.
            same = isinstance(self._drawing, Plot) and self._drawing.series == self._earlier
            self._drawn = (
                known,
                drawing_rows(
                    self._drawing,
                    size.width,
                    size.height,
                    look,
                    earlier=() if same else self._earlier,
                ),
            )
        return self._drawn[1]

    def _style(self, span: Span) -> Style:
        style = self.rich_style
        if span.series >= 0:
            style += self.get_component_rich_style(f"drawing--{span.series % MOST_SERIES}")
        elif span.dim:
            style += self.get_component_rich_style("drawing--dim")
        if span.fore is not None:
            style += Style(color=f"rgb{span.fore}".replace(" ", ""))
        if span.back is not None:
            style += Style(bgcolor=f"rgb{span.back}".replace(" ", ""))
        return style


class PixelView(Vertical):
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
        look = Look(not symbols.current().ascii)
        try:
            bitmap, words = graphics.bitmap(self.drawing), clean(self.drawing.caption, look)
        except ValueError as error:
            bitmap, words = None, f"{BROKEN}: {error}."
        self.query_one(".pixels-title", Static).update(clean(self.drawing.title, look))
        self.query_one(".pixels-words", Static).update(words)
        image: Any = self.query_one(".pixels-image")
        image.image = bitmap


def view_for(drawing: Drawing, earlier: Sequence[Series] = ()) -> "DrawingView | PixelView":
    """The widget for a drawing in this terminal. earlier: the curves of the run before."""
    image = graphics.widget()
    if image is not None and isinstance(drawing, Picture) and drawing.png:
        return PixelView(drawing, image)
    return DrawingView(drawing, earlier)


def least_height(drawing: Drawing) -> int:
    """Rows that a drawing has among others, however many they are."""
    return LEAST_HEIGHT_OF_MAP if isinstance(drawing, AreaMap) else LEAST_HEIGHT


class DrawingList(VerticalScroll):
    """Drawings below each other, or two beside each other where there is room."""

    def on_resize(self) -> None:
        """The room is another."""
        self.share_out()

    def share_out(self) -> None:
        """Share the room out: grids and graphs get what they need, other drawings the rest."""
        views = [
            view for view in self.query(".drawing, .pixels")
            if isinstance(view, (DrawingView, PixelView))
        ]  # fmt: skip
        size = self.scrollable_content_region.size
        across = 2 if size.width >= SIDE_BY_SIDE and len(views) > 1 else 1
        least = [min(least_height(view.drawing), size.height) for view in views]
        exact = [0] * len(views)
        if len(views) > 1 or any(isinstance(view.drawing, BoxGraph) for view in views):
            look, width = look_of(self.app), size.width // across - (across > 1)
            exact = [
                natural_height(view.drawing, width, look) + 1
                if isinstance(view.drawing, (CellGrid, BoxGraph)) else 0
                for view in views
            ]  # fmt: skip
        rows = [slice(n, n + across) for n in range(0, len(views), across)]
        wanted = [max(exact[row]) for row in rows]
        rest = (size.height - sum(wanted)) // max(wanted.count(0), 1)
        heights = [
            want or max(rest, *least[row], 1) for row, want in zip(rows, wanted, strict=True)
        ]
        self.styles.grid_size_columns = across
        self.styles.grid_rows = " ".join(map(str, heights)) or "1fr"


class DrawingsPane(ResultPane):
    """Plots and pictures, the newest state of each; behind a plot, its curves of the run before."""

    TITLE = "Plot"

    def __init__(self) -> None:
        super().__init__(id="pane-drawings")
        self._views: dict[str, DrawingView | PixelView] = {}
        self._earlier: dict[str, tuple[Series, ...]] = {}
        self._may_ask = False

    def compose(self) -> ComposeResult:
        """A word as long as there is nothing, and room for the drawings."""
        with DrawingList(id="drawings"):
            yield Static(NOTHING, id="drawings-none", markup=False)

    @property
    def label(self) -> str:
        """ "Plot 2" when there are several."""
        return f"{self.TITLE} {len(self._views)}" if len(self._views) > 1 else self.TITLE

    @property
    def views(self) -> list[DrawingView | PixelView]:
        """The drawings, in the order in which they were begun."""
        return list(self._views.values())

    @property
    def drawings(self) -> list[Drawing]:
        """What is shown, in the order in which it was begun."""
        return [view.drawing for view in self._views.values()]

    def begin(self, occasion: Occasion) -> None:
        """Start with the curves of the last plots alone. In a check run checks stay in front."""
        plots = [drawing for drawing in self.drawings if isinstance(drawing, Plot)]
        earlier = self._earlier | {plot.title: plot.series for plot in plots}
        self.forget()
        self._earlier = earlier
        self._may_ask = occasion.checked is None

    def forget(self) -> None:
        """Take all drawings away, those of the run before as well."""
        for view in self._views.values():
            view.remove()
        self._views, self._earlier = {}, {}
        self._may_ask = False
        self.query_one("#drawings-none").display = True
        self.post_message(self.Relabelled())

    def take(self, events: Sequence[Event]) -> None:
        """Show the newest state of each drawing."""
        newest = {e.title: e for e in events if isinstance(e, DRAWINGS)}
        new = [self._view_for(newest[title]) for title in newest if title not in self._views]
        for title in newest.keys() & self._views.keys():
            self._views[title].show(newest[title])
        if new:
            self._add(new)
        if any(isinstance(event, Picture) and event.png for event in newest.values()):
            graphics.ask(self.app, self._renew)

    def _view_for(self, drawing: Drawing) -> DrawingView | PixelView:
        return view_for(drawing, self._earlier.get(drawing.title, ()))

    def _add(self, views: Iterable[DrawingView | PixelView]) -> None:
        for view in views:
            self._views[view.drawing.title] = view
        self.query_one("#drawings-none").display = False
        room = self.query_one(DrawingList)
        room.mount_all(views)
        room.share_out()
        self.post_message(self.Relabelled())

    def _renew(self) -> None:
        """The terminal has pixels: what is shown already gets them, too."""
        drawings = self.drawings
        for view in self._views.values():
            view.remove()
        self._views = {}
        if drawings and self.is_mounted:
            self._add([self._view_for(drawing) for drawing in drawings])

    def concerns(self, event: Event) -> bool:
        """Drawings are shown here."""
        return isinstance(event, DRAWINGS)

    def asks(self, events: Sequence[Event]) -> bool:
        """The first drawing of a run comes to the front, unless there is an error to be read."""
        if any(isinstance(event, Raised) for event in events):
            self._may_ask = False
        if not self._may_ask or not self._views:
            return False
        self._may_ask = False
        return True
