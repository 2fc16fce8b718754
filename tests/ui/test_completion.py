import pytest
from textual.app import App

from tensortutor.protocol.assist import Completions, Documentation, Question, Typed, Types
from tensortutor.ui.editing import documentation
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.popup import HEIGHT, Popup
from tests.ui.fakes import plays
from tests.ui.test_drawings import drawn
from tests.ui.test_lesson import PRACTICE, arrive, ended, told

SIZES = [(80, 24), (130, 36)]
NAMES = ("sort", "softmax", "Size", "sum", "view")


def answers(question: Question):
    """Knows the names of `torch` and the words about one of them."""
    line = question.source.split("\n")[question.line - 1]
    if question.kind == "explain":
        if "softmax" not in line:
            return Documentation(question.number)
        call = ("softmax(input, dim) -> Tensor",)
        return Documentation(question.number, "torch.softmax", "function", call, "Sums to one. So.")
    start = line.rindex(".", 0, question.column) + 1 if "." in line[: question.column] else 0
    return Completions(question.number, start, NAMES if start else ("print",))


async def opened(setting, pilot, until, text: str = "") -> Editor:
    """The editor with this text, the cursor at its end."""
    screen = await arrive(pilot, until)
    await until(pilot, lambda: pilot.app.focused is screen.editor)
    screen.editor.renew(text)
    screen.editor.move_cursor(screen.editor.document.end)
    return screen.editor


def shown(app: App) -> list[str]:
    """The names in the frame; the chosen one has a sign before it."""
    popup = app.screen.query_one(Popup)
    lines = str(popup.content).split("\n")[:6]
    return [line for line in lines if line.strip()]


@pytest.mark.parametrize("size", SIZES)
async def test_names_are_offered_behind_a_dot_and_fit_what_is_typed(setting, until, size):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        editor = await opened(setting, pilot, until, "import torch\ntorch")
        assert setting.runner.attended
        await pilot.press(".")
        await until(pilot, lambda: app.screen.query(Popup))
        assert shown(app) == ["› sort", "  softmax", "  Size", "  sum", "  view"]
        assert "1 of 5, Tab takes it" in drawn(app.screen)
        popup = app.screen.query_one(Popup)
        await until(pilot, lambda: popup.region.height == HEIGHT)
        assert app.screen.region.contains_region(popup.region)
        assert popup.region.y > editor.cursor_screen_offset.y
        await pilot.press("s")
        assert shown(app) == ["› sort", "  softmax", "  sum", "  Size"]
        await pilot.press("o")
        assert shown(app) == ["› sort", "  softmax"]
        await pilot.press("down")
        await until(pilot, lambda: "Sums to one." in str(popup.content))
        assert "softmax(input, dim)" in str(popup.content)
        await pilot.press("tab", "(")
        assert editor.text == "import torch\ntorch.softmax()"
        await until(pilot, lambda: not app.screen.query(Popup))
        assert [q.kind for q in setting.runner.questions].count("complete") == 1


async def test_above_the_line_where_there_is_no_room_below(setting, until):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "\n" * 16 + "t")
        await pilot.press(".")
        await until(pilot, lambda: app.screen.query(Popup))
        popup = app.screen.query_one(Popup)
        await until(pilot, lambda: popup.region.height == HEIGHT)
        assert popup.region.bottom == editor.cursor_screen_offset.y


async def test_the_keys_of_the_editor_stay_its_own(setting, until):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "t")
        await pilot.press(".", "s")
        await until(pilot, lambda: app.screen.query(Popup))
        await pilot.press("enter")
        assert editor.text == "t.s\n"
        await until(pilot, lambda: not app.screen.query(Popup))
        await pilot.press("t", ".", "s")
        await until(pilot, lambda: app.screen.query(Popup))
        await pilot.press("escape")
        await until(pilot, lambda: not app.screen.query(Popup))
        assert app.focused is editor
        asked = len(setting.runner.questions)
        await pilot.press("o")
        assert len(setting.runner.questions) == asked
        await pilot.press("escape")
        await until(pilot, lambda: app.focused is not editor)


async def test_a_chosen_name_is_taken_by_enter_and_undone_in_one_step(setting, until):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "t.")
        await pilot.press("s")
        await until(pilot, lambda: app.screen.query(Popup))
        await pilot.press("down", "enter")
        assert editor.text == "t.softmax"
        await pilot.press("ctrl+z")
        assert editor.text == "t.s"


@pytest.mark.parametrize("text", ["# t", "'t", "3", '"""\nt'])
async def test_nobody_is_asked_in_strings_comments_and_numbers(setting, until, text):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(setting, pilot, until, text)
        await pilot.press(".", "s")
        assert setting.runner.questions == []


