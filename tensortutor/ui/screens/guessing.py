"""Questions of a step. Where a guess comes before the run, the run reveals what it was worth."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from textual import on

from tensortutor.learner import answers
from tensortutor.protocol.events import Finished, Probed
from tensortutor.protocol.jobs import Job
from tensortutor.ui import glyphs
from tensortutor.ui.guesses import Guess
from tensortutor.ui.screens.looking import LookingScreen
from tensortutor.ui.session import LessonSession
from tensortutor.ui.widgets.output import OutputPane
from tensortutor.ui.widgets.questions import Question
from tensortutor.ui.widgets.results import Results
from tensortutor.ui.widgets.transcript import Line

OWN = "You have changed the code: this is about what your own code made of it."
EDITED = (
    "You have changed the code, and from your run the answer could not be told: this is about the "
    "code as the lesson has it."
)


class GuessingScreen(LookingScreen):
    """Takes answers, asks for guesses, and holds them against the run."""

    def __init__(self) -> None:
        super().__init__()
        self._is_own = False
        self._probed: dict[int, Any] = {}

    @property
    def session(self) -> LessonSession:
        """What the learner does in this lesson."""
        raise NotImplementedError

    @on(Question.Answered)
    async def _answered(self, event: Question.Answered) -> None:
        question = event.question
        self.session.answer(question.index, event.value)
        if self.session.is_held:
            await question.hold(event.value, self._what_reveals())
            following = self.session.next_question()
            if following is not None:
                question = self.reader.questions[following]
                question.field.focus(scroll_visible=False)
        else:
            await question.judge(event.value)
        self.reader.scroll_to_widget(question, animate=False)

    def _what_reveals(self) -> str:
        open = sum(self.session.given(n) is None for n in range(len(self.session.step.quizzes)))
        if open:
            return f"{open} more to guess."
        return f"{self.key_for('lesson.run')} runs the code and shows whether you were right."

    def ask_first(self) -> bool:
        """Turn to the first guess that is missing. Returns whether one is."""
        question = self.session.next_question()
        if not self.session.must_answer_first or question is None:
            return False
        self.tutor.tell("Guess first, then run: the run shows whether you were right.")
        self.turn_to("reader")
        asked = self.reader.questions[question]
        asked.field.focus(scroll_visible=False)
        self.reader.scroll_to_widget(asked, animate=False)
        return True

    def action_skip(self) -> None:
        """Run the code without a guess."""
        if self.session.must_answer_first:
            self.session.skip()
            self.run_now()
        else:
            self.tutor.tell("No guess is asked for here.")

    def run_now(self) -> None:
        """Run the step's code."""
        raise NotImplementedError

    def held_back(self) -> bool:
        """Say once that a guess waits for its run, before the step is left."""
        if not self.session.leave_guess():
            return False
        run, go_on = self.key_for("lesson.run"), self.key_for("lesson.next")
        self.tutor.tell(f"Your guess waits: {run} runs the code and shows. {go_on} goes on.")
        return True

    def with_proofs(self, job: Job) -> Job:
        """A run about to begin: if the code is the learner's own, it also tells the answers."""
        pane = self.session.step.pane
        self._is_own = pane is not None and job.source != pane.source
        self._probed = {}
        return replace(job, probes=self.session.proofs(job.source))

    @on(Results.Heard)
    async def _reveal(self, message: Results.Heard) -> None:
        """The program has ended: show what each guess was worth, beside the output too."""
        probed = (event for event in message.events if isinstance(event, Probed))
        self._probed.update((event.index, event.value) for event in probed if not event.error)
        ends = [event for event in message.events if isinstance(event, Finished)]
        if not ends or ends[-1].outcome == "stopped":
            return
        guesses = self.session.reveal(self._probed)
        if not guesses:
            return
        self.results.query_one(OutputPane).remark(list(self._remarks(guesses)))
        questions = self.reader.questions
        for guess in guesses:
            await questions[guess.question].judge(guess.value, guess.quiz if guess.own else None)
        first = next((guess for guess in guesses if not guess.right), guesses[0])
        self.reader.scroll_to_widget(questions[first.question], animate=False)

    def _remarks(self, guesses: list[Guess]) -> Iterator[Line]:
        signs = glyphs.current()
        several = len(self.session.step.quizzes) > 1
        yield "note", ""
        for guess in guesses:
            which = f"Guess {guess.question + 1}" if several else "Your guess"
            said = answers.shown(guess.quiz, guess.value)
            wanted = answers.shown(guess.quiz, guess.quiz.answer)
            gives = "your code gives" if guess.own else "it is"
            if guess.right:
                yield "head", f"{signs.passed} {which} was right."
            elif "\n" in wanted:
                yield "error", f"{signs.failed} {which} was wrong."
            else:
                yield "error", f"{signs.failed} {which} was {said}; {gives} {wanted}."
        if self._is_own:
            yield "note", OWN if all(guess.own for guess in guesses) else EDITED
        yield "note", "The text says why."
