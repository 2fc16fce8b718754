"""Which lessons are open. Pure rules over what was passed.

Whoever passes a lesson has shown to know what it is built on: all that it requires, and all that
that requires. Such a lesson is `known` until it is passed itself. Nothing of this is kept; it
follows from the record and the course.

Whoever begins a lesson again wants to do it: it is open, and is not known by others, until it is
passed, or one that builds on it is passed for the first time.
"""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from tensortutor.course.model import Course, Lesson

State = Literal["done", "known", "open", "locked"]


@dataclass(frozen=True)
class Credit:
    """What was passed, and what that shows to be known: id -> the lesson whose passing shows it.

    begun_again: what was begun again since. `id in credit` says whether a lesson counts.
    """

    passed: Set[str]
    known: Mapping[str, str]
    begun_again: Set[str] = frozenset()

    def __contains__(self, lesson_id: object) -> bool:
        return lesson_id in self.passed or lesson_id in self.known


def credit(course: Course, passed: Set[str], begun_again: Set[str] = frozenset()) -> Credit:
    """What passing these lessons is worth. The first lesson that shows another one has its name."""
    requires = {lesson.id: lesson.requires for lesson in course.lessons}
    known: dict[str, str] = {}
    for lesson in course.lessons:
        if lesson.id not in passed:
            continue
        ahead = [*lesson.requires]
        while ahead:
            id = ahead.pop()
            # What is passed has its own turn; what is known has been followed already.
            if id in requires and id not in passed and id not in known:
                known[id] = lesson.id
                ahead += requires[id]
    return Credit(
        passed, {id: by for id, by in known.items() if id not in begun_again}, begun_again
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


def opened_by(
    course: Course, lesson_id: str, passed: Set[str], begun_again: Set[str] = frozenset()
) -> tuple[Lesson, ...]:
    """The lessons that passing `lesson_id` opens, in reading order.

    It does not matter whether `passed` holds `lesson_id` already.
    """
    before, after = _around(course, lesson_id, passed, begun_again)
    return tuple(
        lesson
        for lesson in course.lessons
        if state(lesson, before) == "locked" and state(lesson, after) == "open"
    )


def shown_by(
    course: Course, lesson_id: str, passed: Set[str], begun_again: Set[str] = frozenset()
) -> tuple[Lesson, ...]:
    """The lessons that passing `lesson_id` shows to be known, and nothing did before."""
    before, after = _around(course, lesson_id, passed, begun_again)
    return tuple(one for one in course.lessons if one.id in after.known and one.id not in before)


def _around(
    course: Course, lesson_id: str, passed: Set[str], begun_again: Set[str]
) -> tuple[Credit, Credit]:
    shown = {lesson_id, *credit(course, {lesson_id}).known}
    return (
        credit(course, passed - {lesson_id}, begun_again),
        credit(course, passed | {lesson_id}, begun_again - shown),
    )


def built_on(course: Course, lesson: Lesson) -> tuple[Lesson, ...]:
    """All that a lesson requires, and what that requires, in reading order."""
    below = credit(course, {lesson.id}).known
    return tuple(one for one in course.lessons if one.id in below)


def next_lesson(
    course: Course, lesson_id: str, passed: Set[str], begun_again: Set[str] = frozenset()
) -> Lesson | None:
    """The first open lesson after this one, else the first open one before it, else None."""
    lessons = course.lessons
    here = next((i for i, lesson in enumerate(lessons) if lesson.id == lesson_id), -1)
    others = (*lessons[here + 1 :], *lessons[: max(here, 0)])
    return _first_open(others, credit(course, passed, begun_again))


def continue_at(
    course: Course,
    passed: Set[str],
    place: tuple[str, int] | None,
    begun_again: Set[str] = frozenset(),
) -> tuple[Lesson, int] | None:
    """The lesson and step to go on with; None if the course has no lessons.

    That is where the learner was, as long as that lesson is still there: in a locked one, too,
    for it was opened on purpose. Else the first open lesson; else the course's first.
    """
    if place is not None:
        lesson = next((one for one in course.lessons if one.id == place[0]), None)
        if lesson is not None:
            return lesson, min(max(place[1], 0), len(lesson.steps) - 1)
    lesson = _first_open(course.lessons, credit(course, passed, begun_again))
    lesson = lesson or next(iter(course.lessons), None)
    return None if lesson is None else (lesson, 0)


def _first_open(lessons: tuple[Lesson, ...], earned: Credit) -> Lesson | None:
    return next((lesson for lesson in lessons if state(lesson, earned) == "open"), None)
