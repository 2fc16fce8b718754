"""`list`, `show`, `next`, `hint`: going through a course."""

import textwrap
from argparse import Namespace
from typing import TYPE_CHECKING

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session, chosen
from tensortutor.course.material import Prose
from tensortutor.course.model import Chapter, Lesson
from tensortutor.learner.errors import StorageError
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.unlock import Credit, continue_at, credit, missing, next_lesson, state
from tensortutor.report import to_do

if TYPE_CHECKING:
    from tensortutor.commands.render import Page

RUN_TO_SEE = "Run the code to see whether you were right:"
READ = "This lesson is locked: you have read it, and nothing was recorded."
SIGNS = {
    "done": ("✓", "green"),
    "known": ("◐", "green"),
    "open": ("○", "yellow"),
    "locked": ("–", "dim"),
}


def list_lessons(session: Session, arguments: Namespace) -> int:
    """Every lesson with its state, or those of a chapter."""
    earned = session.credit()
    course, printer = session.course, session.printer
    wanted = session.lessons(arguments.name)
    ids = {lesson.id for lesson in wanted}
    chapters = [
        (one, [lesson for lesson in one.lessons if lesson.id in ids]) for one in course.chapters
    ]
    if session.json:
        for chapter, lessons in chapters:
            for lesson in lessons:
                printer.json(_as_json(chapter, lesson, earned))
        return 0
    done = sum(lesson.id in earned.passed for lesson in wanted)
    known = sum(lesson.id in earned.known for lesson in wanted)
    printer.line(printer.paint(course.title, "bold"))
    printer.line(f"{done} of {len(wanted)} lessons passed{f', {known} known' if known else ''}")
    width = max((len(lesson.id) for lesson in wanted), default=0)
    for chapter, lessons in chapters:
        if lessons:
            printer.line()
            printer.line(_chapter_line(session, chapter))
        for lesson in lessons:
            printer.line(
                f"  {_mark(session, lesson, earned)}  {lesson.id:<{width}}  {lesson.title}"
            )
    return 0


def _chapter_line(session: Session, chapter: Chapter) -> str:
    return session.printer.paint(f"{chapter.number} {chapter.title}", "bold")


def _mark(session: Session, lesson: Lesson, earned: Credit) -> str:
    """A lesson's state, in a sign and a word."""
    now = state(lesson, earned)
    sign, style = SIGNS[now]
    return session.printer.paint(f"{sign} {now:<6}", style)


def _as_json(chapter: Chapter, lesson: Lesson, earned: Credit) -> dict[str, object]:
    return {
        "event": "lesson",
        "lesson": lesson.id,
        "chapter": chapter.title,
        "title": lesson.title,
        "goal": lesson.goal,
        "minutes": lesson.minutes,
        "device": lesson.device,
        "state": state(lesson, earned),
        "known_by": earned.known.get(lesson.id),
        "missing": list(missing(lesson, earned)),
    }


def show(session: Session, arguments: Namespace) -> int:
    """A chapter, a lesson, one step of it, or its solution."""
    chapter = session.chapter(arguments.lesson_name)
    if chapter is not None:
        if arguments.solution or arguments.step is not None:
            raise Refused("--step and --solution go with a lesson.")
        return _show_chapter(session, chapter)
    lesson = session.lesson(arguments.lesson_name)
    # A locked lesson is read without a trace: no place is kept and no file is made.
    reading = state(lesson, session.credit()) == "locked" and not arguments.anyway
    if arguments.solution:
        return _show_solution(session, lesson, arguments.spoil)
    printer = session.printer
    page = _page(session, lesson)
    steps = range(len(lesson.steps))
    if arguments.step is not None:
        index = session.step(lesson, arguments.step)
        steps = range(index, index + 1)
        if not reading:
            session.progress.set_place(lesson.id, index)
    else:
        for line in page.title(state(lesson, session.credit())):
            printer.line(line)
        printer.line()
    for index in steps:
        for line in page.step(index):
            printer.line(line)
        if not reading:
            _say_file(session, lesson, index)
        printer.line()
    if reading:
        printer.line(READ)
        skip = f"tensortutor skip {lesson.id}{chosen(session.options)}"
        for line in to_do("To skip what it builds on:", skip, printer.width):
            printer.line(line)
    return 0


def _page(session: Session, lesson: Lesson) -> "Page":
    from tensortutor.commands.render import Page

    given = session.progress.answers(lesson.id)
    again, begins = session.again(lesson), session.workspace.begins_with
    return Page(session.printer, lesson, given, again, begins)


