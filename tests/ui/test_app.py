import asyncio
import gc
import os
import signal
import subprocess
import sys
import threading
import time

import pytest

from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.setup import PlaceInfo
from tensortutor.ui import describe
from tensortutor.ui.running.event_batcher import MOST_TEXT, Feed
from tensortutor.ui.running.lazy_runner import LazyRunner
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.search import SearchScreen
from tensortutor.ui.terminal import symbols
from tests.ui.courses import STARTER
from tests.ui.fakes import DONE, FakeDevice, FakeRunner, FakeStatus, plays, waits
from tests.ui.test_drawings import drawn
from tests.ui.test_lesson import PRACTICE, RUN, arrive, ended, told

JOB = Job("", "x.py")


async def test_the_runner_is_warmed_after_the_first_paint(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await until(pilot, lambda: setting.runner.warmed == 1)


async def test_garbage_is_collected_again_once_the_app_stands(setting, until):
    gc.disable()
    try:
        app = setting.app()
        async with app.run_test(size=(80, 24)) as pilot:
            await until(pilot, gc.isenabled)
    finally:
        gc.unfreeze()
        gc.enable()


async def test_the_footer_names_device_and_layer(setting, until):
    gpu = FakeDevice("cuda:0", "H200", 139 << 30, 127 << 30)
    setting.runner.status = FakeStatus(device=gpu)
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "full · cuda:0 H200 12/139 GiB" in bar(app))
        setting.runner.status = FakeStatus("loading", None, "")
        await until(pilot, lambda: "PyTorch is loading" in bar(app))
        waiting = "waiting for Slurm: Resources (job 5)"
        setting.runner.status = FakeStatus("loading", None, "", waiting_for=waiting)
        await until(pilot, lambda: waiting in bar(app))
        there = PlaceInfo("gpu7", "/py", "landlock", "", (), 9.0)
        setting.runner.status = FakeStatus(device=FakeDevice(), layer="landlock", place=there)
        await until(pilot, lambda: "gpu7 · landlock · cpu" in bar(app))
        soon = FakeStatus(device=FakeDevice(), layer="landlock", place=there, ends_in_s=541.0)
        setting.runner.status = soon
        await until(pilot, lambda: told(app))
        assert app.device_word == "gpu7 · job ends in 10 min · cpu"
        app._poll()
        await pilot.pause()
        (said,) = told(app)
        assert said.startswith("The job ends in 10 min, on gpu7. What you write stays")


def bar(app) -> str:
    return app.screen.keys.render_line(0).text


async def test_a_runner_that_fails_says_so_once(setting, until):
    setting.runner.status = FakeStatus("failed", None, "", "torch is not installed there.")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: "PyTorch is not available" in bar(app))
        await until(pilot, lambda: told(app))
        app._poll()
        await pilot.pause()
        assert told(app) == ["torch is not installed there."]


async def test_a_torch_that_is_newer_than_the_course_is_told_once(setting, until):
    setting.runner.status = FakeStatus(caution="PyTorch 9.0 is newer than this course.")
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await until(pilot, lambda: told(app))
        app._poll()
        await pilot.pause()
        assert told(app) == ["PyTorch 9.0 is newer than this course."]


async def test_help_keeps_its_place_in_the_narrowest_footer(setting):
    app = setting.app()
    async with app.run_test(size=(60, 16)) as pilot:
        await pilot.pause()
        for width in (60, 80, 200):
            await pilot.resize_terminal(width, 24)
            await pilot.pause()
            assert "F1 Help" in bar(app)
            assert len(bar(app)) <= width


async def test_a_key_in_the_footer_can_be_clicked(setting, until):
    app = setting.app()
    async with app.run_test(size=(80, 24)) as pilot:
        await pilot.pause()
        await pilot.click(app.screen.keys, offset=(bar(app).index("Search"), 0))
        await until(pilot, lambda: isinstance(app.screen, SearchScreen))


