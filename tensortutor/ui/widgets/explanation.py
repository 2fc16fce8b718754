"""An explanation of an error, as lines of the output and as rows under a check."""

from collections.abc import Callable, Iterator

from tensortutor.course.prose import paragraphs
from tensortutor.plaintext import visible
from tensortutor.protocol.events import Explained
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.transcript import Line

INDENT = "  "
LABELS = ("here", "means", "way out")
COLUMN = len(INDENT) + max(map(len, LABELS)) + 2
"""Where the texts begin, behind their labels."""


def lines_of(event: Explained, about: Callable[[str], str]) -> Iterator[Line]:
    """Below the error's own report. about: what to say of a lesson, by its id."""
    yield "head", f"{symbols.current().pointer} {visible(event.title)}"
    for label, text in zip(LABELS, (event.here, event.means, event.way_out), strict=True):
        begin = f"{INDENT}{label}".ljust(COLUMN)
        for is_code, part in paragraphs(text):
            for line in visible(part).split("\n") if is_code else [visible(part)]:
                yield "why", f"{begin}{INDENT if is_code else ''}{line}"
                begin = " " * COLUMN
    if event.lesson:
        yield "note", f"{' ' * COLUMN}{about(event.lesson)}"


def rows_of(event: Explained, about: Callable[[str], str]) -> Iterator[tuple[str, str]]:
    """Labels and texts, below what a check found."""
    yield "error", visible(event.title)
    for label, text in zip(LABELS, (event.here, event.means, event.way_out), strict=True):
        parts = [visible(part) for _, part in paragraphs(text)]
        if parts:
            yield label, "\n".join(parts)
    if event.lesson:
        yield "lesson", about(event.lesson)
