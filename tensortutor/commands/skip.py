"""`skip`: one question of each lesson that is skipped, so that a locked lesson opens."""

from argparse import Namespace

from tensortutor.commands.asking import ask, tell
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, chosen
from tensortutor.course.model import Lesson
from tensortutor.learner.skipping import (
    SkipQuestion,
    answer,
    is_locked,
    question_of,
    skipped,
    to_be_done,
)

FAILED = 1


def skip(session: Session, arguments: Namespace) -> int:
    """Ask a question of each lesson below one that does not count. Returns 0 if it is open then."""
    lesson = session.lesson(arguments.lesson_name)
    lessons = skipped(session.course, lesson, session.progress)
    if not lessons:
        raise Refused(f"Nothing that {lesson.id} builds on is left: there is nothing to skip.")
    printer = session.printer
    count = len(lessons)
    printer.line(
        f"{lesson.title} builds on {count} lesson{'s' if count > 1 else ''} that you have not "
        "done. One question of each: a right answer makes that lesson count."
    )
    printer.line()
    for number, one in enumerate(lessons, 1):
        printer.line(printer.paint(f"{number} of {count}: {one.title}", "bold"))
        question = question_of(one, session.progress)
        if question is None:
            printer.line(to_be_done(one.id))
        elif not _ask(session, question):
            break
        printer.line()
    return _tell_end(session, lesson)


def _ask(session: Session, question: SkipQuestion) -> bool:
    """Ask one question. Returns whether to go on."""
    from tensortutor.commands.render import Page

    page = Page(session.printer, question.lesson, {})
    for line in page.step_until(question.step, question.number):
        session.printer.line(line)
    given = ask(session, question.quiz)
    if given is None:
        return False
    right = answer(question, given.value, session.progress)
    tell(session, question.quiz, given.value)
    if right:
        session.printer.line(f"Known now: {question.lesson.id}")
    return True


def _tell_end(session: Session, lesson: Lesson) -> int:
    printer, more = session.printer, chosen(session.options)
    left = len(skipped(session.course, lesson, session.progress))
    still = f" {left} of the lessons that it builds on do not count." if left else ""
    if is_locked(session.course, lesson, session.progress):
        printer.line(f"{lesson.id} stays locked.{still}")
        printer.line(f"Read it all the same: tensortutor show {lesson.id}{more}")
        return FAILED
    printer.line(f"{lesson.id} is open.{still}")
    return 0
