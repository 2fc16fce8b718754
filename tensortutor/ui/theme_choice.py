"""Which theme is taken: the settings file's, else the one chosen last, else by the background."""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from tensortutor.ui import theme

CHOSEN, BACKGROUND = "theme", "background"
"""What is remembered: the theme chosen in the palette, and how the terminal's ground was last."""


class Memory(Protocol):
    """Words that outlive the app."""

    def get(self, name: str, usual: str) -> str:
        """A word, or the usual one."""

    def put(self, name: str, value: str) -> None:
        """Remember a word."""


class ThemeChoice:
    """setting: what the settings file says, "" for nothing. kept: tells what remembers; teach mode
    has a memory of its own."""

    def __init__(
        self, setting: str, kept: Callable[[], Memory], environ: Mapping[str, str]
    ) -> None:
        self._setting = setting
        self._kept = kept
        # What the terminal last said is seldom wrong today, and is corrected when it has answered.
        known = kept().get(BACKGROUND, "")
        guess = known == "light" if known else bool(theme.is_light_by(environ))
        self._fitting = theme.LIGHT_NAME if guess else theme.NAME

    @property
    def is_automatic(self) -> bool:
        """Whether the terminal's background decides."""
        chosen = self._setting or self._kept().get(CHOSEN, "")
        return chosen in ("", theme.AUTO)

    @property
    def name(self) -> str:
        """The theme to be used, as far as is known."""
        if self.is_automatic:
            return self._fitting
        return self._setting or self._kept().get(CHOSEN, "")

    def fallback(self) -> str:
        """A theme of ours, in place of one that does not exist."""
        return self._fitting

    def answered(self, replies: Sequence[str]) -> str:
        """The terminal has said how its background is, or nothing. Returns the theme to be used."""
        light = theme.is_light(replies)
        if light is not None:
            self._fitting = theme.LIGHT_NAME if light else theme.NAME
            self._kept().put(BACKGROUND, "light" if light else "dark")
        return self.name

    def changed(self, name: str) -> None:
        """The app has another theme now. One that fits the terminal is no choice to be kept."""
        if not self._setting:
            self._kept().put(CHOSEN, "" if name == self._fitting else name)
