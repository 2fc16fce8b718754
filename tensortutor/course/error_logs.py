"""Reads what Python complained of out of a traceback, or out of a log that holds one somewhere.

Known are tracebacks of the interpreter, chained ones too, those of notebooks with their colours
and of pytest, lines that carry a prefix (`[rank0]: `, a date), errors that ended a process in C++,
warnings, and a last line alone.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePath

COLOURS = re.compile(r"\x1b\[[0-9;:?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)")
ENDS = "(?:Error|Exception|Warning|Interrupt|Exit|Unsupported|Failed)"
KIND = r"(?:[A-Za-z_]\w*\.)*[A-Za-z_]\w*"
HEADER = re.compile(
    rf"^(?:(?P<type>[A-Za-z_][\w.]*{ENDS}) +|(?P<prefix>.*?))"
    r"Traceback \(most recent call last\):?\s*$"
)
TRACEBACK = "Traceback (most recent call last)"
HINT = re.compile(f"{ENDS}|terminate called")
"""Without this a line is not worth a closer look; a log has many lines."""
LAST = re.compile(rf"(?P<type>{KIND})(?:: ?(?P<message>.*))?$")
NAMED = re.compile(rf"\w*{ENDS}$")
WARNING = re.compile(rf"^.*?:\d+: (?P<type>{KIND}Warning): (?P<message>.*)$")
OF_CPP = re.compile(r"^terminate called after throwing an instance of '(?:\w+::)*(?P<type>\w+)'")
FRAME = re.compile(
    r'^\s*File "?(?P<path>[^"\n]+?)"?(?:, line \d+|:\d+)(?:, in (?P<function>[^\s(<]+))?'
)
CELL = re.compile(r"^Cell In ?\[\d+\]|^Input In ?\[\d+\]|^<ipython-input-")
ARROW = re.compile(r"^-+> *\d+ (?P<code>.*)$")
LIBRARY = re.compile(r"[/\\](?:site-packages|dist-packages|torch)[/\\]")
LONGEST_LINE = 5_000
"""Characters of a line that are looked at."""
MORE = ("During handling of the above exception", "The above exception was the direct cause")
BEFORE_A_LINE = re.compile(r"^(?:E  +|[\s|+]+)")
"""What pytest and groups of exceptions put before a line."""


@dataclass(frozen=True)
class Complaint:
    """An exception or a warning.

    inside: the library's functions that were under way. code: the line of the program itself.
    """

    type: str
    message: str
    inside: tuple[str, ...] = ()
    code: str = ""


@dataclass
class _Frames:
    """The frames of one traceback. own: the number of the program's last one, from 1."""

    names: list[str]
    code: str = ""
    own: int = 0

    def add(self, lines: Sequence[str], number: int) -> None:
        """Take in a line, if it belongs to a frame."""
        frame, arrow = FRAME.match(lines[number]), ARROW.match(lines[number])
        if frame is not None:
            path, function = frame["path"], frame["function"] or ""
            self.names.append(f"{PurePath(path).stem}.{function.rpartition('.')[2]}")
            if not LIBRARY.search(path):
                self._is_own(lines[number + 1] if number + 1 < len(lines) else "")
        elif CELL.match(lines[number]):
            self.names.append("")
            self._is_own("")
        elif arrow is not None and self.own == len(self.names):
            self.code = arrow["code"].strip()

    def _is_own(self, code: str) -> None:
        self.own = len(self.names)
        self.code = code.strip() if code[:1].isspace() else ""

    def of(self, kind: str, message: str) -> Complaint:
        """The complaint that ends this traceback."""
        return Complaint(kind, message.strip(), tuple(self.names[self.own :]), self.code)


def read_complaint(text: str, *, headed: bool = False) -> Complaint | None:
    """The last exception in a text, else the last warning, or None if there is neither.

    headed: the text stands right below a traceback's header.
    """
    text = COLOURS.sub("", text).replace("\r\n", "\n").replace("\r", "\n")
    lines = [line[:LONGEST_LINE] for line in text.split("\n")]
    if headed:
        return _below(lines, "", "")
    for start in range(len(lines) - 1, -1, -1):
        found = HEADER.match(lines[start]) if TRACEBACK in lines[start] else None
        if found is not None and not _is_part(lines[start]):
            prefix = _prefix(found["prefix"] or "")
            complaint = _below(lines[start + 1 :], prefix, found["type"] or "")
            if complaint is not None:
                return complaint
    return _alone(lines)


def _is_part(line: str) -> bool:
    """The header of a traceback that a message carries from another process."""
    return "Original Traceback" in line


def _prefix(text: str) -> str:
    """What stands before a header, unless it is the rule of an exception group."""
    return text if text.strip(" +-|") else ""


def _below(lines: Sequence[str], prefix: str, kind: str) -> Complaint | None:
    """What a traceback ends in. kind: the type, where a notebook's header names it."""
    lines = _without(lines, prefix)
    frames = _Frames([])
    for number, line in enumerate(lines):
        frames.add(lines, number)
        last = LAST.match(line)
        if last is None:
            continue
        name = last["type"].rpartition(".")[2]
        expected = name == kind.rpartition(".")[2] if kind else frames.names or NAMED.match(name)
        if expected:
            message = "\n".join([last["message"] or "", *_rest(lines[number + 1 :])])
            return frames.of(last["type"], message)
    return None


def _without(lines: Sequence[str], prefix: str) -> list[str]:
    """The lines of a traceback without what a log puts before each, as far as they have it."""
    if not prefix or (lines and re.match(r"\s*File ", lines[0])):
        return list(lines)  # the header alone had it: a logger's own line
    if lines and lines[0].startswith(prefix):
        return [line[len(prefix) :] for line in lines if line.startswith(prefix.rstrip())]
    return [line[len(prefix) :] for line in lines]  # a date changes, its length does not


def _rest(lines: Sequence[str]) -> list[str]:
    """Further lines of a message: up to what begins the next report."""
    rest = []
    for line in lines:
        if line.startswith(MORE) or (HEADER.match(line) and not _is_part(line)):
            break
        rest.append(line)
    return rest


def _alone(lines: Sequence[str]) -> Complaint | None:
    """A last line without a traceback, the end of a process in C++, or else the last warning."""
    for number in range(len(lines) - 1, -1, -1):
        if not HINT.search(lines[number]):
            continue
        line = BEFORE_A_LINE.sub("", lines[number])
        last = LAST.match(line)
        if last is not None and NAMED.match(last["type"].rpartition(".")[2]):
            message = "\n".join([last["message"] or "", *lines[number + 1 :]])
            return Complaint(last["type"], message.strip())
        if ended := OF_CPP.match(line):
            message = "\n".join(lines[number + 1 :]).strip().removeprefix("what():").strip()
            return Complaint(ended["type"], message)
        if warning := WARNING.match(line):
            return Complaint(warning["type"], warning["message"])
    return None
