"""Questions: a field to answer in, and what is said about the answer."""

from typing import TYPE_CHECKING, Any, ClassVar, cast

from textual import on
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.message import Message
from textual.reactive import reactive
from textual.widgets import Input, OptionList, Static
from textual.widgets.option_list import Option

from tensortutor.course.material import Quiz
from tensortutor.learner import answers
from tensortutor.ui import key_bindings
from tensortutor.ui.outside import OutsideText, entitle
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.markdown import Text

if TYPE_CHECKING:
    from tensortutor.ui.tutor import Tutor

PROMPTS = {
    "number": "a number",
    "text": "a word or a line",
    "shape": "sizes, such as 2, 3, 4",
}


class Given(Message):
    """A field holds an answer. problem: why it is none, else ""."""

    def __init__(self, value: Any, problem: str = "") -> None:
        super().__init__()
        self.value = value
        self.problem = problem


class Touched(Message):
    """Somebody answers in a field: it is to be seen."""


class TypedField(Input):
    """Answers that are typed: numbers, text, shapes."""

    def __init__(self, quiz: Quiz) -> None:
        super().__init__(placeholder=PROMPTS[quiz.kind], compact=True, classes="field")
        self._quiz = quiz
        self.cursor_blink = False

    def show(self, value: Any) -> None:
        """Show an earlier answer."""
        self.value = answers.shown(self._quiz, value)

    @on(Input.Changed)
    def _touch(self, event: Input.Changed) -> None:
        event.stop()
        if self.has_focus:
            self.post_message(Touched())

    @on(Input.Submitted)
    def _submit(self, event: Input.Submitted) -> None:
        event.stop()
        try:
            self.post_message(Given(answers.read(self._quiz, self.value)))
        except answers.NotAnAnswer as error:
            self.post_message(Given(None, str(error)))


class ListField(OptionList):
    """A list to answer in. Letters are its own, and paging is the text's around it."""

    def on_key(self, event: Key) -> None:
        """A letter or digit goes to the next line that begins with it. None is a command here:
        who writes an answer out must not run or leave anything."""
        character = event.character or ""
        if event.is_printable and character.isalnum():
            event.stop()
            event.prevent_default()
            self.jump(character)

    def jump(self, character: str) -> None:
        """Highlight the next line that begins with a character, if there is one."""
        count = self.option_count
        here = self.highlighted if self.highlighted is not None else -1
        for index in (*range(here + 1, count), *range(here + 1)):
            if self.words(index).lower().startswith(character.lower()):
                self.highlighted = index
                self.post_message(Touched())
                return

    def words(self, index: int) -> str:
        """What a line says."""
        raise NotImplementedError

    def action_page_down(self) -> None:
        """Page the text: these lists are short."""
        self._page(1)

    def action_page_up(self) -> None:
        """Page the text back."""
        self._page(-1)

    def _page(self, pages: int) -> None:
        for node in self.ancestors:
            if isinstance(node, VerticalScroll):
                if pages > 0:
                    node.scroll_page_down(animate=False)
                else:
                    node.scroll_page_up(animate=False)

    def action_cursor_down(self) -> None:
        """One line down."""
        super().action_cursor_down()
        self.post_message(Touched())

    def action_cursor_up(self) -> None:
        """One line up."""
        super().action_cursor_up()
        self.post_message(Touched())


class ChoiceField(ListField):
    """Answers that are chosen: truth and choice."""

    chosen = reactive(-1)

    def __init__(self, quiz: Quiz) -> None:
        self._values: list[Any] = [True, False] if quiz.kind == "truth" else [*quiz.choices]
        super().__init__(*self._prompts(-1), compact=True, classes="field")

    def _prompts(self, chosen: int) -> list[Option]:
        signs = symbols.current()
        return [
            Option(OutsideText(f"{signs.chosen if i == chosen else signs.ahead} {value}").content)
            for i, value in enumerate(self._values)
        ]

    def words(self, index: int) -> str:
        """One of the answers."""
        return str(self._values[index])

    def show(self, value: Any) -> None:
        """Show an earlier answer."""
        if value in self._values:
            self._mark(self._values.index(value))

    def _mark(self, chosen: int) -> None:
        self.clear_options().add_options(self._prompts(chosen))
        self.highlighted = chosen

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._mark(event.option_index)
        self.post_message(Given(self._values[event.option_index]))


