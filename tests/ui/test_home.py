from tensortutor.ui.outline import ChapterRow, ContinueRow, LessonRow
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen


def titles(screen: HomeScreen) -> list[str]:
    return [row.lesson.title for row in screen.courses.rows if isinstance(row, LessonRow)]


def about(screen: HomeScreen) -> str:
    return str(screen.query_one("#about").content)


async def test_the_first_row_begins_and_enter_opens_it(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        row = app.screen.courses.row
        assert isinstance(row, ContinueRow)
        assert (row.lesson.id, row.begun) == ("tensors/shapes", False)
        assert app.focused is app.screen.courses
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        assert app.screen.lesson.id == "tensors/shapes"


async def test_it_goes_on_where_the_learner_was(setting, until):
    setting.progress.mark_passed("tensors/shapes")
    setting.progress.set_place("autograd/accumulation", 3)
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        await until(pilot, lambda: app.screen.reader.border_title == "Practice")


async def test_states_are_told_by_a_sign_and_a_word(setting):
    setting.progress.mark_passed("tensors/shapes")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        screen = app.screen
        for key in ("down", "down", "right", "down", "down", "right"):
            await pilot.press(key)
        drawn = [screen.courses.render_line(y).text for y in range(9)]
        text = "\n".join(drawn)
        assert any("✓" in line and "Shapes" in line and "done" in line for line in drawn), text
        assert any("○" in line and "accumulate" in line and "open" in line for line in drawn), text
        assert any("–" in line and "Hooks" in line and "locked" in line for line in drawn), text
        assert any("Autograd" in line and "0/2" in line for line in drawn), text


async def test_the_panel_tells_what_opens_a_locked_lesson(setting):
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "down")
        assert app.screen.courses.row.lesson.id == "autograd/accumulation"
        assert "Explain why .grad adds up" in about(app.screen)
        assert "12 min" in about(app.screen)
        assert "locked: it opens after 1.1 Shapes" in about(app.screen)


async def test_a_locked_lesson_opens_after_one_question(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("end", "right", "down", "enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("y")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))
        assert app.screen.lesson.id == "autograd/accumulation"


async def test_chapters_fold(setting):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        assert titles(app.screen) == ["Shapes"]
        await pilot.press("down", "down", "left")
        await pilot.pause()
        assert titles(app.screen) == []
        assert isinstance(app.screen.courses.row, ChapterRow)
        await pilot.press("space")
        await pilot.pause()
        assert titles(app.screen) == ["Shapes"]


async def test_the_whole_course_fits_the_smallest_terminal(setting):
    app = setting.app()
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        assert not app.screen.query_one("#too-small").display
        for y in range(3):
            assert app.screen.courses.render_line(y).cell_length == app.screen.courses.size.width


async def test_a_smaller_window_shows_a_sentence_and_comes_back(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.resize_terminal(50, 24)
        await until(pilot, lambda: app.screen.query_one("#too-small").display)
        assert not app.screen.courses.parent.parent.display
        await pilot.resize_terminal(80, 12)
        await pilot.pause()
        assert app.screen.query_one("#too-small").display
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: not app.screen.query_one("#too-small").display)
        assert app.screen.courses.parent.parent.display
