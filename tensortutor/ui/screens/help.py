"""The list of the keys that work on a screen, read from the bindings themselves."""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, cast

from textual.app import App
from textual.binding import Binding, BindingsMap
from textual.content import Content
from textual.screen import Screen
from textual.widget import Widget
from textual.widgets import Static

from tensortutor import __version__
from tensortutor.ui import describe, key_bindings
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.widgets.board import Board
from tensortutor.ui.widgets.checkline import CheckLine
from tensortutor.ui.widgets.courselist import CourseList
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.lens import GraphPane, ProfilePane
from tensortutor.ui.widgets.questions import OrderField
from tensortutor.ui.widgets.tensors import TensorsPane

if TYPE_CHECKING:
    from tensortutor.ui.terminal.terminal_app import TerminalApp

PARTS: tuple[tuple[type[Widget], str, list[Binding]], ...] = (
    (CourseList, "In the list", key_bindings.COURSE_LIST),
    (Editor, "In the editor", key_bindings.EDITOR),
    (Editor, "While finding", key_bindings.FIND),
    (Board, "On the board", key_bindings.BOARD),
    (CheckLine, "In the checks", key_bindings.CHECK_LIST),
    (OrderField, "Putting lines into order", key_bindings.ORDER),
    (TensorsPane, "In the table of tensors; Enter shows one in full", key_bindings.TENSORS),
    (GraphPane, "In the graph", key_bindings.GRAPH),
    (ProfilePane, "In the profile", key_bindings.PROFILE),
)
WORDS = (
    "Single letters work outside the editor and other fields; {} leads out of them. "
    "Function keys and Ctrl keys work everywhere."
)
BROWSER = (
    "A browser keeps Ctrl+T, Ctrl+N and Ctrl+W: F9 checks, and names are offered after a dot. If a "
    "key does nothing, click into the page first."
)
WIDTH = 22
Section = tuple[str, list[tuple[str, str]]]
"""A heading, and rows of keys and what they do."""


class HelpPage(Page):
    """What a screen is for, and its keys."""


def help_page(screen: Screen[Any], keymap: Mapping[str, str]) -> HelpPage:
    """The keys of a screen and of what is on it, as remapped by `keymap`."""
    sections = _parted("On this screen", screen, keymap)
    for kind, title, bindings in PARTS:
        if screen.query(kind):
            sections.append((title, _listed(bindings, keymap)))
        if bindings is key_bindings.EDITOR and screen.query(Editor):
            sections[-1][1].extend(key_bindings.STANDARD_EDITOR)
            sections.append(("While names are offered", [*key_bindings.OFFERED]))
    if not screen.is_modal:
        sections.append(("Everywhere", _listed(_own(screen.app), keymap)))
    about = getattr(screen, "ABOUT", "")
    words = WORDS.format(cast("TerminalApp", screen.app).key_name("editor.leave"))
    lines = [Content(about), Content("")] if about else []
    lines.append(Content.styled(words, "$foreground 66%"))
    if "JUPYTER_SERVER_URL" in os.environ:  # a terminal of Jupyter's
        lines += [Content(""), Content(BROWSER)]
    for title, rows in sections:
        lines += [Content(""), Content.styled(title, "bold $accent")]
        lines += [_line(screen.app, row_keys, text) for row_keys, text in rows]
    runner = getattr(screen.app, "runner", None)
    about_status = describe.about_status(runner.status) if runner is not None else ""
    lines += [Content(""), Content(about_status)] if about_status else []
    lines += [Content(""), Content.styled(f"tensortutor {__version__}", "$foreground 66%")]
    return HelpPage("Help", Static(Content("\n").join(lines)))


def _parted(title: str, screen: Screen[Any], keymap: Mapping[str, str]) -> list[Section]:
    """The keys of a screen; a heading of `key_bindings` begins a section of its own."""
    sections: list[Section] = [(title, [])]
    part: list[Binding] = []
    for binding in [*_own(screen), None]:
        heading = key_bindings.HEADINGS.get(binding.id or "") if binding else None
        if part and (heading or binding is None):
            sections[-1][1].extend(_listed(part, keymap))
            part = []
        if heading:
            sections.append((heading, []))
        if binding is not None:
            part.append(binding)
    return sections


def _own(node: Screen[Any] | App[Any]) -> list[Binding]:
    return [binding for binding in getattr(node, "BINDINGS", []) if isinstance(binding, Binding)]


def _listed(bindings: Iterable[Binding], keymap: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys and what they do, a row for all that are said to do the same."""
    bindings = list(bindings)
    bound = BindingsMap(bindings)
    bound.apply_keymap(dict(keymap))
    rows: dict[str, list[str]] = {binding.description: [] for binding in bindings}
    for key, binding in bound:
        if key not in rows[binding.description]:
            rows[binding.description].append(key)
    return [(",".join(row_keys), text) for text, row_keys in rows.items()]


def _line(app: App[object], row_keys: str, text: str) -> Content:
    shown = "  ".join(app.get_key_display(Binding(key, "")) for key in row_keys.split(","))
    return Content.styled(f"  {shown:<{WIDTH}}", "bold $foreground") + Content(text)
