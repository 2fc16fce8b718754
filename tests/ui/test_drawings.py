"""Plots and pictures in the results: live, at any size, and in nobody's way."""

import base64
from collections.abc import Iterator

import pytest

from tensortutor.drawing.png import Pixels, encode
from tensortutor.protocol.drawings import Picture, Plot, Series
from tensortutor.protocol.events import Event, Finished, Output, Raised
from tensortutor.ui.running.event_batcher import Feed
from tensortutor.ui.terminal import graphics, symbols
from tensortutor.ui.widgets.drawings import NOTHING, DrawingList, DrawingsPane
from tests.ui.fakes import DONE, FakeRun, judges, plays, waits
from tests.ui.test_lesson import PRACTICE, RUN, arrive, ended, output

ERROR = Raised("ValueError", "no", (), "Traceback ...\nValueError: no\n")
FAILED = Finished("raised", 1, "ValueError in line 1.", 5.0)


def plot(*ys: float, title: str = "loss", label: str = "train") -> Plot:
    xs = tuple(float(n) for n in range(len(ys)))
    return Plot(title, (Series(label, xs, ys, count=len(ys)),))


def picture(title: str = "cat") -> Picture:
    pixels = Pixels(2, 2, 3, bytes([255, 0, 0] * 4))
    return Picture(title, "image", base64.b64encode(encode(pixels)).decode(), "a red square")


def drawn(screen) -> str:
    """What the terminal shows, without colours."""
    return "\n".join(strip.text for strip in screen._compositor.render_strips())


def tabs(screen) -> str:
    return str(screen.results.border_title)


def front(screen) -> str:
    return screen.results.front.TITLE


def views(screen) -> list:
    return screen.query_one(DrawingsPane).views


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_a_plot_comes_to_the_front_while_the_program_runs(setting, until, size):
    setting.runner.script = waits(Output("stdout", "epoch 1\n"), plot(4.0, 2.0, 1.0))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f3")  # to the editor
        focused = app.focused
        await pilot.press("f5")
        await until(pilot, lambda: "● train 1" in drawn(screen))
        assert "running" in ended(screen)
        assert front(screen) == "Plot"
        assert "Output •" in tabs(screen)
        if size == (160, 50):
            assert app.focused is focused
        await pilot.press("f4")
        await until(pilot, lambda: "stopped" in ended(screen))
        assert "● train 1" in drawn(screen)


async def test_the_newest_state_is_shown_and_the_size_follows_the_window(setting, until):
    states = [plot(*range(n)) for n in range(1, 200)]
    setting.runner.script = plays(*states)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "train 198" in drawn(screen))
        (view,) = views(screen)
        wide = view.size
        await pilot.resize_terminal(120, 40)
        await until(pilot, lambda: view.size.width < wide.width)
        assert view.size.height < wide.height
        await pilot.pause()
        rows = [view.render_line(y) for y in range(view.size.height)]
        assert {strip.cell_length for strip in rows} == {view.size.width}
        assert "└" in rows[-2].text  # the axis is at the bottom, at this size too


async def test_several_drawings_share_the_room(setting, until):
    setting.runner.script = plays(plot(1.0, title="a"), plot(2.0, title="b"), picture(), plot(9.0))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: len(views(screen)) == 4)
        await until(pilot, lambda: "Plot 4" in tabs(screen))
        await pilot.pause()
        first, second, third, fourth = views(screen)
        assert first.region.y == second.region.y
        assert third.region.y >= first.region.bottom
        assert [view.drawing.title for view in (third, fourth)] == ["cat", "loss"]
        await pilot.resize_terminal(80, 24)
        await pilot.pause()
        while screen.panes.front != "results":
            await pilot.press("f3")
        await until(pilot, lambda: first.region.y != second.region.y)
        screen.query_one(DrawingList).scroll_end(animate=False)
        await until(pilot, lambda: "a red square" in drawn(screen))


async def test_an_error_is_not_hidden_behind_a_plot(setting, until):
    def script(run: FakeRun) -> Iterator[Event]:
        yield plot(1.0, 2.0)
        assert run.stopped.wait(30)
        yield from (ERROR, plot(1.0, 2.0, 3.0), FAILED)

    setting.runner.script = script
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: front(screen) == "Plot")
        setting.runner.runs[0].stop()
        await until(pilot, lambda: "ValueError in line 1" in ended(screen))
        await until(pilot, lambda: front(screen) == "Output")
        assert output(screen)[-1] == "ValueError: no"
        assert "Plot •" in tabs(screen)


async def test_an_error_that_comes_with_the_first_plot_is_shown_first(setting, until):
    setting.runner.script = plays(plot(1.0), ERROR, FAILED)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "ValueError" in ended(screen))
        assert front(screen) == "Output"
        assert "Plot •" in tabs(screen)
        screen.results.show(DrawingsPane)
        assert "Plot •" not in tabs(screen)


