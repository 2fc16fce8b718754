"""`answer`: the questions of a lesson, without the app."""

from argparse import Namespace
from typing import TYPE_CHECKING, Any

from tensortutor.commands.browse import RUN_TO_SEE, run_command
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.material import Prose, Quiz
from tensortutor.course.model import Lesson
from tensortutor.learner import answers
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.report import to_do

if TYPE_CHECKING:
    from tensortutor.commands.render import Page

FAILED = 1


def answer(session: Session, arguments: Namespace) -> int:
    """Judge an answer, keep it, and explain."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    index = session.step(lesson, arguments.step)
    number = _question(session, lesson, index, arguments.question)
    quiz = lesson.steps[index].quizzes[number]
    text = " ".join(arguments.value)
    try:
        value = answers.read(quiz, text)
    except answers.Nearly as near:
        raise Refused(str(near)) from None
    except answers.NotAnAnswer as error:
        raise Refused(f"{text!r} is no answer to this question. {error}") from None
    # Kept first: whoever reads the reply may close the pipe before its end.
    work = session.lesson_session(lesson, index)
    right = work.answer(number, value)
    page = _tell_question(session, lesson, index, quiz)
    if work.is_held:
        _tell_held(session, work, answers.shown(quiz, value))
        return 0
    if work.left_to_do is None:
        work.mark_done()
    _tell_verdict(session, page, quiz, value)
    return 0 if right else FAILED


def _question(session: Session, lesson: Lesson, index: int, number: int | None) -> int:
    """The index of the question that is meant: the one named, else the first without an answer."""
    count = len(lesson.steps[index].quizzes)
    if not count:
        steps = [str(n) for n, step in enumerate(lesson.steps, 1) if step.quizzes]
        raise Refused(
            f"Step {index + 1} of {lesson.id} asks nothing. These do: {', '.join(steps)}."
        )
    if number is None:
        given = session.progress.answers(lesson.id)
        return next((n for n in range(count) if (index, n) not in given), 0)
    if not 1 <= number <= count:
        raise Refused(f"Step {index + 1} has the questions 1 to {count}, not {number}.")
    return number - 1


def _tell_question(session: Session, lesson: Lesson, index: int, quiz: Quiz) -> "Page":
    """The question, so that nobody takes it for another one. Returns what writes the rest."""
    from tensortutor.commands.render import Page

    printer = session.printer
    page = Page(printer, lesson, {})
    printer.line(page.heading(index))
    for line in page.prose(Prose(quiz.ask, 0)):
        printer.line(line)
    printer.line()
    return page


def _tell_held(session: Session, work: LessonSession, value: str) -> None:
    """The guess, which the run is to judge."""
    printer = session.printer
    printer.line(f"Your guess: {value}")
    if left := work.questions_left:
        printer.line(f"{left} more to guess.")
    else:
        for line in to_do(RUN_TO_SEE, run_command(session, work.lesson, work.index), printer.width):
            printer.line(line)


def _tell_verdict(session: Session, page: "Page", quiz: Quiz, value: Any) -> None:
    """What the answer is worth, and why."""
    printer = session.printer
    right = answers.is_right(quiz, value)
    printer.line(printer.paint("✓ right", "green") if right else printer.paint("✗ wrong", "red"))
    printer.line()
    for line in page.prose(Prose(answers.explanation(quiz, value), 0)):
        printer.line(line)
