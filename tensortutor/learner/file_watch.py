"""Noticing that a file has been saved by another program.

By looking again and again: notifications of the system do not cross a network file system.
"""

import os
from pathlib import Path

POLL_S = 0.4
"""A good time between two looks. A save is believed at the second look that finds it."""

Signature = tuple[int, int, int]


class FileWatch:
    """One file, which need not be there."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = signature(path)
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
