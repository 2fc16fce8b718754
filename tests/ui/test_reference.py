"""The reference screen: reached from anywhere, searched as one types, left without a loss."""

from dataclasses import replace

import pytest

from tensortutor.ui.editing.names_at_cursor import names_at
from tensortutor.ui.screens.dialogs import Locked
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.screens.reference import NONE, ReferenceScreen
from tests.ui.test_lesson import PRACTICE, arrive, told

PAGE = """\
+++
title = "Shape"
about = "Shapes."
kind = "calls"
+++

## Sizes

### Tensor.view(*shape)
Another shape of the same storage. See tensors/shapes, autograd/hooks.
```python
torch.arange(6).view(2, 3)  # (2, 3)
```

### torch.cat(tensors, dim)
Joins tensors. Also: concatenate. See later/joins.
```python
torch.cat([torch.zeros(2)])  # (2,)
```
"""
WORDS = """\
+++
title = "Glossary"
about = "Words."
kind = "terms"
+++

### View
A tensor on the storage of another one. See tensors/shapes.
"""
ATLAS = """\
[[errors]]
id = "shapes"
title = "The sizes differ"
pattern = 'RuntimeError: mat1 and mat2 shapes cannot be multiplied'
means = "The inner sizes differ."
way_out = "Print the shapes."
lesson = "autograd/accumulation"
needs = "nothing"
"""


@pytest.fixture
def library(setting, tmp_path):
    """The course of these tests, with a reference and an atlas."""
    folder = tmp_path / "course" / "lessons" / "reference"
    folder.mkdir(parents=True)
    (folder / "01_shape.md").write_text(PAGE, "utf-8")
    (folder / "02_glossary.md").write_text(WORDS, "utf-8")
    (folder.parent / "atlas.toml").write_text(ATLAS, "utf-8")
    setting.course = replace(setting.course, root=tmp_path / "course")
    return setting


