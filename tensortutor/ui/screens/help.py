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

from tensortutor.ui import key_bindings
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


class HelpPage(Page):
    """What a screen is for, and its keys."""


def help_page(screen: Screen[Any], keymap: Mapping[str, str]) -> HelpPage:
    """The keys of a screen and of what is on it, as remapped by `keymap`."""
    sections = [("On this screen", _bound(screen, keymap))]
    for kind, title, bindings in PARTS:
        if screen.query(kind):
            sections.append((title, _listed(bindings, keymap)))
        if bindings is key_bindings.EDITOR and screen.query(Editor):
            sections[-1][1].extend(key_bindings.STANDARD_EDITOR)
            sections.append(("While names are offered", [*key_bindings.OFFERED]))
    if not screen.is_modal:
        sections.append(("Everywhere", _bound(screen.app, keymap)))
    about = getattr(screen, "ABOUT", "")
    words = WORDS.format(cast("TerminalApp", screen.app).key_name("editor.leave"))
    lines = [Content(about), Content("")] if about else []
    lines.append(Content.styled(words, "$foreground 66%"))
    if "JUPYTER_SERVER_URL" in os.environ:  # a terminal of Jupyter's
        lines += [Content(""), Content(BROWSER)]
    for title, rows in sections:
        lines += [Content(""), Content.styled(title, "bold $accent")]
        lines += [_line(screen.app, row_keys, text) for row_keys, text in rows]
    return HelpPage("Help", Static(Content("\n").join(lines)))


def _bound(node: Screen[Any] | App[Any], keymap: Mapping[str, str]) -> list[tuple[str, str]]:
    own = [binding for binding in getattr(node, "BINDINGS", []) if isinstance(binding, Binding)]
    return _listed(own, keymap)


def _listed(bindings: Iterable[Binding], keymap: Mapping[str, str]) -> list[tuple[str, str]]:
    """Keys and what they do, a row per action."""
    bound = BindingsMap(list(bindings))
    bound.apply_keymap(dict(keymap))
    rows: dict[str, tuple[list[str], str]] = {}
    for key, binding in bound:
        found, _ = rows.setdefault(binding.id or key, ([], binding.description))
        if key not in found:
            found.append(key)
    order = [binding.id for binding in bindings]
    named = sorted(rows.items(), key=lambda row: order.index(row[0]))
    return [(",".join(row_keys), text) for _, (row_keys, text) in named]


def _line(app: App[object], row_keys: str, text: str) -> Content:
    shown = "  ".join(app.get_key_display(Binding(key, "")) for key in row_keys.split(","))
    return Content.styled(f"  {shown:<{WIDTH}}", "bold $foreground") + Content(text)
