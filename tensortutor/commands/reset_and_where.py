"""`reset` and `where`: the learner's files."""

import sys
from argparse import Namespace

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.model import Lesson
from tensortutor.learner.reset import reset_lesson


def reset(session: Session, arguments: Namespace) -> int:
    """Put a lesson's code aside and forget what was recorded about it."""
    lesson = session.lesson(arguments.lesson_name)
    if not arguments.yes and not _agreed(lesson):
        session.printer.line("Nothing was changed.")
        return 1
    backup = reset_lesson(session.course, lesson, session.progress, session.workspace)
    session.printer.line(f"{lesson.id} is as it was at first.")
    session.printer.line(f"Your code and a copy of your progress are in {backup}")
    return 0


def _agreed(lesson: Lesson) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise Refused("reset asks before it acts, and here is nobody to ask. Add --yes.")
    question = (
        f"Put your code for {lesson.id} aside, forget answers, hints and passing, and remove files "
        "that its programs wrote? [y/N] "
    )
    try:
        return input(question).strip().lower() in ("y", "yes")
    except EOFError:
        return False


def where(session: Session, arguments: Namespace) -> int:
    """The paths of everything, or of one lesson's code, made if it is not there yet."""
    if arguments.lesson_name is None:
        if arguments.step is not None:
            raise Refused("--step goes with a lesson.")
        paths = session.paths
        rows = {
            "home": paths.home,
            "progress": paths.progress,
            "code": paths.work,
            "scratch": paths.scratch,
            "data": paths.data,
            "backups": paths.backups,
            "settings": paths.settings,
            "course": session.course.root,
        }
        if session.sharing is not None:
            rows["class"] = session.sharing.folder
        for name, path in rows.items():
            session.printer.line(f"{name:<10}{path}")
        return 0
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    index = lesson.steps.index(lesson.task)
    if arguments.step is not None:
        index = session.step(lesson, arguments.step)
    if lesson.steps[index].pane is None:
        raise Refused(f"Step {index + 1} of {lesson.id} has no code.")
    session.printer.line(str(session.workspace.start(lesson, index)))
    return 0
