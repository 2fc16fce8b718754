"""The learner's own program: files, editor and results, with everything that a lesson's run has."""

import os
import re
from dataclasses import replace
from typing import ClassVar

from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, VerticalScroll
from textual.widget import Widget
from textual.widgets import DirectoryTree, Static, TextArea

from tensortutor.course.jobs import program_job
from tensortutor.learner.own_files import OwnProgram, OwnSession
from tensortutor.plaintext import one_line
from tensortutor.protocol.events import Event, Finished, Raised
from tensortutor.ui import key_bindings
from tensortutor.ui.lesson.code_file import CodeFile
from tensortutor.ui.lesson.pane_layout import PaneLayout
from tensortutor.ui.lesson.screen_runs import ScreenRuns
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.dialogs import Confirm
from tensortutor.ui.screens.workbench import Workbench
from tensortutor.ui.widgets.drawings import DrawingsPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.file_tree import FileTree
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.lens import LENS_PANES
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import ResultPane
from tensortutor.ui.widgets.results import Results

PANES: tuple[type[ResultPane], ...] = (OutputPane, DrawingsPane, *LENS_PANES)
SCRATCH = "own_programs"
"""The folder below the scratch folder where programs keep what they write nowhere else."""
REFUSED = ("Read-only file system", "Permission denied")
ABSOLUTE = re.compile(r"'(/[^'\n]+)'")
NO_WRITING = (
    "A program may write only where you let it: start with --write FOLDER for a folder that it "
    "needs. Files from tempfile can be written without it."
)
NO_READING = (
    "A program finds its own folder, the system and Python alone: start with --read FOLDER for "
    "the data that it needs."
)


OF_LESSONS = {
    f"lesson.{name}"
    for name in (
        "check",
        "check_again",
        "next",
        "previous",
        "hint",
        "solution",
        "skip",
        "point",
        "ask",
    )
}
"""Keys of a lesson that mean nothing here."""
ABOUT_PAD = """\
A place to try things. What stands here is kept.

To work on a file of your own, start with

  tensortutor open train.py
"""


