"""The app on a home of its own, with a runner that plays scripts."""

from collections.abc import Callable

import pytest

from tensortutor.course.model import Lesson
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tensortutor.ui.app import TutorApp
from tests.ui.courses import course
from tests.ui.fakes import FakeRunner


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
