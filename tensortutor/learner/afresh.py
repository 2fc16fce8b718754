"""Beginning a lesson again: its code goes to a backup, its record is forgotten."""

from pathlib import Path

from tensortutor.course.model import Lesson
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace


def begin_again(lesson: Lesson, progress: Progress, workspace: Workspace) -> Path:
    """Put a lesson back to what it was at first. Returns the folder of the backup.

    The backup holds the lesson's code and a copy of all progress, and is made before anything is
    changed. Raises StorageError.
    """
    backup = workspace.new_backup()
    progress.backup(backup / progress.path.name)
    workspace.reset(lesson, keep=backup)
    progress.reset(lesson.id)
    return backup
