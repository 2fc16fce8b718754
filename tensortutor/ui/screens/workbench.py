"""The editor over the results, with help for names and what the lens saw of the last run."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from textual import events, on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message
from textual.widgets import Static, TextArea

from tensortutor.learner.errors import StorageError
from tensortutor.plaintext import visible
from tensortutor.protocol.assist import Answer, Question
from tensortutor.ui.editing import documentation
from tensortutor.ui.lesson.line_notes import LineNotes
from tensortutor.ui.lesson.name_help import NameHelp
from tensortutor.ui.outside import subtitle
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.tutor import Tutor
from tensortutor.ui.widgets.completer import NameAsked, NameDescribed, NothingKnown
from tensortutor.ui.widgets.drawings import DrawingsPane
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.panes import ResultPane
from tensortutor.ui.widgets.popup import Popup
from tensortutor.ui.widgets.results import PANES, Results
from tensortutor.ui.widgets.tensors import TensorsPane


class Workbench(Vertical):
    """What every screen with code has. panes: the tabs of the results."""

    class Answered(Message):
        """The runner has answered a question about a name, from its thread."""

        def __init__(self, question: Question, answer: Answer | None) -> None:
            super().__init__()
            self.question = question
            self.answer = answer

    def __init__(self, tutor: Tutor, panes: Sequence[type[ResultPane]] = PANES) -> None:
        super().__init__(id="work")
        self.editor = Editor(id="editor")
        self.results = Results(panes, id="results")
        self.names = NameHelp(tutor.runner, self.editor, self._post_answer, tutor.tell)
        self.notes = LineNotes(
            self.editor, tutor.ui_state, tutor.settings.lens, tutor.key_name, tutor.tell
        )
        self._closes_brackets = tutor.settings.close_brackets
        self._completes = tutor.settings.complete

    def compose(self) -> ComposeResult:
        """Code above what came of it."""
        yield self.editor
        yield self.results

    def on_mount(self) -> None:
        """The learner's ways with the editor."""
        self.editor.closes_brackets = self._closes_brackets
        self.editor.completer.is_eager = self._completes

    def show_about_line(self) -> None:
        """Say what is marked at the cursor's line: how shapes were broadcast, the first NaN."""
        if (about := self.notes.about_line()) is not None:
            title, text = about
            self.app.push_screen(Page(visible(title), Static(visible(text), markup=False)))

    def save_card(self, path: Path, title: str, checks: Iterable[tuple[str, str]] = ()) -> str:
        """Save code, plot and checks (states and names) as one SVG picture. Returns what to say."""
        from tensortutor.learner.workspace import write_atomic
        from tensortutor.ui.lesson.card import card

        drawings = self.results.query_one(DrawingsPane).drawings
        try:
            write_atomic(path, card(title, self.editor.text, drawings, checks))
        except StorageError as error:
            return str(error)
        return f"Saved: {path}"

    @on(Results.Heard)
    @on(TextArea.SelectionChanged, "#editor")
    def _cursor_moved(self) -> None:
        # The notes hear of a run after this.
        self.call_later(self._show_tensor)

    def _show_tensor(self) -> None:
        """The tensor of the cursor's line, in the frame below the code."""
        one = self.notes.tensor_at_cursor()
        if one is None:
            subtitle(self.editor, Content())
            return
        from tensortutor.ui.lesson.tensor_strip import strip

        has_colours = self.app.console.color_system is not None and not self.app.no_color
        subtitle(self.editor, strip(one, has_colours))

    @on(TensorsPane.Opened)
    def _open_tensor(self, event: TensorsPane.Opened) -> None:
        from tensortutor.ui.screens.tensor import TensorScreen

        self.app.push_screen(TensorScreen(event.tensors, event.tensor, event.other))

    # Names in the editor

    def _post_answer(self, question: Question, answer: Answer | None) -> None:
        self.post_message(self.Answered(question, answer))

    @on(events.DescendantFocus, "#editor")
    def _editor_focused(self) -> None:
        self.names.get_ready()

    @on(NameAsked)
    def _name_asked(self, event: NameAsked) -> None:
        self.names.ask(event.question)

    @on(Answered)
    def _name_answered(self, event: Answered) -> None:
        self.names.answered(event.question, event.answer)

    @on(NameDescribed)
    def _show_documentation(self, event: NameDescribed) -> None:
        doc = event.documentation
        self.app.push_screen(Page(doc.name, Static(documentation.page(doc))))

    @on(NothingKnown)
    def _tell_nothing(self, event: NothingKnown) -> None:
        self.names.tell_nothing(event)

    @on(Popup.Clicked)
    def _name_chosen(self, event: Popup.Clicked) -> None:
        self.editor.completer.accept(event.index)
