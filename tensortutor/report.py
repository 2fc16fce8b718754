"""Text for a terminal, a pipe or a screen reader: what the command line prints, and how."""

import io
import json
import os
import re
import shutil
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TextIO

from tensortutor.course.prose import paragraphs
from tensortutor.drawing.spans import is_unicode
from tensortutor.plaintext import BUT_MOVES, WORDY, bounded, one_line, shown
from tensortutor.protocol.drawings import Drawing
from tensortutor.protocol.events import Explained, Finished, Output, Verdict

STYLES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33"}
COLOUR = "\x1b\\[[0-9;:]*m"
COLOURS = re.compile(COLOUR)
BUT_COLOURS = re.compile(f"(?!{COLOUR})(?:{BUT_MOVES.pattern})")
PARTS = ("called", "input", "got", "expected", "where", "cause", "hint")
SENTENCES = ("cause", "hint")
WIDEST = 88
BAR, ASCII_BAR, BAR_CELLS = ("━", "─"), ("#", "."), 20


def neutral(text: str) -> str:
    """Text that does nothing to a terminal but move to the next line, tab or line start.

    Colours are dropped, any other control character is made visible, bytes that are not UTF-8
    become a replacement sign.
    """
    return BUT_MOVES.sub(shown, COLOURS.sub("", text))


class Printer:
    """The two streams of the command line, each in its own encoding.

    unicode: stdout can hold any character; if not, signs have an ASCII form. colour: stdout is a
    terminal that shows colours. width: columns for prose.
    """

    def __init__(self, out: TextIO | None = None, err: TextIO | None = None) -> None:
        # A stream that was closed before the start is None.
        self._out = out or sys.stdout or io.StringIO()
        self._err = err or sys.stderr or io.StringIO()
        for stream in (self._out, self._err):
            reconfigure = getattr(stream, "reconfigure", None)
            if reconfigure is not None:
                reconfigure(errors="replace")
        self._passing = False
        self.unicode = is_unicode(self._out)
        self.terminal = self._out.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM", "dumb") == "dumb"
        self.colour = self.terminal and not plain
        columns = shutil.get_terminal_size().columns if self.terminal else WIDEST
        self.width = max(40, min(columns, WIDEST))

    def line(self, text: str = "") -> None:
        """A line on stdout. It may have our colours; other controls are made visible."""
        self._clear()
        text = BUT_COLOURS.sub(shown, text) if self.colour else neutral(text)
        print(text if self.unicode else text.translate(WORDY), file=self._out, flush=True)

    def note(self, sentence: str) -> None:
        """A sentence from tensortutor itself, on stderr."""
        self.error_line(f"tensortutor: {sentence}")

    def error_line(self, text: str) -> None:
        """A line on stderr."""
        self._clear()
        self._out.flush()
        text = neutral(text)
        shown = text if is_unicode(self._err) else text.translate(WORDY)
        print(shown, file=self._err, flush=True)

    def progress(self, done: int, total: int, text: str) -> None:
        """Where a long work stands: one line on stderr that whatever comes next replaces."""
        if self._err.isatty():
            self._clear()
            full, empty = BAR if is_unicode(self._err) else ASCII_BAR
            cells = BAR_CELLS * done // max(total, 1)
            bar = full * cells + empty * (BAR_CELLS - cells)
            line = f"{bar} {done}/{total} {neutral(text)}"
            print(line[: self.width - 1], end="", file=self._err, flush=True)
            self._passing = True

    def _clear(self) -> None:
        if self._passing:
            print("\r\x1b[K", end="", file=self._err, flush=True)
            self._passing = False

    def json(self, data: dict[str, Any]) -> None:
        """One JSON object on a line of stdout."""
        self._clear()
        print(json.dumps(data), file=self._out, flush=True)

    def paint(self, text: str, *styles: str) -> str:
        """The text with colours, where they show."""
        if not self.colour or not text:
            return text
        codes = ";".join(STYLES[style] for style in styles)
        return f"\x1b[{codes}m{text}\x1b[0m"

    def drawing(self, drawing: Drawing, *, beside_program: bool = True) -> None:
        """A plot or a picture.

        beside_program: on stderr unless stdout is a terminal: a pipe or a file gets what the
        program itself has written and nothing else.
        """
        from tensortutor.drawing.text import for_stream  # not before there is a drawing

        self._clear()
        self._out.flush()
        stream = self._out if self.terminal or not beside_program else self._err
        print("\n".join(for_stream(drawing, stream)), file=stream, flush=True)

    def output(self, event: Output, *, aside: bool = False) -> None:
        """What a program wrote, byte for byte; made harmless on a terminal.

        aside: its stdout goes to stderr too, because our own stdout says something else.
        """
        stream = self._err if aside or event.stream == "stderr" else self._out
        self._out.flush()
        binary = getattr(stream, "buffer", None)
        if binary is None or stream.isatty():
            stream.write(neutral(event.text))
        else:
            binary.write(event.text.encode("utf-8", "surrogateescape"))
        stream.flush()


