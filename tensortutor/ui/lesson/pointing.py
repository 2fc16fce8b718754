"""Carries out what a step's text points at: opens an instrument at a row, edits the program."""

from collections.abc import Callable, Iterator
from typing import Any

from textual.widget import Widget

from tensortutor.course.material import Look, Try
from tensortutor.lens.rows import folded
from tensortutor.ui.widgets.drawings import DrawingsPane, DrawingView, PixelView
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.lens import GraphPane, ModulesPane, ProfilePane
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.panes import ResultPane
from tensortutor.ui.widgets.pointers import Pointer
from tensortutor.ui.widgets.results import Results
from tensortutor.ui.widgets.tensors import TensorsPane

PANES: dict[str, type[ResultPane]] = {
    "output": OutputPane, "tensors": TensorsPane, "modules": ModulesPane, "graph": GraphPane,
    "profile": ProfilePane, "plot": DrawingsPane,
}  # fmt: skip


class Pointing:
    """Does what a pointer says, and takes a try back.

    turn_to: brings "editor" or "results" to the front of a narrow screen, with the focus. tell:
    says a sentence to the learner. key_for: the key of a named action, for these sentences.
    """

    def __init__(
        self, editor: Editor, results: Results, turn_to: Callable[[str], None],
        tell: Callable[[str], None], key_for: Callable[[str], str],
    ) -> None:  # fmt: skip
        self._editor = editor
        self._results = results
        self._turn_to = turn_to
        self._tell = tell
        self._key_for = key_for

    def choose(self, pointer: Pointer) -> bool:
        """Carry a look out; make a try's edit, or take it back if it is made.

        Returns False where a look finds nothing to point at.
        """
        block = pointer.block
        if isinstance(block, Look):
            return self._look(block)
        if pointer.made is not None:
            self._take_back(pointer, pointer.made)
        else:
            self._try(pointer, block)
        return True

    def _look(self, look: Look) -> bool:
        if look.tab == "notes":
            found = self._at_line(look.row)
            self._turn_to("editor")
            if found is not None:
                self._editor.move_cursor(found)
            is_there = found is not None and bool(self._editor.note_of(found[0]))
            if not is_there:
                self._run_first(look)
            return is_there
        kind = PANES[look.tab]
        self._results.show(kind)
        self._turn_to("results")
        pane = self._results.query_one(kind)
        is_there = point_at(pane, look)
        if not is_there:
            self._run_first(look)
        return is_there

    def _run_first(self, look: Look) -> None:
        """The row is not there: most often nothing has run yet."""
        key = "lesson.profile" if look.tab == "profile" else "lesson.run"
        self._tell(f"{look.row} is not there. Run the step's code first: {self._key_for(key)}.")

    def _at_line(self, part: str) -> tuple[int, int] | None:
        """The place of the editor's first line that holds this text, white space folded."""
        for number, line in enumerate(self._editor.text.split("\n")):
            if folded(part) in folded(line):
                return number, 0
        return None

    def _try(self, pointer: Pointer, experiment: Try) -> None:
        before = self._editor.text
        if self._editor.read_only:
            self._tell("This code cannot be edited here.")
            return
        try:
            after = experiment.edited(before)
        except ValueError as error:
            self._tell(
                f"The edit does not fit the code any more: {folded(str(error))!r} is to stand in "
                f"it once. {self._key_for('lesson.reset')} starts the code afresh."
            )
            return
        self._put(after, changed_line(before, after))
        pointer.show_made((before, after))
        run, again = self._key_for("lesson.run"), self._key_for("lesson.point")
        self._tell(f"The edit is made. {run} runs the code, {again} takes the edit back.")

    def _take_back(self, pointer: Pointer, made: tuple[str, str]) -> None:
        before, after = made
        pointer.show_made(None)
        if self._editor.text != after:
            self._tell("You have changed the code since: it stays as it is. Undo takes it back.")
            return
        self._put(before, changed_line(after, before))
        self._tell("The edit is taken back.")

    def _put(self, text: str, line: int) -> None:
        """The new text as one step that can be undone; the line that differs comes into view."""
        self._editor.renew(text)
        self._editor.move_cursor((line, 0))


def changed_line(before: str, after: str) -> int:
    """The first line, from 0, in which two texts differ."""
    lines, others = before.split("\n"), after.split("\n")
    pairs = enumerate(zip(lines, others, strict=False))
    return next((n for n, (one, other) in pairs if one != other), min(len(lines), len(others)) - 1)


def point_at(pane: ResultPane, look: Look) -> bool:
    """Put the cursor of a tab on the row, or scroll to it. Returns whether the row is there."""
    finders = (_in_table, _in_tree, _in_lines, _in_words, _in_drawings)
    return any(find(pane, folded(look.row), folded(look.expect)) for find in finders)


def _in_table(pane: Widget, row: str, expect: str) -> bool:
    from textual.widgets import DataTable

    del expect
    for table in pane.query(DataTable):
        for index in range(table.row_count):
            if folded(str(table.get_row_at(index)[0])) == row:
                table.move_cursor(row=index)
                table.focus()
                return True
    return False


def _in_tree(pane: Widget, row: str, expect: str) -> bool:
    """A branch of this id, or one that names the row and shows what is expected."""
    from textual.widgets import Tree

    for tree in pane.query(Tree):
        nodes = [(node, folded(str(node.label))) for node in _branches(tree.root)]
        exact = [node for node, _ in nodes if node.data == row]
        named = [(n, text) for n, text in nodes if row in text.replace(":", " ").split()]
        shows = [node for node, text in named if expect in text]
        for node in (*exact, *shows, *(node for node, _ in named)):
            tree.move_cursor(node)
            tree.scroll_to_node(node, animate=False)
            tree.focus()
            return True
    return False


def _branches(node: Any) -> Iterator[Any]:
    for child in node.children:
        yield child
        yield from _branches(child)


def _in_lines(pane: Widget, row: str, expect: str) -> bool:
    """A line of what the program printed."""
    from tensortutor.ui.widgets.transcript import Transcript

    for log in pane.query(Transcript):
        for number, (_, line) in enumerate(log.lines):
            if row in folded(line) and expect in folded(line):
                log.scroll_to(y=number, animate=False)
                log.focus()
                return True
    return False


def _in_words(pane: Widget, row: str, expect: str) -> bool:
    """A line of the profile."""
    from textual.containers import VerticalScroll
    from textual.widgets import Static

    del expect
    for page in pane.query(VerticalScroll):
        for words in page.query(Static):
            for number, line in enumerate(str(words.content).split("\n")):
                if row in folded(line):
                    page.scroll_to(y=number, animate=False)
                    page.focus()
                    return True
    return False


def _in_drawings(pane: Widget, row: str, expect: str) -> bool:
    del expect
    for view in pane.query("*"):
        if isinstance(view, (DrawingView, PixelView)):
            labels = [str(part) for part in _labels(view.drawing)]
            if row in map(folded, (view.drawing.title, *labels)):
                view.scroll_visible(animate=False)
                return True
    return False


def _labels(drawing: object) -> Iterator[str]:
    for parts in vars(drawing).values():
        for part in parts if isinstance(parts, tuple) else ():
            yield getattr(part, "label", "")