class OwnProgramScreen(TutorScreen):
    """Edits and runs a program of the learner's own. program: which, and what it may do."""

    BINDINGS: ClassVar[list[BindingType]] = [
        one for one in key_bindings.LESSON if one.id not in OF_LESSONS
    ]
    CSS_PATH = "../styles/lesson.tcss"
    ABOUT = (
        "A program of your own: its files, the code, and what came of running it. Everything is "
        "saved as you type; how a file was before is kept in the folder of backups."
    )

    def __init__(self, program: OwnProgram) -> None:
        super().__init__()
        tutor = self.tutor
        self.program = program
        self.session = OwnSession(program, tutor.workspace, tutor.tell)
        folder = program.folder
        self.files: Widget = FileTree(folder, id="reader") if folder else _about_pad()
        self.bench = Workbench(tutor, PANES)
        self.editor, self.results = self.bench.editor, self.bench.results
        self.names, self.notes = self.bench.names, self.bench.notes
        self._keybar = KeyBar()
        self._once_more = False
        self.panes = PaneLayout(
            self.files, self.editor, self.results, tutor.ui_state, lambda: self.is_wide,
            lambda: self.app.size.height - 2, tutor.tell,
        )  # fmt: skip
        self.code = CodeFile(self.session, self.editor, tutor.tell, self._rerun)
        self.runs = ScreenRuns(
            self.editor, self.results, self._keybar, tutor, self.session.flush, self._run_started,
            shown=lambda: self.session.shows_main,
        )  # fmt: skip

    def compose(self) -> ComposeResult:
        """Files beside or above the editor over the results."""
        yield TopLine()
        with Horizontal(id="body"):
            yield self.files
            yield self.bench
        yield self._keybar
        yield self.too_small()

    @property
    def is_for_programs(self) -> bool:
        """Whether the learner may be about to run what they see."""
        return True

    def on_mount(self) -> None:
        """Show the program, and what it may do before it does anything."""
        self.watch(self.app, "device_word", self._show_device)
        self.panes.begin_step(has_code=True, has_questions=False, count="")
        self.code.show()
        self.code.follow()
        self.panes.turn_to("editor")
        self.panes.show_results()
        self.results.abandon(f"{self.key_for('lesson.run')} runs {one_line(self._command)}.")
        self._remark(*self._rights())
        self._describe()

    def _show_device(self, word: str) -> None:
        self.top.word = word

    @property
    def _command(self) -> str:
        return " ".join((self.program.file.name, *self.program.arguments))

    def _rights(self) -> list[str]:
        """What the program may do, a line each."""
        program = self.program
        reads = [str(folder) for folder in (program.folder, *program.read) if folder]
        lines = ["This program runs in a sandbox, without a network."]
        if reads:
            lines.append(f"It works in {reads[0]}, and may read:")
            lines += [f"  {folder}" for folder in reads]
        writes = [f"  {folder}" for folder in program.write]
        lines += ["It may write:", *writes] if writes else []
        if not writes and program.folder:
            lines.append("It may write temporary files alone; --write FOLDER allows more.")
        return [one_line(line) for line in lines]

    def _describe(self) -> None:
        path = self.session.path
        inside = self.program.folder is not None and path.is_relative_to(self.program.folder)
        name = str(path.relative_to(self.program.folder)) if inside else path.name  # type: ignore[arg-type]
        home = str(self.program.folder or "Scratch pad")
        self.top.place = (one_line(home), one_line(name))
        front = self.panes.front
        self.keys.ahead = ("lesson.run", "lesson.stop", "lesson.turn", "editor.leave")
        self.keys.names = {
            "lesson.run": "Run",
            "lesson.turn": "Results" if front == "editor" else "Code",
            "lesson.leave": "Files" if front != "reader" else "",
            "editor.leave": "Files",
            "editor.complete": "Names",
            "lesson.tab": "Tab" if front == "results" else "",
            "lesson.stop": "Stop" if self.results.is_running else "",
        }

    # Running

    def action_run(self, profile: bool = False) -> None:
        """Run the program, whichever of its files is shown."""
        program = self.program
        job = program_job(
            None, self.session.source(), program.file.name, self.tutor.limits, program.arguments
        )
        job = self.notes.looked_into(job, profile=profile)
        folder = str(program.folder) if program.folder else ""
        self.runs.start(replace(job, folder=folder, scratch=SCRATCH))

    def action_profile(self) -> None:
        """Run the program under the profiler."""
        self.action_run(profile=True)

    def action_stop(self) -> None:
        """Stop the program."""
        self.runs.stop()

    def action_explain(self) -> None:
        """Open the lesson about the last error."""
        self.runs.explain()

    def _rerun(self) -> None:
        """A file was saved elsewhere: run the program, once what runs has been stopped."""
        if self.results.is_running:
            self._once_more = True
            self.runs.stop()
        else:
            self.action_run()

    def _run_started(self) -> None:
        self.panes.show_results()
        self._describe()

    @on(Results.Heard)
    def on_run_events(self, message: Results.Heard) -> None:
        """What a run says, part by part."""
        if self.session.shows_main:
            self.notes.take(message.events)
        self.runs.take(message.events)
        self.names.learn(message.events)
        self._say_rights(message.events)
        self._describe()
        if any(isinstance(event, Finished) for event in message.events):
            self._ended()

    def _ended(self) -> None:
        """The program may have written files, and may be wanted once more."""
        if isinstance(self.files, FileTree):
            self.files.reload()
        if self._once_more:
            self._once_more = False
            self.action_run()

    def _say_rights(self, heard: tuple[Event, ...]) -> None:
        """An error about a file may be the sandbox's: say how a folder is opened."""
        for event in heard:
            if not isinstance(event, Raised) or self.program.folder is None:
                continue
            named = ABSOLUTE.search(event.message)
            if any(words in event.message for words in REFUSED):
                self._remark(NO_WRITING)
            elif "No such file" in event.message and named and os.path.exists(named[1]):
                self._remark(NO_READING)

    def _remark(self, *lines: str) -> None:
        self.results.query_one(OutputPane).remark([("note", line) for line in lines])

    # Files

    @on(DirectoryTree.FileSelected)
    def _file_chosen(self, event: DirectoryTree.FileSelected) -> None:
        event.stop()
        if self.session.open(event.path):
            self.code.show()
            self.names.forget()
            self.notes.forget()
            self.panes.turn_to("editor")
            self._describe()

    @on(TextArea.Changed)
    def _edited(self) -> None:
        self.code.edited()

    @on(events.AppFocus)
    @on(events.ScreenResume)
    def _read_again(self) -> None:
        if self.editor.is_mounted:
            self.code.read_again()

    def action_save(self) -> None:
        """Save now, and say so."""
        self.code.save()

    @work
    async def action_reset(self) -> None:
        """Go back to how the file was when it was opened, after a question."""
        question = Confirm(
            "As it was",
            "This file goes back to what it held when it was opened. What is there now is kept in "
            "a backup folder.",
            "Go back",
        )
        if await self.app.push_screen_wait(question):
            self.code.reset()
            self.names.forget()

    @work(exclusive=True, group="format")
    async def action_format(self) -> None:
        """Lay the code out as ruff does, in one step that can be undone."""
        await self.code.format()

    def action_own_editor(self) -> None:
        """Open the file in the learner's own editor; the app waits meanwhile."""
        self.code.open_in_own_editor(self.app.suspend)
        self.refresh()

    def action_watch(self) -> None:
        """Run the program whenever another program saves the file, or stop doing so."""
        self.code.watch()

    def action_card(self) -> None:
        """Save code and plot as one picture."""
        self.tutor.tell(self.bench.save_card(self.session.picture, self.session.path.name))

    # What the lens saw

    def action_notes(self) -> None:
        """Show the notes behind the lines, or hide them."""
        self.notes.toggle_notes()

    def action_lens(self) -> None:
        """Look into runs: at the first passes of loops, at all of them, or not at all."""
        self.notes.next_depth()

    def action_broadcast(self) -> None:
        """Say what is marked at the cursor's line: how shapes were broadcast, the first NaN."""
        self.bench.show_about_line()

    # The parts of the screen

    def action_tab(self, steps: int) -> None:
        """Another tab of the results."""
        self.panes.show_results()
        self.results.turn(steps)

    def action_tab_at(self, number: int) -> None:
        """A tab of the results by its number, from 1."""
        self.panes.show_results()
        self.results.turn_to(number)

    def action_turn(self) -> None:
        """From the code to the results, from anywhere else to the code."""
        self.panes.turn()

    def action_leave(self) -> None:
        """Out of code or results, to the files."""
        self.panes.turn_to("reader")

    @on(Editor.Left)
    def _editor_left(self) -> None:
        self.action_leave()

    @on(events.DescendantFocus)
    def _focus_moved(self) -> None:
        if self.focused is not None and self.results.is_mounted:
            self.panes.focus_moved(self.focused)
            self._describe()

    @on(events.Resize)
    def _resized(self) -> None:
        if self.results.is_mounted:
            self.panes.apply_sizes()

    def action_widen(self, steps: int) -> None:
        """More room for the files, or less."""
        self.panes.widen(steps)

    def action_heighten(self, steps: int) -> None:
        """More room for the results, or less."""
        self.panes.heighten(steps)

    def action_usual_sizes(self) -> None:
        """As at first."""
        self.panes.reset_sizes()

    # Leaving

    def action_home(self) -> None:
        """To the list of lessons."""
        self.tutor.go_home()

    @property
    def at_stake(self) -> str:
        """A program that runs."""
        if self.results.is_running:
            return "Your program still runs: quitting stops it."
        return ""

    def offer_stop(self) -> bool:
        """Ask whether the program is to be stopped, if one runs."""
        if not self.results.is_running:
            return False
        question = Confirm(
            "Stop",
            f"Your program runs. {self.key_for('lesson.stop')} stops it without a question.",
            "Stop it",
            "Let it run",
        )
        self.app.push_screen(question, lambda yes: self.runs.stop() if yes else None)
        return True

    def leave(self) -> bool:
        """Keep everything. Returns whether the code could be saved."""
        return self.session.flush()

    def on_unmount(self) -> None:
        """Nothing may be unsaved without a screen."""
        self.leave()


def _about_pad() -> Widget:
    return VerticalScroll(Static(ABOUT_PAD, markup=False), id="reader")
