"""`watch`: the checks at each save, beside an editor of the learner's own."""

import time
from argparse import Namespace
from datetime import datetime
from pathlib import Path

from tensortutor.commands.errors import Refused
from tensortutor.commands.run_and_check import FAILED, check_once
from tensortutor.commands.session import Session
from tensortutor.course.model import Lesson
from tensortutor.learner.errors import StorageError
from tensortutor.learner.file_watch import POLL_S, FileWatch


def watch(session: Session, arguments: Namespace) -> int:
    """Check now and whenever the file is saved. Returns the status of the last check.

    Ctrl+C is the way to end it. What was printed stays: nothing is cleared.
    """
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    path = _file(session, lesson, arguments.file)
    session.runner()
    watched = FileWatch(path)
    session.printer.note(f"Every save of {path} is checked; Ctrl+C ends this.")
    status = FAILED
    try:
        while True:
            found = _check(session, lesson, arguments, watched)
            status = status if found is None else found
            session.tell_sharing()
            if found is not None:
                session.printer.note("Waiting for the next save. Ctrl+C ends.")
                while not watched.poll():
                    time.sleep(POLL_S)
            _separate(session)
    except KeyboardInterrupt:
        return status


def _file(session: Session, lesson: Lesson, file: str | None) -> Path:
    if file is not None:
        return Path(file).absolute()
    return session.workspace.start(lesson, lesson.steps.index(lesson.task))


def _check(
    session: Session, lesson: Lesson, arguments: Namespace, watched: FileWatch
) -> int | None:
    """The status of one check; None if a save came in between, so that another one is due."""
    try:
        return check_once(session, lesson, arguments.file, every=arguments.all, enough=watched.poll)
    except (Refused, StorageError) as error:
        # Half a file, or none for a moment: the next save will be better.
        session.printer.note(str(error))
        return FAILED


def _separate(session: Session) -> None:
    """A line between one check and the next."""
    if not session.json:
        session.printer.line()
        now = datetime.now().strftime("%H:%M:%S")
        session.printer.line(session.printer.paint(f"--- saved {now} ---", "dim"))
