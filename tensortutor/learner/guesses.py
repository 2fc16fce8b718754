"""Answers that were given before a run, held against what came of it. Pure."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tensortutor.course.material import Quiz
from tensortutor.learner import answers


@dataclass(frozen=True)
class Guess:
    """An answer that was given before the run. question counts from 0.

    quiz: what it is held against. own: that is what the learner's own code gave, not the lesson's.
    """

    question: int
    quiz: Quiz
    value: Any
    own: bool

    @property
    def right(self) -> bool:
        """Whether it is the answer."""
        return answers.is_right(self.quiz, self.value)


def guesses(
    quizzes: Sequence[Quiz], given: Sequence[tuple[str, bool] | None], probed: Mapping[int, Any]
) -> list[Guess]:
    """The guesses among the answers given.

    probed: what the proofs gave in the learner's own code, by the number of their question.
    """
    found = []
    for number, (quiz, answer) in enumerate(zip(quizzes, given, strict=True)):
        # A question that has changed since it was answered has no guess.
        with contextlib.suppress(answers.NotAnAnswer):
            if answer is not None:
                value = answers.read(quiz, answer[0])
                own = answers.about_run(quiz, probed[number]) if number in probed else None
                found.append(Guess(number, own or quiz, value, own is not None))
    return found


OWN = "You have changed the code: this is about what your own code made of it."
EDITED = (
    "You have changed the code, and from your run the answer could not be told: this is about the "
    "code as the lesson has it."
)


def remarks(guesses: Sequence[Guess], *, several: bool, is_own: bool) -> Iterator[tuple[str, str]]:
    """What a run says of the guesses before it: a kind ("right", "wrong", "note") and a sentence.

    several: whether the step has more than one question. is_own: the learner has changed the code.
    """
    for guess in guesses:
        which = f"Guess {guess.question + 1}" if several else "Your guess"
        said = answers.shown(guess.quiz, guess.value)
        wanted = answers.shown(guess.quiz, guess.quiz.answer)
        gives = "your code gives" if guess.own else "it is"
        if guess.right:
            yield "right", f"{which} was right."
        elif "\n" in wanted:
            yield "wrong", f"{which} was wrong."
        else:
            yield "wrong", f"{which} was {said}; {gives} {wanted}."
    if is_own:
        yield "note", OWN if all(guess.own for guess in guesses) else EDITED
