"""Both themes can be read, and the terminal's background decides between them."""

import re
from pathlib import Path

import pytest
from textual.color import Color

import tensortutor.ui
from tensortutor.learner.ui_state import UiState
from tensortutor.ui import theme
from tensortutor.ui.theme_choice import ThemeChoice
from tests.bench.terminal import Terminal
from tests.ui.test_settings import app_with

SOURCES = [
    file.read_text("utf-8")
    for file in Path(tensortutor.ui.__file__).parent.rglob("*")
    if file.suffix in (".py", ".tcss")
]
STYLE = r"(?:bold |italic |underline )*\$(?P<name>[\w-]+)(?: (?P<share>\d+)%)?"
TEXT = re.compile(rf'(?<!background-)(?<!link-)(?:color: |"){STYLE}')
MARK = re.compile(rf"(?:border: round |drawing--\d {{ color: ){STYLE}")
BOTH = re.compile(r"[ {]color: (\$[^;]+); background: (\$[^;]+);")
GROUNDS = (
    "background", "panel", "block-cursor-background", "block-cursor-blurred-background",
)  # fmt: skip
LIGHT_ANSWER, DARK_ANSWER = "\x1b]11;rgb:fafa/f8f8/f0f0\x1b\\", "\x1b]11;rgb:10/10/20\x07"


def luminance(colour):
    """Relative luminance, from 0 to 1: WCAG 2.2."""
    parts = [part / 255 for part in colour.rgb]
    linear = [
        part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts
    ]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def used(pattern):
    """Names of the theme's variables and percentages, as styles use them."""
    found = (match for source in SOURCES for match in pattern.finditer(source))
    return {(match["name"], int(match["share"] or 100)) for match in found}


class Palette:
    def __init__(self, theme):
        self._variables = theme.to_color_system().generate()

    def __contains__(self, name):
        return not self._variables.get(name, "auto").startswith("auto")

    def on(self, name, share, ground):
        return ground + Color.parse(self._variables[name]).with_alpha(share / 100)

    def ground(self, name):
        return Color.parse(self._variables[name])


@pytest.mark.parametrize("theme", theme.THEMES, ids=lambda theme: theme.name)
def test_every_text_has_a_contrast_of_four_and_a_half_and_every_mark_of_three(theme):
    palette = Palette(theme)
    marks = used(MARK)
    texts = {use for use in used(TEXT) - marks if use[0] in palette}
    assert ("foreground", 66) in texts
    assert ("border-blurred", 100) in marks
    low = {
        (name, share, ground): round(ratio, 2)
        for name, share in texts
        for ground in GROUNDS
        if (
            ratio := contrast(
                palette.on(name, share, palette.ground(ground)), palette.ground(ground)
            )
        )
        < 4.5
    }
    back = palette.ground("background")
    low |= {
        (name, share): round(ratio, 2)
        for name, share in marks
        if name in palette and (ratio := contrast(palette.on(name, share, back), back)) < 3
    }
    for source in SOURCES:
        for fore, behind in BOTH.findall(source):
            name, _, share = behind[1:].partition(" ")
            ground = palette.on(name, int(share.rstrip("%") or 100), back)
            ratio = contrast(palette.on(fore[1:].partition(" ")[0], 100, ground), ground)
            if ratio < 4.5:
                low[fore, behind] = round(ratio, 2)
    assert not low


@pytest.mark.parametrize(
    ("replies", "light"),
    [
        ([LIGHT_ANSWER, "\x1b[?62c"], True),
        ([DARK_ANSWER], False),
        (["\x1b]11;rgba:ffff/ffff/ffff/8080\x07"], True),
        (["\x1b]11;red\x07", "\x1b[?62c"], None),
        ([], None),
    ],
)
def test_a_terminal_says_how_its_background_is(replies, light):
    assert theme.is_light(replies) is light


@pytest.mark.parametrize(
    ("value", "light"),
    [("0;15", True), ("15;0", False), ("0;default;7", True), ("15;default", None), ("", None)],
)
def test_without_an_answer_the_environment_decides(value, light, tmp_path):
    environ = {"COLORFGBG": value}
    assert theme.is_light_by(environ) is light
    state = UiState(None)
    choice = ThemeChoice("", lambda: state, environ)
    assert choice.name == choice.answered([]) == (theme.LIGHT_NAME if light else theme.NAME)


def test_the_answer_is_remembered_and_what_was_chosen_is_stronger():
    state = UiState(None)

    def memory():
        return state

    ThemeChoice("", memory, {}).answered([LIGHT_ANSWER])
    choice = ThemeChoice("", memory, {"COLORFGBG": "15;0"})
    assert choice.name == theme.LIGHT_NAME
    choice.changed("nord")
    assert (choice.name, choice.is_automatic) == ("nord", False)
    assert ThemeChoice(theme.AUTO, memory, {}).name == theme.LIGHT_NAME
    assert ThemeChoice(theme.NAME, memory, {}).name == theme.NAME
    choice.changed(theme.LIGHT_NAME)
    assert choice.is_automatic, "what fits the terminal is no choice"


async def test_a_theme_of_the_settings_is_not_asked_for(setting):
    app = app_with(setting, theme=theme.LIGHT_NAME)
    async with app.run_test():
        assert app.theme == theme.LIGHT_NAME


def test_the_app_turns_light_in_a_terminal_that_is(tmp_path):
    arguments, home = ("-m", "tensortutor"), {"TENSORTUTOR_HOME": str(tmp_path), "COLORFGBG": ""}
    with Terminal(arguments, home, (36, 120)) as terminal:
        terminal.read_until(b"\x1b]11;?")
        terminal.write(f"{LIGHT_ANSWER}\x1b[?62c")
        terminal.read_until(b"48;2;%d;%d;%d" % Color.parse(theme.LIGHT.background).rgb)
