"""What the editor asks about names, passed on to the runner; what it answers, shown."""

from collections.abc import Iterable
from dataclasses import replace

from textual import events, on
from textual.message import Message
from textual.widgets import Static

from tensortutor.protocol.assist import Answer, Question, Typed, Types
from tensortutor.protocol.events import Event
from tensortutor.protocol.lens import Tensors
from tensortutor.ui import docs
from tensortutor.ui.assistance import Assistance
from tensortutor.ui.screens.dialogs import Page
from tensortutor.ui.screens.sizes import SizedScreen
from tensortutor.ui.widgets.editor import Editor
from tensortutor.ui.widgets.popup import Popup
from tensortutor.ui.widgets.results import Results

LEARNING = "PyTorch is still being read; in a few seconds there will be names."
UNKNOWN = {
    "names": "No names are known here. If a run has made what stands before the dot, run it first.",
    "words": "Nothing is known of what stands here.",
}


class AskingScreen(SizedScreen):
    """A screen whose editor knows names."""

    class Answered(Message):
        """The runner has answered, from its thread."""

        def __init__(self, question: Question, answer: Answer | None) -> None:
            super().__init__()
            self.question = question
            self.answer = answer

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[str, Typed] = {}
        self._assistance = Assistance(
            self.tutor.runner,
            lambda question, answer: self.post_message(self.Answered(question, answer)),
        )

    def forget_types(self) -> None:
        """Another program is shown: what the last run has told is not about this one."""
        self._known = {}

    @on(events.DescendantFocus, "#editor")
    def _get_ready(self) -> None:
        self.tutor.runner.attend()

    @on(Editor.Asked)
    def _pass_on(self, event: Editor.Asked) -> None:
        self._assistance.ask(replace(event.question, known=tuple(self._known.values())))

    @on(Answered)
    def _answer_came(self, event: Answered) -> None:
        self.editor.completer.answered(event.answer, event.question.number)

    @on(Editor.Described)
    def _show_page(self, event: Editor.Described) -> None:
        doc = event.documentation
        self.app.push_screen(Page(doc.name, Static(docs.page(doc))))

    @on(Editor.Nothing)
    def _tell_nothing(self, event: Editor.Nothing) -> None:
        self.tutor.tell(LEARNING if event.learning else UNKNOWN[event.what])

    @on(Popup.Clicked)
    def _name_chosen(self, event: Popup.Clicked) -> None:
        self.editor.completer.accept(event.index)

    @on(Results.Heard)
    def _learn_types(self, message: Results.Heard) -> None:
        for typed in types_in(message.events):
            self._known[typed.name] = typed


def types_in(heard: Iterable[Event]) -> Iterable[Typed]:
    """What the events of a run tell of its names."""
    for event in heard:
        if isinstance(event, Types):
            yield from event.names
        elif isinstance(event, Tensors):
            for tensor in event.tensors:
                if tensor.scope and tensor.name.isidentifier():
                    function = tensor.scope.rpartition(".")[2]
                    yield Typed(f"{function}.{tensor.name}", "torch.Tensor")
