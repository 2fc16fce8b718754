"""`look` and `try` in a step's text: widgets that one key press carries out."""

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType
from textual.containers import Vertical
from textual.content import Content
from textual.message import Message

from tensortutor.course.material import Look, Try
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import entitle, subtitle
from tensortutor.ui.widgets.markdown import Text

if TYPE_CHECKING:
    from tensortutor.ui.terminal.terminal_app import TerminalApp


class Pointer(Vertical, can_focus=True):
    """A look or a try. It is carried out by Enter, by a click, or by the lesson's key for it.

    made: the texts (before, after) of the edit that a try has made, as long as it is made.
    """

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.POINTER]

    class Chosen(Message):
        """The learner wants it carried out, or a try that is made taken back."""

        def __init__(self, pointer: "Pointer") -> None:
            super().__init__()
            self.pointer = pointer

    def __init__(self, block: Look | Try) -> None:
        told = block.markdown.partition(":** ")[2]  # the title says the word before it
        # A name, such as torch.sum or bfloat16, is another one with a capital.
        if told.partition(" ")[0].isalpha():
            told = told[:1].upper() + told[1:]
        super().__init__(Text(told), classes="pointer")
        self.block = block
        self.made: tuple[str, str] | None = None
        entitle(self, Content("Look" if isinstance(block, Look) else "Try"))

    def on_mount(self) -> None:
        """Name the key."""
        self.show_made(None)

    def show_made(self, made: tuple[str, str] | None) -> None:
        """Remember the edit that is made now, if one is, and say so."""
        self.made = made
        self.set_class(made is not None, "-made")
        name = cast("TerminalApp", self.app).key_name("lesson.point")
        subtitle(self, Content(f"{name}: {'take it back' if made else 'do it'}"))

    def action_choose(self) -> None:
        """Carry it out."""
        self.post_message(self.Chosen(self))

    def on_click(self) -> None:
        """A click is as good as the key."""
        self.action_choose()


class Pointers:
    """The looks and tries of the step that is shown, done in turn by one key."""

    def __init__(self, pointers: list[Pointer]) -> None:
        self._pointers = pointers
        self._last = -1
        self._missed: Pointer | None = None

    def next(self, focused: object = None) -> Pointer | None:
        """The one that the key means now; None in a step without any.

        It is the focused one, else a try that is made, to take it back, else the one after the
        last; after all of them the first again.
        """
        if not self._pointers:
            return None
        made = next((p for p in self._pointers if p.made), None)
        chosen = next((p for p in self._pointers if p is focused), None) or made
        if chosen is None:
            chosen = self._pointers[(self._last + 1) % len(self._pointers)]
        self._last = self._pointers.index(chosen)
        return chosen

    def missed(self, pointer: Pointer) -> None:
        """This one found nothing to point at: its turn comes again, once.

        Most often the program has not run yet. A second miss in a row lets the others have theirs.
        """
        if pointer is self._missed:
            self._missed = None
        else:
            self._missed = pointer
            self._last = self._pointers.index(pointer) - 1
