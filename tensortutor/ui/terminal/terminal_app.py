"""An app that gets along with any terminal: few colours, none, ASCII, no blinking, Ctrl+Z."""

import os
import signal
import time
from collections.abc import Callable, Sequence

from textual import events, on
from textual.app import App
from textual.binding import Binding
from textual.driver import Driver
from textual.filter import LineFilter
from textual.notifications import SeverityLevel
from textual.reactive import reactive
from textual.timer import Timer
from textual.widgets import Input

from tensortutor.plaintext import visible
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import Harmless
from tensortutor.ui.terminal import symbols

NOTICE_AT_LEAST_S = 2.0
"""How long a notice stays at least; then the next key takes it away."""
HARMLESS = Harmless()


class TerminalApp(App[int]):
    """What has to do with the terminal alone, and with how its keys are written."""

    notice = reactive("")

    def __init__(self) -> None:
        super().__init__()
        self._noticed_at = 0.0
        self._notice_timer: Timer | None = None
        self._adapting = self._adaptations()

    def _adaptations(self) -> tuple[LineFilter, ...]:
        """What changes each line on its way to a terminal that cannot show everything."""
        found: list[LineFilter] = []
        if self.console.color_system in (None, "standard") or self.no_color:
            from tensortutor.ui.terminal import color_depth

            term = os.environ.get("TERM", "")
            found += color_depth.filters(term, self.console.color_system, self.no_color)
        if symbols.current().ascii:
            from tensortutor.ui.terminal.ascii_fallback import AsciiFallback

            found.append(AsciiFallback())
        return tuple(found)

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Textual's, then what this terminal needs."""
        return (*super().get_line_filters(), HARMLESS, *self._adapting)

    @on(events.DescendantFocus)
    def _stop_blinking(self, event: events.DescendantFocus) -> None:
        """No cursor blinks, Textual's own fields included: it unsettles, and costs traffic."""
        if isinstance(event.widget, Input):
            event.widget.cursor_blink = False

    # Words

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = True,
    ) -> None:
        """Show a notice in the bottom row; on a dialog, above it. None is read as markup."""
        del markup
        message = visible(message)
        super().notify(message, title=title, severity=severity, timeout=timeout, markup=False)
        # One that had no time to be read stays beside the next.
        fresh = time.monotonic() - self._noticed_at < NOTICE_AT_LEAST_S
        before = self.notice if fresh and message not in self.notice else ""
        self.notice = f"{before} {message}".strip()
        self._noticed_at = time.monotonic()
        if self._notice_timer is not None:
            self._notice_timer.stop()
        self._notice_timer = self.set_timer(
            timeout or self.NOTIFICATION_TIMEOUT, self.clear_notifications
        )

    def clear_notifications(self) -> None:
        """No notice any more."""
        self.notice = ""
        super().clear_notifications()

    def notice_was_read(self) -> None:
        """A key was pressed: a notice that stood long enough goes."""
        if time.monotonic() - self._noticed_at > NOTICE_AT_LEAST_S:
            self.notice = ""

    def tell(self, sentence: str) -> None:
        """Show a sentence for a while; once, if it is said again."""
        sentence = visible(sentence)
        for notice in [one for one in self._notifications if one.message == sentence]:
            self._unnotify(notice, refresh=False)
        self.notify(sentence, markup=False)

    def copy_to_clipboard(self, text: str) -> None:
        """Copy, and say what: it may be that the terminal does not take it."""
        super().copy_to_clipboard(text)
        lines = text.strip().splitlines()
        self.tell(f"Copied {len(lines)} lines." if len(lines) > 1 else f"Copied: {text.strip()}")

    # Keys as they are written

    def get_key_display(self, binding: Binding) -> str:
        """A key as it is written on keyboards: F5, ^P, Space, R."""
        if binding.key == "enter":
            return "Enter"
        shown = super().get_key_display(binding)
        if shown.startswith("^"):
            return shown.upper()
        return shown if len(shown) == 1 else shown.title()

    def key_name(self, name: str) -> str:
        """How the first key of a binding, as `keys` names it, is written, as remapped."""
        binding = key_bindings.named(name)
        key = self._keymap.get(name, binding.key).partition(",")[0]
        return self.get_key_display(binding.with_key(key))

    # What the terminal is asked

    def ask_terminal(self, text: str, then: Callable[[Sequence[str]], object]) -> None:
        """Ask the terminal something (see terminal_queries). then: is given its replies, in the
        app. A terminal that may print the question, or that has no colours, is not asked."""
        ask = getattr(self._driver, "ask", None)
        if ask is None or self.console.color_system is None or os.environ.get("TERM") == "linux":
            return
        ask(text, lambda replies: self.call_later(then, replies))

    # Stepping aside, and losing the terminal

    def get_driver_class(self) -> type[Driver]:
        """Textual's, or where that is the one for Linux and macOS, the one that outlives it."""
        usual = super().get_driver_class()
        if usual.__name__ != "LinuxDriver":
            return usual
        from tensortutor.ui.terminal.driver import LastingDriver

        return LastingDriver

    @on(Driver.SignalResume)
    def _draw_everything(self) -> None:
        """The app goes on after a pause, or another terminal looks on."""
        self.refresh(layout=True)

    def terminal_lost(self) -> None:
        """Nobody can see or press anything any more."""
        self.end_by(signal.SIGHUP)

    def end_by(self, number: signal.Signals) -> None:
        """Keep everything and end as a program that a signal has ended."""
        self.keep()
        self.exit(128 + number, return_code=128 + number)

    def keep(self) -> bool:
        """Save what is open. Returns whether that worked."""
        return True

    def action_step_aside(self) -> None:
        """Stop, as Ctrl+Z does in a shell; `fg` brings the app back.

        Without a shell that knows jobs (`ssh -t host tensortutor`) nobody could bring it back.
        """
        if os.getpgrp() == os.getsid(0):
            self.notify("No shell waits behind the app here, so it cannot step aside.")
            return
        self.keep()
        self.action_suspend_process()
