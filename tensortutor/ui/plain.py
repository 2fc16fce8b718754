"""Text from outside, made safe to show: no control sequence reaches the terminal.

Colours and cursor movements are dropped whole. What else would act on a terminal becomes
visible: `^G` for a bell, `<U+202E>` for a direction override, a replacement sign for a byte that
is not UTF-8.
"""

import re

from tensortutor.ui.terminal import symbols

LONGEST = 4_000
"""Characters of one line that are kept; the rest is counted."""

SEQUENCE = re.compile(
    r"""\x1b(?:
        \[[0-?]*[\ -/]*[@-~]                          # CSI: colours, cursor, erase
      | \][^\x07\x1b\n]{0,4096}(?:\x07|\x1b\\)        # OSC: titles, links, the clipboard
      | [PX^_][^\x1b\n]{0,4096}\x1b\\                 # DCS, SOS, PM, APC
      | [\ -/]+[0-~]                                  # character sets and the like
      | [0-OQ-WYZ\\`-~]                               # two characters
    )""",
    re.VERBOSE,
)
UNFINISHED = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*|[\]PX^_][^\x07\x1b\n]{0,4096}\x1b?|[ -/]*)?\Z",
)
ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
LIVELY = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028-\u202e\u200e\u200f\u2066-\u2069\ud800-\udfff]"
)


def _shown(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return "^" + chr(code + 0x40)
    if code == 0x7F:
        return "^?"
    if 0xD800 <= code <= 0xDFFF:
        return symbols.current().replacement
    return f"<U+{code:04X}>"


def visible(text: str) -> str:
    """A text of any number of lines, ready to be shown."""
    if not LIVELY.search(text):
        return text
    text = SEQUENCE.sub("", text).replace("\r\n", "\n").expandtabs(8)
    return ODD.sub(_shown, text)


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
        if not LIVELY.search(text) and not self._held:
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
        if LIVELY.search(line):
            line = ODD.sub(_shown, line.expandtabs(8))
        if self._beyond:
            line += f" {symbols.current().cut} {self._beyond:,} more characters"
        return line