class OrderField(ListField):
    """Lines to be put into order: pick one up, carry it, put it down; Enter answers."""

    BINDINGS: ClassVar[list[BindingType]] = [*key_bindings.ORDER]

    def __init__(self, quiz: Quiz) -> None:
        self._order = list(quiz.choices)
        self._held = False
        self._is_touched = False
        super().__init__(*self._prompts(), compact=True, classes="field -order")

    @property
    def lines(self) -> list[str]:
        """The lines in their order of the moment."""
        return list(self._order)

    def words(self, index: int) -> str:
        """One of the lines."""
        return self._order[index].lstrip()

    def show(self, value: Any) -> None:
        """Show an earlier answer."""
        if sorted(value) == sorted(self._order):
            self._order = list(value)
            self._is_touched = True
            self._draw(self.highlighted or 0)

    def action_hold(self) -> None:
        """Pick the line up, or put it down."""
        self._held = not self._held
        self._is_touched = True
        self._draw(self.highlighted or 0)

    def action_carry(self, steps: int) -> None:
        """Move the line under the cursor."""
        here = self.highlighted or 0
        there = here + steps
        if 0 <= there < len(self._order):
            self._is_touched = True
            self._order.insert(there, self._order.pop(here))
            self._draw(there)

    def action_cursor_up(self) -> None:
        """Up, with the line if it is held."""
        self._step(-1)

    def action_cursor_down(self) -> None:
        """Down, with the line if it is held."""
        self._step(1)

    def _step(self, steps: int) -> None:
        if self._held:
            self.action_carry(steps)
        else:
            self.highlighted = max(0, min((self.highlighted or 0) + steps, len(self._order) - 1))
        self.post_message(Touched())

    def _prompts(self) -> list[Option]:
        here = self.highlighted if self._held else None
        signs = symbols.current()
        return [
            Option(OutsideText(f"{signs.held if i == here else str(i + 1)} {line}").content)
            for i, line in enumerate(self._order)
        ]

    def _draw(self, highlighted: int) -> None:
        self.highlighted = highlighted
        self.clear_options().add_options(self._prompts())
        self.highlighted = highlighted

    @on(OptionList.OptionSelected)
    def _select(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self._held = False
        self._draw(event.option_index)
        if self._is_touched:
            self.post_message(Given(self.lines))
        else:
            key = cast("Tutor", self.app).key_name("order.hold")
            self.post_message(
                Given(
                    None,
                    f"No line has been moved. {key} picks one up, the arrows move it, {key} puts "
                    "it down, and Enter answers.",
                )
            )


Field = TypedField | ChoiceField | OrderField

FIELDS: dict[str, type[TypedField] | type[ChoiceField] | type[OrderField]] = {
    "number": TypedField,
    "text": TypedField,
    "shape": TypedField,
    "truth": ChoiceField,
    "choice": ChoiceField,
    "order": OrderField,
}

HOW = {
    "number": "Type the number, then Enter.",
    "text": "Type the answer, then Enter.",
    "shape": "Type the sizes, then Enter.",
    "truth": "Choose with the arrows, then Enter.",
    "choice": "Choose with the arrows, then Enter.",
    "order": "{} picks a line up or puts it down, the arrows move, Enter answers.",
}


class Question(Vertical):
    """One question of a step.

    given: the answer of an earlier visit. gate: it comes before the run. held: the run has yet to
    reveal whether the answer is right.
    """

    class Answered(Message):
        """The learner gave an answer."""

        def __init__(self, question: "Question", value: Any) -> None:
            super().__init__()
            self.question = question
            self.value = value

    def __init__(
        self, quiz: Quiz, index: int, given: str | None, gate: bool, held: bool = False
    ) -> None:
        super().__init__(classes="question")
        self.quiz = quiz
        self.index = index
        self._given = given
        self._gate = gate
        self._held = held
        self._last = ""
        self._guess = ""
        self.field: Field = FIELDS[quiz.kind](quiz)
        entitle(self, OutsideText("Predict, then run" if gate else "Question"))

    def compose(self) -> ComposeResult:
        """The question, the field, and room for what is said about the answer."""
        yield Text(self.quiz.ask, classes="ask")
        yield self.field
        yield Static(self._how(), classes="verdict", markup=False)

    def _how(self) -> str:
        key_for = cast("Tutor", self.app).key_name
        how = HOW[self.quiz.kind].format(key_for("order.hold"))
        if not self._held or self.index:
            return how
        skip = key_for("lesson.skip")
        return f"{how} Outside the field, {skip} runs the code without a guess."

    async def on_mount(self) -> None:
        """Show the answer of an earlier visit."""
        if self._given is None:
            return
        try:
            value = answers.read(self.quiz, self._given)
        except answers.NotAnAnswer:
            return  # the question has changed since it was answered
        self.field.show(value)
        self._last = answers.shown(self.quiz, value)
        if self._held:
            await self.hold(value)
        else:
            await self.judge(value)

    async def hold(self, value: Any, then: str = "") -> None:
        """Keep an answer as a guess. then: what happens next."""
        said = answers.shown(self.quiz, value)
        guess = f"Your guess: {said}." if "\n" not in said else "Your guess is kept."
        self._guess = guess
        self._say(f"{guess} {then}".rstrip(), "")
        await self.query(".explain").remove()

    def settle(self) -> None:
        """Another question was answered: what was said to happen next is old."""
        if self._guess and self.verdict.startswith(self._guess):
            self._say(self._guess, "")

    async def judge(self, value: Any, own: Quiz | None = None) -> None:
        """Say whether an answer is right, and why. own: the question as the learner's own code
        has answered it, if they have changed the code."""
        right = answers.is_right(own or self.quiz, value)
        verdict = self._verdict(right) if own is None else self._own_verdict(right, own)
        self._say(verdict, "-right" if right else "-wrong")
        await self.query(".explain").remove()
        text = answers.explanation(own or self.quiz, value)
        if text:
            await self.mount(Text(text, classes="explain"))

    @property
    def unsent(self) -> str:
        """What was typed into the field and not given as an answer; "" if nothing was."""
        typed = self.field.value.strip() if isinstance(self.field, TypedField) else ""
        return "" if typed == self._last else typed

    @property
    def verdict(self) -> str:
        """The line under the field."""
        return str(self.query_one(".verdict", Static).content)

    def _verdict(self, right: bool) -> str:
        if right:
            return f"{symbols.current().passed} Right."
        wanted = answers.shown(self.quiz, self.quiz.answer)
        between = ":\n" if "\n" in wanted else " "
        return f"{symbols.current().failed} Wrong. The answer is{between}{wanted}"

    def _own_verdict(self, right: bool, own: Quiz) -> str:
        signs = symbols.current()
        gave, wanted = (answers.shown(quiz, quiz.answer) for quiz in (own, self.quiz))
        between = ":\n" if "\n" in gave + wanted else " "
        sign, word = (signs.passed, "Right") if right else (signs.failed, "Wrong")
        verdict = f"{sign} {word}, for your own code. It gives{between}{gave}"
        if gave != wanted:
            verdict += f"\nThe lesson's code gives{between}{wanted}"
        return verdict

    def _say(self, text: str, look: str) -> None:
        verdict = self.query_one(".verdict", Static)
        for name in ("-right", "-wrong", "-unclear"):
            verdict.set_class(name == look, name)
        verdict.update(OutsideText(text).content)

    @on(Given)
    def _answer(self, event: Given) -> None:
        event.stop()
        if event.problem:
            self._say(event.problem, "-unclear")
        else:
            if isinstance(self.field, TypedField):
                self._last = self.field.value.strip()
            self.post_message(self.Answered(self, event.value))

    @on(Touched)
    def _be_seen(self, event: Touched) -> None:
        event.stop()
        self.scroll_visible(animate=False)
