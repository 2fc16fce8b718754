"""`compare`: the learner's code and a solution, line by line, and what others get wrong."""

from argparse import Namespace
from pathlib import Path

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, read_source
from tensortutor.course.model import Lesson
from tensortutor.learner.solution_diff import (
    MINE,
    SAME,
    THEIRS,
    beside,
    common_mistakes,
    differs,
    unified,
)
from tensortutor.report import indented

COLOURS = {MINE: ("blue",), THEIRS: ("magenta",), SAME: ("dim",)}


def compare(session: Session, arguments: Namespace) -> int:
    """Print what differs. Raises Refused before the checks have passed, unless it may spoil."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    if not arguments.spoil and lesson.id not in session.progress.passed():
        raise Refused(
            f"A solution of {lesson.id} is shown when you have passed it, or with --spoil. "
            f"A hint may do: tensortutor hint {lesson.id}{session.again(lesson)}"
        )
    session.progress.mark_solution_seen(lesson.id)
    _differences(session, lesson, arguments.file)
    _mistakes(session, lesson)
    return 0


def _differences(session: Session, lesson: Lesson, file: str | None) -> None:
    printer = session.printer
    index = lesson.steps.index(lesson.task)
    own = read_source(Path(file)) if file else session.workspace.load(lesson, index)
    pairs = beside(own, lesson.solution)
    if not differs(pairs):
        printer.line("Line by line, your code is the solution of the course.")
        return
    printer.line(f"{MINE} yours   {THEIRS} another way   (docstrings are left out)")
    printer.line()
    for mark, line in unified(pairs):
        printer.line(printer.paint(f"{mark} {line}".rstrip(), *COLOURS[mark]))


def _mistakes(session: Session, lesson: Lesson) -> None:
    printer = session.printer
    mistakes = common_mistakes(lesson)
    if mistakes:
        printer.line()
        printer.line(printer.paint("What others commonly get wrong", "bold"))
    for mistake in mistakes:
        printer.line(f"• {mistake.name}")
        found_by = f"found by: {mistake.caught_by}" if mistake.caught_by else ""
        for line in indented("", found_by, printer.width) if found_by else ():
            printer.line(printer.paint(line, "dim"))
        for line in mistake.code.splitlines():
            printer.line(f"      {line}")
