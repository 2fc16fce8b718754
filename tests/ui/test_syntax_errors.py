import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import App

from tensortutor.ui.editing import syntax_errors
from tensortutor.ui.widgets.editor import Editor
from tests.ui.test_editor import EditorApp


@pytest.mark.parametrize(
    ("text", "row", "stretch", "word"),
    [
        ("x = (1,\ny = 2\n", 0, "(", "never closed"),
        ("for x in y\n    pass\n", 0, "\n", "expected ':'"),
        ("def f():\nx = 1\n", 1, "x", "indented block"),
        ("return 1\n", 0, "return 1", "outside function"),
        ("a = 'b\n", 0, "'", "unterminated string"),
    ],
)
def test_the_first_problem_is_found(text, row, stretch, word):
    found = syntax_errors.find(text)
    assert found.row == row
    assert word in found.message
    line = (text.split("\n")[row] + "\n")[found.start : found.end]
    assert line == stretch


def test_good_programs_and_warnings_are_no_problem():
    assert syntax_errors.find("x = '\\d'\nawait_ = 1\n") is None
    assert syntax_errors.find("") is None


@pytest.mark.parametrize(
    "text", ["-" * 100_000 + "1", "(" * 300, "x" + ".a" * 50_000, "1" + "+1" * 60_000, "\x00"]
)
def test_texts_that_are_too_much_do_no_harm(text):
    found = syntax_errors.find(text)
    assert found is None or found.message


@given(st.text(max_size=60))
def test_any_text_has_a_problem_within_it_or_none(text):
    found = syntax_errors.find(text)
    lines = text.split("\n")
    assert found is None or (0 <= found.row < len(lines) and found.start <= len(lines[found.row]))


@pytest.mark.parametrize(
    ("text", "typing", "told"),
    [
        ("x = (\ny = 1\n", 0, False),
        ("x = (\ny = 1\n", 1, True),
        ("def f():\n\nx = 1\n", 1, False),
        ("x = [\n    1,\n    a b\n]\n", 2, False),
        ("if x\n    y\n", 1, True),
    ],
)
def test_a_line_that_is_being_typed_is_left_in_peace(text, typing, told):
    assert (syntax_errors.find(text, typing) is not None) is told


async def settled(pilot, until, editor: Editor) -> None:
    """The editor has looked at the text."""
    await until(pilot, lambda: editor._timer is None)


async def test_a_problem_is_shown_at_its_place_and_goes_when_mended(until):
    app: App[None] = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.closes_brackets = False
        editor.file_name = "a.py"
        editor.load_text("x = 1\ny = 2\n")
        editor.focus()
        await pilot.press("end", "(")
        await settled(pilot, until, editor)
        assert editor.problem is None
        assert "line" not in editor.border_title
        await pilot.press("down")
        await settled(pilot, until, editor)
        assert editor.problem.row == 0
        assert str(editor._border_title) == "a.py ✗ line 1: '(' was never closed"
        drawn = editor.render_line(0)
        assert drawn.text.startswith("1✗ x = 1(")
        assert [s.text for s in drawn if s.style.underline] == ["("]
        await pilot.press("enter")
        assert not any(s.style.underline for s in editor.render_line(0))
        await settled(pilot, until, editor)
        assert [s.text for s in editor.render_line(0) if s.style.underline] == ["("]
        await pilot.press("up", "up", "end", "backspace")
        assert not any(s.style.underline for s in editor.render_line(0))
        await pilot.press("down")
        await settled(pilot, until, editor)
        assert editor.problem is None
        assert str(editor._border_title) == "a.py"
        assert editor.render_line(0).text.startswith("1  x")