async def test_who_has_turned_the_tabs_keeps_them(setting, until):
    def script(run: FakeRun) -> Iterator[Event]:
        assert run.stopped.wait(30)
        yield from (plot(1.0), ERROR, FAILED)

    setting.runner.script = script
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r", "right_square_bracket")
        assert front(screen) == "Checks"
        setting.runner.runs[0].stop()
        await until(pilot, lambda: "ValueError" in ended(screen))
        assert front(screen) == "Checks"
        assert "Output •" in tabs(screen)
        assert "Plot •" in tabs(screen)


async def test_checks_keep_the_front(setting, until):
    verdicts = list(judges({"adds": True})(FakeRun(None, None)))
    setting.runner.script = plays(plot(1.0), *verdicts)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f9")
        await until(pilot, lambda: "1 of 1 checks passed" in ended(screen))
        assert front(screen) == "Checks"
        assert "Plot •" in tabs(screen)


async def test_the_next_run_and_the_next_step_start_without_drawings(setting, until):
    setting.runner.script = plays(plot(1.0))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: len(views(screen)) == 1)
        setting.runner.script = plays(Output("stdout", "quiet\n"))
        await pilot.press("r")
        await until(pilot, lambda: output(screen) == ["quiet"])
        assert front(screen) == "Output"
        assert not views(screen)
        screen.results.show(DrawingsPane)
        await pilot.pause()
        words = " ".join(drawn(screen).split())
        assert NOTHING.split(".")[0] in words


async def test_ascii_and_no_colours_will_do(setting, until, monkeypatch):
    monkeypatch.setattr(symbols, "current", lambda: symbols.ASCII)
    monkeypatch.setenv("NO_COLOR", "1")
    both = Plot("", (*plot(1.0, 2.0).series, *plot(2.0, 1.0, label="val").series))
    setting.runner.script = plays(both, picture())
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "* train 2   + val 1" in drawn(screen))
        for view in views(screen):
            rows = [view.render_line(y).text for y in range(view.size.height)]
            assert "".join(rows).isascii()


async def test_words_from_the_program_do_nothing_to_the_terminal(setting, until):
    setting.runner.script = plays(plot(1.0, title="\x1b[2J", label="\x1b]0;x\x07[red]"))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "[red]" in drawn(screen))
        assert "\x1b" not in drawn(screen)


def test_of_each_drawing_only_the_newest_waits():
    events = [plot(float(n), title=f"{n % 2}") for n in range(2_000)]

    class Runner:
        def start(self, _job):
            return iter([Output("stdout", "a"), *events, Output("stdout", "b"), DONE])

    feed = Feed(Runner(), None, lambda: None)
    feed.pump()  # would wait for ever if 2,000 events had to wait
    waiting = feed.take()
    assert waiting == [Output("stdout", "a"), *events[-2:], Output("stdout", "b"), DONE]


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # the library's own, of Pillow
async def test_a_terminal_with_pixels_gets_the_picture_itself(setting, until, monkeypatch):
    library = pytest.importorskip("textual_image.widget")
    assert graphics.widget() is None  # no terminal here has any
    monkeypatch.setattr(graphics, "widget", lambda: library.HalfcellImage)
    newer = Picture("cat", "image", picture().png, "newer words")
    broken = Picture("dog", "image", "????", "never said")
    setting.runner.script = plays(plot(1.0), picture(), newer, broken)
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "newer words" in drawn(screen))
        _, cat, dog = views(screen)
        words = dog.query_one(".pixels-words")  # below what shows
        await until(pilot, lambda: str(words.content).startswith("This picture cannot be shown"))
        image = cat.query_one(library.HalfcellImage)
        assert image.image.size == (256, 256)
        assert image.image.getpixel((255, 255)) == (255, 0, 0)
        assert image.size.area
        assert dog.query_one(library.HalfcellImage).image is None


async def test_the_plot_of_the_run_before_stands_behind_the_new_one(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        setting.runner.script = plays(plot(4.0, 3.0, 2.0))
        await pilot.press("f5")
        await until(pilot, lambda: "● train 2" in drawn(screen))
        assert "an earlier run" not in drawn(screen)
        await until(pilot, lambda: "done" in ended(screen))
        setting.runner.script = plays(plot(4.0, 2.0, 1.0))
        await pilot.press("f5")
        await until(pilot, lambda: "● train 1" in drawn(screen))
        assert "an earlier run" in drawn(screen)
        await until(pilot, lambda: "done" in ended(screen))
        await pilot.press("f5")  # the same once more: there is nothing to compare
        await until(pilot, lambda: len(setting.runner.jobs) == 3 and "done" in ended(screen))
        await until(pilot, lambda: "an earlier run" not in drawn(screen))
