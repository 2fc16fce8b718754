"""What the editor asks about names, passed on to the runner; what it answers, shown."""

from collections.abc import Callable, Iterable
from dataclasses import replace

from tensortutor.protocol.assist import Answer, Question, Typed, Types
from tensortutor.protocol.events import Event
from tensortutor.protocol.lens import Tensors
from tensortutor.ui.editing.assistant_client import Assistance
from tensortutor.ui.protocols import Runner
from tensortutor.ui.widgets.completer import NothingKnown
from tensortutor.ui.widgets.editor import Editor

LEARNING = "PyTorch is still being read; in a few seconds there will be names."
UNKNOWN = {
    "names": "No names are known here. If a run has made what stands before the dot, run it first.",
    "words": "Nothing is known of what stands here.",
}


class NameHelp:
    """Completion and documentation of names.

    reply: called from a thread with a question and its answer. tell: shows a sentence.
    """

    def __init__(
        self,
        runner: Runner,
        editor: Editor,
        reply: Callable[[Question, Answer | None], object],
        tell: Callable[[str], None],
    ) -> None:
        self._runner = runner
        self._editor = editor
        self._tell = tell
        self._known: dict[str, Typed] = {}
        self._assistance = Assistance(runner, reply)

    def get_ready(self) -> None:
        """The editor has the focus: questions may come."""
        self._runner.attend()

    def ask(self, question: Question) -> None:
        """Pass a question on, with what the last run has told of the program's names."""
        self._assistance.ask(replace(question, known=tuple(self._known.values())))

    def answered(self, question: Question, answer: Answer | None) -> None:
        """An answer has come."""
        self._editor.completer.answered(answer, question.number)

    def tell_nothing(self, event: NothingKnown) -> None:
        """Say why there is no answer."""
        self._tell(LEARNING if event.learning else UNKNOWN[event.what])

    def forget(self) -> None:
        """Another program is shown: what the last run has told is not about this one."""
        self._known = {}

    def learn(self, events: Iterable[Event]) -> None:
        """Keep what a run tells of its names."""
        for typed in types_in(events):
            self._known[typed.name] = typed


def types_in(events: Iterable[Event]) -> Iterable[Typed]:
    """What the events of a run tell of its names."""
    for event in events:
        if isinstance(event, Types):
            yield from event.names
        elif isinstance(event, Tensors):
            for tensor in event.tensors:
                if tensor.scope and tensor.name.isidentifier():
                    function = tensor.scope.rpartition(".")[2]
                    yield Typed(f"{function}.{tensor.name}", "torch.Tensor")
