"""What the app remembers of how it was left: the theme, the sizes of its parts.

Unlike `settings.toml`, which is the learner's to write, this file is written by the app. Losing it
costs nothing but a few key presses, so an unreadable one is an empty one.
"""

import contextlib
import json
import os
from pathlib import Path
from typing import TypeVar

from tensortutor.course.read_file import read_file

T = TypeVar("T", str, int, bool)


class UiState:
    """Names with small values, in a JSON file that is replaced whole."""

    def __init__(self, path: Path | None) -> None:
        """path: None remembers for as long as this object lives."""
        self._path = path
        self._values: dict[str, object] = {}
        if path is not None:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                read = json.loads(read_file(path))
                self._values = read if isinstance(read, dict) else {}

    def get(self, name: str, usual: T) -> T:
        """The value of a name, or the usual one if there is none of its type."""
        value = self._values.get(name)
        return value if type(value) is type(usual) else usual

    def put(self, name: str, value: str | int | bool) -> None:
        """Remember a value. Where nothing can be written, until the app ends."""
        if self._values.get(name) == value:
            return
        self._values[name] = value
        if self._path is None:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps(self._values, indent=1), "utf-8")
            beside.replace(self._path)
