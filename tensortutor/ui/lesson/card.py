"""Code, plot and checks as one SVG picture, to be shown to somebody else."""

import re
from collections.abc import Iterable, Sequence
from io import StringIO

from rich.console import Console
from rich.padding import Padding
from rich.style import Style
from rich.syntax import Syntax
from rich.terminal_theme import TerminalTheme
from rich.text import Text
from textual.color import Color

from tensortutor.drawing.spans import Look, Row
from tensortutor.drawing.text import drawing_rows, natural_height
from tensortutor.plaintext import visible
from tensortutor.protocol.drawings import Drawing
from tensortutor.ui import theme
from tensortutor.ui.outside import OutsideText

WIDTH = 88
DRAWN_WIDTH = 80
MOST_LINES = 60
"""Lines of the code; more would be no card."""
SERIES = ("cyan", "yellow", "magenta", "green", "blue", "red", "bright_cyan", "bright_yellow")
SIGNS = {"passed": ("✓", "green"), "failed": ("✗", "red")}
FROM_ELSEWHERE = re.compile(r"@font-face \{.*?\}\s*|<!--.*?-->\s*", re.DOTALL)
"""A picture that is opened loads nothing from anywhere: the viewer's own font will do."""


def card(
    title: str, code: str, drawings: Sequence[Drawing], checks: Iterable[tuple[str, str]]
) -> str:
    """The picture. drawings: the last of them is shown. checks: states and names."""
    console = Console(
        record=True, width=WIDTH, file=StringIO(), force_terminal=True, color_system="truecolor",
        legacy_windows=False, no_color=False,
    )  # fmt: skip
    lines = visible(code).rstrip().split("\n")
    if len(lines) > MOST_LINES:
        lines = [*lines[:MOST_LINES], f"# … {len(lines) - MOST_LINES} more lines"]
    syntax = Syntax(
        "\n".join(lines), "python", theme="ansi_dark", line_numbers=True, word_wrap=True,
        background_color="default",
    )  # fmt: skip
    console.print(Padding(syntax, (1, 1)))
    if drawings:
        look = Look()
        height = natural_height(drawings[-1], DRAWN_WIDTH, look)
        for row in drawing_rows(drawings[-1], DRAWN_WIDTH, height, look):
            console.print(Padding(_painted(row), (0, 1)))
        console.print()
    for state, name in checks:
        sign, colour = SIGNS.get(state, ("–", "bright_black"))
        console.print(Padding(Text(f"{sign} {OutsideText(name).line}", colour), (0, 1)))
    svg = console.export_svg(title=OutsideText(title).line, theme=_colours())
    return FROM_ELSEWHERE.sub("", svg)


def _painted(row: Row) -> Text:
    text = Text(no_wrap=True)
    for span in row:
        style = Style(dim=span.dim)
        if span.series >= 0:
            style += Style(color=SERIES[span.series % len(SERIES)])
        if span.fore is not None:
            style += Style(color="rgb({},{},{})".format(*span.fore))
        if span.back is not None:
            style += Style(bgcolor="rgb({},{},{})".format(*span.back))
        text.append(visible(span.text), style)
    return text


def _colours() -> TerminalTheme:
    """The dark theme's colours, as those of a terminal."""
    dark = theme.DARK
    named = [
        dark.panel, dark.error, dark.success, dark.warning, dark.primary, dark.secondary,
        dark.accent, dark.foreground,
    ]  # fmt: skip
    rgb = [Color.parse(name or theme.DARK.primary).rgb for name in named]
    faint = Color.parse(dark.foreground or "white").blend(
        Color.parse(dark.background or "black"), 0.4
    )
    return TerminalTheme(
        Color.parse(dark.background or "black").rgb, Color.parse(dark.foreground or "white").rgb,
        rgb, [faint.rgb, *rgb[1:]],
    )  # fmt: skip
