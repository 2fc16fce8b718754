"""The app for whoever teaches a class that shares a folder: one screen, no programs."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import ClassVar

from textual.binding import BindingType
from textual.screen import Screen

from tensortutor.course.model import Course
from tensortutor.learner.settings import LearnerSettings
from tensortutor.learner.ui_state import UiState
from tensortutor.ui import key_bindings, theme
from tensortutor.ui.keymap import keymap
from tensortutor.ui.screens.class_board import ClassScreen
from tensortutor.ui.screens.help import help_page
from tensortutor.ui.terminal import symbols
from tensortutor.ui.terminal.terminal_app import TerminalApp
from tensortutor.ui.theme_choice import ThemeChoice


class ClassApp(TerminalApp):
    """Shows a class. It looks and is keyed as the tutor is."""

    TITLE = "tensortutor class"
    # Textual reads a screen's own style sheet when it is pushed, and this one never is.
    CSS_PATH: ClassVar[list[str]] = ["styles/app.tcss", "styles/class.tcss"]  # type: ignore[assignment]
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        key_bindings.named(name) for name in ("app.help", "app.aside", "app.quit")
    ]

    def __init__(self, folder: Path, course: Course, settings: LearnerSettings) -> None:
        super().__init__()
        self._folder = folder
        self._course = course
        self.animation_level = "full" if settings.motion else "none"
        for own_theme in theme.THEMES:
            self.register_theme(own_theme)
        memory = UiState(None)
        self._theme_choice = choice = ThemeChoice(settings.theme, lambda: memory, os.environ)
        self.theme = choice.name if choice.name in self.available_themes else choice.fallback()
        if settings.keys:
            self.set_keymap(keymap(settings.keys)[0])
        self.set_class(symbols.current().ascii, "-ascii")

    def on_mount(self) -> None:
        """Take the theme that fits the terminal's background, if none is set."""
        choice = self._theme_choice

        def answered(replies: Sequence[str]) -> None:
            self.theme = choice.answered(replies)

        if choice.is_automatic:
            self.ask_terminal(theme.QUERY, answered)

    def get_default_screen(self) -> Screen[None]:
        """The class."""
        return ClassScreen(self._folder, self._course)

    def action_help(self) -> None:
        """Say what the screen is for, and its keys."""
        if getattr(self.screen, "ABOUT", ""):
            self.push_screen(help_page(self.screen, self._keymap))


def run_class_app(folder: Path, course: Course, settings: LearnerSettings) -> int:
    """Show the class until it is left. Returns the exit status."""
    if settings.ascii:
        symbols.use_ascii()
    app = ClassApp(folder, course, settings)
    result = app.run()
    return app.return_code or result or 0
