"""The files that programs of a lesson have written: how much there is, and removing it."""

import errno
import os
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

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
    whole = True
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
        except OSError as error:  # not there, or closed by the program that made it
            whole &= error.errno != errno.ENAMETOOLONG
    return Use(files, size, whole)


def clear_scratch(paths: Paths, lesson: Lesson) -> None:
    """Remove what the programs of a lesson have written. Raises StorageError.

    By the system's own commands: a program can nest folders deeper than Python's rmtree goes, and
    take away its permission to enter them.
    """
    folder = paths.scratch / scratch_name(lesson)
    if folder.is_symlink() or not folder.is_dir():
        return
    for command in (["chmod", "-R", "u+rwx"], ["rm", "-rf"]):
        done = _run([*command, "--", str(folder)])
    if done.returncode:
        last = done.stderr.strip().rpartition("\n")[2]
        raise StorageError(f"{folder} cannot be removed: {last}.")


def _run(command: list[str]) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace"
        )
    except OSError as error:
        return subprocess.CompletedProcess(command, 1, "", f"{command[0]}: {reason(error)}")
