"""The tab that shows what the checks found, one line each, unfolding what failed."""

from collections.abc import Callable, Iterable, Sequence
from functools import singledispatchmethod
from typing import Any, ClassVar

from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.app import ComposeResult, RenderResult
from textual.containers import VerticalScroll
from textual.content import Content
from textual.widgets import Static

from tensortutor.course.model import Lesson
from tensortutor.plaintext import visible
from tensortutor.protocol.events import (
    CheckStarted,
    Event,
    Explained,
    Finished,
    Judged,
    Raised,
    Verdict,
)
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.widgets.checkline import AS_ABOVE, PERHAPS, CheckLine
from tensortutor.ui.widgets.explanation import rows_of
from tensortutor.ui.widgets.panes import Occasion, ResultPane


class Raising(Static):
    """What ended the program before its checks: the error, where it was, and what it means."""

    COMPONENT_CLASSES: ClassVar[set[str]] = {"check--label", "check--detail"}

    def __init__(self) -> None:
        super().__init__(id="checks-raised")
        self._event: Raised | None = None
        self._rows: list[tuple[str, str]] = []

    def on_mount(self) -> None:
        """Nothing has been raised."""
        self.clear()

    def clear(self) -> None:
        """A run begins."""
        self._event, self._rows, self.display = None, [], False

    def show(self, event: Raised) -> None:
        """The error itself."""
        self._event, self.display = event, True
        self.refresh(layout=True)

    def explain(self, rows: Iterable[tuple[str, str]]) -> None:
        """What is known about it: labels and texts."""
        self._rows = list(rows)
        self.refresh(layout=True)

    def render(self) -> RenderResult:
        """The error's last line, then labelled rows."""
        event = self._event
        if event is None:
            return ""
        label = self.get_component_rich_style("check--label")
        detail = self.get_component_rich_style("check--detail")
        said = visible(f"{event.type}: {event.message}" if event.message else event.type)
        rows = Table.grid(expand=True, padding=(0, 1, 0, 0))
        rows.add_column(width=8, no_wrap=True)
        rows.add_column(ratio=1)
        if event.frames and event.frames[-1].line:
            frame = event.frames[-1]
            where = f"line {frame.line}: {visible(frame.code.strip())}"
            rows.add_row(Text("where", label), Text(where, detail))
        for word, text in self._rows:
            rows.add_row(Text(word, label), Text(visible(text), detail))
        both = Table.grid(expand=True)
        both.add_row(Text(said, Style(bold=True)))
        both.add_row(rows)
        return both


def _function(verdict: Verdict) -> str:
    """The function of the learner's that a check has called; the check's name if it tells none."""
    return verdict.called.partition("(")[0] or verdict.check


