"""The code of a step as a file: kept as one types, watched, formatted, edited elsewhere."""

import asyncio
import time
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from textual.app import SuspendNotSupported
from textual.timer import Timer

from tensortutor.learner.edited_files import Code
from tensortutor.learner.errors import StorageError
from tensortutor.learner.external_editor import NoEditor, open_file, own_editor
from tensortutor.learner.file_watch import POLL_S
from tensortutor.learner.formatting import NotFormatted, formatted
from tensortutor.ui.widgets.editor import Editor

SAVE_AFTER_S = 0.3
"""Saving waits for a pause in the typing."""
SAVE_WITHIN_S = 2.0
"""It does not wait longer than that: who types on and on loses no more to a crash."""


class Edited(Protocol):
    """What is edited: the files of a lesson's steps, or those of the learner's own program."""

    @property
    def index(self) -> Hashable:
        """What the editor knows the shown file by."""

    @property
    def has_code(self) -> bool:
        """Whether a file is shown."""

    @property
    def judged(self) -> bool:
        """Whether checks are put to it."""

    @property
    def path(self) -> Path:
        """Where it lies, or would lie."""

    def code(self) -> Code:
        """Its text."""

    def edit(self, text: str) -> bool:
        """The text has changed. Returns whether it is to be saved."""

    def tick(self) -> None:
        """The learner did something."""

    def flush(self) -> bool:
        """Save everything. Returns whether that worked."""

    def make_file(self) -> Path | None:
        """The file, for another program to edit. Raises StorageError."""

    def saved_elsewhere(self) -> bool:
        """Whether another program has saved it."""

    def changed_elsewhere(self) -> Code | None:
        """Its text, if another program has changed it."""

    def reset(self) -> str | None:
        """Back to how it was. Returns where the rest is kept."""


class CodeFile:
    """Keeps the editor and the learner's file alike.

    tell: shows a sentence. saved_elsewhere: called when another program has saved the file and the
    learner wants it run then.
    """

    def __init__(
        self,
        session: Edited,
        editor: Editor,
        tell: Callable[[str], None],
        saved_elsewhere: Callable[[], None],
    ) -> None:
        self._session = session
        self._editor = editor
        self._tell = tell
        self._saved_elsewhere = saved_elsewhere
        self._saving: Timer | None = None
        self._save_by = 0.0
        self._is_watching = False
        self._as_read = ""

    def show(self) -> None:
        """Show the code as the learner left it."""
        if not self._session.has_code:
            return
        code = self._session.code()
        self._editor.file_name = code.name
        self._editor.read_only = not code.editable
        self._editor.mark({})
        self._editor.show(self._session.index, code.text)
        self._as_read = self._editor.text

    @property
    def _is_shown(self) -> bool:
        """While another step comes, the editor still holds the code of the one before."""
        return self._editor.is_mounted and self._editor.shown == self._session.index

    # Saving

    def edited(self) -> None:
        """The text has changed: save it soon."""
        if not self._is_shown or not self._session.edit(self._editor.text):
            return
        self._session.tick()
        self._editor.mark({})
        # Each key starts the wait anew, but does not touch the last one that may be begun.
        now = time.monotonic()
        if self._saving is None:
            self._save_by = now + SAVE_WITHIN_S
        elif now + SAVE_AFTER_S > self._save_by:
            return
        else:
            self._saving.stop()
        self._saving = self._editor.set_timer(SAVE_AFTER_S, self._save)

    def _save(self) -> None:
        self._saving = None
        self._session.flush()

    def save(self) -> None:
        """Save now, and say so."""
        if self._session.flush() and self._session.has_code:
            self._tell("Saved. It is saved as you type, too.")

    def reset(self) -> None:
        """Go back to how the code was at first; the learner's is kept in a backup."""
        folder = self._session.reset()
        self.show()
        if folder:
            self._tell(f"Your code is kept in {folder}")

    async def format(self) -> None:
        """Lay the code out as ruff does, in one step that can be undone."""
        session, before = self._session, self._editor.text
        index = session.index
        if not session.has_code or self._editor.read_only:
            return
        try:
            after = await asyncio.to_thread(formatted, before, session.path)
        except NotFormatted as error:
            self._tell(str(error))
            return
        if self._editor.text == before and session.index == index:
            self._editor.renew(after)
            if after == before:
                self._tell("The code is laid out well already.")

    # Other programs

    def follow(self) -> None:
        """Notice from now on when another program saves the file."""
        self._editor.set_interval(POLL_S, self._poll)

    def _poll(self) -> None:
        if self._session.saved_elsewhere():
            self.read_again()
            if self._is_watching:
                self._saved_elsewhere()

    def read_again(self) -> None:
        """The file may have been edited elsewhere in the meantime."""
        if not self._is_shown:
            return  # another step is coming, and its code is read then
        if self._editor.text != self._as_read:
            self.edited()  # the last key may not have been heard of yet
        code = self._session.changed_elsewhere()
        if code is not None:
            self._editor.renew(code.text)
            self._as_read = self._editor.text
            self._editor.read_only = not code.editable

    def open_in_own_editor(self, suspend: Callable[[], AbstractContextManager[None]]) -> None:
        """Open the file in the learner's own editor; the app waits meanwhile.

        suspend: gives the terminal away for as long as it lasts.
        """
        if not self._session.has_code:
            self._tell("This step has no code to edit.")
            return
        try:
            command = own_editor()
            path = self._session.make_file()
        except (NoEditor, StorageError) as error:
            self._tell(str(error))
            return
        if path is None:
            return  # what could not be saved has been told
        try:
            with suspend():
                problem = open_file(command, path, self._editor.cursor_location[0] + 1)
        except SuspendNotSupported:
            problem = f"The app cannot step aside in this terminal. The file is {path}"
        if problem:
            self._tell(problem)
        self.read_again()

    def watch(self) -> None:
        """Run the code whenever another program saves the file, or stop doing so."""
        self._is_watching = not self._is_watching
        self._editor.note = "watched" if self._is_watching else ""
        if not self._is_watching:
            self._tell("Saving the file elsewhere does not run anything any more.")
        elif not self._session.has_code:
            self._tell("From the next step with code on, every save elsewhere runs it.")
        else:
            what = "puts the checks to it" if self._session.judged else "runs it"
            self._tell(f"Saving the file elsewhere {what}: {self._session.path}")
