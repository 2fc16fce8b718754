"""Where drawings go: to the tutor while the program runs, or to standard output as text.

In the tutor a drawing is sent when it is first made, then at most EVERY_S seconds apart and for at
most a SHARE of the program's time, and in its last state when the program ends.

In a plain `python file.py` plots are printed when the program ends, each in its last state, because
most are drawn again and again. Pictures are printed at once, as `print` would, and once more at the
end if they have changed. In a notebook the end is that of the cell. At a prompt of Python's own,
which has no end, everything is printed at once, and again once a second while it changes.
"""

import atexit
import contextlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import RLock
from time import monotonic
from typing import Any

from tensortutor.protocol.drawings import MOST_DRAWINGS, Drawing

EVERY_S = 0.05
PROMPT_EVERY_S = 1.0
SHARE = 0.05

Send = Callable[[Drawing], None]
Make = Callable[[], Drawing]


@dataclass
class Entry:
    """One drawing. make: makes it as it is now; None if that has been shown. due: not before."""

    at_end: bool
    make: Make | None = None
    due: float = 0.0
    shown: bool = field(default=False)


class Display:
    """All drawings of this process, in the order in which they were begun."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._send: Send | None = None
        self._lock = RLock()  # threads may draw, and so may what draws (a dataset's `__len__`)
        self._registered = False

    @property
    def is_connected(self) -> bool:
        """Drawings go to the tutor."""
        return self._send is not None

    def connect(self, send: Send) -> None:
        """Send drawings from now on, instead of printing them."""
        self._send = send

    def forget(self) -> None:
        """A forked child starts with nothing to show, and has no line to the tutor."""
        self._entries, self._send, self._lock, self._registered = {}, None, RLock(), False

    def draw(self, title: str, make: Make, *, at_end: bool = False) -> None:
        """Show this drawing soon. at_end: without the tutor, not before the program ends.

        make: called now or later, and not at all if a newer state of the same title comes first.
        """
        entry = self._entries.get(title)
        if entry is None:
            entry = self._begin(title, at_end)
        if entry is not None:
            entry.make = make
            if self._is_time(entry):
                with self._lock:
                    self._show(entry)

    def finish(self) -> None:
        """The program ends: show what has not been shown."""
        with self._lock:
            for entry in list(self._entries.values()):
                # What cannot be drawn any more is left as it was shown last.
                with contextlib.suppress(TypeError, ValueError, RuntimeError):
                    self._show(entry)

    def _begin(self, title: str, at_end: bool) -> Entry | None:
        with self._lock:
            if not self._registered:
                self._registered = True
                at_the_end(self.finish)
            # One more than the tutor takes, so that it can say that there are more.
            if len(self._entries) > MOST_DRAWINGS:
                return None
            return self._entries.setdefault(title, Entry(at_end))

    def _is_time(self, entry: Entry) -> bool:
        if self._send is None and not is_interactive():
            return not entry.at_end and not entry.shown
        return monotonic() >= entry.due

    def _show(self, entry: Entry) -> None:
        make, entry.make = entry.make, None
        if make is None:
            return
        began = monotonic()
        drawing = make()
        if self._send is not None:
            # The line may be closed: by the program itself, or because nobody listens any more.
            with contextlib.suppress(OSError):
                self._send(drawing)
        else:
            print_as_text(drawing)
        entry.shown = True
        now = monotonic()
        every = PROMPT_EVERY_S if self._send is None else EVERY_S
        entry.due = now + max(every, (now - began) * len(self._entries) / SHARE)


def notebook() -> Any:
    """IPython's shell, which runs notebooks too, or None."""
    library = sys.modules.get("IPython")
    return None if library is None else library.get_ipython()


def at_the_end(finish: Callable[[], None]) -> None:
    """Have this called when the program ends, and after each cell of a notebook."""
    atexit.register(finish)
    shell = notebook()
    if shell is not None:
        shell.events.register("post_run_cell", lambda *_: finish())


def is_interactive() -> bool:
    """There is a prompt, at which a program never ends."""
    return (hasattr(sys, "ps1") or bool(sys.flags.interactive)) and notebook() is None


def print_as_text(drawing: Drawing) -> None:
    """Print a drawing to standard output, in the size and with the signs that it can show."""
    from tensortutor.drawing.text import for_stream  # loaded only where it is needed

    if sys.stdout is None:
        return
    with contextlib.suppress(OSError, ValueError):  # closed, as under `| head`
        print("\n".join(for_stream(drawing, sys.stdout)), flush=True)


DISPLAY = Display()
os.register_at_fork(after_in_child=DISPLAY.forget)
