"""Beginning a lesson again: its code goes to a backup, its record is forgotten."""

from pathlib import Path

from tensortutor.course.model import Course, Lesson
from tensortutor.learner.progress import Progress
from tensortutor.learner.scratch import clear_scratch
from tensortutor.learner.unlock import credit
from tensortutor.learner.workspace import Workspace


def reset_lesson(course: Course, lesson: Lesson, progress: Progress, workspace: Workspace) -> Path:
    """Put a lesson back to what it was at first. Returns the folder of the backup.

    A lesson that counted, passed or known by another, is open from then on (see `unlock`).

    The backup holds the lesson's code and a copy of all progress, and is made before anything is
    changed. What the lesson's programs have written is removed. Raises StorageError.
    """
    backup = workspace.new_backup()
    progress.backup(backup / progress.path.name)
    workspace.reset(lesson, keep=backup)
    counted = lesson.id in credit(course, progress.history())
    progress.reset(lesson.id, begun_again=counted)
    clear_scratch(workspace.paths, lesson)
    return backup
