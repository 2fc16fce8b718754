"""Reads a class's folder again and again, in a thread: its server may not answer."""

import time
from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

from tensortutor.learner.class_board import ClassBoard, read_class
from tensortutor.learner.errors import StorageError

EACH_S = 2.0
"""Between two readings. By looking again: notifications do not cross a network file system."""
SLOW_S = 10.0
"""A folder that has not answered for so long is said to be gone."""


class ClassReader:
    """tell: called in the thread, with the class or with the sentence why it cannot be read."""

    def __init__(self, folder: Path, tell: Callable[[ClassBoard | str], object]) -> None:
        self._folder = folder
        self._tell = tell
        self._over = Event()
        self._answered = time.monotonic()

    def start(self) -> None:
        """Begin. A thread that waits for a dead server is left to end with the process."""
        Thread(target=self._read, name="class", daemon=True).start()

    def stop(self) -> None:
        """Read no more."""
        self._over.set()

    @property
    def is_slow(self) -> bool:
        """Whether the folder has not answered for a while."""
        return time.monotonic() - self._answered > EACH_S + SLOW_S

    def _read(self) -> None:
        while not self._over.is_set():
            try:
                found: ClassBoard | str = read_class(self._folder)
            except StorageError as error:
                found = str(error)
            self._answered = time.monotonic()
            if not self._over.is_set():
                self._tell(found)
            self._over.wait(EACH_S)
