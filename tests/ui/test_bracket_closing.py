import pytest

from tensortutor.ui.editing import bracket_closing
from tensortutor.ui.widgets.editor import Editor
from tests.ui.test_editor import EditorApp


def at(text: str) -> tuple[str, str, int]:
    """A line, the state that it begins in, and where the bar stands in it."""
    return text.replace("|", ""), "", text.index("|")


@pytest.mark.parametrize(
    ("text", "key", "closer"),
    [
        ("f|", "(", ")"), ("f(|)", "(", ")"), ("|x", "(", ""), ("x|.T", "[", "]"), ("# |", "(", ""),
        ("'|'", "(", ""), ("|", "'", "'"), ("f|", "'", "'"), ("x = rb|", '"', '"'),
        ("don|", "'", ""), ("''|", "'", "'''"), ("'a'|", "'", ""), ('"""|', '"', ""),
        ("'a|", '"', ""), ("x.f|", "'", "'"), ("f'{x|}'", "(", ")"), ("a_f|", "'", ""),
    ],
)  # fmt: skip
def test_what_is_closed(text, key, closer):
    assert bracket_closing.closing(key, *at(text)) == closer


@pytest.mark.parametrize(
    ("text", "key", "over"),
    [
        ("f(|)", ")", True), ("f(g(|)", ")", False), ("f(g(|))", ")", True), ("x|]", "]", True),
        ("'a|'", "'", True), ("'a'|'b'", "'", False),
        ('"""a|"""', '"', True), ('"""a"|""', '"', True),
        ("'a|\"'", '"', False), ("x|", ")", False),
    ],
)  # fmt: skip
def test_what_is_typed_over(text, key, over):
    assert bracket_closing.is_typed_over(key, *at(text)) is over


async def typed(text: str, *keys: str, to: tuple[int, int] | None = None, closes=True) -> str:
    """What becomes of a text when keys are pressed at the bar, and where the cursor is then."""
    row = text[: text.index("|")].count("\n")
    column = text.split("\n")[row].index("|")
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.closes_brackets = closes
        editor.load_text(text.replace("|", ""))
        editor.focus()
        editor.move_cursor((row, column))
        if to is not None:
            editor.move_cursor(to, select=True)
        await pilot.press(*keys)
        chosen = editor.selected_text
        row, column = editor.cursor_location
        lines = editor.text.split("\n")
        lines[row] = f"{lines[row][:column]}|{lines[row][column:]}"
        return "\n".join(lines) + (f"~{chosen}" if chosen else "")


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("x = |", "f(a)", "x = f(a)|"),
        ("|", "print('a')", "print('a')|"),
        ("|", 'f"{x[0]}"', 'f"{x[0]}"|'),
        ("|", '"""a"""', '"""a"""|'),
        ("|", "# don't (", "# don't (|"),
        ("x|y", "(", "x(|y"),
    ],
)
async def test_typing_comes_out_as_it_would_without_help(before, keys, after):
    assert await typed(before, *keys) == after


@pytest.mark.parametrize(
    ("before", "keys", "after"),
    [
        ("x|", ["("], "x(|)"),
        ("x|", ["(", "backspace"], "x|"),
        ("x|", ["(", "["], "x([|])"),
        ("x|", ["(", "backspace", "ctrl+z"], "x(|)"),
        ("x|", ["(", "ctrl+z"], "x|"),
        ("    f(|)", ["enter"], "    f(\n        |\n    )"),
        ("    f(|)", ["enter", "ctrl+z"], "    f(|)"),
        ("f(|a)", ["enter"], "f(\n    |a)"),
    ],
)
async def test_pairs_come_and_go_together(before, keys, after):
    assert await typed(before, *keys) == after


async def test_a_selection_is_put_between_the_two_and_stays_selected():
    assert await typed("|a + b", "(", to=(0, 5)) == "(a + b|)~a + b"
    assert await typed("|a + b", "(", "ctrl+z", to=(0, 5)) == "a + b|~a + b"
    assert await typed("|a\nb", "[", to=(1, 1)) == "[a\nb|]~a\nb"
    assert await typed("|a + b", "x", to=(0, 5)) == "x|"


async def test_it_can_be_switched_off():
    assert await typed("f|", "(", closes=False) == "f(|"
    assert await typed("f(|)", ")", closes=False) == "f()|)"
    assert await typed("f(|)", "backspace", closes=False) == "f|)"
    assert await typed("f(|)", "enter", closes=False) == "f(\n    |)"


async def test_the_pair_at_the_cursor_is_shown():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("f(')', [\n])")
        editor.focus()
        editor.move_cursor((0, 2))
        await pilot.pause()

        def shown() -> set[tuple[int, int]]:
            look = editor._look("bracket").bgcolor
            found = set()
            for y in range(2):
                column = -editor.gutter_width
                for segment in editor.render_line(y):
                    if segment.style.bgcolor == look:
                        found.add((y, column))
                    column += len(segment.text)
            return found

        assert shown() == {(0, 1), (1, 1)}
        await pilot.press("right", "right")
        assert shown() == set()