async def test_a_tab_of_the_results_can_be_clicked(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.results.front.TITLE == "Output"
        await pilot.click(screen.results, offset=(14, 0))
        await until(pilot, lambda: screen.results.front.TITLE == "Checks")


async def test_brackets_turn_the_tabs(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(160, 50)) as pilot:
        screen = await arrive(pilot, until)
        first, *others = screen.results.panes
        for pane in (*others, first):
            await pilot.press("right_square_bracket")
            assert screen.results.front is pane
        await pilot.press("left_square_bracket")
        assert screen.results.front is others[-1]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
async def test_a_signal_saves_what_was_typed_a_moment_ago(setting, until, number):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        screen.editor.insert("mine\n", (0, 0))
        await pilot.pause()
        os.kill(os.getpid(), number)
        await until(pilot, lambda: app._exit)
        assert setting.workspace.load(setting.accumulation, PRACTICE) == "mine\n" + STARTER
    assert app.return_code == 128 + number


async def test_the_palette_finds_lessons_and_actions(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        await pilot.press("ctrl+p", *"shapes")
        await until(pilot, lambda: app.screen.query("OptionList").first().option_count > 0)
        await pilot.press("enter")
        await until(pilot, lambda: getattr(app.screen, "lesson", None) == setting.shapes)


async def test_an_action_with_a_word_that_begins_so_is_the_first_in_the_palette(setting, until):
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.press("ctrl+p", "s")
        found = app.screen.query("OptionList").first()
        await until(pilot, lambda: any("Shapes" in str(row.prompt) for row in found.options))
        names = [str(row.prompt).partition("  ")[0] for row in found.options]
        lesson = next(n for n, name in enumerate(names) if "Shapes" in name)
        assert {"Search", "Back to the shell", "Search the course"} <= set(names[:lesson])


async def test_the_palette_opens_with_what_was_chosen_most(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)

    async def first(pilot, count=1):
        await pilot.press("ctrl+p")
        rows = app.screen.query("OptionList").first()
        await until(pilot, lambda: rows.option_count > count)
        return [str(row.prompt) for row in rows.options[:count]]

    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        assert await first(pilot, 2) == ["Run  F5", "Check  F9"], "one row each, in our order"
        await pilot.press(*"profiler")
        rows = app.screen.query("OptionList").first()
        await until(pilot, lambda: "Run under the profiler" in str(rows.options[0].prompt))
        await pilot.press("enter")
        await until(pilot, lambda: "The program is done." in ended(screen))
        assert await first(pilot) == ["Run under the profiler  P"]


async def test_a_notice_stands_in_the_bottom_row_and_covers_nothing(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24), notifications=True) as pilot:
        screen = await arrive(pilot, until)
        rows = len(drawn(screen).splitlines())
        app.tell("Short [one].")
        await until(pilot, lambda: drawn(screen).splitlines()[-1].strip() == "› Short [one].")
        app.tell("Long: " + "word " * 20 + "end.")
        await until(pilot, lambda: drawn(screen).splitlines()[-1].strip().endswith("end."))
        assert screen.keys.region.height == 2, "wrapped, with the one that was not read yet"
        assert "Short [one]. Long:" in drawn(screen)
        assert "╰" in drawn(screen).splitlines()[-3], "no frame is covered"
        assert drawn(screen).count("Long:") == 1, "it is said in one place"
        app.clear_notifications()
        await until(pilot, lambda: "Run" in drawn(screen).splitlines()[-1])
        assert len(drawn(screen).splitlines()) == rows


async def test_nothing_of_the_course_is_read_as_markup(setting, until):
    app = setting.app()
    async with app.run_test(size=(120, 40)) as pilot:
        await pilot.pause()
        app.tell("[red]x[/] and [/nothing]")
        await pilot.pause()
        assert told(app) == ["[red]x[/] and [/nothing]"]


async def test_other_themes_reach_the_editor(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        colours = []
        for name in ("tensortutor", "textual-light"):
            app.theme = name
            await pilot.pause()
            first = next(s for s in screen.editor.render_line(0) if "accumulate" in s.text)
            colours.append(first.style.color)
        assert colours[0] != colours[1]


async def test_without_unicode_every_sign_is_ascii(setting, until, monkeypatch):
    monkeypatch.setenv("TENSORTUTOR_ASCII", "1")
    symbols.current.cache_clear()
    try:
        app = setting.app(setting.accumulation, PRACTICE)
        async with app.run_test(size=(120, 40)) as pilot:
            screen = await arrive(pilot, until)
            await pilot.press("f5")
            await until(pilot, lambda: "done" in ended(screen))
            drawn = "".join(strip.text for strip in screen._compositor.render_strips())
            # Scrollbars are drawn by Textual with blocks.
            odd = {char for char in drawn if not char.isascii()} - set(" ▁▂▃▄▅▆▇█▎▍▌▋▊▉")
            assert odd == set()
            await pilot.press("escape", "l")
            await pilot.pause()
            drawn = "".join(strip.text for strip in app.screen._compositor.render_strips())
            assert {char for char in drawn if not char.isascii()} == set()
    finally:
        monkeypatch.undo()
        symbols.current.cache_clear()


@pytest.mark.parametrize(
    ("encoding", "signs"),
    [
        ("utf-8", symbols.UNICODE),
        ("UTF8", symbols.UNICODE),
        ("iso8859-1", symbols.ASCII),
        ("ascii", symbols.ASCII),
        (None, symbols.ASCII),
    ],
)
def test_the_encoding_decides_the_signs(encoding, signs):
    assert symbols.for_encoding(encoding) is signs


def test_there_is_an_ascii_sign_for_every_sign():
    assert all(sign.isascii() and sign for sign in symbols.ASCII)
    assert all(len(sign) == 1 for sign in symbols.UNICODE)


@pytest.mark.parametrize(
    ("done", "total", "parts"),
    [(0, 8, (0, 12)), (1, 200, (1, 11)), (199, 200, (11, 1)), (8, 8, (12, 0)), (0, 0, (0, 12))],
)
def test_only_all_of_it_fills_a_bar(done, total, parts):
    full, empty = describe.bar(done, total, 12)
    assert (len(full), len(empty)) == parts


def test_the_app_does_not_load_what_the_first_screen_does_not_show():
    program = (
        "import sys, tensortutor.ui.app\n"
        "print([m for m in ('torch', 'numpy', 'pygments', 'markdown_it', 'jedi', "
        "'tensortutor.ui.screens.lesson', 'tensortutor.runner') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def drained(feed: Feed) -> list:
    events = []
    while not any(isinstance(event, Finished) for event in events):
        events += feed.take()
        time.sleep(0)
    return events


def test_a_feed_joins_neighbouring_output():
    runner = FakeRunner(plays(Output("stdout", "a"), Output("stdout", "b"), Output("stderr", "c")))
    feed = Feed(runner, JOB, lambda: None)
    feed.pump()
    texts = [(e.stream, e.text) for e in feed.take() if isinstance(e, Output)]
    assert texts == [("stdout", "ab"), ("stderr", "c")]


def test_a_feed_holds_a_flood_back():
    piece = "x" * 10_000
    runner = FakeRunner(plays(*[Output("stdout", piece)] * 300))
    feed = Feed(runner, JOB, lambda: None)
    thread = threading.Thread(target=feed.pump)
    thread.start()
    events = drained(feed)
    thread.join()
    assert all(len(e.text) <= MOST_TEXT + len(piece) for e in events if isinstance(e, Output))
    assert sum(len(e.text) for e in events if isinstance(e, Output)) == 3_000_000


def test_a_closed_feed_lets_its_thread_go():
    runner = FakeRunner(waits(*[Output("stdout", "x" * MOST_TEXT)] * 3))
    feed = Feed(runner, JOB, lambda: None)
    thread = threading.Thread(target=feed.pump)
    thread.start()
    while not runner.runs:
        time.sleep(0)
    feed.close()
    thread.join(30)
    assert not thread.is_alive()
    assert runner.runs[0].stopped.is_set()


@pytest.mark.parametrize("error", [RuntimeError("No PyTorch here."), ValueError("")])
def test_a_feed_ends_with_a_sentence_whatever_happens(error):
    runner = FakeRunner()
    runner.error = error
    feed = Feed(runner, JOB, lambda: None)
    feed.pump()
    (event,) = feed.take()
    assert event == Finished("lost", 1, str(error) or "ValueError", 0.0)


def test_a_late_runner_is_made_once_and_only_when_needed():
    made = []

    def make() -> FakeRunner:
        made.append(FakeRunner(plays(DONE)))
        return made[-1]

    runner = LazyRunner(make)
    assert runner.status.state == "cold"
    assert made == []
    run = runner.start(JOB)
    assert DONE in list(run)
    runner.warm()
    assert runner.status.state == "ready"
    runner.close()
    assert len(made) == 1
    assert made[0].runs[0].stopped.is_set()


def test_a_late_runner_that_was_closed_starts_nothing():
    runner = LazyRunner(lambda: pytest.fail("it was made"))
    runner.close()
    with pytest.raises(RuntimeError):
        runner.start(JOB)


async def test_the_event_loop_is_free_while_a_run_waits(setting, until):
    setting.runner.script = waits()
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: ended(screen).startswith("◌ running"))
        await asyncio.wait_for(pilot.press("f3", "x"), 10)
        assert screen.editor.text.startswith("x")
        await pilot.press("ctrl+backslash")
        await until(pilot, lambda: ended(screen).startswith("■"))


async def test_without_a_sandbox_nothing_runs_until_the_learner_agrees(setting, until):
    """And the answer is kept, so that the question comes once."""
    why = "Programs cannot be confined here."
    for asked in (True, False):
        setting.runner = FakeRunner(status=FakeStatus("failed", None, "", why, needs_consent=True))
        app = setting.app()
        app._consent = setting.paths.consent
        async with app.run_test(size=(80, 24)) as pilot:
            if asked:
                await until(pilot, lambda app=app: isinstance(app.screen, Confirm))
                assert setting.runner.status.layer == ""
                await pilot.press("y")
            await until(pilot, lambda: setting.runner.status.layer == "limits")


async def test_a_key_at_a_step_with_code_brings_pytorch_back_and_keeps_it(setting, until):
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test() as pilot:
        screen = await arrive(pilot, until)
        setting.runner.status = FakeStatus("cold")
        await until(pilot, lambda: app._is_let_go)
        warmed = setting.runner.warmed
        screen.query_one("#page").focus()
        await pilot.press("down")
        assert setting.runner.warmed == warmed + 1
        setting.runner.status = FakeStatus()
        await until(pilot, lambda: setting.runner.warmed == warmed + 2)


async def test_a_key_at_the_list_of_lessons_loads_nothing(setting, until):
    app = setting.app()
    async with app.run_test() as pilot:
        await until(pilot, lambda: setting.runner.warmed == 1)
        setting.runner.status = FakeStatus("cold")
        await until(pilot, lambda: app._is_let_go)
        await pilot.press("down")
        assert setting.runner.warmed == 1


async def test_the_palette_takes_words_and_no_scattered_letters(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        await pilot.press("ctrl+p", *"reset")
        rows = app.screen.query("OptionList").first()
        await until(pilot, lambda: rows.option_count and "Reset:" in str(rows.options[0].prompt))
        await pilot.press("home", "shift+end", *"hpn")  # s-h-a-p-e-s has h and p, no n
        await until(
            pilot,
            lambda: rows.option_count == 1 and 'for "hpn"' in str(rows.options[0].prompt),
        )


async def test_what_is_copied_is_said(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("shift+end", "ctrl+c")
        first = STARTER.splitlines()[0]
        assert app.clipboard == first
        await until(pilot, lambda: screen.keys.notice == f"Copied: {first}")
        await pilot.press("shift+down", "ctrl+c")
        await until(pilot, lambda: "Copied 2 lines." in told(app))


@pytest.mark.parametrize(("variable", "value"), [("LC_TERMINAL", "iTerm2"), ("TERM_PROGRAM", "")])
async def test_a_mac_is_shown_the_keys_with_ctrl(setting, until, monkeypatch, variable, value):
    for name in ("LC_TERMINAL", "TERM_PROGRAM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv(variable, value)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        run, check = ("^R Run", "^T Check") if value else ("F5 Run", "F9 Check")
        await until(pilot, lambda: run in bar(app) and check in bar(app))
