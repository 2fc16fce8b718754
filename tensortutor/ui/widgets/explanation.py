"""An explanation of an error, as lines of the output and as rows under a check."""

from collections.abc import Callable, Iterator

from tensortutor.course.prose import paragraphs
from tensortutor.plaintext import visible
from tensortutor.protocol.events import Explained
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.transcript import Line

INDENT = "  "


def lines_of(event: Explained, about: Callable[[str], str]) -> Iterator[Line]:
    """Below the error's own report. about: what to say of a lesson, by its id."""
    yield "head", f"{symbols.current().pointer} {visible(event.title)}"
    for label, text in (("", event.here), ("", event.means), ("Way out: ", event.way_out)):
        for is_code, part in paragraphs(text):
            if is_code:
                yield from (("why", f"{INDENT * 3}{line}") for line in visible(part).split("\n"))
            else:
                yield "why", f"{INDENT}{label}{visible(part)}"
                label = ""
    if event.lesson:
        yield "note", f"{INDENT}{about(event.lesson)}"


def rows_of(event: Explained, about: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Labels and texts, below what a check found."""
    yield "error", visible(event.title)
    for label, text in (("here", event.here), ("means", event.means), ("way out", event.way_out)):
        parts = [visible(part) for _, part in paragraphs(text)]
        if parts:
            yield label, "\n".join(parts)
    if event.lesson:
        yield "lesson", about(event.lesson)
