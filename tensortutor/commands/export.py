"""`export`: lessons as Jupyter notebooks."""

from argparse import Namespace
from pathlib import Path

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.model import Lesson
from tensortutor.course.read_file import read_file


def export(session: Session, arguments: Namespace) -> int:
    """Write a notebook for each lesson named; existing ones are kept under another name."""
    if (arguments.name is None) == (not arguments.all):
        raise Refused("Name a lesson or a chapter, or say --all.")
    folder = Path(arguments.to or ".")
    for lesson in session.lessons(arguments.name):
        written, kept = write(session, lesson, folder)
        session.printer.line(str(written))
        if kept is not None:
            session.printer.note(f"What was there is now {kept}.")
    return 0


def write(session: Session, lesson: Lesson, folder: Path) -> tuple[Path, Path | None]:
    """Write one notebook. Returns its path, and where an older one of that name went.

    Raises Refused if it cannot be written.
    """
    import nbformat

    from tensortutor.learner.notebook import notebook
    from tensortutor.learner.workspace import write_atomic

    chapter = next(one for one in session.course.chapters if one.id == lesson.chapter)
    number = chapter.lessons.index(lesson) + 1
    path = folder / f"{chapter.number:02}_{number:02}_{lesson.slug}.ipynb"
    passed = lesson.id in session.progress.passed()
    made = notebook(lesson, lambda step: session.workspace.load(lesson, step), passed)
    nbformat.validate(made)
    text = nbformat.writes(made) + "\n"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if path.exists() and read_file(path).decode("utf-8", "replace") == text:
            return path, None
        kept = _put_aside(path) if path.exists() else None
        write_atomic(path, text)
    except OSError as error:
        raise Refused(f"{path} cannot be written: {error.strerror or error}.") from None
    return path, kept


def _put_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.stem}.{number}{path.suffix}")).exists():
        number += 1
    path.rename(aside)
    return aside
