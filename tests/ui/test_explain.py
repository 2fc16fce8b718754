"""The app explains errors: below their own report, under a check, with a key to the lesson."""

import dataclasses

import pytest

from tensortutor.protocol.events import CheckStarted, Finished, Output, Raised, Verdict, Warned
from tensortutor.protocol.scene import Operand, Scene
from tensortutor.ui.screens.dialogs import Locked
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.widgets.checks import CheckLine
from tests.ui.courses import CHECKS
from tests.ui.fakes import DONE, plays
from tests.ui.test_lesson import PRACTICE, RUN, arrive, ended, output, told

ATLAS = """
[[errors]]
id = "sizes"
title = "Sizes differ"
pattern = '(?:RuntimeError|UserWarning): sizes (?P<a>\\d+) and (?P<b>\\d+)'
facts = ["{left} and {right}: {a} is not {b}."]
means = "They must agree, says a sentence that is too long for a narrow pane."
way_out = '''
Make them agree:

    x = x[:, :3]
'''
lesson = "LESSON"
needs = "nothing"
"""
SCENE = Scene(
    (
        Operand("x", ("left",), "Tensor", "f32", (2, 4), "cpu"),
        Operand("\x1b[31my", ("right",), "Tensor", "f32", (2, 3), "cpu"),
    )
)
REPORT = "Traceback (most recent call last):\n  ...\nRuntimeError: sizes 4 and 3\n"
RAISED = Raised("RuntimeError", "sizes 4 and 3", (), REPORT, SCENE)
FAILED = Finished("raised", 1, "RuntimeError in line 3.", 2.0)


@pytest.fixture
def with_atlas(setting, tmp_path):
    """The setting, its course with an atlas whose one entry names this lesson."""

    def with_atlas(lesson: str):
        (tmp_path / "lessons").mkdir()
        (tmp_path / "lessons" / "atlas.toml").write_text(ATLAS.replace("LESSON", lesson))
        setting.course = dataclasses.replace(setting.course, root=tmp_path)
        return setting

    return with_atlas


async def test_an_explanation_does_not_push_the_message_out_of_sight(with_atlas, until):
    setting = with_atlas("tensors/shapes")
    atlas = setting.course.root / "lessons" / "atlas.toml"
    atlas.write_text(atlas.read_text().replace("They must agree", "They must agree " * 60))
    setting.runner.script = plays(Output("stdout", "one\n" * 10), RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        transcript = screen.query_one("#transcript")
        await until(pilot, lambda: transcript.virtual_size.height > 2 * transcript.size.height)
        await pilot.pause()
        assert transcript.render_line(0).text.strip() == "RuntimeError: sizes 4 and 3"
        await pilot.press("f3", "f3", "end")
        await until(pilot, lambda: transcript.is_vertical_scroll_end)
        last = transcript.render_line(transcript.size.height - 1).text
        assert last.strip() == "Lesson 1.1 Shapes is about it: F12 opens it."


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_the_explanation_stands_below_the_error(with_atlas, until, size):
    setting = with_atlas("tensors/shapes")
    setting.runner.script = plays(Output("stdout", "one\n" * 10), RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        lines = output(screen)
        start = lines.index("RuntimeError: sizes 4 and 3") + 1
        assert lines[start:] == [
            "› Sizes differ",
            "  here     `x` is f32[2, 4] and `y` is f32[2, 3]: 4 is not 3.",
            "  means    They must agree, says a sentence that is too long for a narrow pane.",
            "  way out  Make them agree:",
            "             x = x[:, :3]",
            "           Lesson 1.1 Shapes is about it: F12 opens it.",
        ]
        await pilot.press("f3", "f3")
        await pilot.pause()
        shown = "\n".join(strip.text for strip in screen._compositor.render_strips())
        assert "RuntimeError: sizes 4 and 3" in shown
        assert "F12 opens it." in shown  # the end is in sight, also of the first screenful
        if size == (80, 24):
            # What wraps goes on below the text, not below its label.
            rows = shown.splitlines()
            number = next(n for n, row in enumerate(rows) if "for a narrow" in row)
            assert rows[number].index("They must") == rows[number + 1].index("pane.")


async def test_a_key_opens_the_lesson_about_it(with_atlas, until):
    setting = with_atlas("tensors/shapes")
    setting.runner.script = plays(RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f12")
        assert told(app)[-1] == "No error of the last run has a lesson of its own here."
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        await pilot.press("i")
        await until(pilot, lambda: app.screen is not screen)
        assert isinstance(app.screen, LessonScreen)
        assert app.screen.lesson is setting.shapes


async def test_a_locked_lesson_is_asked_for_and_the_own_one_is_named(with_atlas, until):
    setting = with_atlas("autograd/hooks")
    setting.runner.script = plays(RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        await pilot.press("f12")
        await until(pilot, lambda: isinstance(app.screen, Locked))


async def test_of_the_lesson_that_is_open_nothing_needs_opening(with_atlas, until):
    setting = with_atlas("autograd/accumulation")
    setting.runner.script = plays(RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        assert output(screen)[-1].strip() == "This lesson is about it."
        await pilot.press("f12")
        assert told(app)[-1] == "This lesson is about it."


async def test_a_lesson_that_is_not_there_is_not_mentioned(with_atlas, until):
    setting = with_atlas("tensors/of_tomorrow")
    setting.runner.script = plays(RAISED, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        assert output(screen)[-1].strip() == "x = x[:, :3]"


async def test_an_error_that_nobody_knows_is_shown_as_it_is(with_atlas, until):
    setting = with_atlas("tensors/shapes")
    report = "Traceback (most recent call last):\nRuntimeError: of my own"
    setting.runner.script = plays(Raised("RuntimeError", "of my own", (), report), FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("✗"))
        assert output(screen) == report.splitlines()


async def test_a_warning_is_explained_where_it_stands(with_atlas, until):
    setting = with_atlas("tensors/of_tomorrow")
    text = "a.py:3: UserWarning: sizes 4 and 3\n  f(x)\n"
    warned = Warned("UserWarning", "sizes 4 and 3", 3, SCENE)
    setting.runner.script = plays(
        Output("stderr", text), warned, Output("stdout", "after\n"), warned, DONE
    )
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "done" in ended(screen))
        lines = output(screen)
        assert lines[:3] == [*text.splitlines(), "› Sizes differ"]
        assert lines[-1] == "after"  # once is enough


async def test_an_answer_that_raises_is_explained_under_its_check(with_atlas, until):
    setting = with_atlas("tensors/shapes")
    message = "RuntimeError: sizes 4 and 3"
    setting.runner.script = plays(
        CheckStarted(CHECKS[0]), Verdict(CHECKS[0], False, 1, 2.0, message, scene=SCENE),
        CheckStarted(CHECKS[1]), Verdict(CHECKS[1], False, 1, 2.0, message, scene=SCENE),
        DONE,
    )  # fmt: skip
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: not screen.results.is_running)
        first, second = screen.query(CheckLine)
        assert first.rows == (
            ("error", "Sizes differ"),
            ("here", "`x` is f32[2, 4] and `y` is f32[2, 3]: 4 is not 3."),
            ("means", "They must agree, says a sentence that is too long for a narrow pane."),
            ("way out", "Make them agree:\nx = x[:, :3]"),
            ("lesson", "Lesson 1.1 Shapes is about it: F12 opens it."),
        )  # fmt: skip
        assert second.rows == ()
        shown = "\n".join(strip.text for strip in screen._compositor.render_strips())
        assert "way out  Make them agree:" in shown
        assert output(screen) == []
