"""The files that programs of a lesson have written: how much there is, and removing it."""

import os
import shutil
import stat
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tensortutor.course.jobs import scratch_name
from tensortutor.course.model import Lesson
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.paths import Paths

LONGEST_S = 2.0
"""A folder of millions of files is not counted to its end."""


@dataclass(frozen=True)
class Use:
    """files: files and folders. bytes: what they take on disk. whole: all of them were counted."""

    files: int
    bytes: int
    whole: bool


def scratch_use(paths: Paths) -> Use:
    """What the scratch folders of all lessons hold. Links are counted, not followed."""
    files = size = 0
    end = time.monotonic() + LONGEST_S
    todo = [paths.scratch]
    while todo:
        try:
            with os.scandir(todo.pop()) as entries:
                for entry in entries:
                    files += 1
                    size += 512 * entry.stat(follow_symlinks=False).st_blocks
                    if entry.is_dir(follow_symlinks=False):
                        todo.append(Path(entry.path))
                    if time.monotonic() > end:
                        return Use(files, size, False)
        except OSError:
            continue  # not there, or closed by the program that made it
    return Use(files, size, True)


def clear_scratch(paths: Paths, lesson: Lesson) -> None:
    """Remove what the programs of a lesson have written. Raises StorageError."""
    folder = paths.scratch / scratch_name(lesson)
    if folder.is_symlink() or not folder.is_dir():
        return
    try:
        shutil.rmtree(folder, onerror=_open_and_retry)
    except OSError as error:
        raise StorageError(f"{folder} cannot be removed: {reason(error)}.") from None


def _open_and_retry(function: Callable[..., Any], path: str, error: Any) -> None:
    """A program may have taken a folder's permissions away: give them back, and try again."""
    for one in (os.path.dirname(path), path):
        if stat.S_ISDIR(os.lstat(one).st_mode):
            os.chmod(one, stat.S_IRWXU)
    if function in (os.unlink, os.rmdir):
        function(path)
    elif os.path.isdir(path):
        shutil.rmtree(path)
    del error
