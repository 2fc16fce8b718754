"""Noticing that files have been saved by another program.

By looking again and again: notifications of the system do not cross a network file system.
"""

import os
from collections.abc import Callable, Iterable
from pathlib import Path

POLL_S = 0.4
"""A good time between two looks. A save is believed at the second look that finds it."""

Signature = tuple[int, int, int]


class FileWatch:
    """One file, which need not be there. is_new: what is in it already counts as a save."""

    def __init__(self, path: Path, *, is_new: bool = False) -> None:
        self._path = path
        self._seen = None if is_new else signature(path)
        self._fresh: Signature | None = None

    def poll(self) -> bool:
        """Whether the file has been saved since the last time that this was so.

        A program that saves may write bit by bit, or move the old file away first: a save counts
        once two looks have found the same.
        """
        now = signature(self._path)
        if now is None or now == self._seen:
            self._fresh = None
            return False
        if now != self._fresh:
            self._fresh = now
            return False
        self._seen, self._fresh = now, None
        return True

    def accept(self) -> None:
        """The file as it is now is known: the save was our own."""
        self._seen, self._fresh = signature(self._path), None


class FilesWatch:
    """The files that `find` names; each time that it is asked it may name others."""

    def __init__(self, find: Callable[[], Iterable[Path]]) -> None:
        self._find = find
        self._watches = {path: FileWatch(path) for path in find()}

    def poll(self) -> set[Path]:
        """The files that were saved since the last look, as `FileWatch.poll` says; new ones and
        those that are gone among them."""
        found = set(self._find())
        gone = self._watches.keys() - found
        for path in gone:
            del self._watches[path]
        for path in found - self._watches.keys():
            self._watches[path] = FileWatch(path, is_new=True)
        return gone | {path for path, watch in self._watches.items() if watch.poll()}


def signature(path: Path) -> Signature | None:
    """What is different after a save: time of change, size and inode. None without a file."""
    try:
        # Opened, not only asked about: that is when a network file system looks at the server.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return None
    try:
        found = os.fstat(descriptor)
    finally:
        os.close(descriptor)
    return found.st_mtime_ns, found.st_size, found.st_ino
