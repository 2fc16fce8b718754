"""The output of a program as a terminal would lay it out, line by line."""

import re

from tensortutor.plaintext import ACTIVE, BUT_LINES, LONGEST, SEQUENCE, shown
from tensortutor.ui.terminal import symbols

UNFINISHED = re.compile(
    r"\x1b(?:\[[0-?]{0,256}[ -/]{0,16}|[\]PX^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]{0,16})?\Z",
)
"""The start of a control sequence whose end is yet to come; a longer one is none."""
BUSY = re.compile(ACTIVE.pattern.replace("[\x00-\x1f", "[\x00-\x09\x0b-\x1f", 1))
"""What needs more than being cut into lines."""


class Writer:
    """One stream's text as a terminal would lay it out, line by line.

    A carriage return goes back to the start of the line and what follows overwrites it, so a
    progress bar stays one line. `open` is the line that has not ended yet.
    """

    def __init__(self) -> None:
        self._line = ""
        self._column = 0
        self._held = ""
        self._beyond = 0

    @property
    def open(self) -> str:
        """The line that has not ended yet, ready to be shown."""
        return self._finished(self._line)

    def feed(self, text: str) -> list[str]:
        """The lines that this text ends, ready to be shown."""
        if not BUSY.search(text) and not self._held:
            return self._calm(text)
        text = self._held + text
        self._held = ""
        text = SEQUENCE.sub("", text)
        if unfinished := UNFINISHED.search(text):
            self._held = unfinished.group()
            text = text[: unfinished.start()]
        return self._plain(text)

    def end(self) -> list[str]:
        """The stream is over: the open line, if there is one."""
        self._put(self._held)
        self._held = ""
        return [self._newline()] if self._line else []

    def _calm(self, text: str) -> list[str]:
        """Text in which nothing acts on a terminal: whole lines are taken as they are."""
        first, *ended = text.split("\n")
        self._put(first)
        if not ended:
            return []
        rest = ended.pop()
        lines = [self._newline()]
        if max(map(len, ended), default=0) <= LONGEST:
            lines += ended
        else:
            lines += self._plain("\n".join((*ended, "")))
        self._put(rest)
        return lines

    def _plain(self, text: str) -> list[str]:
        *ended, rest = text.split("\n")
        lines = []
        for part in ended:
            self._put(part)
            lines.append(self._newline())
        self._put(rest)
        return lines

    def _put(self, text: str) -> None:
        for part in re.split("([\r\b])", text) if "\r" in text or "\b" in text else (text,):
            if part == "\r":
                self._column = 0
            elif part == "\b":
                self._column = max(0, self._column - 1)
            else:
                self._write(part)

    def _write(self, text: str) -> None:
        room = LONGEST - self._column
        self._beyond += max(0, len(text) - room)
        text = text[:room]
        end = self._column + len(text)
        self._line = self._line[: self._column] + text + self._line[end:]
        self._column = end

    def _newline(self) -> str:
        line = self._finished(self._line)
        self._line, self._column, self._beyond = "", 0, 0
        return line

    def _finished(self, line: str) -> str:
        if BUSY.search(line):
            line = BUT_LINES.sub(shown, line.expandtabs(8))
        if self._beyond:
            line += f" {symbols.current().cut} {self._beyond:,} more characters"
        return line
