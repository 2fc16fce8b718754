"""Offers names while somebody types: asks, waits for the answer, shows it if it still fits."""

from __future__ import annotations

import itertools
import re

from textual.message import Message
from textual.timer import Timer

from tensortutor.protocol.assist import Answer, Completions, Documentation, Question
from tensortutor.ui.editing import documentation, line_lexer
from tensortutor.ui.widgets.code import CodeArea
from tensortutor.ui.widgets.popup import ROWS, Popup

WORD = re.compile(r"\w*\Z")
NUMBER = re.compile(r"(?<![\w.])\d[\d_]*\.\Z")
STEPS = {"up": -1, "down": 1, "pageup": -ROWS, "pagedown": ROWS}
SETTLED_S = 0.12
"""After the last move in the list: words about the chosen name are asked for."""


class NameAsked(Message):
    """Somebody is to answer a question about a name, by `Completer.answered`."""

    def __init__(self, question: Question) -> None:
        super().__init__()
        self.question = question


class NameDescribed(Message):
    """All about a name is to be shown."""

    def __init__(self, documentation: Documentation) -> None:
        super().__init__()
        self.documentation = documentation


class NothingKnown(Message):
    """A key has asked, and nothing is known. what: "names" or "words"."""

    def __init__(self, what: str, *, learning: bool) -> None:
        super().__init__()
        self.what = what
        self.learning = learning


