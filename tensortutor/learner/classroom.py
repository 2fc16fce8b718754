"""A home for the time being, to teach or to take a look, and a course without locks.

What is done in a classroom is kept in a temporary folder that goes with the process; if the process
was killed, with the next one that teaches. The learner's own folder is read (settings, theme,
consent) and never written.
"""

import atexit
import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import IO

from tensortutor.course.model import Course, Lesson
from tensortutor.learner.paths import Paths, default_home

PREFIX = "tensortutor-teach-"
LOCK = "in-use"
"""A file in the folder that is locked for as long as its process lives, however that ends."""
BEING_MADE_S = 60.0
"""A folder without that file may still be in the making for so long."""


def classroom() -> Paths:
    """A fresh home that looks like the learner's own, without their progress and their code.

    Raises OSError if there is no room for temporary files.
    """
    sweep()
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(_remove, folder, _occupied(folder))
    own, room = Paths(default_home()), Paths(folder)
    taken: list[Callable[[Paths], Path]] = [
        lambda paths: paths.settings,
        lambda paths: paths.ui_state,
        lambda paths: paths.consent,
    ]
    for file in taken:
        # What cannot be read is as good as not there.
        with contextlib.suppress(OSError):
            shutil.copyfile(file(own), file(room))
    return room


def sweep() -> None:
    """Remove the classrooms of processes that were killed, as far as they are this user's."""
    for folder in Path(tempfile.gettempdir()).glob(f"{PREFIX}*"):
        # What cannot be looked at or locked is somebody else's, or in use.
        with contextlib.suppress(OSError):
            status = folder.lstat()
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid():
                continue
            lock = folder / LOCK
            if lock.exists():
                with open(lock, "rb") as file:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            elif time.time() - status.st_mtime < BEING_MADE_S:
                continue
            shutil.rmtree(folder, ignore_errors=True)


def _occupied(folder: Path) -> IO[bytes]:
    """The folder's lock, which holds for as long as it is open; by its name, it is held."""
    new = folder / f"{LOCK}.new"
    file = open(new, "wb")  # noqa: SIM115
    with contextlib.suppress(OSError):  # a file system without locks: nobody can sweep it
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        new.rename(folder / LOCK)
    return file


def _remove(folder: Path, lock: IO[bytes]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    lock.close()


def unlocked(course: Course) -> Course:
    """The course with every lesson open. Its lessons are still read when they are asked for."""
    chapters = tuple(
        replace(chapter, lessons=tuple(map(_open, chapter.lessons))) for chapter in course.chapters
    )
    return replace(course, chapters=chapters)


def _open(lesson: Lesson) -> Lesson:
    # Not `replace`, which would read the lesson's steps.
    copy = object.__new__(Lesson)
    vars(copy).update(vars(lesson), requires=())
    return copy
