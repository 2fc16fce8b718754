"""matplotlib figures as pictures: what `plt.show()` shows, and what is left open at the end.

matplotlib itself imports this module (`module://tensortutor.lab.matplotlib_backend`), in runs of
the tutor alone, and finds in it what it looks for in a backend: a class named FigureCanvas.
"""

import contextlib
import sys
import warnings
from importlib import import_module
from itertools import count
from typing import Any
from weakref import WeakKeyDictionary

import torch

from tensortutor.lab.display import DISPLAY
from tensortutor.lab.pictures import drawn_pixels, picture
from tensortutor.protocol.framing import ProtocolError

MOST_PIXELS = 640
"""Pixels along a side: a figure of matplotlib's own default size comes as it is."""

_numbers: "WeakKeyDictionary[Any, int]" = WeakKeyDictionary()
_next = count(1)
"""Not the table's length: a figure that was closed leaves the table when it is collected."""


def __getattr__(name: str) -> Any:
    """The canvas, when matplotlib asks for it: without matplotlib it cannot be made."""
    if name == "FigureCanvas":
        # Kept as a name of the module: matplotlib asks first and copies the names then.
        return globals().setdefault(name, canvas_class())
    raise AttributeError(name)


def canvas_class() -> Any:
    """Agg's canvas, with a manager that can show it."""
    base = import_module("matplotlib.backend_bases").FigureManagerBase
    agg = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg

    class FigureManager(base):  # type: ignore[misc, valid-type, unused-ignore]
        """What stands for a window."""

        def show(self) -> None:
            """Draw the figure in the tutor."""
            draw_figure(self.canvas.figure)

    class FigureCanvas(agg):  # type: ignore[misc, valid-type, unused-ignore]
        """What figures are drawn on."""

        manager_class = FigureManager

    return FigureCanvas


def draw_figure(figure: Any) -> None:
    """Show a figure as it is now. It stays open, as it does without a display."""
    if not DISPLAY.is_connected:
        return
    title = title_of(figure)

    def make() -> Any:
        agg = import_module("matplotlib.backends.backend_agg").FigureCanvasAgg
        canvas = figure.canvas if isinstance(figure.canvas, agg) else agg(figure)
        canvas.draw()
        pixels = torch.frombuffer(bytearray(canvas.buffer_rgba()), dtype=torch.uint8)
        width, height = canvas.get_width_height(physical=True)
        colours = pixels.reshape(height, width, 4)[..., :3].movedim(-1, 0) / 255
        try:
            return picture("image", title, drawn_pixels(colours, MOST_PIXELS))
        except ProtocolError:  # it is nearly noise, and too long when compressed
            return picture("image", title, drawn_pixels(colours, MOST_PIXELS // 2))

    DISPLAY.draw(title, make)


def title_of(figure: Any) -> str:
    """A figure's own name, or "Figure N" for the Nth that is shown.

    matplotlib's numbers begin again when figures are closed.
    """
    if figure not in _numbers:
        _numbers[figure] = next(_next)
    label = str(figure.get_label() or "")
    return label or f"Figure {_numbers[figure]}"


def draw_left_open() -> None:
    """The program ends: show the figures that are open and have not been shown as they are."""
    helpers = sys.modules.get("matplotlib._pylab_helpers")
    if helpers is None:
        return
    # What fails while it is drawn is no error of a program that would never have drawn it.
    with contextlib.suppress(Exception), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for manager in helpers.Gcf.get_all_fig_managers():
            figure = manager.canvas.figure
            if figure.axes and (figure not in _numbers or figure.stale):
                draw_figure(figure)
