"""No line of a message, an output or a program is cut in silence."""

import pytest
from textual.color import Color

from tensortutor.course.material import Failure, Prose, Step
from tensortutor.ui.widgets.markdown import Fence
from tests.ui.fakes import says
from tests.ui.test_drawings import drawn
from tests.ui.test_lesson import RUN, arrive, output

WORDS = [f"word{n}" for n in range(40)]
MESSAGE = "RuntimeError: " + " ".join(WORDS)
CODE = 'print("' + "".join(f"[{n}]" for n in range(70)) + '")'


@pytest.mark.parametrize("size", [(80, 40), (120, 40), (160, 50)])
async def test_messages_and_code_in_the_text_break_with_a_mark(setting, until, size):
    setting.course.lessons[1].__dict__["steps"] = (
        Step("Debugging", (Prose("What comes of it.", 1), Failure(CODE, MESSAGE, 1)), 1),
        *setting.accumulation.steps[1:],
    )
    app = setting.app(setting.accumulation)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        shown = drawn(screen)
        assert all(word in shown.split() for word in WORDS)
        assert all(f"[{n}]" in shown.replace(" │\n│ ↪ ", "") for n in (0, 69))
        assert shown.count("↪") >= 2


async def test_a_message_is_told_from_code_by_its_colour_and_code_is_no_brighter_than_text(
    setting, until
):
    setting.course.lessons[1].__dict__["steps"] = (
        Step("Debugging", (Prose("What comes of it.", 1), Failure("x = y", MESSAGE, 1)), 1),
        *setting.accumulation.steps[1:],
    )
    app = setting.app(setting.accumulation)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await until(pilot, lambda: "RuntimeError" in drawn(screen))
        code, message = (fence.query_one("#code-content") for fence in screen.reader.query(Fence))
        code_colour, message_colour = (
            {
                segment.style.color.triplet
                for segment in label.render_line(0)
                if segment.text.strip()
            }
            for label in (code, message)
        )
        text = Color.parse(app.current_theme.foreground).rgb
        assert text in code_colour
        assert (255, 255, 255) not in code_colour | message_colour
        assert text not in message_colour


async def test_output_breaks_with_a_mark_and_code_says_that_it_goes_on(setting, until):
    setting.runner.script = says("x" * 200 + "\n")
    setting.workspace.save(setting.accumulation, RUN, f"{CODE}\nx = 1\n")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: output(screen) == ["x" * 200])
        log = screen.query_one("#transcript")
        await until(pilot, lambda: log.virtual_size.height == 3)
        rows = [log.render_line(y).text.rstrip() for y in range(3)]
        assert [row[:2] for row in rows] == ["xx", "↪ ", "↪ "]
        assert "".join(rows).count("x") == 200
        first, second = (screen.editor.render_line(y).text for y in (0, 1))
        assert first.endswith("›")
        assert not second.rstrip().endswith("›")
        await pilot.press("f3", "end")
        await until(pilot, lambda: screen.editor.render_line(0).text.rstrip().endswith('")'))


async def test_what_is_cut_has_its_mark_beside_the_scrollbar_not_below_it(setting, until):
    setting.workspace.save(setting.accumulation, RUN, f"{CODE}\n" * 40)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f3")
        await until(pilot, lambda: screen.editor.show_vertical_scrollbar)
        await until(pilot, lambda: drawn(screen).count("› │") > 4)


def test_the_parts_of_a_line_are_the_line():
    from tensortutor.ui.widgets.wrapping import margin, pieces

    for text in (MESSAGE, CODE, "日本" * 30, "a", ""):
        for width in (1, 3, 20, 79):
            parts = pieces(text, width)
            assert "".join(parts) == text
            if width > len(margin()) + 1:
                assert all(len(part) <= width for part in parts)
