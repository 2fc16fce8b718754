"""Reads files that somebody else has put there: never waits for one that is no file."""

import errno
import os
import select
import stat
from pathlib import Path
from typing import BinaryIO

from tensortutor.course.problems import Report

LARGEST = 64 << 20
NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `ast.parse` raises: for wrong code, for a NUL in it, for code that is nested too deep."""
KINDS = {
    stat.S_IFDIR: "it is a folder",
    stat.S_IFIFO: "it is a FIFO, not a file",
    stat.S_IFCHR: "it is a device, not a file",
    stat.S_IFBLK: "it is a device, not a file",
}


def read_file(path: Path) -> bytes:
    """What is in a file. Raises OSError, with words for people in `strerror`.

    A FIFO without a writer would be waited for without end, and a device may never end.
    """
    descriptor, kind = _open(path)
    if kind != stat.S_IFREG:
        os.close(descriptor)
        raise OSError(errno.EINVAL, KINDS.get(kind, "it is no file"), str(path))
    with open(descriptor, "rb") as file:
        data = file.read(LARGEST + 1)
    if len(data) > LARGEST:
        raise OSError(errno.EFBIG, f"it has more than {LARGEST >> 20} MiB", str(path))
    return data


def open_named(path: Path) -> tuple[BinaryIO, bytes]:
    """A file that the learner has named, and what had to be read of it to open it.

    It may be a pipe, as the shell's <(command) is, or a terminal. Raises OSError, with words for
    people in `strerror`: for other devices, and for a FIFO that nobody writes into.
    """
    descriptor, kind = _open(path)
    begins = b""
    try:
        if kind == stat.S_IFIFO:
            begins = _begin(descriptor, path)
        elif kind != stat.S_IFREG and not os.isatty(descriptor):
            raise OSError(errno.EINVAL, KINDS.get(kind, "it is no file"), str(path))
    except OSError:
        os.close(descriptor)
        raise
    os.set_blocking(descriptor, True)
    return open(descriptor, "rb"), begins


def _begin(fifo: int, path: Path) -> bytes:
    """A first byte, if there is one already. Raises OSError if nobody writes."""
    looked = select.poll()
    looked.register(fifo, select.POLLIN)
    if looked.poll(0):
        return b""  # there is something to read, or a writer has been there and gone
    try:
        byte = os.read(fifo, 1)
    except BlockingIOError:
        return b""  # a writer who has not written yet
    if not byte:
        raise OSError(errno.EINVAL, "it is a FIFO that nobody writes into", str(path))
    return byte


def _open(path: Path) -> tuple[int, int]:
    """A descriptor that waits for nobody, and what kind of file it is. Raises OSError."""
    try:
        # What is no file fails or opens at once, and becomes nobody's terminal.
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC)
    except FileNotFoundError:
        if path.is_symlink():
            words = f"it is a link to {os.readlink(path)}, which is not there"
            raise OSError(errno.ELOOP, words, str(path)) from None
        raise
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(error.errno, "it is a socket, not a file", str(path)) from None
        raise
    return descriptor, stat.S_IFMT(os.fstat(descriptor).st_mode)


def read_course_file(path: Path, report: Report) -> bytes | None:
    """What is in a file of a course. None if it cannot be read: then that is reported."""
    try:
        return read_file(path)
    except OSError as error:
        report.add(0, f"this file cannot be read: {error.strerror or error}")
        return None
