"""Files that are edited in the app: kept as one types, never overwritten unread.

Where they lie, and what is shown in place of one that is not there, says a `Store`.
"""

from collections.abc import Callable, Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, Protocol, TypeVar

from tensortutor.learner.errors import StorageError
from tensortutor.learner.file_watch import FileWatch

K = TypeVar("K", bound=Hashable)
Key = TypeVar("Key", bound=Hashable, contravariant=True)


@dataclass(frozen=True)
class Code:
    """The text of a file. editable: False when it could not be read and must not change."""

    name: str
    text: str
    editable: bool


class Store(Protocol[Key]):
    """Where files lie. Everything that fails raises StorageError, whose text is a sentence."""

    def path(self, key: Key) -> Path:
        """Where a file lies, or would lie."""

    def load(self, key: Key) -> str:
        """What it holds, or what stands for it as long as there is none."""

    def save(self, key: Key, text: str) -> None:
        """Replace what it holds."""

    def start(self, key: Key) -> Path:
        """Make it if it is not there."""

    def put_aside(self, key: Key) -> Path | None:
        """Keep what it holds in a backup folder, and return that; None if there was none."""

    def unread(self, key: Key) -> str:
        """What is shown in place of one that cannot be read."""

    def may_change(self, key: Key) -> bool:
        """Whether it may be edited."""

    def gone(self, key: Key) -> str:
        """The sentence for a file that another program has taken away."""


class EditedFiles(Generic[K]):
    """The files of one screen, by key. report: is told what could not be kept."""

    def __init__(self, store: Store[K], report: Callable[[str], None]) -> None:
        self._store = store
        self._report = report
        self._pending: dict[K, str] = {}
        self._known: dict[K, str] = {}
        self._unreadable: set[K] = set()
        self._watches: dict[K, FileWatch] = {}
        self._failing = False

    def code(self, key: K) -> Code:
        """The text of a file as it was left."""
        name = self._store.path(key).name
        self._watch(key)  # from now on: what is saved after this reading is news
        if key in self._pending:
            return Code(name, self._pending[key], True)
        try:
            text = self._store.load(key)
        except StorageError as error:
            self._unreadable.add(key)
            self._report(str(error))
            return Code(name, self._store.unread(key), False)
        self._unreadable.discard(key)
        self._known[key] = text
        return Code(name, text, self._store.may_change(key))

    def unsaved(self, key: K) -> str | None:
        """What was typed and is not saved yet."""
        return self._pending.get(key)

    def make(self, key: K) -> Path | None:
        """The file, with all that was typed in it, for another program to edit.

        None if something could not be saved. Raises StorageError if there can be no file.
        """
        if not self.flush():
            return None
        watch = self._watch(key)
        path = self._store.start(key)
        watch.accept()
        return path

    def saved_elsewhere(self, key: K) -> bool:
        """Whether another program has saved the file since the last time it was so."""
        return self._watch(key).poll()

    def _watch(self, key: K) -> FileWatch:
        return self._watches.setdefault(key, FileWatch(self._store.path(key)))

    def edit(self, key: K, text: str) -> bool:
        """The text was changed. Returns whether it is to be saved."""
        if key in self._unreadable:
            return False
        if text == self._pending.get(key, self._known.get(key)):
            return False
        self._pending[key] = text
        return True

    def flush(self) -> bool:
        """Save what is not saved yet. Returns whether everything is."""
        for key, text in list(self._pending.items()):
            try:
                self._save(key, text)
            except StorageError as error:
                if not self._failing:
                    self._report(f"{error} Your text stays in the editor; go on and save later.")
                self._failing = True
                return False
            # Typing may have gone on in the meantime.
            if self._pending.get(key) == text:
                del self._pending[key]
        if self._failing:
            self._failing = False
            self._report("Saving works again: your code is kept.")
        return True

    def _save(self, key: K, text: str) -> None:
        on_disk = self._store.load(key)
        if on_disk not in (self._known.get(key, on_disk), text):
            folder = self._store.put_aside(key)
            if folder is not None:  # None: there is no file, and what stands for it is another one
                self._report(
                    f"{self._store.path(key).name} was changed by another program as well. "
                    f"Its version is kept in {folder}."
                )
        watch = self._watch(key)
        self._store.save(key, text)
        watch.accept()
        self._known[key] = text

    def changed_elsewhere(self, key: K) -> Code | None:
        """The text, if another program has changed the file and nothing typed here is at stake.

        If the file cannot be read now, the text as it was; it must not change until it can.
        """
        if key in self._pending:
            return None
        known, was_unreadable = self._known.get(key), key in self._unreadable
        if was_unreadable and not self._is_readable(key):
            return None  # has been told
        code = self.code(key)
        if key in self._unreadable:
            return replace(code, text=known) if known is not None else code
        if code.text == known and not was_unreadable:
            return None
        if known is not None and not self._store.path(key).exists():
            self._report(self._store.gone(key))
        return code

    def _is_readable(self, key: K) -> bool:
        try:
            self._store.load(key)
        except StorageError:
            return False
        return True

    def forget(self, key: K) -> None:
        """The file was replaced by us: what it held is no longer known."""
        self._known.pop(key, None)
