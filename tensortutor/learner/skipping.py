"""Skipping ahead: which lessons one question each is asked of, which question, what it is worth.

Whoever wants to work on a locked lesson without those that it builds on answers one question of
each that does not count yet. A right answer makes that lesson count, and nothing else: not those
that it requires. A wrong one is explained, and leaves everything as it was. No question is asked
twice: a lesson whose questions have all been asked has to be done.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from tensortutor.course.material import Quiz
from tensortutor.course.model import Course, Lesson
from tensortutor.learner import answers
from tensortutor.learner.progress import Progress
from tensortutor.learner.unlock import built_on, credit, missing, state


@dataclass(frozen=True)
class SkipQuestion:
    """A question of a skipped lesson. step, number: counted from 0."""

    lesson: Lesson
    step: int
    number: int

    @property
    def quiz(self) -> Quiz:
        """The question itself."""
        return self.lesson.steps[self.step].quizzes[self.number]


def skipped(course: Course, lesson: Lesson, progress: Progress) -> tuple[Lesson, ...]:
    """The lessons that this one builds on and that do not count.

    First those that it requires, for these open it; then what they build on, in reading order.
    Raises StorageError.
    """
    earned = credit(course, progress.history())
    below = [one for one in built_on(course, lesson) if one.id not in earned]
    first = set(missing(lesson, earned))
    return tuple(sorted(below, key=lambda one: one.id not in first))


def question_of(lesson: Lesson, progress: Progress) -> SkipQuestion | None:
    """The question that is asked next of a skipped lesson; None if all of them have been asked.

    Best is one that the learner has not answered in the lesson, about a program whose result they
    have to predict, and that is not right half of the time by guessing. Raises StorageError, and
    CourseError if the lesson is not sound.
    """
    asked = progress.asked(lesson.id)
    given = progress.answers(lesson.id)
    found = [
        SkipQuestion(lesson, index, number)
        for index, step in enumerate(lesson.steps)
        for number in range(len(step.quizzes))
        if (index, number) not in asked
    ]

    def rank(one: SkipQuestion) -> tuple[bool, bool, bool]:
        pane = lesson.steps[one.step].pane
        predicts = pane is not None and pane.kind == "predict"
        return (one.step, one.number) in given, not predicts, one.quiz.kind == "truth"

    return min(found, key=rank, default=None)


def without_questions_left(lessons: Iterable[Lesson], progress: Progress) -> tuple[Lesson, ...]:
    """Those of which no question is left. Raises StorageError, and CourseError as `question_of`."""
    return tuple(
        one for one in lessons if progress.asked(one.id) and question_of(one, progress) is None
    )


def answer(question: SkipQuestion, value: Any, progress: Progress) -> bool:
    """Judge an answer and keep what came of it. Returns whether it is right.

    Raises StorageError.
    """
    right = answers.is_right(question.quiz, value)
    progress.record_asked(question.lesson.id, question.step, question.number, right)
    return right


def to_be_done(name: str) -> str:
    """What is said of a lesson of which no question is left."""
    return f"Every question of {name} has been asked: it counts once you have passed it."


def is_locked(course: Course, lesson: Lesson, progress: Progress) -> bool:
    """Whether a lesson is still locked. Raises StorageError."""
    return state(lesson, credit(course, progress.history())) == "locked"