class Completer:
    """The names for one editor. is_eager: offer them behind a dot without being asked."""

    def __init__(self, editor: CodeArea) -> None:
        self.is_eager = True
        self._editor = editor
        self._numbers = itertools.count(1)
        self._popup: Popup | None = None
        self._names: tuple[str, ...] = ()
        self._fitting: list[str] = []
        self._chosen = 0
        self._row, self._start = -1, 0
        self._refused = (-1, 0)
        self._has_moved = False
        self._asked = self._described = self._page = 0
        self._is_wanted = False
        self._words = ("", "")
        self._settling: Timer | None = None

    @property
    def is_open(self) -> bool:
        """Whether names are shown."""
        return self._popup is not None

    # Asking

    def typed(self, character: str) -> None:
        """A character has been typed: is it time to ask?"""
        if self.is_open:
            if character == "_" and self._word() == "_":
                self.ask()  # the names that were left out are wanted now
            return
        if not self.is_eager or not (character == "." or character.isidentifier()):
            return
        row, column = self._editor.cursor_location
        line = self._editor.document[row]
        before = line[: column - len(self._word())]
        here = (row, len(before))
        pending = self._asked and (self._row, self._start) == here
        if character != "." and here == self._refused:
            return
        if pending or not before.endswith(".") or NUMBER.search(before):
            return
        if line_lexer.is_code(line, self._editor.document.state(row), column):
            self.ask()

    def ask(self, *, wanted: bool = False) -> None:
        """Ask for names at the cursor. wanted: by a key, so that having none is told."""
        row, column = self._editor.cursor_location
        self._row, self._start = row, column - len(self._word())
        self._is_wanted = wanted
        self._asked = self._question("complete", self._editor.text, column)

    def explain(self) -> None:
        """Ask for all about the chosen name, or the one at the cursor."""
        row, column = self._editor.cursor_location
        lines = list(self._editor.document.lines)
        if self.is_open and self._fitting:
            name = self._fitting[self._chosen]
            line = lines[row]
            lines[row] = line[: self._start] + name + line[column:]
            column = self._start + len(name)
        self._page = self._question("explain", "\n".join(lines), column)

    def _question(self, kind: str, source: str, column: int) -> int:
        number = next(self._numbers)
        row = self._editor.cursor_location[0]
        self._editor.post_message(NameAsked(Question(kind, number, source, row + 1, column)))
        return number

    def _word(self) -> str:
        """The word left of the cursor, as far as it goes."""
        row, column = self._editor.cursor_location
        match = WORD.search(self._editor.document[row][:column])
        return match.group() if match else ""

    # Answers

    def answered(self, answer: Answer | None, number: int) -> None:
        """What there is to say to a question; None if nobody could be asked."""
        if number == self._asked:
            self._asked = 0
            if isinstance(answer, Completions):
                self._offer(answer)
            elif self._is_wanted:
                self._editor.post_message(NothingKnown("names", learning=True))
        elif number == self._page:
            self._page = 0
            learning = answer is None or answer.learning
            if isinstance(answer, Documentation) and answer.name:
                self._editor.post_message(NameDescribed(answer))
            else:
                self._editor.post_message(NothingKnown("words", learning=learning))
        elif number == self._described and isinstance(answer, Documentation) and self.is_open:
            self._words = documentation.first_words(answer)
            self._show()

    def _offer(self, answer: Completions) -> None:
        row, column = self._editor.cursor_location
        line = self._editor.document[row]
        word = line[answer.start : column]
        # Typing has gone on: what was asked for there may not be what is wanted here.
        if row != self._row or column < answer.start or (word and not word.isidentifier()):
            return
        self._names, self._start = answer.names, answer.start
        self._chosen, self._has_moved = 0, self._is_wanted
        if not self._fit() and self._is_wanted:
            self._editor.post_message(NothingKnown("names", learning=answer.learning))

    # The list

    def moved(self) -> None:
        """The cursor is somewhere else, or the text is another one."""
        if not self.is_open:
            return
        row, column = self._editor.cursor_location
        word = self._editor.document[row][self._start : column]
        is_out = row != self._row or column < self._start or not self._editor.selection.is_empty
        if is_out or (word and not word.isidentifier()):
            self.close()
        else:
            self._fit()

    def _fit(self) -> bool:
        """Offer the names that begin with the word; those in its very letters first."""
        row, column = self._editor.cursor_location
        word = self._editor.document[row][self._start : column]
        low = word.lower()
        found = [name for name in self._names if name.lower().startswith(low)]
        found.sort(key=lambda name: not name.startswith(word))
        if not found or found == [word]:
            self.close()
            return bool(found)
        if found != self._fitting:
            self._fitting, self._chosen = found, 0
            self._settle()
        self._show()
        return True

    def _show(self) -> None:
        screen = self._editor.screen
        if self._popup is None:
            self._popup = Popup()
            screen.mount(self._popup)
        column = self._editor.cursor_location[1]
        at = self._editor.cursor_screen_offset - (column - self._start, 0)
        self._popup.place(at, screen.size)
        self._popup.offer(self._fitting, self._chosen, *self._words)

    def _settle(self) -> None:
        """Another name is chosen: ask for words about it, once the choice has settled."""
        self._words = ("", "")
        if self._settling is not None:
            self._settling.stop()
        self._settling = self._editor.set_timer(SETTLED_S, self._describe)

    def _describe(self) -> None:
        if self.is_open:
            page, self._page = self._page, 0
            self.explain()
            self._described, self._page = self._page, page

    def handle(self, key: str) -> bool:
        """Do what a key means while names are shown. Returns whether it was meant for them."""
        if not self.is_open:
            return False
        if key in STEPS:
            last = len(self._fitting) - 1
            self._chosen = min(max(self._chosen + STEPS[key], 0), last)
            self._has_moved = True
            self._settle()
            self._show()
        elif key == "tab" or (key == "enter" and self._has_moved):
            self.accept(self._chosen)
        elif key == "escape":
            self._refused = (self._row, self._start)
            self.close()
        else:
            return False
        return True

    def accept(self, index: int) -> None:
        """Write the name in the place of the word."""
        name = self._fitting[index]
        row, column = self._editor.cursor_location
        self.close()
        self._editor.replace(
            name, (row, self._start), (row, column), maintain_selection_offset=False
        )

    def close(self) -> None:
        """Show no names; answers that are on their way come too late."""
        self._asked = self._described = 0
        self._fitting, self._names = [], ()
        if self._settling is not None:
            self._settling.stop()
        if self._popup is not None:
            self._popup.remove()
            self._popup = None
