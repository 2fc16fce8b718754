"""The progress screen: what is known well, what it took, and beginning again."""

import pytest

from tensortutor.course.catalog import find_course, open_course
from tensortutor.learner.mastery import standings
from tensortutor.ui.app import TutorApp
from tensortutor.ui.progress_rows import KINDS, entries, mark, standing_rows
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.progress import ProgressScreen
from tensortutor.ui.terminal import symbols
from tests.ui.test_drawings import drawn
from tests.ui.test_lesson import PRACTICE, arrive, told

SIZES = [(80, 24), (160, 50)]


def work_on(setting) -> None:
    """One lesson known well, one passed with help, one not begun."""
    progress, (shapes, accumulation, _) = setting.progress, setting.course.lessons
    progress.add_time(shapes.id, 720)
    progress.record_attempt(shapes.id, True, 1, 1)
    progress.record_answer(shapes.id, 0, 0, "a view", True)
    progress.mark_passed(shapes.id)
    progress.add_time(accumulation.id, 4000)
    for ok in (False, False, False, True):
        progress.record_attempt(accumulation.id, ok, 1, 2)
    progress.show_hint(accumulation.id)
    progress.mark_passed(accumulation.id)
    progress.set_place(accumulation.id, PRACTICE)
    setting.workspace.save(accumulation, PRACTICE, "mine\n")


@pytest.fixture
def worked(setting):
    """A setting in which something has been done."""
    work_on(setting)
    return setting


async def open_progress(pilot, until) -> ProgressScreen:
    await pilot.press("p")
    await until(pilot, lambda: isinstance(pilot.app.screen, ProgressScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: "Everything" in drawn(screen) and "Autograd" in drawn(screen))
    return screen


@pytest.mark.parametrize("size", SIZES)
async def test_it_tells_what_is_known_well_and_what_is_not(worked, until, size):
    app = worked.app()
    async with app.run_test(size=size) as pilot:
        screen = await open_progress(pilot, until)
        text = drawn(screen)
        assert "2 of 3 passed   1 known well   1 h 19 min" in text
        await until(pilot, lambda: "1/1  1 well" in drawn(screen))
        await pilot.press("end", "up")
        await until(pilot, lambda: "1 hint, 4 checks" in drawn(screen))
        assert "passed with help" in drawn(screen)
        await pilot.press("f")
        await until(pilot, lambda: "Known well" in drawn(screen))
        assert "1.1 Shapes" in drawn(screen)
        assert "2.1 Gradients" not in drawn(screen)
        await pilot.press("f")
        await until(pilot, lambda: "Worth another look" in drawn(screen))
        assert "2.1 Gradients" in drawn(screen)
        await pilot.press("f")
        await until(pilot, lambda: "Nothing is begun" in drawn(screen))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ProgressScreen))


async def test_chapters_fold_and_a_lesson_opens(worked, until):
    app = worked.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_progress(pilot, until)
        assert "1.1 Shapes" not in drawn(screen)
        await pilot.press("home", "enter")
        await until(pilot, lambda: "1.1 Shapes" in drawn(screen))
        await pilot.press("enter")
        await until(pilot, lambda: "1.1 Shapes" not in drawn(screen))
        await pilot.press("enter", "down", "enter")
        screen = await arrive(pilot, until)
        assert screen.lesson.id == "tensors/shapes"
        await pilot.press("f10")
        await until(pilot, lambda: len(app.screen_stack) == 1)


async def test_the_palette_leads_there_from_a_lesson_and_back(worked, until):
    app = worked.app(worked.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        lesson = await arrive(pilot, until)
        commands = {command.title: command for command in app.get_system_commands(app.screen)}
        commands["Progress"].callback()
        await until(pilot, lambda: isinstance(app.screen, ProgressScreen))
        await pilot.press("end", "up", "R")
        await until(pilot, lambda: any("is open" in sentence for sentence in told(app)))
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is lesson)


async def test_beginning_again_asks_keeps_a_backup_and_says_where(worked, until):
    setting, lesson = worked, worked.accumulation
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await open_progress(pilot, until)
        await pilot.press("R")
        await until(pilot, lambda: any("cursor on a lesson" in word for word in told(app)))
        await pilot.press("end", "up", "R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("n")
        await until(pilot, lambda: app.screen is screen)
        assert lesson.id in setting.progress.passed()
        await pilot.press("R")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: any("are kept in" in sentence for sentence in told(app)))
        assert lesson.id not in setting.progress.passed()
        kept = next(setting.paths.backups.iterdir())
        assert any(str(kept) in sentence for sentence in told(app))
        assert next(kept.rglob("*.py")).read_text() == "mine\n"
        assert (kept / setting.paths.progress.name).exists()
        assert setting.workspace.load(lesson, PRACTICE) != "mine\n"
        await until(pilot, lambda: "1 of 3 passed" in drawn(screen))


async def test_resizing_lays_the_rows_out_again(worked, until):
    app = worked.app()
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await open_progress(pilot, until)
        await pilot.resize_terminal(70, 20)
        await until(pilot, lambda: max(map(len, drawn(screen).split("\n"))) == 70)
        await until(pilot, lambda: "1 h 07 min  " in drawn(screen))


def test_rows_fit_and_each_level_has_a_sign_of_its_own(worked, monkeypatch):
    found = standings(worked.course, worked.progress)
    for width in (30, 66, 140):
        unfolded = frozenset({"autograd", "tensors"})
        shown = entries(found, KINDS[0], unfolded)
        names = {lesson.lesson.id: "1.1 x" for one in found for lesson in one.lessons}
        rows = standing_rows(shown, names, unfolded, width)
        assert [row.cell_length for row in rows] == [width] * len(shown)
    for signs in (symbols.UNICODE, symbols.ASCII):
        monkeypatch.setattr(symbols, "current", lambda signs=signs: signs)
        levels = {lesson.level for one in found for lesson in one.lessons}
        assert len({mark(level) for level in levels}) == len(levels) == 3


@pytest.mark.parametrize("size", [(80, 24), (120, 36)])
async def test_titles_of_chapters_are_whole_before_anything_stands_beside_them(
    setting, until, size
):
    course = open_course(find_course(None))
    for lesson in course.chapters[0].lessons:
        setting.progress.mark_passed(lesson.id)
    app = TutorApp(course, setting.progress, setting.workspace, setting.runner)
    async with app.run_test(size=size) as pilot:
        await pilot.press("p")
        await until(pilot, lambda: isinstance(app.screen, ProgressScreen))
        rows = app.screen.rows

        def seen():
            return [str(rows.get_option_at_index(n).prompt) for n in range(rows.option_count)]

        await until(
            pilot,
            lambda: (
                seen()
                and all(
                    chapter.title in row and f"/{len(chapter.lessons)}" in row
                    for chapter, row in zip(course.chapters, seen(), strict=True)
                )
            ),
        )
