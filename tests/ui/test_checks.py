"""What the checks found: folded, unfolded, tried again."""

from dataclasses import replace

import pytest

from tensortutor.protocol.events import Explained, Finished, Frame, Judged, Raised
from tensortutor.ui.widgets.checkline import CheckLine
from tensortutor.ui.widgets.checks import ChecksPane
from tests.ui.courses import CHECKS
from tests.ui.fakes import DONE, FAILURE, judges, plays
from tests.ui.test_lesson import PRACTICE, SIZES, arrive, ended, told


def drawn(line: CheckLine) -> str:
    return "\n".join(line.render_line(y).text for y in range(line.region.height))


def folded(line: CheckLine) -> bool:
    return line.region.height == 1


async def checked(pilot, until, key="f9"):
    screen = await arrive(pilot, until)
    await pilot.press(key)
    await until(pilot, lambda: "check" in ended(screen) and not screen.results.is_running)
    await pilot.pause()
    return screen, list(screen.query(CheckLine))


@pytest.mark.parametrize("size", SIZES)
async def test_a_passed_check_folds_and_a_failed_one_stands_open(setting, until, size):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        screen, (passed, failed) = await checked(pilot, until)
        assert folded(passed)
        assert "▸" in drawn(passed)
        assert not folded(failed)
        assert "▾" in drawn(failed).splitlines()[0]
        screen.panes.turn_to("results")
        await until(pilot, lambda: app.focused is failed)
        await pilot.press("enter")
        await until(pilot, lambda: folded(failed))
        await pilot.press("enter")
        await until(pilot, lambda: not folded(failed))
        while app.focused is failed:  # through what is longer than the pane, line by line
            await pilot.press("up")
        await pilot.press("enter")
        await until(pilot, lambda: not folded(passed))
        assert "seed" in drawn(passed)
        assert "811" in drawn(passed)
        assert "catches" in drawn(passed)
        assert "clears the gradients between batches" in drawn(passed)


async def test_a_click_unfolds_and_the_next_run_folds_again(setting, until):
    setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        screen, (first, second) = await checked(pilot, until)
        await pilot.click(second, offset=(3, 0))
        await until(pilot, lambda: not folded(second))
        assert folded(first)
        _, lines = await checked(pilot, until)
        assert lines == [first, second]
        await until(pilot, lambda: folded(second))
        assert screen.query_one(ChecksPane).failed_seed is None


async def test_a_failure_told_above_can_be_unfolded_where_it_stands(setting, until):
    setting.runner.script = judges(dict.fromkeys(CHECKS, False))
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 60)) as pilot:
        _, (_, second) = await checked(pilot, until)
        assert "As above." in drawn(second)
        second.focus()
        await pilot.press("enter")
        await until(pilot, lambda: second.region.height > 2)
        assert "expected" in drawn(second)


async def test_what_may_fail_for_the_same_cause_is_folded(setting, until):
    one = replace(FAILURE, check=CHECKS[0])
    other = replace(FAILURE, check=CHECKS[1], message="something else")
    setting.runner.script = plays(one, other, Judged((), CHECKS), DONE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 60)) as pilot:
        _, (first, second) = await checked(pilot, until)
        assert "expected" in drawn(first)
        assert "May have the same cause." in drawn(second)
        assert "something else" not in drawn(second)
        second.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "something else" in drawn(second))


async def test_the_inputs_that_failed_are_tried_again(setting, until):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "C")
        assert any("No check has failed" in text for text in told(app))
        assert setting.runner.jobs == []
        await checked(pilot, until)
        await pilot.press("escape", "C")
        await until(pilot, lambda: len(setting.runner.jobs) == 2)
        assert setting.runner.jobs[1].judge.seeds == (811,)
        await until(pilot, lambda: not screen.results.is_running)


async def test_a_program_that_raises_is_explained_where_the_checks_would_be(setting, until):
    """The error, its line and its meaning stand in Checks; no row says "unknown"."""
    text = "ValueError: 3 is not 4"
    setting.runner.script = plays(
        Raised("ValueError", "3 is not 4", (Frame("<module>", 2, "f(3)"),), text),
        Explained(
            "", "sizes", text, "Sizes differ", "", "They must agree.", "Make them agree.", ""
        ),
        Judged((), (), CHECKS),
        Finished("raised", 1, "The program ended with a ValueError in line 2.", 3.0),
    )
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen, lines = await checked(pilot, until)
        panel = drawn(screen.query_one("#checks-raised"))
        words = panel.split()
        assert panel.startswith(text)
        for word in ("line 2: f(3)", "means", "They must agree.", "way out", "Make them agree."):
            assert word in panel
        assert words.index("error") < words.index("means")
        assert not any(line.region.area for line in lines)
        assert screen.query_one("#checks-raised").region.y <= screen.results.region.y + 1
        # The next check that runs has its rows again.
        setting.runner.script = judges(dict.fromkeys(CHECKS, True))
        await checked(pilot, until)
        assert all(line.display for line in lines)
        assert not screen.query_one("#checks-raised").display


async def test_a_failure_says_what_is_wrong_first_and_its_inputs_last(setting, until):
    long = "\n".join(f"keep_{n} = {list(range(30))}" for n in range(5))
    verdict = replace(FAILURE, check=CHECKS[0], input=long)
    elsewhere = replace(FAILURE, check=CHECKS[1], called="weights(3)")
    setting.runner.script = plays(verdict, elsewhere, Judged((), CHECKS), DONE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(100, 40)) as pilot:
        _, (first, second) = await checked(pilot, until)
        labels = [line.split()[0] for line in drawn(first).splitlines()[2:] if line.split()]
        assert labels[:4] == ["got", "expected", "hint", "cause"]
        assert labels[-2:-1] == ["input"]
        assert "keep_2" not in drawn(first)
        assert "…" in drawn(first)
        assert "expected" in drawn(second), "another function has a cause of its own"
        first.focus()
        await pilot.press("enter")
        await until(pilot, lambda: "keep_4" in drawn(first))
        await pilot.press("enter")
        await until(pilot, lambda: folded(first))
