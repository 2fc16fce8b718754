"""A code area that points out what is no Python, once there is a pause in the typing."""

import time

from textual import on
from textual.content import Content
from textual.timer import Timer
from textual.widgets import TextArea
from textual.widgets.text_area import Edit, EditResult, Selection

from tensortutor.ui.editing import syntax_errors
from tensortutor.ui.editing.syntax_errors import Problem
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.code import CodeArea, CodeDocument

PAUSE_S = 0.6
"""After the last key."""
LEFT_S = 0.15
"""After the cursor has left a line."""


class CheckedCode(CodeArea):
    """Code with its name and its first problem in the frame."""

    def __init__(self, *, id: str | None = None) -> None:
        self.problem: Problem | None = None
        self._due = 0.0
        self._timer: Timer | None = None
        self._file_name = ""
        self._note = ""
        super().__init__(id=id)

    @property
    def file_name(self) -> str:
        """What the program is called."""
        return self._file_name

    @file_name.setter
    def file_name(self, name: str) -> None:
        self._file_name = name
        self._entitle()

    @property
    def note(self) -> str:
        """A word behind the name."""
        return self._note

    @note.setter
    def note(self, word: str) -> None:
        self._note = word
        self._entitle()

    # When to look

    @on(TextArea.Changed)
    def _changed(self) -> None:
        self._check_in(PAUSE_S)

    def watch_selection(self, before: Selection, now: Selection) -> None:
        """A line that has been left is finished."""
        super().watch_selection(before, now)
        if before.end[0] != now.end[0]:
            self._check_in(LEFT_S, sooner=True)

    def watch_has_focus(self, has_focus: bool) -> None:
        """Nobody types where the keys do not go."""
        super().watch_has_focus(has_focus)
        self._check_in(LEFT_S, sooner=True)

    def adopt(self, document: CodeDocument) -> None:
        """Show another program; nothing is known of it."""
        super().adopt(document)
        self._show(None)
        self._check_in(LEFT_S)

    def edit(self, edit: Edit) -> EditResult:
        """Change the text; a place that moves or changes is not pointed out any more."""
        count, problem = self.document.line_count, self.problem
        result = super().edit(edit)
        if problem is not None and (
            count != self.document.line_count or edit.top[0] <= problem.row <= edit.bottom[0]
        ):
            self._place(None)
        return result

    def _check_in(self, seconds: float, *, sooner: bool = False) -> None:
        # One timer for many keys: making one costs as much as drawing a line.
        due = time.monotonic() + seconds
        self._due = min(due, self._due) if sooner and self._timer is not None else due
        if self._timer is None and self.is_mounted:
            self._timer = self.set_timer(seconds, self._check)

    def _check(self) -> None:
        self._timer = None
        rest = self._due - time.monotonic()
        if rest > 0.01:
            self._timer = self.set_timer(rest, self._check)
            return
        typing = self.cursor_location[0] if self.has_focus else None
        self._show(syntax_errors.find("\n".join(self.document.lines), typing))

    # Showing it

    def _show(self, problem: Problem | None) -> None:
        self._place(problem)
        if problem != self.problem:
            self.problem = problem
            self._entitle()

    def _place(self, problem: Problem | None) -> None:
        """Point at the place of a problem, or at none."""
        spans = {} if problem is None else {problem.row: [(problem.start, problem.end)]}
        self.paint("problem", spans)
        self.point_at(None if problem is None else problem.row)

    def _entitle(self) -> None:
        title = OutsideText(self._file_name).title
        if self._note:
            title += Content.styled(f" {symbols.current().dot} {self._note}", "$accent")
        if self.problem is not None:
            word = f"{symbols.current().failed} line {self.problem.row + 1}: {self.problem.message}"
            title += Content(" ") + OutsideText(word).styled("$text-error")
        entitle(self, title)
