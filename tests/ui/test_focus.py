"""Where the keys go: to what the learner does next, and never away from where they write."""

import pytest

from tensortutor.ui.screens.dialogs import Confirm
from tests.ui.courses import CHECKS, PREDICT, STARTER
from tests.ui.fakes import judges, waits
from tests.ui.test_lesson import INSIGHT, PRACTICE, PREDICTION, RUN, arrive, told


async def test_what_is_typed_on_arrival_is_written_and_runs_nothing(setting, until):
    """An exercise: into the code. A prediction: into the first field. Else the text pages."""
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press(*"def")
        assert screen.editor.text == "def" + STARTER

        await pilot.press("f7")
        await until(pilot, lambda: screen.session.index == PREDICTION)
        first, second = screen.reader.questions
        await until(pilot, lambda: first.field.has_focus)
        await pilot.press(*"nrq")
        assert first.field.value == "nrq"
        assert screen.session.index == PREDICTION
        assert setting.runner.jobs == []

        # To the code and back: the same question has the keys, and is still to be seen.
        second.field.focus()
        await pilot.press("f3", "x", "escape")
        assert screen.editor.text == "x" + PREDICT
        await until(pilot, lambda: second.field.has_focus)
        await until(pilot, lambda: screen.reader.region.contains_region(second.field.region))
        # An answer written out over a list chooses in the list.
        await pilot.press(*"false", "enter")
        await until(pilot, lambda: second.verdict.startswith("Your guess: False."))
        assert first.field.has_focus, "the first question that is open"
        assert setting.runner.jobs == []


async def test_running_checking_and_hints_leave_the_keys_in_the_code(setting, until):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        for key in ("f5", "f9", "f2"):
            await pilot.press(key)
            await until(pilot, lambda: not screen.results.is_running)
            await pilot.pause()
            assert screen.editor.has_focus, key
            assert screen.editor.region.height >= 5
        await until(pilot, lambda: screen.query(".hint"))
        hint = screen.query(".hint").first()
        await until(pilot, lambda: screen.reader.region.overlaps(hint.region))
        # Two quick turns are two turns.
        await pilot.press("f3", "f3", "y")
        assert screen.editor.text == "y" + STARTER


async def test_an_order_that_nobody_touched_is_no_answer_and_lists_do_not_page(setting, until):
    app = setting.app(setting.shapes, INSIGHT)
    async with app.run_test(size=(80, 16)) as pilot:
        screen = await arrive(pilot, until)
        order = screen.reader.questions[3]
        order.field.focus()
        await pilot.press("enter")
        await until(pilot, lambda: order.verdict.startswith("No line has been moved."))
        assert setting.progress.answers("tensors/shapes") == {}
        choice = screen.reader.questions[0]
        choice.field.focus()
        screen.reader.scroll_home(animate=False)
        await pilot.press("pagedown")
        await until(pilot, lambda: screen.reader.scroll_offset.y > 5)
        assert choice.field.has_focus
        await pilot.press("escape", "space", "space")
        await until(pilot, lambda: screen.reader.is_vertical_scroll_end)


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
async def test_a_running_program_is_asked_about(setting, until, key):
    """`q` asks before it ends what runs; Ctrl+C offers to stop the program."""
    setting.runner.script = waits()
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("ctrl+c")
        assert any("^Q quits" in sentence for sentence in told(app))
        await pilot.press("f5", key)
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        assert screen.results.is_running
        await pilot.press("n")
        await until(pilot, lambda: app.screen is screen)
        assert screen.results.is_running
        await pilot.press(key, "y")
        if key == "ctrl+c":
            await until(pilot, lambda: not screen.results.is_running)
        else:
            await until(pilot, lambda: app._exit)


async def test_an_answer_that_was_not_given_is_asked_about(setting, until):
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(120, 36)) as pilot:
        await arrive(pilot, until)
        await pilot.press("7", "escape", "q")
        await until(pilot, lambda: isinstance(app.screen, Confirm))
        await pilot.press("escape", "tab", "enter", "escape", "q")
        await until(pilot, lambda: app._exit)
