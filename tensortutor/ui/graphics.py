"""Pixels in terminals that have them (sixel, or kitty's protocol), by the extra `images`.

Without the extra, or in another terminal, pictures are drawn with half blocks instead.
"""

import contextlib
import sys
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from textual.widget import Widget

if TYPE_CHECKING:
    from tensortutor.protocol.drawings import Picture

LIBRARY = "textual_image.widget"
LEAST_PIXELS = 256
"""A smaller picture is enlarged to that in whole steps, or the terminal would blur it."""


def prepare() -> None:
    """Ask the terminal what it can show, if the extra is there.

    Before the app starts, since then the answer would come in as keys; the library does it when it
    is imported (0.2 s, which nobody pays without the extra).
    """
    if find_spec("textual_image") is not None and sys.__stdout__ and sys.__stdout__.isatty():
        # Whatever goes wrong while it asks, half blocks will do, and the app starts.
        with contextlib.suppress(Exception):
            import_module(LIBRARY)


def widget() -> type[Widget] | None:
    """The widget that draws pixels here, or None where there are none."""
    library: Any = sys.modules.get(LIBRARY)
    if library is None:
        return None
    has_pixels = library.AutoRenderable in (library.SixelRenderable, library.TGPRenderable)
    return library.Image if has_pixels else None


def bitmap(picture: "Picture") -> Any:
    """The picture as the library takes it, a PIL image. Raises ValueError for a broken one."""
    from tensortutor.drawing.picture import plain_pixels  # not before there is a picture

    pixels = plain_pixels(picture)
    pil = import_module("PIL.Image")  # comes with the extra
    image = pil.frombytes("RGB", (pixels.width, pixels.height), pixels.data)
    times = LEAST_PIXELS // max(image.size)
    if times > 1:
        image = image.resize((image.width * times, image.height * times), pil.Resampling.NEAREST)
    return image
