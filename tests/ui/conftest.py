"""The app on a home of its own, with a runner that plays scripts.

Hundreds of apps start in one process. What they share is made once: rules of stylesheets are parsed
once, the collector of garbage looks through what stays once, and waiting looks every few
milliseconds instead of fifty times a second.
"""

import asyncio
import gc
from collections.abc import Callable, Iterator
from time import monotonic, process_time
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual._context import active_app
from textual.css.stylesheet import Stylesheet

from tensortutor.course.model import Lesson
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tensortutor.ui.app import TutorApp
from tests.ui.courses import course
from tests.ui.fakes import FakeRunner

STEP_S = 0.004
"""How long a process must be idle until what was pressed counts as done."""
BUSY = 0.1
"""The share of the time that a process computes for, from which it is not idle."""


def is_drawn() -> bool:
    """Whether the app of this test has nothing left to lay out or to draw."""
    app = active_app.get(None)
    if app is None or not app._running or not app._screen_stack:
        return True
    return not (app.screen._update_timer._active.is_set() or app.screen._callbacks)


async def wait_for_idle(min_sleep: float = STEP_S, max_sleep: float = 1) -> None:
    """Textual's function of this name in shorter steps, for keys and pauses of the pilot.

    In Textual's own steps of 20 ms the screen is drawn, too, since that comes 60 times a second. In
    shorter ones it has to be asked for.
    """
    begin = monotonic()
    while True:
        used = process_time()
        await asyncio.sleep(STEP_S)
        passed = monotonic() - begin
        is_idle = process_time() - used < STEP_S * BUSY and is_drawn()
        if passed >= max_sleep or (is_idle and passed > min_sleep):
            return


@pytest.fixture(autouse=True, scope="session")
def waiting_in_short_steps() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for module in (textual.app, textual.pilot):
            patch.setattr(module, "wait_for_idle", wait_for_idle)
        yield


@pytest.fixture(autouse=True, scope="session")
def stylesheets_parsed_once() -> Iterator[None]:
    """Rules are the same for the same text and the same variables, and nobody changes them."""
    parse = Stylesheet._parse_rules
    known: dict[Any, Any] = {}

    def parse_once(self: Stylesheet, css: str, *args: Any, **named: Any) -> Any:
        key = (css, args, *named.items(), frozenset(self._variables.items()))
        if key not in known:
            known[key] = parse(self, css, *args, **named)
        return known[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Stylesheet, "_parse_rules", parse_once)
        yield


@pytest.fixture(autouse=True, scope="session")
def garbage_of_tests_alone() -> Iterator[None]:
    """What the modules hold is a quarter of what the collector would look through each time."""
    before = gc.get_threshold()
    gc.collect()
    gc.freeze()
    gc.set_threshold(20_000, 10, 10)
    yield
    gc.set_threshold(*before)
    gc.unfreeze()


class Setting:
    """Makes apps over the same home, as a learner starts the tutor again and again."""

    def __init__(self) -> None:
        self.course = course()
        self.paths = Paths.find()
        self.progress = Progress.open(self.paths)
        self.workspace = Workspace(self.paths)
        self.runner = FakeRunner()

    @property
    def shapes(self) -> Lesson:
        return self.course.lessons[0]

    @property
    def accumulation(self) -> Lesson:
        return self.course.lessons[1]

    def app(self, lesson: Lesson | None = None, step: int = 0) -> TutorApp:
        """An app; with a lesson it opens there, everything it needs passed."""
        if lesson is not None:
            for id in lesson.requires:
                self.progress.mark_passed(id)
            self.progress.set_place(lesson.id, step)
        return TutorApp(self.course, self.progress, self.workspace, self.runner, lesson=lesson)


@pytest.fixture
def setting(own_home) -> Setting:
    return Setting()


@pytest.fixture
def until() -> Callable[..., object]:
    """Wait, a message at a time, until something is so."""

    async def wait(pilot, condition: Callable[[], object], tries: int = 400) -> None:
        for _ in range(tries):
            if condition():
                return
            await pilot.pause(0.01)
        raise AssertionError(f"never so: {condition}")

    return wait
