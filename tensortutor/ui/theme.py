"""How it looks: a dark theme and a light one, each with one accent colour.

Which of the two is taken follows the terminal's background, as the terminal itself says (OSC 11),
or COLORFGBG, which some terminals set. Textual's own themes can be chosen too.
"""

import re
from collections.abc import Iterable, Mapping

from textual.theme import Theme

NAME, LIGHT_NAME = "tensortutor", "tensortutor-light"
AUTO = "auto"
"""In the settings: by the terminal's background, whatever was chosen in the palette."""
QUERY = "\x1b]11;?\x1b\\\x1b[c"
"""Which colour has the background; and what every terminal answers, so that the wait has an end."""
REPLY = re.compile(r"\x1b\]11;rgba?:([0-9a-fA-F/]+)")
LIGHT_NUMBERS = ("7", "9", "10", "11", "12", "13", "14", "15")
"""Grounds in COLORFGBG on which dark text is read."""


def _theme(name: str, dark: bool, colours: Mapping[str, str]) -> Theme:
    ground, text, accent = colours["background"], colours["foreground"], colours["accent"]
    return Theme(
        name=name,
        primary=accent,
        secondary=colours["secondary"],
        accent=accent,
        foreground=text,
        background=ground,
        surface=ground,
        panel=colours["panel"],
        success=colours["success"],
        warning=colours["warning"],
        error=colours["error"],
        dark=dark,
        variables={
            "border": accent,
            "border-blurred": colours["edge"],
            "block-cursor-background": colours["cursor"],
            "block-cursor-foreground": colours["strong"],
            "block-cursor-text-style": "none",
            "block-cursor-blurred-background": colours["idle"],
            "block-cursor-blurred-foreground": text,
            "input-cursor-background": text,
            "input-cursor-foreground": ground,
            "input-selection-background": f"{accent} 30%",
            "scrollbar": colours["bar"],
            "scrollbar-hover": colours["edge"],
            "scrollbar-active": accent,
            "scrollbar-background": ground,
            "scrollbar-background-hover": ground,
            "scrollbar-background-active": ground,
            "scrollbar-corner-color": ground,
            "footer-background": ground,
            "footer-key-foreground": accent,
        },
    )


DARK = _theme(
    NAME,
    True,
    {
        "background": "#15181c", "panel": "#1d2127", "foreground": "#cdd3da", "strong": "#eef1f4",
        "accent": "#7fb4ca", "secondary": "#a292c9", "success": "#98bb6c", "warning": "#d8a657",
        "error": "#e07b72", "edge": "#606a76", "cursor": "#2a323c", "idle": "#20262d",
        "bar": "#2e353e",
    },
)  # fmt: skip
LIGHT = _theme(
    LIGHT_NAME,
    False,
    {
        "background": "#fbfbf9", "panel": "#efefec", "foreground": "#14181d", "strong": "#06080a",
        "accent": "#0c6080", "secondary": "#8a63c9", "success": "#5a9a1e", "warning": "#b87a00",
        "error": "#d6332a", "edge": "#87898d", "cursor": "#dce6ec", "idle": "#e9eced",
        "bar": "#d3d5d6",
    },
)  # fmt: skip
THEMES = (DARK, LIGHT)


def is_light(replies: Iterable[str]) -> bool | None:
    """Whether the background that a terminal names is a light one; None if it names none."""
    for reply in replies:
        parts = [part for part in (REPLY.match(reply) or ("", ""))[1].split("/") if part]
        if len(parts) >= 3:
            red, green, blue = (int(part, 16) / int("f" * len(part), 16) for part in parts[:3])
            return 0.299 * red + 0.587 * green + 0.114 * blue > 0.5
    return None


def is_light_by(environ: Mapping[str, str]) -> bool | None:
    """The same by COLORFGBG, as in "15;0": text, ground; None where it is not set."""
    ground = environ.get("COLORFGBG", "").rpartition(";")[2]
    return ground in LIGHT_NUMBERS if ground.isdecimal() else None
