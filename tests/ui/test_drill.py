"""Drills in the app: drawn, judged by a real run, kept, and left without a trace of a program."""

import pytest

from tensortutor.course.catalog import open_course
from tensortutor.learner import progress as progress_module
from tensortutor.protocol.drawings import Block, CellGrid
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.review import ReviewScreen
from tensortutor.ui.widgets.drawings import DrawingView
from tensortutor.ui.widgets.drill import GUTTER, DrillView, Grids
from tests.course.test_drills import DRILLS, FILE
from tests.course.tiny import copy_of_tiny
from tests.ui.fakes import waits

MEANS = "basics/means"
SIZES = [(80, 24), (160, 50)]


@pytest.fixture
def drilled(setting, tmp_path, monkeypatch):
    """The app's setting on a course with a drill whose lesson was passed long ago."""
    root = copy_of_tiny(tmp_path)
    (root / FILE).write_text(DRILLS)
    setting.course = open_course(root)
    with monkeypatch.context() as past:
        past.setattr(progress_module, "_now", lambda: "2020-01-01T00:00:00+00:00")
        setting.progress.mark_passed(MEANS)
    return setting


async def open_review(pilot, until):
    app = pilot.app
    await until(pilot, lambda: isinstance(app.screen, HomeScreen))
    await until(pilot, lambda: "1 drill is due" in app.screen.courses.render_line(1).text)
    await pilot.press("v")
    await until(pilot, lambda: isinstance(app.screen, ReviewScreen) and app.screen.card)
    await until(pilot, lambda: app.screen.query(DrillView))
    return app.screen


async def judged(pilot, until, line):
    view = pilot.app.screen.query_one(DrillView)
    view.field.value = line
    await pilot.press("enter")
    await until(pilot, lambda: view.verdict and "running" not in view.verdict, tries=2000)
    return view.verdict


@pytest.mark.parametrize("size", SIZES)
async def test_a_due_drill_is_drawn_and_a_line_is_judged(drilled, until, runner_on_cpu, size):
    drilled.runner = runner_on_cpu
    async with drilled.app().run_test(size=size) as pilot:
        screen = await open_review(pilot, until)
        await until(pilot, lambda: len(screen.query(DrawingView)) == 2, tries=2000)
        assert pilot.app.focused is screen.query_one(DrillView).field
        said = await judged(pilot, until, "x[:, -2:]")
        assert "These are the columns in the order" in said
        assert "expected" in said
        said = await judged(pilot, until, "x[:, [-1, -2]]")
        assert "Right. Also right: x[:, -2:].flip(1)" in said
        await until(pilot, lambda: len(drilled.progress.all_answers()) == 2)
        row = drilled.progress.all_answers()[0]
        assert row[0] == "drill:basics/last_columns"
        await pilot.press("f8")
        await until(pilot, lambda: screen.card is None)


def one_row(title, *numbers):
    """A grid of a vector."""
    texts = tuple(f"{number:.2f}" for number in numbers)
    block = Block("", (0,), tuple(range(len(numbers))), texts, numbers)
    about = f"float32 [{len(numbers)}]"
    return CellGrid(title, (block,), 1, min(numbers), max(numbers), about=about)


async def test_grids_stand_apart_and_below_each_other_where_columns_would_be_left_out(
    drilled, until
):
    long = one_row("x", -9.44, 3.96, -2.57, 7.38, 1.25, -2.62)
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        screen = await open_review(pilot, until)
        grids = screen.query_one(Grids)
        grids.show([long, one_row("wanted", 1.0, 2.0)])
        above, below = screen.query(DrawingView)
        await until(pilot, lambda: below.region.y >= above.region.bottom > 0)
        await grids.remove_children()
        grids.show([one_row("x", 1.0, 2.0), one_row("wanted", 3.0, 4.0)])
        left, right = screen.query(DrawingView)
        await until(pilot, lambda: left.region.y == right.region.y > 0)
        assert right.region.x - left.region.right == GUTTER


async def test_what_is_no_line_runs_nothing_and_is_not_kept(drilled, until):
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        await open_review(pilot, until)
        await until(pilot, lambda: len(drilled.runner.jobs) == 1)
        assert "no Python expression" in await judged(pilot, until, "y = x")
        assert len(drilled.runner.jobs) == 1
        assert drilled.progress.all_answers() == []


async def test_the_answer_can_be_shown_and_counts_as_wrong(drilled, until):
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        screen = await open_review(pilot, until)
        await pilot.press("f2")
        await until(
            pilot, lambda: "x[:, -2:].flip(1) is right" in screen.query_one(DrillView).verdict
        )
        await until(pilot, lambda: drilled.progress.all_answers())
        assert drilled.progress.all_answers()[0][-1] == 0


async def test_leaving_ends_the_run(drilled, until):
    drilled.runner.script = waits()
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        await open_review(pilot, until)
        await until(pilot, lambda: drilled.runner.runs)
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(pilot.app.screen, HomeScreen))
        await until(pilot, lambda: drilled.runner.runs[0].stopped.is_set())


async def test_a_runner_that_cannot_start_says_why(drilled, until):
    drilled.runner.error = RuntimeError("PyTorch is not there.")
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        screen = await open_review(pilot, until)
        inputs = screen.query_one(".drill-inputs")
        await until(pilot, lambda: "PyTorch is not there." in str(inputs.content))


async def test_the_palette_asks_all_drills_of_passed_lessons(drilled, until):
    async with drilled.app().run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: isinstance(pilot.app.screen, HomeScreen))
        pilot.app.action_drills()
        await until(pilot, lambda: isinstance(pilot.app.screen, ReviewScreen))
        await until(pilot, lambda: pilot.app.screen.query(DrillView))
