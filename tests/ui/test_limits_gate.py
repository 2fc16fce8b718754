"""A course that asks for more than the usual limits: one question before the first run."""

from dataclasses import replace

import pytest

from tensortutor.course.model import Course
from tensortutor.protocol.jobs import Limits
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.widgets.results import Results

RUN = 1


@pytest.mark.parametrize(("key", "wall_s"), [("y", 600.0), ("escape", Limits().wall_s)])
async def test_more_than_the_usual_limits_needs_a_yes(setting, until, tmp_path, key, wall_s):
    greedy = replace(setting.accumulation, limits=(("wall_s", 600.0),))
    chapters = [
        replace(chapter, lessons=tuple(greedy if x.id == greedy.id else x for x in chapter.lessons))
        for chapter in setting.course.chapters
    ]
    setting.course = Course("Theirs", tuple(chapters), tmp_path)
    app = setting.app(greedy, RUN)
    async with app.run_test() as pilot:
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        await until(pilot, lambda: app.screen.query("#page"))
        await pilot.pause()
        await pilot.press("f5")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert not setting.runner.runs
        await pilot.press(key)
        await until(pilot, lambda: len(setting.runner.runs) == 1)
        await until(pilot, lambda: not app.screen.query_one(Results).is_running)
        await pilot.press("f5")
        await until(pilot, lambda: len(setting.runner.runs) == 2)
    assert [run.job.limits.wall_s for run in setting.runner.runs] == [wall_s, wall_s]
