"""Going into teach mode from the palette, and back to one's own lessons."""

from __future__ import annotations

from collections.abc import Iterator

from textual.app import SystemCommand

from tensortutor.course.model import Course
from tensortutor.learner.classroom import classroom, unlocked
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.progress import Progress
from tensortutor.learner.ui_state import UiState
from tensortutor.learner.workspace import Workspace
from tensortutor.ui.tutor import LearnerState, Tutor


def commands(app: Tutor) -> Iterator[SystemCommand]:
    """What the palette offers. A process that was started to teach does nothing else."""
    if app.put_aside is not None or not app.teaching:
        word = "Leave teach mode" if app.teaching else "Teach mode"
        yield SystemCommand(word, "Lessons for a room, block by block", lambda: turn(app))


def turn(app: Tutor) -> None:
    """Begin to teach, at the lesson that is open; or end it."""
    from tensortutor.ui.screens.home import HomeScreen
    from tensortutor.ui.screens.lesson import LessonScreen

    # The palette may still lie over it.
    shown = [screen for screen in app.screen_stack if isinstance(screen, LessonScreen)]
    place = (shown[-1].lesson, shown[-1].session.index) if shown else None
    if not app.keep():
        app.tell("Your code could not be saved, so it stays open.")
        return
    before = LearnerState(app.course, app.progress, app.workspace, app.ui_state)
    try:
        after = app.put_aside or _room(app.course)
    except OSError as error:
        app.tell(f"There is no place for a classroom: {reason(error)}.")
        return
    except StorageError as error:
        app.tell(str(error))
        return
    app.put_aside = None if app.teaching else before
    app.teaching = not app.teaching
    while len(app.screen_stack) > 1:
        app.pop_screen()
    app.course, app.progress = after.course, after.progress
    app.workspace, app.ui_state = after.workspace, after.ui_state
    if isinstance(app.screen, HomeScreen):
        app.screen.renew()
        app.screen.top.refresh()
    if place is not None:
        if app.teaching:
            app.progress.set_place(place[0].id, place[1])
        app.open_lesson(place[0])
    app.tell(begun(app) if app.teaching else "Your own lessons are back, as you left them.")


def begun(app: Tutor) -> str:
    """What teach mode is, in a sentence or two."""
    more, answer, code = (app.key_name(f"teach.{name}") for name in ("more", "answer", "code"))
    return (
        f"Teach mode: every lesson is open. {more} shows the next block of text or statement of "
        f"code, {code} all of the code, {answer} an answer. Nothing that you do now is kept."
    )


def _room(course: Course) -> LearnerState:
    paths = classroom()
    ui_state = UiState(paths.ui_state)
    return LearnerState(unlocked(course), Progress.open(paths), Workspace(paths), ui_state)
