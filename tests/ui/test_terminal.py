"""Few colours, no colours, ASCII: what each line becomes on its way to the terminal."""

import os

import pytest
from rich.cells import cell_len
from rich.color import Color as RichColor
from rich.style import Style
from textual.color import Color
from textual.widgets import Input

from tensortutor.plaintext import SIGNS
from tensortutor.ui.terminal import color_depth, symbols
from tensortutor.ui.terminal.ascii_fallback import lettered
from tests.ui.test_lesson import PRACTICE, arrive, told

GROUND = Color.parse("#15181c")
TEXT, FAINT, CURSOR, PANEL = "#cdd3da", "#7a8087", "#2a323c", "#1d2127"


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("#15181c", 0), ("#cdd3da", 7), ("#eef1f4", 15), ("#7a8087", 8), ("#e07b72", 9),
        ("#98bb6c", 10), ("#d8a657", 11), ("#7fb4ca", 14), ("#a292c9", 13), ("#800000", 1),
        ("#c1b7db", 13),  # a keyword
    ],
)  # fmt: skip
def test_a_colour_keeps_its_kind_among_sixteen(name, number):
    assert color_depth.sixteen(*Color.parse(name).rgb) == number


@pytest.mark.parametrize("text", [TEXT, FAINT, CURSOR, "#15181c", "#7fb4ca", "#e07b72", "#98bb6c"])
@pytest.mark.parametrize("ground", [CURSOR, PANEL, TEXT, "#7fb4ca", "#e07b72", "#15181c"])
def test_text_is_never_of_its_grounds_colour(text, ground):
    style = color_depth.few(Style(color=text, bgcolor=ground), GROUND)
    assert style.color is not None
    assert style.bgcolor is not None
    assert style.color.number != style.bgcolor.number
    assert style.color.number not in (8, None) or style.bgcolor.number == 0


def test_a_scrollbar_is_grey_among_sixteen():
    grip = Style(bgcolor="#2e353e") + Style.from_meta({"@mouse.down": "grab"})
    assert color_depth.few(grip, GROUND).bgcolor == RichColor.from_ansi(8)


def test_without_colours_what_stands_out_is_reversed_and_what_is_faint_dim():
    cursor = color_depth.none(Style(color=TEXT, bgcolor=CURSOR), GROUND)
    assert (cursor.reverse, cursor.dim) == (True, False)
    faint = color_depth.none(Style(color="#565c63", bgcolor="#15181c"), GROUND)
    assert (faint.reverse, faint.dim) == (False, True)
    usual = color_depth.none(Style(color=TEXT, bgcolor="#15181c", bold=True), GROUND)
    assert (usual.reverse, usual.dim, usual.bold) == (False, False, True)
    for style in (cursor, faint, usual):
        assert style.color is None
        assert style.bgcolor is None


def test_what_a_click_does_stays_and_nothing_blinks():
    style = Style(color=TEXT, blink=True) + Style.from_meta({"@click": "show('x')"})
    for change in (color_depth.few, color_depth.none):
        after = change(style, GROUND)
        assert after.meta == {"@click": "show('x')"}
        assert not after.blink


@pytest.mark.parametrize(
    ("term", "known", "no_color", "change"),
    [
        ("xterm-256color", "256", False, None),
        ("xterm-16color", "standard", False, color_depth.few),
        ("linux", "standard", False, color_depth.few),
        ("vt220", "standard", False, color_depth.none),
        ("xterm-256color", "truecolor", True, color_depth.none),
    ],
)
def test_a_terminal_gets_what_it_can_show(term, known, no_color, change):
    found = color_depth.filters(term, known, no_color)
    assert [one._change for one in found] == ([] if change is None else [change])


@pytest.mark.parametrize(
    ("before", "after"),
    [("╭─ x ─╮", "+- x -+"), ("▼ e → f", "v e > f"), ("naïve ½", "naive ?"), ("日本", "????")],
)
def test_every_sign_becomes_ascii_and_keeps_its_width(before, after):
    assert lettered(before) == after


def test_no_sign_changes_its_width():
    for sign, letter in SIGNS.items():
        assert cell_len(chr(sign)) == cell_len(letter) == 1, chr(sign)


@pytest.mark.parametrize(
    ("environ", "utf8_mode", "encoding", "promised"),
    [
        ({"LANG": "en_US.UTF-8"}, False, "utf-8", "utf-8"),
        ({"LANG": "de_DE"}, False, "iso8859-1", "iso8859-1"),
        ({"LANG": "C", "LC_CTYPE": "C.UTF-8"}, True, "utf-8", "ascii"),
        ({"LC_ALL": "POSIX"}, True, "utf-8", "ascii"),
        ({"LC_ALL": "en_US.ISO-8859-1"}, True, "utf-8", "ascii"),
        ({"LC_CTYPE": "C.UTF-8"}, True, "utf-8", "utf-8"),
        ({"LANG": "xx_XX.UTF-8"}, True, "utf-8", "utf-8"),
    ],
)
def test_the_locale_is_asked_even_where_python_writes_utf8(environ, utf8_mode, encoding, promised):
    assert symbols.promised(environ, utf8_mode, encoding) == promised


async def test_no_field_blinks_the_palettes_included(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        await pilot.press("ctrl+p")
        await until(pilot, lambda: isinstance(app.focused, Input))
        await until(pilot, lambda: not app.focused.cursor_blink)


async def test_stepping_aside_saves_first_and_needs_a_shell(setting, until, monkeypatch):
    app = setting.app(setting.accumulation, PRACTICE)
    stopped = []
    monkeypatch.setattr(app, "action_suspend_process", lambda: stopped.append(True))
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        screen.panes.turn_to("editor")
        await pilot.press("x")
        monkeypatch.setattr(os, "getpgrp", lambda: os.getsid(0))
        app.action_step_aside()
        assert not stopped
        await until(pilot, lambda: any("No shell waits" in word for word in told(app)))
        monkeypatch.setattr(os, "getpgrp", lambda: os.getsid(0) + 1)
        app.action_step_aside()
        assert stopped
        assert setting.workspace.load(setting.accumulation, PRACTICE).startswith("x")


def test_colours_of_rich_are_told_apart():
    behind = color_depth.few(Style(color=RichColor.parse("red")), GROUND)
    assert behind.color is not None
    assert behind.color.number in (1, 9)
