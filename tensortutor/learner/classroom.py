"""Teaching in front of others: a home for the time being, and a course without locks.

What is done in a classroom is kept in a temporary folder that goes with the process. The learner's
own folder is read (settings, theme, consent) and never written.
"""

import atexit
import contextlib
import shutil
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tensortutor.course.model import Course, Lesson
from tensortutor.learner.paths import Paths, default_home

PREFIX = "tensortutor-teach-"


def classroom() -> Paths:
    """A fresh home that looks like the learner's own, without their progress and their code.

    Raises OSError if there is no room for temporary files.
    """
    folder = Path(tempfile.mkdtemp(prefix=PREFIX))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    own, room = Paths(default_home()), Paths(folder)
    taken: list[Callable[[Paths], Path]] = [
        lambda paths: paths.settings,
        lambda paths: paths.remembered,
        lambda paths: paths.consent,
    ]
    for file in taken:
        # What cannot be read is as good as not there.
        with contextlib.suppress(OSError):
            shutil.copyfile(file(own), file(room))
    return room


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
