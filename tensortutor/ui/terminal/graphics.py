"""Pixels in terminals that have them (sixel, or kitty's protocol), by the extra `images`.

Without the extra, or in another terminal, pictures are drawn with half blocks instead. The terminal
is asked when the first picture comes, not before the app starts; until it has answered, half blocks
serve. The library would ask by itself when it is imported, and take what is typed meanwhile for the
answer: it is kept from that, and told what the terminal has said.
"""

from __future__ import annotations

import contextlib
import fcntl
import io
import os
import re
import struct
import sys
import termios
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textual.app import App
    from textual.widget import Widget

    from tensortutor.protocol.drawings import Picture

LIBRARY = "textual_image.widget"
LEAST_PIXELS = 256
"""A smaller picture is enlarged to that in whole steps, or the terminal would blur it."""
QUERY = "\x1b_Gi=7735,s=1,v=1,a=q,t=d,f=24;AAAA\x1b\\\x1b[16t\x1b[c"
"""Does it know kitty's protocol; how many pixels has a cell; what is it (4: sixel)?"""
SIXEL = "4"
CELL = ("TEXTUAL_CELL_WIDTH", "TEXTUAL_CELL_HEIGHT")
"""What the library asks the environment for where there is no terminal to be asked."""

_asked = False
_widget: type[Widget] | None = None


def widget() -> type[Widget] | None:
    """The widget that draws pixels here; None where there are none, or as far as is known."""
    return _widget


def ask(app: App[Any], then: Callable[[], object]) -> None:
    """Ask the terminal what it can show, once. then: is called, in the app, if it has pixels."""
    global _asked  # one terminal, one answer
    question = getattr(app._driver, "ask", None)
    if _asked or question is None or find_spec("textual_image") is None:
        return
    _asked = True
    question(QUERY, lambda replies: _answered(app, replies, then))


def _answered(app: App[Any], replies: Sequence[str], then: Callable[[], object]) -> None:
    """The terminal has answered, in the thread that reads the keys: another one goes on."""
    name = drawn_by(replies)
    if name:
        cell = _cell_of_window() or cell_in(replies)
        app.call_later(lambda: app.run_worker(lambda: _load(app, name, cell, then), thread=True))


def drawn_by(replies: Sequence[str]) -> str:
    """The library's widget for a terminal that answers so, or "".

    Sixel first: some that know it know half of kitty's protocol, and kitty does not know it.
    """
    for reply in replies:
        if reply.startswith("\x1b[?") and SIXEL in re.findall(r"[0-9]+", reply)[1:]:
            return "SixelImage"
    kitty = any(reply.startswith("\x1b_G") and reply.endswith(";OK\x1b\\") for reply in replies)
    return "TGPImage" if kitty else ""


def cell_in(replies: Sequence[str]) -> tuple[int, int] | None:
    """Width and height of a cell in pixels, if a reply says so."""
    for reply in replies:
        if size := re.fullmatch(r"\x1b\[6;([1-9][0-9]*);([1-9][0-9]*)t", reply):
            return int(size[2]), int(size[1])
    return None


def _cell_of_window() -> tuple[int, int] | None:
    """The same, from what the system knows of the window."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        stdout: Any = sys.__stdout__
        packed = fcntl.ioctl(stdout.fileno(), termios.TIOCGWINSZ, bytes(8))
        rows, columns, width, height = struct.unpack("4H", packed)
        if rows and columns and width >= columns and height >= rows:
            return width // columns, height // rows
    return None


def _load(
    app: App[Any], name: str, cell: tuple[int, int] | None, then: Callable[[], object]
) -> None:
    """Import the library, which takes a while, and use it from now on."""
    # Whatever goes wrong in it, half blocks will do.
    with contextlib.suppress(Exception):
        found = load(name, cell)
        app.call_from_thread(_use, found, then)


def load(name: str, cell: tuple[int, int] | None) -> type[Widget]:
    """The library's widget of this name. cell: a cell's size in pixels, None if unknown."""
    stdout = sys.__stdout__
    sizes = dict(zip(CELL, map(str, cell), strict=True)) if cell is not None else {}
    try:
        # No terminal, no questions; without one, it looks into the environment.
        sys.__stdout__ = io.StringIO()  # type: ignore[misc, assignment]
        os.environ.update(sizes)
        library: Any = import_module(LIBRARY)
    finally:
        sys.__stdout__ = stdout  # type: ignore[misc]
        for variable in sizes:
            del os.environ[variable]
    kind: type[Widget] = getattr(library, name)
    return kind


def _use(found: type[Widget], then: Callable[[], object]) -> None:
    global _widget
    _widget = found
    then()


def bitmap(picture: Picture) -> Any:
    """The picture as the library takes it, a PIL image. Raises ValueError for a broken one."""
    from tensortutor.drawing.picture import plain_pixels  # not before there is a picture

    pixels = plain_pixels(picture)
    pil = import_module("PIL.Image")  # comes with the extra
    image = pil.frombytes("RGB", (pixels.width, pixels.height), pixels.data)
    times = LEAST_PIXELS // max(image.size)
    if times > 1:
        image = image.resize((image.width * times, image.height * times), pil.Resampling.NEAREST)
    return image