class ChecksPane(ResultPane):
    """What the lesson asks for, and how far the learner's code is."""

    TITLE = "Checks"

    def __init__(self) -> None:
        super().__init__(id="pane-checks")
        self._lines: dict[str, CheckLine] = {}
        self._judged = False
        self._failures: list[Verdict] = []
        self._catches: dict[str, list[str]] = {}
        self._about: Callable[[str], str] = str

    def compose(self) -> ComposeResult:
        """A word above, the checks, and room for what passing opens."""
        with VerticalScroll(id="checks", can_focus=False):
            yield Raising()
            yield Static(id="checks-word", markup=False)
            yield Static(id="checks-passed")

    @property
    def label(self) -> str:
        """ "Checks 3/4" once something was checked."""
        if not self._judged:
            return self.TITLE
        passed = sum(line.state == "passed" for line in self._lines.values())
        return f"{self.TITLE} {passed}/{len(self._lines)}"

    @property
    def states(self) -> list[tuple[str, str]]:
        """The state and the name of each check, once something was checked."""
        return [(line.state, name) for name, line in self._lines.items()] if self._judged else []

    @property
    def failed_seed(self) -> int | None:
        """What gives the inputs of the last check run again, if something failed on them."""
        found = (one.verdict for one in self._lines.values() if one.state == "failed")
        return next((verdict.seed for verdict in found if verdict is not None), None)

    def prepare(self, lesson: Lesson) -> None:
        """List the checks of a lesson before they run."""
        for mutant in lesson.judge.mutants:
            self._catches.setdefault(mutant.caught_by, []).append(mutant.name)
        self._list(lesson.judge.checks)
        number = lesson.steps.index(lesson.task) + 1
        self._say(f"What the code of step {number}, {lesson.task.title}, is checked for:")

    def begin(self, occasion: Occasion) -> None:
        """A check run starts with every check waiting; a plain run leaves them alone."""
        self._about = occasion.about
        if occasion.checked is None:
            return
        self._judged = True
        self._failures = []
        self._raising.clear()
        self._list(occasion.checked.judge.checks)
        self._say("")
        self.query_one("#checks-passed", Static).display = False
        self.post_message(self.Relabelled())

    def forget(self) -> None:
        """A run that was given up leaves no check waiting."""
        for line in self._lines.values():
            if self._judged and line.state in ("running", "waiting"):
                self._give_up(line)

    def take(self, events: Sequence[Event]) -> None:
        """Show verdicts as they come."""
        for event in events:
            self._show(event)
        if any(isinstance(event, (Verdict, Judged)) for event in events):
            self.post_message(self.Relabelled())

    def turn_to(self) -> None:
        """The first check that failed has the focus, else the first one."""
        lines = list(self._lines.values())
        failed = [line for line in lines if line.state == "failed"]
        (*failed, *lines, self)[0].focus(scroll_visible=False)

    def celebrate(self, opened: Sequence[str], shown: Sequence[str], keys: str) -> None:
        """All checks passed: what this opens, what it shows to be known, and the keys to go on."""
        lines = [Content("All checks pass: this lesson is done.")]
        if shown:
            lines += [
                Content("It also counts for:"),
                *map(_indented, shown),
            ]
        if opened:
            lines += [
                Content("It opens:"),
                *map(_indented, opened),
            ]
        lines.append(Content.styled(keys, "$foreground 66%"))
        panel = self.query_one("#checks-passed", Static)
        entitle(panel, OutsideText("Passed"))
        panel.update(Content("\n").join(lines))
        panel.display = True
        panel.call_after_refresh(panel.scroll_visible, animate=False)

    @singledispatchmethod
    def _show(self, event: Any) -> None:
        """Other events belong to other panes."""

    @_show.register
    def _(self, event: CheckStarted) -> None:
        self._line(event.check).show("running")

    @_show.register
    def _(self, event: Verdict) -> None:
        if event.passed:
            self._line(event.check).show("passed", event)
        else:
            self._fail(event)
        if not event.passed and sum(one.state == "failed" for one in self._lines.values()) == 1:
            line = self._line(event.check)
            line.call_after_refresh(line.scroll_visible, animate=False)
            if self.has_focus_within:
                line.focus(scroll_visible=False)

    @_show.register
    def _(self, event: Explained) -> None:
        if event.check:
            self._line(event.check).explain(rows_of(event, self._about))
        elif self._raising.display:
            self._raising.explain(rows_of(event, self._about))

    @_show.register
    def _(self, event: Raised) -> None:
        if self._is_waiting() and event.type != "KeyboardInterrupt":
            self._raising.show(event)
            self._say("The checks need a program that runs to its end.")

    @_show.register
    def _(self, event: Judged) -> None:
        for check in event.missing:
            self._give_up(self._line(check))

    @_show.register
    def _(self, _event: Finished) -> None:
        self.forget()

    def _fail(self, verdict: Verdict) -> None:
        """Unfold what is wrong with the first failure of each function: others of the same
        function may have the same cause."""
        same = [one for one in self._failures if _function(one) == _function(verdict)]
        self._failures.append(verdict)
        line = self._line(verdict.check)
        if not same:
            line.show("failed", verdict)
        elif same[0].failure == verdict.failure:
            line.show("failed", verdict, folded=AS_ABOVE)
            first = self._line(same[0].check)
            first.show("failed", same[0], alike=first.alike + 1)
        else:
            line.show("failed", verdict, folded=PERHAPS)

    def _give_up(self, line: CheckLine) -> None:
        """A check will not be done. What ended the program says why, if that is known."""
        line.show("unknown")
        line.display = not self._raising.display

    @property
    def _raising(self) -> Raising:
        return self.query_one(Raising)

    def _is_waiting(self) -> bool:
        return any(line.state in ("waiting", "running") for line in self._lines.values())

    def _say(self, text: str) -> None:
        word = self.query_one("#checks-word", Static)
        word.update(text)
        word.display = bool(text)

    def _list(self, checks: Sequence[str]) -> None:
        if list(self._lines) != list(checks):
            for line in self._lines.values():
                line.remove()
            self._lines = {}
            for check in checks:
                self._line(check)
        for line in self._lines.values():
            line.display = True
            line.show("waiting")

    def _line(self, check: str) -> CheckLine:
        if check not in self._lines:
            self._lines[check] = CheckLine(check, self._catches.get(check, ()))
            self.query_one("#checks").mount(self._lines[check], before="#checks-passed")
        return self._lines[check]


def _indented(name: str) -> Content:
    return OutsideText(name).title.pad_left(2)
