"""The footer: the keys that work here, as many as fit, and a word at the right.

A notice takes its place for a while. It covers nothing, and one that is long takes more rows.
"""

import os
import sys
from textwrap import wrap

from textual import events
from textual.app import RenderResult
from textual.binding import Binding
from textual.content import Content
from textual.reactive import reactive
from textual.screen import Screen
from textual.widget import Widget

from tensortutor.ui.terminal import symbols

MAC_TERMINALS = ("Apple_Terminal", "iTerm.app", "iTerm2")


def is_mac() -> bool:
    """Whether the keyboard is likely a Mac's: there function keys need Fn as well.

    iTerm2 says so over SSH, too.
    """
    named = (os.environ.get("TERM_PROGRAM"), os.environ.get("LC_TERMINAL"))
    return sys.platform == "darwin" or any(name in MAC_TERMINALS for name in named)


class KeyBar(Widget):
    """One line. Keys come in the order in which the screen binds them.

    notice: stands in place of the keys. word: shown at the right if there is room. names: other
    words for some bindings, by id; "" hides the key. ahead: ids of those that come before all
    others, in this order.
    """

    ALLOW_SELECT = False
    word = reactive("")
    notice = reactive("")
    _spans: list[tuple[int, int, str]]
    names: reactive[dict[str, str]] = reactive(dict)
    ahead: tuple[str, ...] = ()

    def on_mount(self) -> None:
        """Follow the focus: other places have other keys."""
        self.screen.bindings_updated_signal.subscribe(self, self._changed)
        if hasattr(self.app, "notice"):
            self.watch(self.app, "notice", self._show_notice)

    def _show_notice(self, notice: str) -> None:
        self.notice = notice
        self.styles.height = max(len(self._noticed()), 1)

    def _noticed(self) -> list[str]:
        """The rows of the notice."""
        return wrap(self.notice, max(self.app.size.width - 4, 20))

    def _changed(self, screen: Screen[object]) -> None:
        if screen is self.screen:
            self.refresh()

    def shown(self) -> list[Binding]:
        """One binding per action, those that the footer is for; on a Mac the one with Ctrl."""
        first: dict[str, Binding] = {}
        with_ctrl = is_mac()
        for _, binding, enabled, _ in self.screen.active_bindings.values():
            if binding.show and enabled and self._word_for(binding):
                shown = first.setdefault(binding.action, binding)
                if with_ctrl and shown.key[0] == "f" and binding.key.startswith("ctrl+"):
                    first[binding.action] = binding
        order = {name: place for place, name in enumerate(self.ahead)}
        return sorted(first.values(), key=lambda binding: order.get(binding.id or "", len(order)))

    def render(self) -> RenderResult:
        """The keys, cut where the line ends; a notice as long as there is one."""
        self._spans = []
        if self.notice:
            sign = Content.styled(f" {symbols.current().pointer} ", "bold $accent")
            rows = [Content.styled(row, "bold $foreground") for row in self._noticed()]
            line = sign + Content("\n   ").join(rows)
            return self._with_word(line) if len(rows) == 1 else line
        shown = self.shown()
        # Help must not fall off: it names all the keys that did.
        help = [binding for binding in shown if binding.id == "app.help"]
        parts = [(binding, self._part(binding)) for binding in shown]
        room = self.size.width - sum(self._part(binding).cell_length for binding in help)
        line = Content()
        for binding, part in parts:
            room += part.cell_length if binding in help else 0
            if line.cell_length + part.cell_length <= room:
                end = line.cell_length + part.cell_length
                self._spans.append((line.cell_length, end, binding.key))
                line = line + part
        return self._with_word(line)

    def _with_word(self, line: Content) -> Content:
        word = Content.styled(f"{self.word} ", "$foreground 66%")
        space = self.size.width - line.cell_length - word.cell_length
        return line + Content(" " * space) + word if self.word and space > 0 else line

    def on_click(self, event: events.Click) -> None:
        """A key can be clicked, too."""
        for start, end, key in self._spans:
            if start <= event.x < end:
                self.app.simulate_key(key)

    def _word_for(self, binding: Binding) -> str:
        return self.names.get(binding.id or "", binding.description)

    def _part(self, binding: Binding) -> Content:
        key = Content.styled(f" {self.app.get_key_display(binding)} ", "bold $accent")
        return key + Content.styled(f"{self._word_for(binding)} ", "$foreground 80%")