async def test_an_answer_that_comes_too_late_is_dropped(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "t")
        await pilot.press(".")
        await until(pilot, lambda: setting.runner.questions)
        (question,) = setting.runner.questions
        await pilot.press("s", "space")
        editor.completer.answered(answers(question), question.number)
        assert not app.screen.query(Popup)


async def test_a_key_asks_anywhere_and_again_for_the_words(setting, until):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "pr")
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.screen.query(Popup))
        await pilot.press("enter")
        assert editor.text == "print"
        editor.renew("t.so")
        editor.move_cursor((0, 4))
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.screen.query(Popup))
        await pilot.press("down", "ctrl+n")
        await until(pilot, lambda: isinstance(app.screen, Page))
        page = str(app.screen.query_one("Static").content)
        assert page.startswith("softmax(input, dim) -> Tensor\n\nSums to one. So.")
        assert editor.text == "t.so"
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, Page))
        assert app.focused is editor


@pytest.mark.parametrize("key", ["ctrl+n", "f11"])
async def test_having_nothing_to_say_is_said(setting, until, key):
    setting.runner.answer = lambda q: (
        Documentation(q.number) if q.kind == "explain" else Completions(q.number, q.column, ())
    )
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await opened(setting, pilot, until, "x")
        await pilot.press(key)
        await until(pilot, lambda: any("known" in text for text in told(app)))
        setting.runner.answer = lambda q: None
        await pilot.press(key)
        await until(pilot, lambda: any("still being read" in text for text in told(app)))


async def test_without_eagerness_only_the_key_asks(setting, until):
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        editor = await opened(setting, pilot, until, "t")
        editor.completer.is_eager = False
        await pilot.press(".", "s")
        assert setting.runner.questions == []
        await pilot.press("ctrl+n")
        await until(pilot, lambda: app.screen.query(Popup))


async def test_what_a_run_tells_of_names_goes_along_with_the_next_question(setting, until):
    first = Types((Typed("x", "torch.Tensor"), Typed("y", "int")))
    setting.runner.script = plays(first)
    setting.runner.answer = answers
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(130, 36)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "done" in ended(screen))
        assert setting.runner.jobs[0].types
        setting.runner.script = plays(Types((Typed("y", "float"), Typed("f.z", "str"))))
        await pilot.press("f5")
        await until(pilot, lambda: len(setting.runner.jobs) == 2 and "done" in ended(screen))
        await pilot.pause()
        await opened(setting, pilot, until, "x")
        await pilot.press(".")
        await until(pilot, lambda: setting.runner.questions)
        known = {typed.name: typed.type for typed in setting.runner.questions[-1].known}
        assert known == {"x": "torch.Tensor", "y": "float", "f.z": "str"}


DOCSTRING = """\
Applies a softmax to :attr:`input` along
:math:`\\text{dim} \\leq \\frac{a}{b}`.

See :class:`~torch.nn.Softmax` and `the paper <http://x>`_.

.. note::
    This is ``slow``.

Args:
    input (Tensor): the input
    dim (int): as in :func:`torch.sum`

Example::

    >>> torch.softmax(x, dim=1)
    tensor([1.])

Shape:
    - Output: :math:`(N, C)`
"""


def test_a_docstring_is_made_ready_to_be_read():
    call = ("softmax(input, dim) -> Tensor",)
    doc = Documentation(1, "torch.softmax", "function", call, DOCSTRING)
    assert str(documentation.page(doc)) == (
        "softmax(input, dim) -> Tensor\n\n"
        "Applies a softmax to input along\ndim <= (a) / (b).\n\n"
        "Examples\n>>> torch.softmax(x, dim=1)\ntensor([1.])\n\n"
        "See torch.nn.Softmax and the paper.\n\nNote:\n    This is slow.\n\n"
        "Args\n    input (Tensor): the input\n    dim (int): as in torch.sum\n\n"
        "Shape\n    - Output: (N, C)"
    )
    assert documentation.first_words(doc) == (
        call[0],
        "Applies a softmax to input along dim <= (a) / (b).",
    )


def test_a_docstring_cannot_reach_the_terminal():
    doc = Documentation(1, "x", "k", ("f(\x1b[2J)",), "a\x1b]0;b\x07 [bold]c[/]\n\n>>> \x1b[31m'd'")
    text = str(documentation.page(doc)) + "".join(documentation.first_words(doc))
    assert "\x1b" not in text
    assert "[bold]c[/]" in text
