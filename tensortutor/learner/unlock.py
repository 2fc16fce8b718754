"""Which lessons are open. Pure rules over what was passed, and what was answered instead.

A lesson counts when it was passed; when one was passed whose checks are evidence for it (`shows` in
its check file, proved by `verify`); or when it was skipped, and one question of it was answered
right (`skipping`). Nothing counts because a lesson that builds on it was passed. A lesson that
counts without having been passed is `known`. What is evidence for what is not kept; it follows from
the record and the course.

Whoever begins a lesson again wants to do it: it is open, and is not known, until it is passed, a
lesson that is evidence for it is passed for the first time, or a question of it is answered again.
"""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass, replace
from typing import Literal

from tensortutor.course.model import Course, Lesson

State = Literal["done", "known", "open", "locked"]


@dataclass(frozen=True)
class History:
    """What decides which lessons are open: ids of lessons.

    passed: their checks passed. answered: skipped, and a question of theirs answered right.
    begun_again: they counted, and were begun again since.
    """

    passed: frozenset[str] = frozenset()
    answered: frozenset[str] = frozenset()
    begun_again: frozenset[str] = frozenset()

    def after_passing(self, lesson: Lesson) -> "History":
        """What it is once this lesson is passed for the first time."""
        again = self.begun_again - {lesson.id, *lesson.shows}
        return replace(self, passed=self.passed | {lesson.id}, begun_again=again)


@dataclass(frozen=True)
class Credit:
    """What was passed, and what is known without: id -> the lesson whose passing is evidence for
    it, or "" where a question was answered.

    begun_again: what was begun again since. `id in credit` says whether a lesson counts.
    """

    passed: Set[str]
    known: Mapping[str, str]
    begun_again: Set[str] = frozenset()

    def __contains__(self, lesson_id: object) -> bool:
        return lesson_id in self.passed or lesson_id in self.known


def credit(course: Course, history: History) -> Credit:
    """What the history is worth. The first lesson that is evidence for another one has its name."""
    known: dict[str, str] = {}
    for lesson in course.lessons:
        if lesson.id in history.passed:
            for id in lesson.shows:
                known.setdefault(id, lesson.id)
    for id in history.answered:
        known.setdefault(id, "")
    there = {lesson.id for lesson in course.lessons} - history.passed - history.begun_again
    return Credit(
        history.passed, {id: by for id, by in known.items() if id in there}, history.begun_again
    )


def missing(lesson: Lesson, counted: Container[str]) -> tuple[str, ...]:
    """The ids that must count before this lesson opens, in the order the lesson names them."""
    return tuple(id for id in lesson.requires if id not in counted)


def state(lesson: Lesson, earned: Credit) -> State:
    """How a lesson stands. What was passed once is never locked again, even if begun again."""
    if lesson.id in earned.passed:
        return "done"
    if lesson.id in earned.known:
        return "known"
    if lesson.id in earned.begun_again:
        return "open"
    return "locked" if missing(lesson, earned) else "open"


def opened_by(course: Course, lesson: Lesson, history: History) -> tuple[Lesson, ...]:
    """The lessons that passing this one opens, in reading order. The history is from before."""
    before, after = credit(course, history), credit(course, history.after_passing(lesson))
    return tuple(
        one
        for one in course.lessons
        if state(one, before) == "locked" and state(one, after) == "open"
    )


def shown_by(course: Course, lesson: Lesson, history: History) -> tuple[Lesson, ...]:
    """The lessons that passing this one is evidence for, and that did not count before."""
    before, after = credit(course, history), credit(course, history.after_passing(lesson))
    return tuple(one for one in course.lessons if one.id in after.known and one.id not in before)


def built_on(course: Course, lesson: Lesson) -> tuple[Lesson, ...]:
    """All that a lesson requires, and what that requires, in reading order."""
    requires = {one.id: one.requires for one in course.lessons}
    below: set[str] = set()
    ahead = [*lesson.requires]
    while ahead:
        id = ahead.pop()
        if id in requires and id not in below:
            below.add(id)
            ahead += requires[id]
    return tuple(one for one in course.lessons if one.id in below)


def next_lesson(course: Course, lesson_id: str, history: History) -> Lesson | None:
    """The first open lesson after this one, else the first open one before it, else None."""
    lessons = course.lessons
    here = next((i for i, lesson in enumerate(lessons) if lesson.id == lesson_id), -1)
    others = (*lessons[here + 1 :], *lessons[: max(here, 0)])
    return _first_open(others, credit(course, history))


def continue_at(
    course: Course, earned: Credit, place: tuple[str, int] | None
) -> tuple[Lesson, int] | None:
    """The lesson and step to go on with; None if the course has no lessons.

    That is where the learner was, as long as that lesson is still there: in a locked one, too,
    for it was opened on purpose. Else the first open lesson; else the course's first.
    """
    if place is not None:
        lesson = next((one for one in course.lessons if one.id == place[0]), None)
        if lesson is not None:
            return lesson, min(max(place[1], 0), len(lesson.steps) - 1)
    lesson = _first_open(course.lessons, earned)
    lesson = lesson or next(iter(course.lessons), None)
    return None if lesson is None else (lesson, 0)


def _first_open(lessons: tuple[Lesson, ...], earned: Credit) -> Lesson | None:
    return next((lesson for lesson in lessons if state(lesson, earned) == "open"), None)
