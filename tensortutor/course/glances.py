"""What the lessons of a course say about themselves, remembered from one start to the next.

A front matter that has not changed need not be parsed again: most of what opening a long course
takes. Losing the file costs that time once, so an unreadable one is an empty one.
"""

import contextlib
import json
import os
from dataclasses import astuple
from pathlib import Path
from typing import Any

from tensortutor.course.frontmatter import FrontMatter

FORMAT = 1


class Glances:
    """Front matters by file, as long as size and time of the file are the same."""

    def __init__(self, path: Path | None, root: Path) -> None:
        """path: None remembers nothing. One file holds one course: the one opened last."""
        self._path = path
        self._head = [FORMAT, str(root)]
        self._known: dict[str, Any] = {}
        self._used: dict[str, Any] = {}
        if path is not None:
            with contextlib.suppress(OSError, ValueError, TypeError):
                head, known = json.loads(path.read_text("utf-8"))
                self._known = dict(known) if head == self._head else {}

    def get(self, name: str, found: os.stat_result) -> FrontMatter | None:
        """The front matter of the file of this name, if it was remembered and is still the same."""
        stamp = [found.st_mtime_ns, found.st_size]
        try:
            old, (title, goal, requires, minutes, device, limits) = self._known[name]
            front = FrontMatter(
                title, goal, tuple(requires), minutes, device, tuple(map(tuple, limits))
            )
        except (KeyError, TypeError, ValueError):
            return None
        if old != stamp:
            return None
        self._used[name] = self._known[name]
        return front

    def put(self, name: str, found: os.stat_result, front: FrontMatter) -> None:
        """Remember a front matter that is as it should be."""
        self._used[name] = [[found.st_mtime_ns, found.st_size], list(astuple(front))]

    def save(self) -> None:
        """Write down what was used, if that is news. What cannot be written is not remembered."""
        if self._path is None or self._used == self._known:
            return
        beside = self._path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            beside.write_text(json.dumps([self._head, self._used]), "utf-8")
            beside.replace(self._path)
