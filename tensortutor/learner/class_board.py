"""A class as whoever teaches it sees it: who is where, who is stuck, which checks fail for many.

Read from the folder that `class_sharing` writes into. Who a learner is says the owner of the file,
never its contents; a file that is no plain report of its owner's is refused, and counted.
"""

import errno
import os
import pwd
import stat
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from tensortutor.learner.class_report import BadReport, Report, Sent, read_report, refuse_odd
from tensortutor.learner.errors import StorageError, reason

AWAY_S = 900.0
"""Who was not seen for so long is away: not stuck, and not counted among those who fail a check."""
STUCK_S = 300.0
"""Without progress for so long, a learner is stuck."""
MOST_FILES = 5_000
"""Entries of a folder that are looked at. The rest is counted."""
TRIES = 3
"""A network file system may lose a file that is replaced while it is read."""


@dataclass(frozen=True)
class Learner:
    """One learner. name: of the user who owns the file, or the number of one that is not known."""

    uid: int
    name: str
    report: Report
    ago_s: float

    @property
    def is_away(self) -> bool:
        """Whether they have not been seen for a while."""
        return self.ago_s > AWAY_S

    @property
    def is_stuck(self) -> bool:
        """Whether nothing has got better for a while, although they work."""
        return not self.is_away and self.report.stuck_s >= STUCK_S

    def sent(self) -> Iterator[Sent]:
        """What they have sent, calls for help first, then the newest first."""
        yield from sorted(self.report.sent, key=lambda one: (not one.help, -one.at))


@dataclass(frozen=True)
class Refusal:
    """Files that were not read, for one reason. owners: the users whose files they are."""

    why: str
    count: int
    owners: tuple[str, ...]

    def __str__(self) -> str:
        files, are = ("file", "is") if self.count == 1 else ("files", "are")
        more = len(self.owners) - 3
        whose = ", ".join(self.owners[:3]) + (f" and {more} more" if more > 0 else "")
        return f"{self.count} {files} of {whose} {are} not read: {self.why}."


@dataclass(frozen=True)
class FailingCheck:
    """A check of a lesson, and who fails it now."""

    lesson: str
    check: str
    learners: tuple[Learner, ...]


@dataclass(frozen=True)
class ClassBoard:
    """The class as it is now. Learners: the longest stuck first, who is away last.

    notices: sentences about the folder itself.
    """

    learners: tuple[Learner, ...] = ()
    refusals: tuple[Refusal, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def present(self) -> tuple[Learner, ...]:
        """Those who are not away."""
        return tuple(one for one in self.learners if not one.is_away)

    @property
    def sentences(self) -> tuple[str, ...]:
        """What there is to say about the folder and its files."""
        return (*self.notices, *map(str, self.refusals))

    def failing(self) -> tuple[FailingCheck, ...]:
        """The checks that somebody present fails now, those that most fail first."""
        found: dict[tuple[str, str], list[Learner]] = {}
        for learner in self.present:
            if not learner.report.lesson_passed:
                for check in dict.fromkeys(learner.report.failing):
                    found.setdefault((learner.report.lesson, check), []).append(learner)
        checks = [FailingCheck(*name, tuple(who)) for name, who in found.items()]
        return tuple(sorted(checks, key=lambda one: (-len(one.learners), one.lesson, one.check)))


def read_class(folder: Path, now: float | None = None) -> ClassBoard:
    """Read the whole folder. now: seconds since 1970. Raises StorageError if it cannot be listed.

    May wait for as long as the folder's file system does.
    """
    now = time.time() if now is None else now
    try:
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(folder, error) from None
    try:
        names, left_out = _names(descriptor)
        reader = _Reader(descriptor, now)
        for name in names:
            reader.take(name)
        notices = (*_about(os.fstat(descriptor)), *_left_out(left_out))
    except OSError as error:
        raise _unreadable(folder, error) from None
    finally:
        os.close(descriptor)
    return ClassBoard(order(reader.learners), tuple(reader.refusals()), notices)


def order(learners: Iterable[Learner]) -> tuple[Learner, ...]:
    """The longest stuck first; who is away last."""
    return tuple(
        sorted(learners, key=lambda one: (one.is_away, -one.report.stuck_s, one.name, one.uid))
    )


def span(seconds: float) -> str:
    """A time in one unit, for a narrow column."""
    minutes = int(seconds / 60)
    if minutes < 60:
        return f"{minutes} min" if minutes else "now"
    return f"{minutes // 60} h" if minutes < 48 * 60 else f"{minutes // 1440} d"


@lru_cache(maxsize=4096)
def user_name(uid: int) -> str:
    """The name of a user, or their number as text."""
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OverflowError):
        return str(uid)


class _Reader:
    """Reads files of one folder, and keeps count of those that are refused."""

    def __init__(self, folder: int, now: float) -> None:
        self._folder = folder
        self._now = now
        self.learners: list[Learner] = []
        self._refused: dict[str, Counter[int]] = {}

    def take(self, name: str) -> None:
        """Read one file."""
        try:
            status = os.stat(name, dir_fd=self._folder, follow_symlinks=False)
        except OSError:
            return  # it was renamed or removed meanwhile
        owner = status.st_uid
        try:
            refuse_odd(status)
            if name != f"{owner}.json":
                raise BadReport("the name of the file is not its owner's number")
            uid, report = self._read(name)
            if uid != owner:
                raise BadReport("the name of the file is not its owner's number")
        except BadReport as error:
            self._refused.setdefault(str(error), Counter())[owner] += 1
        except FileNotFoundError:
            pass
        except OSError as error:
            self._refused.setdefault(reason(error), Counter())[owner] += 1
        else:
            ago = max(0.0, self._now - report.seen)
            self.learners.append(Learner(uid, user_name(uid), report, ago))

    def _read(self, name: str) -> tuple[int, Report]:
        for _ in range(TRIES - 1):
            try:
                return read_report(name, self._folder)
            except OSError as error:
                if error.errno not in (errno.ENOENT, errno.ESTALE):
                    raise
        return read_report(name, self._folder)

    def refusals(self) -> Iterator[Refusal]:
        """What was refused, the most frequent reason first."""
        for why, owners in sorted(self._refused.items(), key=lambda item: -item[1].total()):
            names = tuple(user_name(uid) for uid, _ in owners.most_common())
            yield Refusal(why, owners.total(), names)


def _names(folder: int) -> tuple[list[str], int]:
    """The names of the files, and how many are left out. Files on their way begin with a dot."""
    names: list[str] = []
    left_out = 0
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith("."):
                continue
            if len(names) < MOST_FILES:
                names.append(entry.name)
            else:
                left_out += 1
    return sorted(names), left_out


def _about(status: os.stat_result) -> Iterator[str]:
    """What is wrong with the folder's mode."""
    mode = stat.S_IMODE(status.st_mode)
    if mode & 0o022 and not mode & stat.S_ISVTX:
        yield (
            f"Anybody can remove or replace others' files here: the folder has mode {mode:o}; "
            "chmod 3733 closes that."
        )
    if not mode & stat.S_ISGID:
        yield (
            f"Files here belong to each learner's own group: the folder has mode {mode:o}; chmod "
            "3733 gives them the folder's."
        )


def _left_out(count: int) -> Iterator[str]:
    if count:
        yield f"{count} entries are not looked at: there are more than {MOST_FILES}."


def _unreadable(folder: Path, error: OSError) -> StorageError:
    return StorageError(f"The class in {folder} cannot be read: {reason(error)}.")
