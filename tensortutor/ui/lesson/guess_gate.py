"""Questions of a step. Where a guess comes before the run, the run reveals what it was worth."""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from tensortutor.learner.guesses import Guess, remarks
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.protocol.events import Event, Finished, Probed
from tensortutor.protocol.jobs import Job
from tensortutor.ui.terminal import symbols
from tensortutor.ui.widgets.questions import Question
from tensortutor.ui.widgets.reader import Reader
from tensortutor.ui.widgets.transcript import Line


class GuessGate:
    """Takes answers, asks for guesses before a run, and holds them against it.

    ask: gives a question the keys. rest: gives them to the text, as it stands. remark: writes
    lines below the program's output. key: how the key of a binding is written. tell: shows a
    sentence.
    """

    def __init__(
        self,
        session: LessonSession,
        reader: Reader,
        ask: Callable[[Question], None],
        rest: Callable[[], object],
        remark: Callable[[list[Line]], None],
        key: Callable[[str], str],
        tell: Callable[[str], None],
    ) -> None:
        self._session = session
        self._reader = reader
        self._ask = ask
        self._rest = rest
        self._remark = remark
        self._key = key
        self._tell = tell
        self._is_own = False
        self._probed: dict[int, Any] = {}

    async def answered(self, question: Question, value: Any) -> None:
        """An answer was given: judge it, or hold it until the run."""
        session = self._session
        session.answer(question.index, value)
        for earlier in self._reader.questions:
            earlier.settle()
        if session.is_held:
            await question.hold(value, self._what_reveals())
        else:
            await question.judge(value)
        following = session.next_question()
        if following is None:
            self._rest()
        else:
            self._ask(self._reader.questions[following])
            if session.is_held:
                question = self._reader.questions[following]
        self._reader.scroll_to_widget(question, animate=False)

    def _what_reveals(self) -> str:
        open = self._session.questions_left
        if open:
            return f"{open} more to guess."
        return f"{self._key('lesson.run')} runs the code and shows whether you were right."

    def ask_first(self) -> bool:
        """Turn to the first guess that is missing. Returns whether one is."""
        question = self._session.next_question()
        if not self._session.must_answer_first or question is None:
            return False
        self._tell("Guess first, then run: the run shows whether you were right.")
        asked = self._reader.questions[question]
        self._ask(asked)
        self._reader.scroll_to_widget(asked, animate=False)
        return True

    def skip(self) -> bool:
        """Let the code run without a guess. Returns whether one was asked for."""
        if self._session.must_answer_first:
            self._session.skip()
            return True
        self._tell("No guess is asked for here.")
        return False

    def held_back(self) -> bool:
        """Say once that a guess waits for its run, before the step is left."""
        if not self._session.leave_guess():
            return False
        run, go_on = self._key("lesson.run"), self._key("lesson.next")
        self._tell(f"Your guess waits: {run} runs the code and shows. {go_on} goes on.")
        return True

    def with_proofs(self, job: Job) -> Job:
        """A run about to begin: if the code is the learner's own, it also tells the answers."""
        self._is_own = self._session.is_own(job.source)
        self._probed = {}
        return replace(job, probes=self._session.proofs(job.source))

    async def reveal(self, events: Iterable[Event]) -> None:
        """When the program has ended: show what each guess was worth, beside the output too."""
        ended: Finished | None = None
        for event in events:
            if isinstance(event, Probed) and not event.error:
                self._probed[event.index] = event.value
            elif isinstance(event, Finished):
                ended = event
        if ended is None or ended.outcome == "stopped":
            return
        guesses = self._session.reveal(self._probed)
        if not guesses:
            return
        self._remark(self._lines(guesses))
        questions = self._reader.questions
        for guess in guesses:
            await questions[guess.question].judge(guess.value, guess.quiz if guess.own else None)
        first = next((guess for guess in guesses if not guess.right), guesses[0])
        self._reader.scroll_to_widget(questions[first.question], animate=False)

    def _lines(self, guesses: list[Guess]) -> list[Line]:
        """What is written below the output."""
        signs = symbols.current()
        styles = {"right": "head", "wrong": "error", "note": "note"}
        marks = {"right": f"{signs.passed} ", "wrong": f"{signs.failed} ", "note": ""}
        several = len(self._session.step.quizzes) > 1
        lines = [
            (styles[kind], marks[kind] + sentence)
            for kind, sentence in remarks(guesses, several=several, is_own=self._is_own)
        ]
        return [("note", ""), *lines, ("note", "The text says why.")]
