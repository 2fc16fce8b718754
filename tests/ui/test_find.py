import pytest
from textual.widgets import Input

from tensortutor.ui.widgets.find import FindBar, matches
from tests.ui.test_lesson import PRACTICE, arrive


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("loss", [(0, 0, 4), (1, 1, 5), (1, 6, 10)]),
        ("Loss", [(1, 6, 10)]),
        ("(", [(1, 0, 1)]),
        ("", []),
        ("x", []),
    ],
)
def test_matches_and_the_rule_of_capitals(wanted, found):
    assert matches(["loss", "(loss Loss"], wanted) == found


@pytest.mark.parametrize("size", [(80, 24), (130, 36)])
async def test_find_shows_counts_and_goes_from_match_to_match(setting, until, size):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        editor = screen.editor
        await pilot.press("ctrl+f")
        await until(pilot, lambda: screen.query(FindBar))
        bar = screen.query_one(FindBar)
        await pilot.press(*"batches")
        count = bar.query_one("#find-count")
        assert "1 of 2" in str(count.content)
        assert "any case" in str(count.content)
        assert editor.selected_text == "batches"
        assert editor.selection.start[0] == 0
        assert bar.region.height == 1
        assert editor.region.bottom <= bar.region.y
        await pilot.press("enter")
        assert "2 of 2" in str(count.content)
        assert editor.selection.start[0] == 2
        await pilot.press("down")
        assert editor.selection.start[0] == 0
        await pilot.press("up")
        assert editor.selection.start[0] == 2
        painted = [s.text for y in range(4) for s in editor.render_line(y) if s.text == "batches"]
        assert len(painted) == 2
        await pilot.press("home", "B")
        assert "no match" in str(count.content)
        assert "exact case" in str(count.content)
        await pilot.press("escape")
        await until(pilot, lambda: not screen.query(FindBar))
        assert app.focused is editor
        assert not editor._layers["found"]


async def test_find_begins_with_what_is_selected_and_follows_edits(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(130, 36)) as pilot:
        screen = await arrive(pilot, until)
        editor = screen.editor
        editor.move_cursor((0, 4))
        editor.move_cursor((0, 14), select=True)
        await pilot.press("ctrl+f")
        await until(pilot, lambda: screen.query(FindBar))
        assert screen.query_one(FindBar).query_one(Input).value == "accumulate"
        editor.focus()
        editor.move_cursor((6, 0))
        await pilot.press(*"accumulate")
        await until(pilot, lambda: "of 2" in str(screen.query_one("#find-count").content))
        await pilot.press("f8", "f7")
        await until(pilot, lambda: not screen.query(FindBar))
