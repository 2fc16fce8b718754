"""Sizes of text, code and results: by keys, by the mouse, and the next day."""

import json

import pytest

from tensortutor.course.catalog import find_course, open_course
from tensortutor.learner.ui_state import UiState
from tensortutor.ui.app import TutorApp
from tests.ui.test_drawings import drawn
from tests.ui.test_lesson import INSIGHT, PRACTICE, PREDICTION, arrive, told


@pytest.fixture
def ui_state(tmp_path):
    return tmp_path / "remembered.json"


def app_at(setting, step, ui_state):
    setting.app(setting.accumulation, step)
    return TutorApp(
        setting.course, setting.progress, setting.workspace, setting.runner,
        lesson=setting.accumulation, ui_state=UiState(ui_state),
    )  # fmt: skip


def sizes(screen) -> tuple[int, int]:
    return screen.reader.region.width, screen.results.region.height


async def test_keys_change_sizes_and_they_last(setting, until, ui_state):
    app = app_at(setting, PRACTICE, ui_state)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape")
        width, height = sizes(screen)
        await pilot.press("greater_than_sign", "greater_than_sign", "plus")
        await until(pilot, lambda: sizes(screen) != (width, height))
        wider = sizes(screen)
        assert height == 3, "there are no results yet"
        assert wider == (80, round(48 * 0.45))
        await pilot.press("less_than_sign", "minus", "minus")
        await until(pilot, lambda: sizes(screen)[0] == 72)
        assert height < sizes(screen)[1] < wider[1]
        before = sizes(screen)
    again = app_at(setting, PRACTICE, ui_state)
    async with again.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        assert sizes(screen) == (before[0], 3)
        await pilot.press("f3")
        await until(pilot, lambda: sizes(screen) == before)
        await pilot.press("equals_sign")
        await until(pilot, lambda: sizes(screen) in ((width, 19), (width, 20)))


async def test_no_part_can_be_made_to_vanish(setting, until, ui_state):
    ui_state.write_text(json.dumps({"lesson.text": 400, "lesson.results": -3}))
    app = app_at(setting, PRACTICE, ui_state)
    async with app.run_test(size=(120, 30)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f3")
        await until(pilot, lambda: screen.results.region.height > 3)
        assert screen.editor.region.height > 3
        assert screen.editor.region.width > 15
        for _ in range(20):
            await pilot.press("less_than_sign")
        await until(pilot, lambda: screen.reader.region.width < 20)
        assert screen.reader.region.width > 15


@pytest.mark.parametrize("step", [INSIGHT, PRACTICE])
async def test_on_a_narrow_terminal_what_is_remembered_does_not_count(
    setting, until, ui_state, step
):
    ui_state.write_text(json.dumps({"lesson.text": 30, "lesson.results": 30}))
    app = app_at(setting, step, ui_state)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape")
        await until(pilot, lambda: screen.reader.region.size == (80, 22))
        await pilot.press("greater_than_sign")
        await until(pilot, lambda: any("this narrow" in sentence for sentence in told(app)))
        assert screen.reader.region.size == (80, 22)
        if step == PRACTICE:
            for part in (screen.editor, screen.results):
                await pilot.press("f3")
                await until(pilot, lambda part=part: part.region.height > 8)
                assert part.region.width == 80


async def test_frames_can_be_dragged(setting, until, ui_state):
    app = app_at(setting, PRACTICE, ui_state)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        cursor = screen.editor.cursor_location
        await pilot.mouse_down(offset=(64, 20))  # the code's left frame
        await pilot.hover(offset=(95, 20))
        await until(pilot, lambda: screen.reader.region.width == 96)
        await pilot.mouse_up(offset=(95, 20))
        await pilot.press("f3")
        await until(pilot, lambda: screen.results.region.height > 3)
        edge = screen.editor.region.bottom - 1
        await pilot.mouse_down(offset=(120, edge))
        await pilot.hover(offset=(120, 15))
        await pilot.mouse_up(offset=(120, 15))
        await until(pilot, lambda: screen.results.region.y == 15)
        assert screen.editor.cursor_location == cursor, "the text has heard nothing of it"
        assert not screen.selections
        assert app.mouse_captured is None
        kept = json.loads(ui_state.read_text())
        assert kept["lesson.text"] == 60
        await pilot.hover(offset=(20, 20))
        assert screen.reader.region.width == 96


async def test_tabs_in_the_frame_are_clicked_and_not_dragged(setting, until, ui_state):
    app = app_at(setting, PRACTICE, ui_state)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        row = screen.results.region.y
        column = drawn(screen).split("\n")[row].index("Tensors")
        await pilot.click(offset=(column, row))
        await until(pilot, lambda: screen.results.front.TITLE == "Tensors")
        assert not screen.panes.is_dragging


async def test_the_first_screen_of_the_first_lesson_names_the_keys_that_matter(setting, until):
    course = open_course(find_course(None))
    app = TutorApp(
        course, setting.progress, setting.workspace, setting.runner, lesson=course.lessons[0]
    )
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        for key in ("F5", "F9", "F8", "F3", "Esc", "Space"):
            assert key in drawn(screen).split("╰")[0], key
        await pilot.press("space")
        await until(pilot, lambda: screen.reader.is_vertical_scroll_end)


@pytest.mark.parametrize("size", [(80, 24), (100, 30), (119, 40)])
async def test_panes_stack_and_results_are_small_until_there_are_any(
    setting, until, ui_state, size
):
    """A question stands above the code that it is about, the code above the results."""
    app = app_at(setting, PREDICTION, ui_state)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        field = screen.reader.questions[0].field
        parts = (screen.reader, screen.editor, screen.results)
        await until(pilot, lambda: all(part.region.area for part in parts))
        await until(pilot, lambda: screen.reader.region.contains_region(field.region))
        assert [part.region.x for part in parts] == [0, 0, 0]
        assert [part.region.right for part in parts] == [size[0]] * 3
        assert screen.results.region.height == 3
        assert screen.editor.region.height >= 9
        await pilot.press("escape", "x")
        await until(pilot, lambda: screen.results.region.height > 6)
        assert all(part.region.area for part in parts)