async def opened(pilot, until, key="ctrl+right_square_bracket"):
    await pilot.press(key)
    await until(pilot, lambda: isinstance(pilot.app.screen, ReferenceScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: screen.chosen is not None and shown(screen))
    return screen


def shown(screen) -> str:
    """The page, as text: its title, its prose and code, its lessons."""
    title = str(screen.query_one("#entry-title").content)
    lessons = [str(option.prompt) for option in screen.lessons.options]
    return "\n".join([title, screen.query_one("Text").source, *lessons])


def listed(screen) -> list[str]:
    return [str(option.prompt) for option in screen.hits.options]


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_it_lists_everything_by_page_and_searches_as_one_types(library, until, size):
    app = library.app()
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        screen = await opened(pilot, until, "d")
        assert listed(screen) == [
            "Shape", "Tensor.view(*shape)", "torch.cat(tensors, dim)", "Glossary", "View",
            "Error atlas", "The sizes differ",
        ]  # fmt: skip
        await pilot.press(*"concat")
        await until(pilot, lambda: listed(screen) == ["torch.cat(tensors, dim)  Shape"])
        await until(pilot, lambda: "torch.cat([torch.zeros(2)])  # (2,)" in shown(screen))
        await pilot.press("ctrl+u", *"mat1")
        await until(pilot, lambda: "Print the shapes." in shown(screen))
        assert "Lesson 2.1 Gradients accumulate" in shown(screen)


async def test_arrows_move_while_one_types_and_a_sign_shows_where(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until)
        await pilot.press(*"view", "down")
        await until(pilot, lambda: shown(screen).startswith("View\n"))
        assert [screen.hits.render_line(y).text[:3].strip() for y in (0, 1)] == ["T", "› V"]
        assert app.focused is screen.field


async def test_enter_goes_to_the_lessons_and_opens_one(library, until):
    library.progress.mark_passed("tensors/shapes")
    app = library.app(library.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        screen = await opened(pilot, until)
        await pilot.press(*"view")
        await until(pilot, lambda: "Lesson 1.1 Shapes" in shown(screen))
        await pilot.press("enter")
        await until(pilot, lambda: app.focused is screen.lessons)
        await pilot.press("enter")
        await until(pilot, lambda: getattr(app.screen, "lesson", None) == library.shapes)
        assert [type(s) for s in app.screen_stack] == [HomeScreen, LessonScreen]


async def test_a_locked_lesson_is_asked_about_and_one_to_come_is_said_so(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until)
        await pilot.press(*"cat", "enter")
        await until(pilot, lambda: app.focused is screen.lessons)
        await pilot.press("enter")
        await until(pilot, lambda: told(app) == ["The lesson later/joins is still to come."])
        await pilot.press("slash", *"view", "enter")
        await until(pilot, lambda: "Hooks" in shown(screen) and app.focused is screen.lessons)
        await pilot.press("down", "enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))


async def test_escape_leads_back_with_nothing_lost(library, until):
    app = library.app(library.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        lesson = await arrive(pilot, until)
        lesson.panes.turn_to("editor")
        lesson.editor.insert("mine\n", (0, 0))
        lesson.editor.move_cursor((2, 3))
        await pilot.pause()
        await opened(pilot, until)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is lesson)
        assert app.focused is lesson.editor
        assert lesson.editor.text.startswith("mine\n")
        assert lesson.editor.cursor_location == (2, 3)
        await pilot.press("x")
        assert lesson.editor.document[2][3] == "x"


async def test_it_opens_at_the_name_under_the_cursor(library, until):
    app = library.app(library.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        lesson = await arrive(pilot, until)
        lesson.panes.turn_to("editor")
        lesson.editor.load_text("y = batch.view(2, 3)\n")
        lesson.editor.move_cursor((0, 12))
        screen = await opened(pilot, until)
        await until(pilot, lambda: shown(screen).startswith("Tensor.view(*shape)\n"))
        assert screen.field.value == "view"
        await pilot.press("escape")
        lesson.editor.move_cursor((0, 0))
        screen = await opened(pilot, until)
        assert screen.field.value == ""


async def test_what_is_not_found_has_a_nearest_name(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await opened(pilot, until)
        await pilot.press(*"veiw")
        await until(
            pilot, lambda: "Nothing is called so. The nearest: Tensor.view" in shown(screen)
        )
        assert screen.chosen is None


async def test_a_course_without_a_reference_says_so(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("d")
        await until(pilot, lambda: isinstance(app.screen, ReferenceScreen))
        await until(pilot, lambda: NONE in shown(app.screen))
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_it_can_be_drawn_in_ascii_and_without_colour(library, until, monkeypatch):
    from tensortutor.ui.terminal import symbols

    monkeypatch.setenv("TENSORTUTOR_ASCII", "1")
    monkeypatch.setenv("NO_COLOR", "1")
    symbols.current.cache_clear()
    try:
        app = library.app()
        async with app.run_test(size=(80, 24)) as pilot:
            screen = await opened(pilot, until)
            await pilot.press(*"view")
            await until(pilot, lambda: "Lesson 1.1 Shapes" in shown(screen))
            lines = [
                "".join(segment.text for segment in line)
                for line in app.screen._compositor.render_strips()
            ]
        text = "\n".join(lines)
        assert "> Tensor.view(*shape)" in text
        scrollbars = "▁▂▃▄▅▆▇█▔▊▎"  # Textual's own
        assert [sign for sign in text if not sign.isascii() and sign not in scrollbars] == []
    finally:
        symbols.current.cache_clear()


@pytest.mark.parametrize(
    ("line", "column", "names"),
    [
        ("y = torch.linalg.solve(A, b)", 18, ("torch.linalg.solve", "solve")),
        ("y = torch.linalg.solve(A, b)", 11, ("torch.linalg", "linalg")),
        ("y = torch.linalg.solve(A, b)", 22, ("torch.linalg.solve", "solve")),
        ("x.view(2)", 6, ("x.view", "view")),
        ("view", 0, ("view",)),
        ("a = 3", 3, ()),
        ("", 0, ()),
    ],
)
def test_names_at_a_cursor(line, column, names):
    assert names_at(line, column) == names
