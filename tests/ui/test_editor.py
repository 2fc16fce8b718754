import pytest
from textual.app import App
from textual.events import Key
from textual.widgets.text_area import Selection

from tensortutor.ui.widgets.editor import Editor


class EditorApp(App[None]):
    CSS_PATH = "../../tensortutor/ui/styles/lesson.tcss"

    def compose(self):
        yield Editor(id="editor")


async def edited(text: str, cursor: tuple[int, int], *keys: str, to=None) -> Editor:
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text(text)
        editor.focus()
        editor.selection = Selection(cursor, to or cursor)
        await pilot.press(*keys)
        return editor


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("def f():", "def f():\n    "),
        ("    if x:  # why", "    if x:  # why\n        "),
        ("f(", "f(\n    "),
        ("    x = [1,", "    x = [1,\n    "),
        ("        return x", "        return x\n    "),
        ("    return f(", "    return f(\n        "),
        ("    return f(a,", "    return f(a,\n    "),
        ("x = 1", "x = 1\n"),
        ("    pass", "    pass\n"),
        ("", "\n"),
    ],
)
async def test_enter_indents_as_python_wants(text, after):
    editor = await edited(text, (0, len(text)), "enter")
    assert editor.text == after


async def test_enter_replaces_the_selection_and_undoes_in_one_step():
    editor = await edited("if a: b", (0, 5), "enter", to=(0, 7))
    assert editor.text == "if a:\n    "
    editor = await edited("if a: b", (0, 5), "enter", "ctrl+z", to=(0, 7))
    assert editor.text == "if a: b"


@pytest.mark.parametrize(
    ("text", "column", "after"),
    [
        ("        x", 8, "    x"),
        ("      x", 6, "    x"),
        ("    x", 4, "x"),
        ("   x", 3, "x"),
        ("    x", 5, "    "),
        ("a   b", 4, "a  b"),
    ],
)
async def test_backspace_in_the_indentation_goes_to_the_last_stop(text, column, after):
    assert (await edited(text, (0, column), "backspace")).text == after


async def test_tab_goes_to_the_next_stop():
    assert (await edited("ab", (0, 2), "tab")).text == "ab  "


async def test_tab_and_shift_tab_move_selected_lines():
    text = "a\n    b\n\nc"
    editor = await edited(text, (0, 0), "tab", to=(3, 1))
    assert editor.text == "    a\n        b\n\n    c"
    editor = await edited(editor.text, (0, 0), "shift+tab", to=(3, 1))
    assert editor.text == text


@pytest.mark.parametrize("key", ["ctrl+underscore", "ctrl+slash"])
async def test_comment_toggle(key):
    text = "    a\n\n        b\nc"
    editor = await edited(text, (0, 2), key, to=(2, 3))
    assert editor.text == "    # a\n\n    #     b\nc"
    editor = await edited(editor.text, (0, 2), key, to=(2, 3))
    assert editor.text == text


async def test_a_toggle_undoes_in_one_step_and_keeps_the_selection():
    editor = await edited("a\nb", (0, 0), "ctrl+underscore", to=(1, 1))
    assert editor.text == "# a\n# b"
    assert editor.selected_text == "a\n# b"
    editor = await edited("a\nb", (0, 0), "ctrl+underscore", "ctrl+z", to=(1, 1))
    assert editor.text == "a\nb"


async def test_a_read_only_editor_changes_nothing():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("    a")
        editor.read_only = True
        editor.focus()
        await pilot.press("end", "enter", "tab", "shift+tab", "backspace", "ctrl+slash", "x")
        assert editor.text == "    a"


def style_of(editor: Editor, y: int, text: str):
    """The style in which a part of a drawn line stands."""
    return next(s.style for s in editor.render_line(y) if s.text.strip() == text)


async def test_only_what_can_be_seen_is_read_and_scrolling_reads_the_rest():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("x = None\n" * 3_000)
        await pilot.pause()
        assert editor.document.known_state(20) == ""
        assert editor.document.known_state(100) is None
        editor.move_cursor((2_500, 0))
        await pilot.pause()
        y = 2_500 - editor.scroll_offset.y
        assert style_of(editor, y, "None").color == editor._look("number").color