def passed_line(verdict: Verdict, printer: Printer) -> str:
    """A check that passed."""
    return f"{printer.paint('✓ passed', 'green')}  {one_line(neutral(verdict.check))}"


def failure_lines(
    verdicts: Sequence[Verdict],
    explanations: Mapping[str, Explained],
    replay: str,
    printer: Printer,
    *,
    every: bool = False,
) -> Iterator[str]:
    """What there is to know about failures, those that are equal told once.

    One mistake often fails several checks: the first is told whole, of the others the name, unless
    `every` asks for more. explanations: of errors, by the check that they ended. replay: the
    command that repeats the checks with the same inputs.
    """
    groups: dict[tuple[str, ...], list[Verdict]] = {}
    for verdict in verdicts:
        groups.setdefault(verdict.failure, []).append(verdict)
    whole = list(groups.values()) if every else list(groups.values())[:1]
    for first, *others in whole:
        names = [first.check, *(other.check for other in others)]
        yield from failed_lines(names, first.message, printer)
        for part in PARTS:
            text = getattr(first, part)
            if text:
                yield from indented(part, text, printer.width if part in SENTENCES else 0)
        yield from indented("seed", f"{first.seed}, to replay: {replay} --seed {first.seed}")
        if first.check in explanations:
            yield from explained_lines(explanations[first.check], printer.width)
    rest = [verdict for verdict in verdicts if not any(verdict in group for group in whole)]
    for verdict in rest:
        yield from failed_lines([verdict.check], "", printer)
    if rest:
        which = "This may" if len(rest) == 1 else "These may"
        yield from indented("", f"{which} have the same cause. What was found, in full:")
        yield from indented("", f"    {replay} --seed {rest[0].seed} --all")


def failed_lines(checks: Sequence[str], message: str, printer: Printer) -> Iterator[str]:
    """Checks that failed for one reason."""
    mark = printer.paint("✗ failed", "red")
    if len(checks) == 1:
        yield f"{mark}  {printer.paint(one_line(neutral(checks[0])), 'bold')}"
    else:
        yield f"{mark}  {printer.paint(f'{len(checks)} checks', 'bold')}"
        for check in checks:
            yield from indented("", f"• {one_line(check)}", printer.width)
    if message:
        yield from indented("", message, printer.width)


def indented(label: str, text: str, width: int = 0) -> Iterator[str]:
    """A labelled text under a check; further lines begin where the first one does.

    width: columns to wrap at, or 0 to leave the lines as they are.
    """
    indent = f"    {label:<10}" if label else "    "
    for line in bounded(neutral(text)).rstrip().splitlines() or [""]:
        parts = textwrap.wrap(line, width - len(indent)) if width else [line]
        for part in parts or [""]:
            yield f"{indent}{part}".rstrip()
            indent = " " * len(indent)


def hanging(text: str, width: int, indent: int) -> Iterator[str]:
    """A message as a program prints it: each of its lines wrapped, its own continuation set in.

    Only spaces are broken at, so that names and paths stay whole. Tabs become four spaces.
    """
    for line in bounded(neutral(text)).expandtabs(4).splitlines():
        deep = indent + len(line) - len(line.lstrip())
        yield from textwrap.wrap(
            line,
            width,
            initial_indent=" " * indent,
            subsequent_indent=" " * (deep + 2),
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]


def to_do(words: str, command: str, width: int) -> Iterator[str]:
    """What to do, and the command for it: on a line of its own, whole, where both are too long."""
    line = f"{words} {command}"
    yield from [line] if len(line) <= width else [words, f"    {command}"]


def explained_lines(event: Explained, width: int) -> Iterator[str]:
    """What an error means and how to get out, under the report of the error itself."""
    yield from indented("", event.title, width)
    for label, text in (("here", event.here), ("means", event.means), ("way out", event.way_out)):
        for is_code, part in paragraphs(text):
            yield from indented(label, part, 0 if is_code else width)
            label = " "  # the label stands once
    if event.lesson:
        yield from indented("lesson", f"tensortutor show {event.lesson}")


def ending(finished: Finished) -> Iterator[str]:
    """What there is to say about how a program ended, beyond its own words."""
    if finished.outcome not in ("done", "raised", "exited"):
        yield finished.sentence
    if finished.dropped:
        yield f"{finished.dropped:,} characters of output beyond the limit were left out."
