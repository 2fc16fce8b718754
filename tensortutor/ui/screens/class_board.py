"""A class, live: who is where and who is stuck, and which checks fail for many."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from textual import events, on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal, Vertical, VerticalScroll
from textual.content import Content
from textual.message import Message
from textual.widget import Widget
from textual.widgets import OptionList, Static
from textual.widgets.option_list import Option

from tensortutor.course.model import Course
from tensortutor.learner.class_board import ClassBoard, FailingCheck, Learner
from tensortutor.ui import class_rows, key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.running.class_reader import ClassReader
from tensortutor.ui.screens.base import TutorScreen
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.widgets.header import TopLine
from tensortutor.ui.widgets.keybar import KeyBar
from tensortutor.ui.widgets.markdown import Fence

VIEWS = ("Learners, the longest stuck first", "Checks that fail now")
NOBODY = (
    "Nobody shares with this class yet. Learners begin with TENSORTUTOR_CLASS, or with [class] "
    "folder in settings.toml, set to this folder."
)
NO_FAILING = "No check fails for anybody who is here."
SLOW = "The folder has not answered for a while: what stands here is old."
MOST_CHECKS = 200
"""Rows of checks. A learner can write names of hundreds into their file."""
LOOK_S = 1.0
"""How often is looked whether the folder still answers."""


class ClassScreen(TutorScreen):
    """The learners of a class or the checks that they fail, and what the row chosen is about."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.CLASS]
    ABOUT = (
        "A class, read again every two seconds. Who is here was seen in the last 15 minutes. Stuck "
        "is the time of work since something last got better: a step done, one more check passed. "
        "A name is the owner of a file, not what a file says. ? asks for help."
    )

    class Read(Message):
        """The folder was read. found: the class, or why it cannot be read."""

        def __init__(self, found: ClassBoard | str) -> None:
            super().__init__()
            self.found = found

    def __init__(self, folder: Path, course: Course) -> None:
        super().__init__()
        self._folder = folder
        self._course = course
        self._board = ClassBoard()
        self._problem = ""
        self._has_read = False
        self._view = 0
        self._entries: tuple[Learner, ...] | tuple[FailingCheck, ...] = ()
        self._prompts: list[Content] = []
        self._reader = ClassReader(folder, lambda found: self.post_message(self.Read(found)))

    def compose(self) -> ComposeResult:
        """The list, and beside it what the row under the cursor is about."""
        yield TopLine()
        with Horizontal(id="class"):
            with Vertical(id="class-list"):
                yield Static(id="class-columns")
                yield OptionList(id="class-rows", compact=True)
                yield Static(id="class-nothing")
            with VerticalScroll(id="class-detail", can_focus=False):
                yield Static(id="class-about")
        yield Static(id="class-notices")
        yield KeyBar()
        yield self.too_small()

    @property
    def rows(self) -> OptionList:
        """The list."""
        return self.query_one(OptionList)

    @property
    def chosen(self) -> Learner | FailingCheck | None:
        """What the cursor is on."""
        at = self.rows.highlighted
        return self._entries[at] if at is not None and at < len(self._entries) else None

    def on_mount(self) -> None:
        """Name the place, take the keys, begin to read."""
        self.top.place = ("Class", str(self._folder))
        self.rows.focus()
        self.set_interval(LOOK_S, self._tell_notices)
        self._reader.start()

    def on_unmount(self) -> None:
        """Nobody looks any more."""
        self._reader.stop()

    @on(Read)
    def _take(self, message: Read) -> None:
        self._has_read = True
        if isinstance(message.found, str):
            self._problem = message.found
        else:
            self._problem, self._board = "", message.found
            self.top.word = class_rows.overall(self._board)
        self._fill()

    @on(events.Resize)
    def _refit(self) -> None:
        self.call_after_refresh(self._fill)

    # The list

    def _fill(self) -> None:
        """Bring the rows up to date; the cursor stays on whom it was on."""
        if not self.is_mounted or not self.query(OptionList):
            return
        rows, before = self.rows, self.chosen
        width = max(rows.scrollable_content_region.width - 2, 20)
        self._entries = self._board.failing()[:MOST_CHECKS] if self._view else self._board.learners
        prompts = [self._row(entry, width) for entry in self._entries]
        if len(prompts) == len(self._prompts) == rows.option_count:
            for at, (new, old) in enumerate(zip(prompts, self._prompts, strict=True)):
                if not new.is_same(old):
                    rows.replace_option_prompt_at_index(at, new)
        else:
            rows.clear_options()
            rows.add_options(Option(prompt) for prompt in prompts)
        self._prompts = prompts
        if self._entries:
            rows.highlighted = self._place(before)
        columns = self.query_one("#class-columns", Static)
        columns.update(class_rows.heading(width))
        columns.display = not self._view and bool(self._entries)
        nothing = self.query_one("#class-nothing", Static)
        nothing.display = not self._entries and self._has_read and not self._problem
        nothing.update(NO_FAILING if self._board.learners else NOBODY)
        entitle(self.query_one("#class-list"), OutsideText(VIEWS[self._view]))
        self.keys.names = {
            "class.open": "" if self._view else "Code",
            "class.view": "Learners" if self._view else "Failing checks",
        }
        self._tell_notices()
        self._describe()

    def _row(self, entry: Learner | FailingCheck, width: int) -> Content:
        if isinstance(entry, Learner):
            return class_rows.learner_row(self._course, entry, width)
        return class_rows.check_row(self._course, entry, width)

    def _place(self, before: Learner | FailingCheck | None) -> int:
        """The row of whom the cursor was on; if they are gone, the same place."""
        keys = [_key(entry) for entry in self._entries]
        if before is not None and _key(before) in keys:
            return keys.index(_key(before))
        return min(self.rows.highlighted or 0, len(keys) - 1)

    def _tell_notices(self) -> None:
        sentences = [self._problem] if self._problem else []
        sentences += [SLOW] if self._reader.is_slow else []
        sentences += self._board.sentences
        line = self.query_one("#class-notices", Static)
        line.display = bool(sentences)
        line.update(class_rows.notices(sentences))

    @on(OptionList.OptionHighlighted)
    def _describe(self) -> None:
        chosen, frame = self.chosen, self.query_one("#class-detail")
        about, gap = self.query_one("#class-about", Static), "\n\n" if self.is_wide else "\n"
        if isinstance(chosen, Learner):
            key = self.key_for("class.open")
            entitle(frame, OutsideText(class_rows.title(chosen)))
            about.update(class_rows.about_learner(self._course, chosen, key, gap))
        elif chosen is not None:
            entitle(frame, OutsideText("Who fails it"))
            about.update(class_rows.about_check(self._course, chosen, gap))
        else:
            entitle(frame, OutsideText("What stands here"))
            about.update(self.ABOUT)

    # Keys

    @on(OptionList.OptionSelected)
    def action_open(self) -> None:
        """Show the code that the learner under the cursor has sent."""
        learner = self.chosen
        if not isinstance(learner, Learner):
            self.tutor.tell("Put the cursor on a learner, in the list of learners.")
            return
        parts: list[Widget] = []
        for sent in learner.sent():
            parts.append(Static(class_rows.sent_title(self._course, sent)))
            code = Fence.highlight(str(OutsideText(sent.code)), "python")
            parts.append(Static(code, classes="class-code"))
        if not parts:
            self.tutor.tell(f"{learner.name} has sent no code.")
            return
        self.app.push_screen(Page(class_rows.title(learner), *parts))

    def action_view(self, steps: int) -> None:
        """The learners, or the checks that fail."""
        self._view = (self._view + steps) % len(VIEWS)
        self.rows.highlighted = None
        self._prompts = []
        self._fill()

    def action_next_help(self) -> None:
        """Put the cursor on the next learner who asks for help."""
        if self._view:
            self.action_view(1)
        at = (self.rows.highlighted or 0) + 1
        order = [*range(at, len(self._entries)), *range(at)]
        for index in order:
            entry = self._entries[index] if index < len(self._entries) else None
            if isinstance(entry, Learner) and entry.report.asks_for_help:
                self.rows.highlighted = index
                return
        self.tutor.tell("Nobody asks for help.")


def _key(entry: Learner | FailingCheck) -> object:
    return entry.uid if isinstance(entry, Learner) else (entry.lesson, entry.check)