async def test_python_is_coloured():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text('def f(x):\n    return "a" + str(1)  # é\n')
        await pilot.pause()
        parts = {"return": "keyword", '"a"': "string", "str": "call", "1": "number"}
        for text, name in parts.items():
            assert style_of(editor, 1, text).color == editor._look(name).color
        assert style_of(editor, 0, "f").bold
        assert style_of(editor, 1, "# é").italic
        assert len({editor._look(name).color for name in parts.values()}) == 4


async def test_a_quote_that_opens_a_string_colours_the_lines_below_and_undo_takes_it_back():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("\nx = 1\ny = 2\n")
        editor.focus()
        await pilot.pause()
        assert style_of(editor, 1, "1").color == editor._look("number").color
        editor.insert('"""')
        await pilot.pause()
        assert style_of(editor, 1, "x = 1").color == editor._look("string").color
        await pilot.press("ctrl+z")
        assert style_of(editor, 1, "1").color == editor._look("number").color


async def test_a_key_draws_its_own_line_and_no_other(monkeypatch):
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("x = [1]\n" * 100)
        editor.focus()
        editor.move_cursor((3, 4))
        await pilot.pause()
        drawn = []
        draw = editor._render_line
        monkeypatch.setattr(editor, "_render_line", lambda y: drawn.append(y) or draw(y))
        await pilot.press("a")
        assert set(drawn) == {3}
        drawn.clear()
        await pilot.press("down")
        assert set(drawn) == {3, 4}


async def test_what_a_terminal_would_obey_is_not_drawn():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("a\x1b[31mb\tc\u202ed\n")
        await pilot.pause()
        assert editor.render_line(0).text.rstrip() == "1  a\ufffd[31mb c\ufffdd"


async def test_marks_show_in_the_gutter_and_on_the_line():
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.load_text("a\nb\nc\n")
        editor.focus()
        await pilot.pause()
        editor.mark({1: "called", 3: "failed"})
        assert editor.cursor_location == (0, 0)
        app.set_focus(None)
        await pilot.pause()
        editor.mark({1: "called", 3: "failed"})
        await pilot.pause()
        assert editor.render_line(0).text.startswith("1›")
        assert editor.render_line(2).text.startswith("3✗")
        grounds = [editor.render_line(y)._segments[-1].style.bgcolor for y in range(3)]
        assert grounds[2] != grounds[1] != grounds[0]
        assert editor.cursor_location == (0, 0), "the cursor stays"


async def test_keys_that_come_all_at_once_keep_their_order():
    """As they do from a fast typist, a slow line, or a terminal that pastes key by key."""
    app = EditorApp()
    async with app.run_test(size=(80, 24)) as pilot:
        editor = app.query_one(Editor)
        editor.focus()
        await pilot.pause()
        keys = [*"if x:", "enter", *"yy", "backspace", "enter", *"z", "enter", "tab", *"w"]
        keys += ["up", "home", *"v", "down", "end", "enter", *"u", "left", "delete", "ctrl+z"]
        for key in keys:
            name = {":": "colon", " ": "space"}.get(key, key)
            character = key if len(key) == 1 else None
            app.post_message(Key(name, character))
        await pilot.pause()
        await pilot.pause()
        assert editor.text == "if x:\n    y\n    vz\n        w\n        u"


async def test_ctrl_home_and_ctrl_end_lead_to_the_ends():
    editor = await edited("one\ntwo\nthree", (1, 1), "ctrl+end")
    assert editor.cursor_location == (2, 5)
    editor = await edited("one\ntwo\nthree", (1, 1), "ctrl+home")
    assert editor.cursor_location == (0, 0)


async def test_with_shift_too_they_select_what_lies_between():
    editor = await edited("one\ntwo\nthree", (1, 1), "ctrl+shift+end")
    assert editor.selected_text == "wo\nthree"
    editor = await edited("one\ntwo\nthree", (1, 1), "ctrl+shift+home")
    assert editor.selected_text == "one\nt"
    editor = await edited("one\ntwo\nthree", (1, 1), "ctrl+home", "ctrl+shift+end", "x")
    assert editor.text == "x"
