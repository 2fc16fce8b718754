"""What the lens saw of the last run, behind the lines of the code, and how to ask for it."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Protocol

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job, Look
from tensortutor.protocol.lens import (
    Broadcast,
    Broadcasts,
    Line,
    ShapeError,
    TensorInfo,
    Tensors,
    Trace,
)
from tensortutor.ui.widgets.editor import Editor


class Choices(Protocol):
    """Choices that outlive the app."""

    def get(self, name: str, usual: bool) -> bool:
        """A choice, or the usual one."""

    def put(self, name: str, value: bool) -> None:
        """Remember a choice."""


class LineNotes:
    """The notes of a run. lens: whether runs are looked into if the learner has not chosen.

    key: how the key of a binding is written. tell: shows a sentence.
    """

    def __init__(
        self,
        editor: Editor,
        choices: Choices,
        lens: bool,
        key: Callable[[str], str],
        tell: Callable[[str], None],
    ) -> None:
        self._editor = editor
        self._choices = choices
        self._lens = lens
        self._key = key
        self._tell = tell
        self._expressions: tuple[Broadcast, ...] = ()
        self._notes: dict[int, str] = {}
        self._lines: tuple[Line, ...] = ()
        self._shape_error: ShapeError | None = None
        self._tensors: tuple[TensorInfo, ...] = ()
        self._words: dict[str, list[str]] = {}

    def looked_into(self, job: Job, *, profile: bool = False) -> Job:
        """The job of a run, with what the lens is to look at. What was noted before goes."""
        self._words = words_by_name(self._lines) or self._words
        self._expressions, self._notes, self._lines, self._shape_error = (), {}, (), None
        self._tensors = ()
        self._editor.annotate({})
        on = self._is_on()
        everything = on and not profile and self._choices.get("follow_all", False)
        return replace(job, look=Look(on and not profile, on, profile, everything))

    def _is_on(self) -> bool:
        return self._choices.get("lens", self._lens)

    def take(self, events: Iterable[Event]) -> None:
        """Keep what belongs to lines of the code."""
        for event in events:
            if isinstance(event, Trace):
                from tensortutor.lens.lines import notes

                self._notes, self._lines = notes(event, self._words), event.lines
                if self._choices.get("notes", True):
                    self._editor.annotate(self._notes)
            elif isinstance(event, Broadcasts):
                self._expressions, self._shape_error = event.expressions, event.error
            elif isinstance(event, Tensors):
                self._tensors = event.tensors

    def forget(self) -> None:
        """Another program is shown: the last run's shapes are none of it."""
        self._expressions, self._notes, self._lines, self._shape_error = (), {}, (), None
        self._tensors, self._words = (), {}

    def tensor_at_cursor(self) -> TensorInfo | None:
        """What the cursor's line made last, if its name still holds it at the end of the run."""
        row = self._editor.cursor_location[0] + 1
        for line in self._lines:
            if line.line <= row <= line.end_line and self._editor.note_of(line.end_line - 1):
                for made in reversed(line.made):
                    for one in self._tensors:
                        if (one.name, one.words) == (made.name, made.words):
                            return one
        return None

    def toggle_notes(self) -> None:
        """Show the notes behind the lines, or hide them."""
        shown = not self._choices.get("notes", True)
        self._choices.put("notes", shown)
        self._editor.annotate(self._notes if shown else {})
        if shown and not self._notes:
            self._tell("From the next run on, shapes stand behind the lines.")
        elif not shown:
            self._tell("No notes behind the lines from now on, until this key is pressed again.")

    def next_depth(self) -> None:
        """Look into runs: at the first passes of loops, at all of them, or not at all."""
        follows_all = self._is_on() and not self._choices.get("follow_all", False)
        on = follows_all or not self._is_on()
        self._choices.put("lens", on)
        self._choices.put("follow_all", follows_all)
        if follows_all:
            text = "The next runs are followed in all passes of their loops, which takes longer."
        elif on:
            text = "Every run is followed, each line in its first 64 passes."
        else:
            text = "Runs are no longer followed: no tensors, graphs or shapes are shown."
        self._tell(text)

    def about_line(self) -> tuple[str, str] | None:
        """A title and a text about the cursor's line: how shapes were broadcast, what its signs
        mean. None, with a sentence said, if nothing is known of it."""
        from tensortutor.lens.shape_alignment import aligned, error_lines

        row, column = self._editor.cursor_location
        found = expression_at(self._expressions, row + 1, column + 1)
        marked = list(self._marked(row + 1))
        error = self._shape_error
        if error is not None and error.line <= row + 1 <= error.end_line:
            found, marked = None, [*error_lines(error), *marked]
        if found is None and not marked:
            self._tell(
                "Run the code, then put the cursor on an expression with two operands, such as "
                "a + b."
            )
            return None
        title, text = f"Line {row + 1}", list(marked)
        if found is not None:
            title = f"Line {found.line}: {found.left.text} {found.operator} {found.right.text}"
            text = [*aligned(found), *([""] if marked else []), *marked]
        return title, "\n".join(text)

    def _marked(self, row: int) -> Iterator[str]:
        """What the signs of a line (from 1) stand for, if it is as it was when it ran."""
        from tensortutor.lens.lines import remarks

        for line in self._lines:
            if line.line <= row <= line.end_line and self._editor.note_of(line.end_line - 1):
                key = self._key("lesson.lens")
                yield from remarks(line, f"press {key} to follow everything")


def words_by_name(lines: Iterable[Line]) -> dict[str, list[str]]:
    """What each name held, in the order of the lines that made it."""
    found: dict[str, list[str]] = {}
    for line in lines:
        for made in line.made:
            found.setdefault(made.name, []).append(made.words)
    return found


def expression_at(found: Iterable[Broadcast], line: int, column: int) -> Broadcast | None:
    """The smallest expression around a place (from 1), else the first one of that line."""
    around = [
        one for one in found
        if (one.line, one.column) <= (line, column) <= (one.end_line, one.end_column)
    ]  # fmt: skip
    if around:
        return around[-1]  # one that contains another comes before it
    return next((one for one in found if one.line <= line <= one.end_line), None)