def _show_chapter(session: Session, chapter: Chapter) -> int:
    """What a chapter is about, and its lessons."""
    printer, earned = session.printer, session.credit()
    printer.line(_chapter_line(session, chapter))
    for line in textwrap.wrap(chapter.blurb, printer.width):
        printer.line(line)
    for number, lesson in enumerate(chapter.lessons, 1):
        printer.line()
        printer.line(f"{_mark(session, lesson, earned)}  {chapter.number}.{number}  {lesson.title}")
        for line in textwrap.wrap(lesson.goal, printer.width - 4):
            printer.line(f"    {line}")
        printer.line(printer.paint(f"    {lesson.id} · {lesson.minutes} min", "dim"))
    return 0


def _show_solution(session: Session, lesson: Lesson, spoil: bool) -> int:
    work = session.lesson_session(lesson, lesson.steps.index(lesson.task))
    if spoil:
        session.progress.mark_solution_seen(lesson.id)
    if not spoil and not work.may_see_solution:
        raise Refused(
            f"The solution of {lesson.id} is shown when you have passed it, or with --spoil. "
            f"A hint may do: tensortutor hint {lesson.id}{session.again(lesson)}"
        )
    session.printer.line(lesson.solution.rstrip("\n"))
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
        count, known = len(session.course.lessons), len(session.credit().known)
        but = f" but {known}, which count as known," if known else ""
        printer.line(f"You have passed all {count} lessons{but} and read every step.")
        return 0
    lesson, index = place
    page = _page(session, lesson)
    if index == 0:
        for line in page.title(state(lesson, session.credit())):
            printer.line(line)
        printer.line()
    for line in page.step(index):
        printer.line(line)
    _say_file(session, lesson, index)
    printer.line()
    work = session.lesson_session(lesson, index)
    todo = left_to_do(session, work)
    what, command = todo or ("Go on:", f"tensortutor next{chosen(session.options)}")
    for line in to_do(what, command, printer.width):
        printer.line(line)
    work.arrive()
    if not todo:
        work.mark_done()
    return 0


def left_to_do(session: Session, work: LessonSession) -> tuple[str, str] | None:
    """What a step still asks of the learner, and the command for it; None if nothing is left."""
    lesson, again = work.lesson, session.again(work.lesson)
    if work.left_to_do == "answer":
        command = f"tensortutor answer {lesson.id} {work.index + 1} VALUE{again}"
        return "Answer the question, then go on:", command
    if work.left_to_do == "run":
        return RUN_TO_SEE, run_command(session, lesson, work.index)
    if work.left_to_do == "check":
        return "Go on when the checks pass:", f"tensortutor check {lesson.id}{again}"
    return None


def run_command(session: Session, lesson: Lesson, index: int) -> str:
    """The command that runs a step's code."""
    again = session.again(lesson)
    return f"tensortutor run --lesson {lesson.id} --step {index + 1}{again}"


def _next_place(session: Session) -> tuple[Lesson, int] | None:
    course, progress = session.course, session.progress
    history = progress.history()
    place = continue_at(course, credit(course, history), progress.place())
    if place is None:
        raise Refused("The course has no lessons.")
    lesson: Lesson | None = place[0]
    start = place[1]
    for _ in course.lessons:
        if lesson is None:
            return None
        index = session.lesson_session(lesson, start).open_step()
        if index is not None:
            return lesson, index
        lesson = next_lesson(course, lesson.id, history)
        start = 0 if lesson is None else progress.step_of(lesson.id)
    return None


def hint(session: Session, arguments: Namespace) -> int:
    """The next hint of the step that is judged; when there are no more, all of them."""
    lesson = session.open_lesson(arguments.lesson_name, arguments.anyway)
    hints = lesson.task.hints
    printer, page = session.printer, _page(session, lesson)
    step = f"step {lesson.steps.index(lesson.task) + 1}, {lesson.task.title}"
    work = session.lesson_session(lesson, lesson.steps.index(lesson.task))
    before = work.hints_shown
    numbers = range(before, work.hint())
    if not numbers:
        numbers = range(len(hints))
        printer.line("There are no more hints. These were shown:")
    for number in numbers:
        printer.line(printer.paint(f"Hint {number + 1} of {len(hints)} for {step}", "bold"))
        for line in page.prose(Prose(hints[number], 0)):
            printer.line(line)
    return 0
