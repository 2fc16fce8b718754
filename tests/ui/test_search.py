"""Searching the course: from the list of lessons, from a lesson, from the palette."""

from dataclasses import replace

import pytest
from textual import events
from textual.widgets import OptionList

from tensortutor.course.search import CourseIndex
from tensortutor.ui import search_rows
from tensortutor.ui.screens.dialogs import Locked, Page
from tensortutor.ui.screens.home import HomeScreen
from tensortutor.ui.screens.lesson import LessonScreen
from tensortutor.ui.screens.reference import ReferenceScreen
from tensortutor.ui.screens.search import SearchScreen
from tensortutor.ui.search_rows import HeadRow, MoreRow
from tensortutor.ui.terminal import symbols
from tests.ui.test_lesson import PRACTICE, SIZES, arrive
from tests.ui.test_reference import ATLAS, PAGE, WORDS


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


async def searching(pilot, until, words="") -> SearchScreen:
    await pilot.press("slash")
    await until(pilot, lambda: isinstance(pilot.app.screen, SearchScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: screen.field.has_focus and screen._index.is_complete)
    for letter in words:
        await pilot.press("space" if letter == " " else letter)
    await until(pilot, lambda: screen.field.value == words)
    return screen


def listed(screen) -> list[str]:
    return [str(option.prompt) for option in screen.places.options]


@pytest.mark.parametrize("size", SIZES)
async def test_what_is_found_stands_in_groups_and_says_what_it_is(library, until, size):
    app = library.app()
    async with app.run_test(size=size) as pilot:
        screen = await searching(pilot, until, "shape")
        await until(pilot, lambda: any("step 1" in line for line in listed(screen)))
        lines = listed(screen)
        heads = [line.split()[0] for line in lines if not line.startswith(" ")]
        assert heads[0] == "Lessons"
        assert "Text" in heads
        assert "  1.1 Shapes  lesson" in lines
        assert "  1.1 Shapes: Insight  step 1" in lines
        assert screen.chosen.place.lesson == "tensors/shapes"
        assert "Enter opens the lesson." in screen.text
        assert "found" in screen.query_one("#found").border_subtitle
        await until(pilot, lambda: screen.places.region.area and screen.field.region.area)


@pytest.mark.parametrize(
    ("words", "kind"), [("concat", "call"), ("sizes differ", "error"), ("storage", "term")]
)
async def test_entries_and_errors_open_in_the_reference_and_escape_leads_back(
    library, until, words, kind
):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, until, words)
        await until(pilot, lambda: any(line.endswith(f"  {kind}") for line in listed(screen)))
        while not listed(screen)[screen.places.highlighted].endswith(f"  {kind}"):
            await pilot.press("down")
        place = screen.chosen.place
        assert "Enter opens it in the reference." in screen.text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReferenceScreen))
        await until(pilot, lambda: app.screen.chosen == place)
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        assert screen.field.value == words
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))


async def test_a_step_opens_at_the_step_and_the_list_of_lessons_is_behind_it(library, until):
    library.progress.mark_passed("tensors/shapes")
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, until, "recipe")
        await until(
            pilot, lambda: listed(screen)[1:] == ["  2.1 Gradients accumulate: Practice  step 4"]
        )
        assert "The recipe asks for the gradient" in screen.text
        assert "Enter opens step 4." in screen.text
        await pilot.press("enter")
        lesson = await arrive(pilot, until)
        assert lesson.reader.border_title == "Practice"
        assert library.progress.place() == ("autograd/accumulation", PRACTICE)
        await pilot.press("escape", "l")
        await until(pilot, lambda: isinstance(app.screen, HomeScreen))
        # What was sought last is there again, and typing replaces it.
        await pilot.press("slash")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen) and app.screen.is_mounted)
        await until(pilot, lambda: app.screen.field.value == "recipe")
        await pilot.press(*"hooks")
        await until(pilot, lambda: app.screen.field.value == "hooks")


async def test_a_locked_lesson_is_asked_about_and_no_leads_back_to_the_search(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, until, "recipe")
        await until(pilot, lambda: screen.chosen is not None)
        assert "It is locked: it opens after 1.1 Shapes." in screen.text
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await pilot.press("escape")
        await until(pilot, lambda: app.screen is screen)
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, Locked))
        await pilot.press("r")
        lesson = await arrive(pilot, until)
        assert lesson.reader.border_title == "Practice"


