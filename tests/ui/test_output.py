from collections.abc import Iterator

import pytest

from tensortutor.plaintext import LONGEST, visible
from tensortutor.protocol.events import Event, Finished, Output
from tensortutor.ui.plain import Writer
from tensortutor.ui.widgets.transcript import MAX_LINES, SLACK
from tests.ui.fakes import DONE, FakeRun, plays, says
from tests.ui.test_lesson import RUN, arrive, ended, output


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain é 日本", ["plain é 日本"]),
        ("\x1b[31mred\x1b[0m", ["red"]),
        ("\x1b]0;title\x07after", ["after"]),
        ("\x1b]52;c;aGk=\x1b\\after", ["after"]),
        ("\x1bcreset", ["reset"]),
        ("\x1bPq#0\x1b\\sixel", ["sixel"]),
        ("bell\x07", ["bell^G"]),
        ("\x9b31mc1", ["<U+009B>31mc1"]),
        ("null\0", ["null^@"]),
        ("\u202egpj.exe", ["<U+202E>gpj.exe"]),
        ("\udcff", ["\ufffd"]),
        ("10%\r55%\r100%", ["100%"]),
        ("long line\rshort", ["shortline"]),
        ("windows\r\nlines", ["windows", "lines"]),
        ("ab\b\bxy", ["xy"]),
        ("a\tb", ["a       b"]),
        ("one\ntwo\n", ["one", "two"]),
        ("\n\n", ["", ""]),
    ],
)
def test_text_is_laid_out_as_a_terminal_would(text, shown):
    writer = Writer()
    lines = writer.feed(text)
    assert lines + writer.end() == shown


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "\x1b]0;title\x07x", "50%\r99%", "\x1b["])
def test_a_sequence_may_arrive_in_pieces(text):
    whole = Writer()
    expected = whole.feed(text) + whole.end()
    piecewise = Writer()
    lines = [line for char in text for line in piecewise.feed(char)]
    assert lines + piecewise.end() == expected


def test_an_escape_that_never_ends_is_shown_and_swallows_nothing():
    writer = Writer()
    lines = writer.feed("\x1b]0;" + "x" * 10_000 + "\nnext\n")
    assert lines[-1] == "next"
    assert lines[0].startswith("^[]0;xxx")


def test_a_line_without_end_is_cut_and_counted():
    writer = Writer()
    for _ in range(100):
        writer.feed("y" * 1_000)
    (line,) = writer.end()
    assert line == "y" * LONGEST + f" … {100_000 - LONGEST:,} more characters"


def test_long_and_short_lines_are_taken_alike_in_one_piece_and_in_many():
    text = "a\n\n" + "y" * (LONGEST + 7) + "\nb\n" + "z" * (LONGEST + 1)
    cut = [f"{c * LONGEST} … {beyond} more characters" for c, beyond in (("y", 7), ("z", 1))]
    assert feed_all(text) == ["a", "", cut[0], "b", cut[1]]
    writer = Writer()
    lines = [line for piece in text.splitlines(keepends=True) for line in writer.feed(piece)]
    assert lines + writer.end() == feed_all(text)


@pytest.mark.parametrize("code", [*range(0x20), 0x7F, *range(0x80, 0xA0), 0x2028, 0xDC80])
def test_no_control_character_survives(code):
    kept = set(visible(f"a{chr(code)}b")) | {c for line in feed_all(f"a{chr(code)}b") for c in line}
    kept -= {"\n"}
    assert all(char.isprintable() for char in kept)


def feed_all(text: str) -> list[str]:
    writer = Writer()
    return writer.feed(text) + writer.end()


async def test_no_escape_reaches_the_screen(setting, until):
    setting.runner.script = says("\x1b[2J\x1b]0;owned\x07\x1b[31mred\x1b[0m \x1b\n")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "done" in ended(screen))
        assert output(screen) == ["red ^["]
        drawn = [strip.text for strip in screen._compositor.render_strips()]
        assert any("red ^[" in line for line in drawn)
        assert not any("\x1b" in line for line in drawn)


async def test_a_progress_bar_stays_one_line_below_what_is_printed(setting, until):
    setting.runner.script = plays(
        Output("stderr", "  1%"),
        Output("stdout", "loss 3\n"),
        Output("stderr", "\r 50%"),
        Output("stdout", "loss 2\n"),
        Output("stderr", "\r100%"),
    )
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "done" in ended(screen))
        assert output(screen) == ["loss 3", "loss 2", "100%"]


async def test_a_flood_of_output_is_bounded_and_counted(setting, until):
    lines = 100_000

    def flood(run: FakeRun) -> Iterator[Event]:
        for number in range(lines):
            yield Output("stdout", f"line {number}\n")
        yield DONE

    setting.runner.script = flood
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        # The app answers keys while the flood comes in.
        await pilot.press("f3", "x")
        assert screen.editor.text.startswith("x")
        await until(pilot, lambda: "done" in ended(screen), tries=6_000)
        transcript = screen.query_one("#transcript")
        assert len(transcript.lines) <= MAX_LINES + SLACK
        assert transcript.lines[-1] == ("out", f"line {lines - 1}")
        assert transcript.left_out == lines - len(transcript.lines)
        bottom = transcript.render_line(transcript.size.height - 1).text
        assert bottom.strip() == f"line {lines - 1}"
        transcript.scroll_home(animate=False)
        await pilot.pause()
        assert f"{transcript.left_out:,} earlier lines" in transcript.render_line(0).text


async def test_one_piece_of_more_lines_than_are_kept_is_counted_too(setting, until):
    setting.runner.script = plays(
        Output("stdout", "first\n"), Output("stdout", "".join(f"{i}\n" for i in range(15_000)))
    )
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "done" in ended(screen))
        transcript = screen.query_one("#transcript")
        assert len(transcript.lines) + transcript.left_out == 15_001
        assert transcript.lines[0] == ("out", str(15_000 - MAX_LINES))


async def test_long_lines_wrap_and_wrap_anew(setting, until):
    setting.runner.script = says("x" * 150 + "\n" + "日" * 60 + "\n")
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: "done" in ended(screen))
        transcript = screen.query_one("#transcript")
        for size in ((120, 40), (160, 40), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            if size[0] < 120:
                await pilot.press("f3", "f3")
                await pilot.pause()
            transcript.scroll_home(animate=False)
            await pilot.pause()
            rows = [transcript.render_line(y).text for y in range(transcript.virtual_size.height)]
            assert all(len(row) for row in rows)
            assert "".join(rows).count("x") == 150
            assert "".join(rows).count("日") == 60


async def test_output_that_was_not_kept_is_counted(setting, until):
    setting.runner.script = plays(Output("stdout", "a\n"), Finished("done", 0, "Done.", 1.0, 1234))
    app = setting.app(setting.accumulation, RUN)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("r")
        await until(pilot, lambda: output(screen) == ["a", "1,234 more characters were not kept"])
