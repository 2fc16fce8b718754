"""The code of a step as a file: kept as one types, watched, formatted, edited elsewhere."""

import asyncio
import time

from textual import events, on, work
from textual.app import SuspendNotSupported
from textual.timer import Timer
from textual.widgets import TextArea

from tensortutor.learner.errors import StorageError
from tensortutor.learner.formatting import NotFormatted, formatted
from tensortutor.learner.owneditor import NoEditor, open_file, own_editor
from tensortutor.learner.watch import POLL_S
from tensortutor.protocol.events import Finished
from tensortutor.ui.screens.asking import AskingScreen
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.session import LessonSession
from tensortutor.ui.widgets.results import Results

SAVE_AFTER_S = 0.3
"""Saving waits for a pause in the typing."""
SAVE_WITHIN_S = 2.0
"""It does not wait longer than that: who types on and on loses no more to a crash."""


class CodeScreen(AskingScreen):
    """A screen whose editor shows a file of the learner's."""

    def __init__(self) -> None:
        super().__init__()
        self._saving: Timer | None = None
        self._save_by = 0.0
        self._is_watching = False
        self._once_more = False
        self._as_read = ""

    @property
    def session(self) -> LessonSession:
        """What the learner does in this lesson."""
        raise NotImplementedError

    def action_run(self) -> None:
        """Run the code."""
        raise NotImplementedError

    def action_check(self, again: bool = False) -> None:
        """Put the checks to the code. again: with the inputs that the last check has failed on."""
        raise NotImplementedError

    # The text

    def load_code(self) -> None:
        """Show the code of this step as the learner left it."""
        if self.session.step.pane is None:
            return
        code = self.session.code()
        self.editor.file_name = code.name
        self.editor.read_only = not code.editable
        self.editor.mark({})
        self.forget_types()
        self.editor.show(self.session.index, code.text)
        self._as_read = self.editor.text

    @on(TextArea.Changed)
    def _edited(self) -> None:
        # While another step comes, the editor still holds the code of the one before.
        shows_this = self.editor.shown == self.session.index
        if not shows_this or not self.session.edit(self.editor.text):
            return
        self.session.tick()
        self.editor.mark({})
        # Each key starts the wait anew, but does not touch the last one that may be begun.
        now = time.monotonic()
        if self._saving is None:
            self._save_by = now + SAVE_WITHIN_S
        elif now + SAVE_AFTER_S > self._save_by:
            return
        else:
            self._saving.stop()
        self._saving = self.set_timer(SAVE_AFTER_S, self._save)

    def _save(self) -> None:
        self._saving = None
        self.session.flush()

    def action_save(self) -> None:
        """Save now, and say so."""
        if self.session.flush() and self.session.step.pane is not None:
            self.tutor.tell("Saved. It is saved as you type, too.")

    @work
    async def action_reset(self) -> None:
        """Start the step's code afresh, after a question."""
        if self.session.step.pane is None:
            return
        question = Confirm(
            "Start afresh",
            "The code of this step goes back to what it began with. What is there now is kept "
            "in a backup folder.",
            "Start afresh",
        )
        if await self.app.push_screen_wait(question):
            folder = self.session.reset()
            self.load_code()
            if folder:
                self.tutor.tell(f"Your code is kept in {folder}")

    @work(exclusive=True, group="format")
    async def action_format(self) -> None:
        """Lay the code out as ruff does, in one step that can be undone."""
        session, before = self.session, self.editor.text
        index = session.index
        if session.step.pane is None or self.editor.read_only:
            return
        try:
            after = await asyncio.to_thread(formatted, before, session.path)
        except NotFormatted as error:
            self.tutor.tell(str(error))
            return
        if self.editor.text == before and session.index == index:
            self.editor.renew(after)
            if after == before:
                self.tutor.tell("The code is laid out well already.")

    # Other programs

    def follow_file(self) -> None:
        """Notice from now on when another program saves the file."""
        self.set_interval(POLL_S, self._look_at_file)

    def _look_at_file(self) -> None:
        if self.session.saved_elsewhere():
            self.look_again()
            if self._is_watching:
                self._run_again()

    @on(events.AppFocus)
    @on(events.ScreenResume)
    def look_again(self) -> None:
        """The file may have been edited elsewhere in the meantime."""
        if not self.is_mounted or not self.query("#editor"):
            return
        if self.editor.shown != self.session.index:
            return  # another step is coming, and its code is read then
        if self.editor.text != self._as_read:
            self._edited()  # the last key may not have been heard of yet
        code = self.session.changed_elsewhere()
        if code is not None:
            self.editor.renew(code.text)
            self._as_read = self.editor.text
            self.editor.read_only = not code.editable

    def action_own_editor(self) -> None:
        """Open the file in the learner's own editor; the app waits meanwhile."""
        if self.session.step.pane is None:
            self.tutor.tell("This step has no code to edit.")
            return
        try:
            command = own_editor()
            path = self.session.make_file()
        except (NoEditor, StorageError) as error:
            self.tutor.tell(str(error))
            return
        if path is None:
            return  # what could not be saved has been told
        try:
            with self.app.suspend():
                problem = open_file(command, path, self.editor.cursor_location[0] + 1)
        except SuspendNotSupported:
            problem = f"The app cannot step aside in this terminal. The file is {path}"
        if problem:
            self.tutor.tell(problem)
        self.look_again()
        self.refresh()

    def action_watch(self) -> None:
        """Run the checks whenever another program saves the file, or stop doing so."""
        self._is_watching = not self._is_watching
        self.editor.note = "watched" if self._is_watching else ""
        if not self._is_watching:
            self.tutor.tell("Saving the file elsewhere does not run anything any more.")
        elif self.session.step.pane is None:
            self.tutor.tell("From the next step with code on, every save elsewhere runs it.")
        else:
            what = "puts the checks to it" if self.session.judged else "runs it"
            self.tutor.tell(f"Saving the file elsewhere {what}: {self.session.path}")

    def _run_again(self) -> None:
        """Check the code, or run what is not judged; a program under way is stopped first."""
        if self.results.is_running:
            self._once_more = True
            self.results.stop()
        elif self.session.judged:
            self.action_check()
        elif self.session.step.pane is not None and not self.session.must_answer_first:
            self.action_run()

    @on(Results.Heard)
    def _ended(self, message: Results.Heard) -> None:
        if self._once_more and any(isinstance(event, Finished) for event in message.events):
            self._once_more = False
            self._run_again()