async def test_within_the_same_lesson_it_turns_to_the_step_and_keeps_what_was_typed(library, until):
    app = library.app(library.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        lesson = await arrive(pilot, until)
        lesson.editor.insert("mine\n", (0, 0))
        await pilot.press("escape")
        await searching(pilot, until, "large training run")
        await until(pilot, lambda: app.screen.chosen is not None)
        await pilot.press("enter")
        await until(pilot, lambda: app.screen is lesson)
        await until(pilot, lambda: lesson.reader.border_title == "In the wild")
        await pilot.press("p", "p")
        await until(pilot, lambda: lesson.editor.text.startswith("mine\n"))


async def test_nothing_found_says_so_what_was_searched_and_what_is_near(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, until)
        assert "Searched as you type: titles and goals of 3 lessons" in screen.text
        await pilot.press(*"viwe")
        await until(pilot, lambda: 'Nothing has "viwe".' in screen.text)
        assert listed(screen) == []
        for words in ("3 lessons", "10 steps", "of the reference", "1 error", "Tensor.view"):
            assert words in screen.text
        await pilot.press("enter", "down", "pagedown")
        assert app.screen is screen


async def test_while_the_course_is_read_it_says_how_far(library, until, monkeypatch):
    monkeypatch.setattr(CourseIndex, "begin", lambda self: None)
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.press("slash", *"shape")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        screen = app.screen
        await until(pilot, lambda: screen.query("#place-text") and "is being read" in screen.text)
        assert "reading: 0 of 3 lessons" in screen.query_one("#found").border_subtitle
        monkeypatch.undo()
        app.course_index.begin()
        await until(pilot, lambda: "  1.1 Shapes  lesson" in listed(screen))
        await until(pilot, lambda: "reading" not in screen.query_one("#found").border_subtitle)


async def test_a_long_group_is_cut_until_the_rest_is_asked_for(library, until, monkeypatch):
    monkeypatch.setattr(search_rows, "FEW", 2)
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await searching(pilot, until, "a")
        await until(pilot, lambda: any(isinstance(row, MoreRow) for row in screen.rows))
        more = next(row for row in screen.rows if isinstance(row, MoreRow))
        assert len(more.group.found) > 3
        while screen.chosen != more:
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: more not in screen.rows)
        assert set(more.group.found) <= set(screen.rows)
        assert screen.chosen == more.group.found[2]
        # Headings are passed over.
        for _ in screen.rows:
            await pilot.press("up")
            assert not isinstance(screen.chosen, HeadRow)
        assert screen.places.highlighted == 1


async def test_nothing_typed_right_after_the_slash_is_lost(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        for letter in "/dqv":  # d, q and v are keys of their own elsewhere
            key = "slash" if letter == "/" else letter
            app.post_message(events.Key(key, letter))
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        screen = app.screen
        await until(pilot, lambda: screen.query("Input") and screen.field.value == "dqv")


@pytest.mark.parametrize("size", SIZES)
async def test_the_palette_finds_text_entries_and_errors(library, until, size):
    app = library.app(library.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        await arrive(pilot, until)
        await pilot.press("ctrl+p", *"concat")
        hits = app.screen.query_one(OptionList)

        def lines():
            return [str(option.prompt) for option in hits.options]

        await until(pilot, lambda: any("Call: torch.cat" in line for line in lines()))
        assert any('Search the course for "concat"' in line for line in lines())
        at = next(n for n, line in enumerate(lines()) if "Call: torch.cat" in line)
        while hits.highlighted != at:
            await pilot.press("down")
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, ReferenceScreen))
        await until(pilot, lambda: app.screen.chosen is not None)
        assert app.screen.chosen.title.startswith("torch.cat")
        await pilot.press("escape")
        await until(pilot, lambda: isinstance(app.screen, LessonScreen))


async def test_the_palette_hands_its_words_to_the_search(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p", *"recipe")
        hits = app.screen.query_one(OptionList)
        await until(
            pilot, lambda: hits.option_count and "Search the course" in str(hits.options[0].prompt)
        )
        await pilot.press("enter")
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))
        await until(pilot, lambda: app.screen.field.value == "recipe" and app.screen.rows)


async def test_what_is_typed_into_the_palette_is_no_markup(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.press("ctrl+p", *"[/red]")
        hits = app.screen.query_one(OptionList)
        wanted = 'Search the course for "[/red]"'
        await until(pilot, lambda: hits.option_count and wanted in str(hits.options[0].prompt))


async def test_help_says_what_is_searched_and_where_the_keys_are(library, until):
    app = library.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await searching(pilot, until, "shape")
        await pilot.press("f1")
        await until(pilot, lambda: isinstance(app.screen, Page))
        words = str(app.screen.query_one("Static").content)
        assert "a printed message its error" in words
        assert "Type other words" in words


async def test_the_search_in_ascii_has_nothing_else(library, until, monkeypatch):
    monkeypatch.setenv("TENSORTUTOR_ASCII", "1")
    symbols.current.cache_clear()
    try:
        app = library.app()
        async with app.run_test(size=(80, 24)) as pilot:
            screen = await searching(pilot, until, "shape")
            await until(pilot, lambda: len(screen.rows) > 3)
            await pilot.pause()
            drawn = "".join(
                segment.text for strip in screen._compositor.render_strips() for segment in strip
            )
            assert "Search the course" in drawn
            assert drawn.isascii(), {sign for sign in drawn if not sign.isascii()}
    finally:
        monkeypatch.undo()
        symbols.current.cache_clear()
