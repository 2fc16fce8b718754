"""What a learner shares with a class: one small JSON file in the class's folder.

Anybody may have written such a file, with anything in it. It is read under bounds, and who wrote
it is the owner of the file, never something that it says.
"""

import errno
import json
import os
import stat
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, TypeVar

from tensortutor.course.read_file import KINDS

FORMAT = 1
LARGEST = 64 << 10
"""Bytes of a file. A larger one is neither written nor read."""
LONGEST_NAME = 300
"""Characters of a lesson's id, and of the name of a check."""
MOST_CHECKS = 200
MOST = 1_000_000
"""The largest count that is believed."""
LATEST = 1 << 33
"""The last second, since 1970, that is believed: in the year 2242."""

T = TypeVar("T")


class BadReport(Exception):
    """A file of a class's folder that is not read. `str` says why, as the end of a sentence."""


@dataclass(frozen=True)
class Sent:
    """The code of a step that the learner has sent.

    step: from 1. at: seconds since 1970. help: they ask for help with it; else it is handed in.
    """

    lesson: str
    step: int
    at: float
    help: bool
    code: str


@dataclass(frozen=True)
class Report:
    """Where a learner is, and what they have sent.

    step: from 1. seen: when this was written, in seconds since 1970. failing: the names of the
    checks that the last check of this lesson did not pass; checks_passed and checks_total are of
    that check, 0 before there was one. stuck_s: seconds of work since something last got better: a
    step done, one more check passed.
    """

    lesson: str
    step: int
    steps: int
    steps_done: int
    seen: float
    checks_passed: int = 0
    checks_total: int = 0
    failing: tuple[str, ...] = ()
    attempts: int = 0
    lesson_passed: bool = False
    stuck_s: float = 0.0
    sent: tuple[Sent, ...] = ()

    @property
    def asks_for_help(self) -> bool:
        """Whether the learner waits for help."""
        return any(sent.help for sent in self.sent)


def encode(report: Report) -> bytes:
    """The file's bytes. They may be more than LARGEST: that is for the caller to see to."""
    whole = {"format": FORMAT, **asdict(report)}
    return json.dumps(whole, ensure_ascii=False, indent=1).encode("utf-8", "replace")


def decode(data: bytes) -> Report:
    """The report that these bytes hold. Raises BadReport for anything that is none."""
    try:
        whole = json.loads(data)
    except (ValueError, RecursionError):
        raise BadReport("it is not JSON") from None
    if not isinstance(whole, dict) or whole.get("format") != FORMAT:
        raise BadReport("it is not a report that this version of tensortutor writes")
    return Report(
        _text(whole, "lesson", LONGEST_NAME),
        _count(whole, "step"),
        _count(whole, "steps"),
        _count(whole, "steps_done"),
        _number(whole, "seen", LATEST),
        _count(whole, "checks_passed"),
        _count(whole, "checks_total"),
        _items(whole, "failing", lambda item: _text({"failing": item}, "failing", LONGEST_NAME)),
        _count(whole, "attempts"),
        _truth(whole, "lesson_passed"),
        _number(whole, "stuck_s", MOST),
        _items(whole, "sent", _sent),
    )


def refuse_odd(status: os.stat_result) -> None:
    """Raise BadReport for what is no plain file of a report's size under one name."""
    kind = stat.S_IFMT(status.st_mode)
    if kind == stat.S_IFLNK:
        raise BadReport("it is a symbolic link")
    if kind != stat.S_IFREG:
        raise BadReport(KINDS.get(kind, "it is no file"))
    # A file that was replaced after it was opened has none; it is whole all the same.
    if status.st_nlink > 1:
        raise BadReport("it has another name elsewhere (a hard link)")
    if status.st_size > LARGEST:
        raise BadReport(f"it has more than {LARGEST >> 10} KiB")


def read_report(name: str, folder: int | None = None) -> tuple[int, Report]:
    """Who owns a file of the folder, and what it says.

    name: a path, or a name below the folder with this descriptor. Raises BadReport for what is no
    report, or a link, or no plain file at all; OSError if it is not there or cannot be read.
    """
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    # Looked at first: opening a device can set something going.
    refuse_odd(os.stat(name, dir_fd=folder, follow_symlinks=False))
    try:
        descriptor = os.open(name, flags, dir_fd=folder)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise BadReport("it is a symbolic link") from None
        raise
    with open(descriptor, "rb") as file:
        status = os.fstat(descriptor)
        refuse_odd(status)
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise BadReport(f"it has more than {LARGEST >> 10} KiB")
    return status.st_uid, decode(data)


def _sent(item: object) -> Sent:
    if not isinstance(item, dict):
        raise _odd("sent")
    return Sent(
        _text(item, "lesson", LONGEST_NAME),
        _count(item, "step"),
        _number(item, "at", LATEST),
        _truth(item, "help"),
        _text(item, "code", LARGEST),
    )


def _text(table: dict[str, Any], name: str, longest: int) -> str:
    value = table.get(name)
    if not isinstance(value, str) or len(value) > longest:
        raise _odd(name)
    return value.encode("utf-8", "replace").decode()  # JSON can hold half a character


def _count(table: dict[str, Any], name: str) -> int:
    value = table.get(name)
    if type(value) is not int or not 0 <= value <= MOST:
        raise _odd(name)
    return value


def _number(table: dict[str, Any], name: str, most: float) -> float:
    value = table.get(name)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise _odd(name)
    if not 0 <= value <= most:  # nor is a NaN
        raise _odd(name)
    return float(value)


def _truth(table: dict[str, Any], name: str) -> bool:
    value = table.get(name)
    if not isinstance(value, bool):
        raise _odd(name)
    return value


def _items(table: dict[str, Any], name: str, read: Callable[[object], T]) -> tuple[T, ...]:
    value = table.get(name)
    if not isinstance(value, list) or len(value) > MOST_CHECKS:
        raise _odd(name)
    return tuple(map(read, value))


def _odd(name: str) -> BadReport:
    return BadReport(f'its entry "{name}" is missing or makes no sense')
