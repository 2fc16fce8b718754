"""After passing: a solution beside the learner's own, and what others get wrong."""

import pytest

from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.screens.solution import SolutionPage
from tensortutor.ui.widgets.comparison import Comparison
from tests.ui.courses import SOLUTION, STARTER
from tests.ui.test_lesson import PRACTICE, arrive


def text(page: Page) -> str:
    comparison = page.query_one(Comparison)
    return "\n".join(comparison.render_line(y).text.rstrip() for y in range(comparison.size.height))


def rest(page: Page) -> str:
    return "\n".join(str(part.content) for part in page.query("Static"))


async def opened(setting, pilot, until) -> Page:
    await arrive(pilot, until)
    await pilot.press("escape", "s")
    await until(pilot, lambda: isinstance(pilot.app.screen, SolutionPage))
    await pilot.pause()
    return pilot.app.screen


@pytest.mark.parametrize(("size", "beside"), [((80, 24), False), ((200, 50), True)])
async def test_the_differences_are_told_by_signs(setting, until, size, beside):
    setting.progress.mark_passed("autograd/accumulation")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        page = await opened(setting, pilot, until)
        lines = text(page).splitlines()
        common = "model.zero_grad()"
        mine = next(line for line in lines if "loss_fn(model(inputs), targets).backward()" in line)
        assert mine.startswith("< ")
        theirs = next(line for line in lines if "total = sum(" in line)
        if beside:
            assert "Yours" in lines[0]
            assert "│ > " in theirs
            assert any("def accumulate" in line and line.count("def") == 2 for line in lines)
        else:
            assert lines[0] == "< yours   > another way"
            assert theirs.startswith("> ")
            assert "  def accumulate(model, batches, loss_fn):" in lines
        assert common in text(page)
        assert '"""' not in text(page)
        assert "weighs every batch alike" in rest(page)
        assert "found by: a smaller last batch counts for less" in rest(page)
        assert "(loss_fn(model(inputs), targets) / len(batches)).backward()" in rest(page)
        assert "clear_and_add" not in rest(page)  # a helper of the check file, seen by nobody
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Page))


async def test_it_follows_the_width_of_the_window(setting, until):
    setting.progress.mark_passed("autograd/accumulation")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(200, 50)) as pilot:
        page = await opened(setting, pilot, until)
        assert "Yours" in text(page)
        await pilot.resize_terminal(80, 24)
        await until(pilot, lambda: text(page).startswith("< yours"))


async def test_what_is_typed_counts_and_equal_code_is_said_to_be_equal(setting, until):
    setting.progress.mark_passed("autograd/accumulation")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        screen.editor.renew(SOLUTION + '\n"mine"\n')
        await pilot.pause()
        page = await opened(setting, pilot, until)
        assert '< "mine"' in text(page)
        await pilot.press("escape")
        screen.editor.renew(SOLUTION)
        await pilot.pause()
        page = await opened(setting, pilot, until)
        assert "your code is the solution" in rest(page)
        assert "< " not in text(page).partition("\n")[2]


def test_a_line_too_long_goes_on_behind_the_same_mark_and_is_seen_to_be_broken():
    from tensortutor.learner.solution_diff import beside

    comparison = Comparison(beside("x" * 30 + "\n", STARTER[:0]))
    lines = str(comparison._below(12)).split("\n")
    assert lines[2:] == ["< " + "x" * 10, "< ↪ " + "x" * 8, "< ↪ " + "x" * 8, "< ↪ " + "x" * 4]
    assert str(Comparison(beside("one two three\n", ""))._below(12)).split("\n")[2:] == [
        "< one two ",
        "< ↪ three",
    ]
