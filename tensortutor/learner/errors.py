"""What goes wrong when something is to be kept."""

import errno
import sqlite3

FULL = (errno.ENOSPC, errno.EDQUOT)


class StorageError(Exception):
    """Something could not be kept or read. `str` is the sentence for the learner."""


def reason(error: OSError | sqlite3.Error) -> str:
    """Why the system refused, as the end of a sentence."""
    if isinstance(error, OSError):
        if error.errno in FULL:
            return "the disk is full"
        text = error.strerror or str(error)
        return text[:1].lower() + text[1:]  # a path in it stays as it is written
    text = str(error)
    if "disk is full" in text:
        return "the disk is full"
    if "locked" in text:
        return "another program keeps it locked"
    return text
