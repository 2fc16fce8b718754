"""`progress`: what is known well and what is not."""

from argparse import Namespace

from tensortutor.commands.session import Session
from tensortutor.learner.mastery import ChapterStanding, Level, Standing, duration, standings

MARKS = {
    Level.NEW: " ", Level.BEGUN: "…", Level.KNOWN: "◐", Level.HELPED: "~", Level.PASSED: "-",
    Level.WELL: "✓",
}  # fmt: skip


def progress(session: Session, arguments: Namespace) -> int:
    """The course, or a chapter lesson by lesson."""
    chosen = {lesson.id for lesson in session.lessons(arguments.name)}
    chapters = [
        one for one in standings(session.course, session.progress)
        if any(standing.lesson.id in chosen for standing in one.lessons)
    ]  # fmt: skip
    if session.json:
        for chapter in chapters:
            for standing in chapter.lessons:
                session.printer.json(as_json(chapter, standing))
        return 0
    for chapter in chapters:
        session.printer.line(chapter_line(chapter))
        if arguments.name is not None:
            for standing in chapter.lessons:
                _print_lesson(session, standing)
    if arguments.name is None:
        _print_weak(session, chapters)
    return 0


def chapter_line(chapter: ChapterStanding) -> str:
    """A chapter in a line."""
    total = len(chapter.lessons)
    well = chapter.count(Level.WELL)
    words = f"{chapter.passed:2} of {total:2} passed"
    if chapter.passed:
        words += f", {well} well"
    if known := chapter.count(Level.KNOWN):
        words += f", {known} known"
    spent = duration(chapter.seconds) if chapter.seconds else ""
    return f"{chapter.chapter.number:2}  {chapter.chapter.title:<56.56}{words:<25} {spent}".rstrip()


def _print_lesson(session: Session, standing: Standing) -> None:
    printer = session.printer
    tries = standing.attempts
    tried = f"{tries} check{'s' if tries > 1 else ''}" if tries else ""
    level = standing.level.value
    if standing.level is Level.KNOWN:
        level += f": {standing.why}"
    words = [level, tried, duration(standing.seconds) if standing.seconds else ""]
    if standing.questions:
        words.append(f"{standing.right_at_first} of {standing.questions} answers right at first")
    printer.line(f"  {MARKS[standing.level]} {standing.lesson.title}")
    printer.line(printer.paint(f"      {' · '.join(word for word in words if word)}", "dim"))


def _print_weak(session: Session, chapters: list[ChapterStanding]) -> None:
    weak = [
        one for chapter in chapters for one in chapter.lessons
        if one.level in (Level.HELPED, Level.PASSED)
    ]  # fmt: skip
    if not weak:
        return
    session.printer.line()
    session.printer.line("Passed, and worth another look:")
    for standing in weak:
        session.printer.line(f"  {standing.lesson.id:<36}{standing.why}")


def as_json(chapter: ChapterStanding, standing: Standing) -> dict[str, object]:
    """One lesson for a program to read. seconds: of work, idle time left out."""
    return {
        "event": "progress",
        "chapter": chapter.chapter.id,
        "lesson": standing.lesson.id,
        "level": standing.level.name.lower(),
        "known_by": standing.known_by or None,
        "seconds": round(standing.seconds, 1),
        "attempts": standing.attempts,
        "hints": standing.hints,
        "solution": standing.solution,
        "questions": standing.questions,
        "right_at_first": standing.right_at_first,
    }
