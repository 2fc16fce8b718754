"""`list`, `show`, `next`, `hint`: going through a course."""

from argparse import Namespace
from itertools import chain

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.material import Prose
from tensortutor.course.model import Chapter, Lesson
from tensortutor.learner.errors import StorageError
from tensortutor.learner.unlock import continue_at, missing, next_lesson, state

SIGNS = {"done": ("✓", "green"), "open": ("○", "yellow"), "locked": ("–", "dim")}


def list_lessons(session: Session, arguments: Namespace) -> int:
    """Every lesson with its state."""
    del arguments
    passed = session.progress.passed()
    course, printer = session.course, session.printer
    if session.json:
        for chapter in course.chapters:
            for lesson in chapter.lessons:
                printer.json(_as_json(chapter, lesson, passed))
        return 0
    done = sum(lesson.id in passed for lesson in course.lessons)
    printer.line(printer.paint(course.title, "bold"))
    printer.line(f"{done} of {len(course.lessons)} lessons passed")
    width = max((len(lesson.id) for lesson in course.lessons), default=0)
    for chapter in course.chapters:
        printer.line()
        printer.line(printer.paint(f"{chapter.number} {chapter.title}", "bold"))
        for lesson in chapter.lessons:
            now = state(lesson, passed)
            sign, style = SIGNS[now]
            mark = printer.paint(f"{sign} {now:<6}", style)
            printer.line(f"  {mark}  {lesson.id:<{width}}  {lesson.title}")
    return 0


def _as_json(chapter: Chapter, lesson: Lesson, passed: frozenset[str]) -> dict[str, object]:
    return {
        "event": "lesson",
        "lesson": lesson.id,
        "chapter": chapter.title,
        "title": lesson.title,
        "goal": lesson.goal,
        "minutes": lesson.minutes,
        "device": lesson.device,
        "state": state(lesson, passed),
        "missing": list(missing(lesson, passed)),
    }


def show(session: Session, arguments: Namespace) -> int:
    """A lesson, one step of it, or its solution."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway or arguments.spoil)
    if arguments.solution:
        return _show_solution(session, lesson, arguments.spoil)
    from tensortutor.commands.render import Page

    printer = session.printer
    page = Page(printer, lesson, session.progress.answers(lesson.id))
    steps = range(len(lesson.steps))
    if arguments.step is not None:
        index = session.step(lesson, arguments.step)
        steps = range(index, index + 1)
        session.progress.set_place(lesson.id, index)
    else:
        for line in page.title(state(lesson, session.progress.passed())):
            printer.line(line)
        printer.line()
    for index in steps:
        for line in page.step(index):
            printer.line(line)
        _say_file(session, lesson, index)
        printer.line()
    return 0


def _show_solution(session: Session, lesson: Lesson, spoil: bool) -> int:
    if not spoil and lesson.id not in session.progress.passed():
        raise Refused(
            f"The solution of {lesson.id} is shown when you have passed it, or with --spoil. "
            f"A hint may do: tensortutor hint {lesson.id}"
        )
    session.printer.line((lesson.task.solution or "").rstrip("\n"))
    return 0


def _say_file(session: Session, lesson: Lesson, index: int) -> None:
    """Name the learner's own file of a judged step; make it if it is not there."""
    if lesson.steps[index] is not lesson.task:
        return
    try:
        session.printer.line(f"Your file: {session.workspace.start(lesson, index)}")
    except StorageError as error:
        session.printer.note(str(error))


def next_step(session: Session, arguments: Namespace) -> int:
    """The step where the learner is, or the one after if nothing there is left to do."""
    del arguments
    place = _next_place(session)
    printer = session.printer
    if place is None:
        count = len(session.course.lessons)
        printer.line(f"You have passed all {count} lessons and read every step.")
        return 0
    from tensortutor.commands.render import Page

    lesson, index = place
    page = Page(printer, lesson, session.progress.answers(lesson.id))
    if index == 0:
        for line in page.title(state(lesson, session.progress.passed())):
            printer.line(line)
        printer.line()
    for line in page.step(index):
        printer.line(line)
    _say_file(session, lesson, index)
    printer.line()
    todo = left_to_do(session, lesson, index)
    printer.line(todo or "Go on: tensortutor next")
    session.progress.set_place(lesson.id, index)
    if not todo:
        session.progress.mark_step(lesson.id, index)
    return 0


def left_to_do(session: Session, lesson: Lesson, index: int) -> str:
    """What a step still asks of the learner, as a sentence, or ""."""
    step = lesson.steps[index]
    given = session.progress.answers(lesson.id)
    if any((index, number) not in given for number in range(len(step.quizzes))):
        return f"Answer the question, then go on: tensortutor answer {lesson.id} {index + 1} VALUE"
    if step is lesson.task and lesson.id not in session.progress.passed():
        return f"Go on when the checks pass: tensortutor check {lesson.id}"
    return ""


def _next_place(session: Session) -> tuple[Lesson, int] | None:
    course, progress = session.course, session.progress
    passed = progress.passed()
    place = continue_at(course, passed, progress.place())
    if place is None:
        raise Refused("The course has no lessons.")
    lesson: Lesson | None = place[0]
    start = place[1]
    for _ in course.lessons:
        if lesson is None:
            return None
        index = _open_step(session, lesson, start)
        if index is not None:
            return lesson, index
        lesson = next_lesson(course, lesson.id, passed)
        start = 0 if lesson is None else progress.step_of(lesson.id)
    return None


def _open_step(session: Session, lesson: Lesson, start: int) -> int | None:
    """The first step from `start` on that is not done, else the first before it, else None."""
    done = session.progress.steps_done(lesson.id)
    for index in chain(range(start, len(lesson.steps)), range(start)):
        if index not in done or left_to_do(session, lesson, index):
            return index
    return None


def hint(session: Session, arguments: Namespace) -> int:
    """The next hint, counted; when there are no more, all of them."""
    from tensortutor.commands.render import Page

    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    hints = lesson.task.hints
    printer, page = session.printer, Page(session.printer, lesson, {})
    shown = session.progress.hints_shown(lesson.id)
    if shown < len(hints):
        numbers = range(shown, session.progress.show_hint(lesson.id))
    else:
        numbers = range(len(hints))
        printer.line("There are no more hints. These were shown:")
    for number in numbers[: len(hints)]:
        printer.line(printer.paint(f"Hint {number + 1} of {len(hints)}", "bold"))
        for line in page.prose(Prose(hints[number], 0)):
            printer.line(line)
    return 0
