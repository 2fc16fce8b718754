"""Which lessons are open. Pure rules over what was passed.

Whoever passes a lesson has shown to know what it is built on: all that it requires, and all that
that requires. Such a lesson is `known` until it is passed itself. Nothing of this is kept; it
follows from the record and the course.
"""

from collections.abc import Container, Mapping, Set
from dataclasses import dataclass
from typing import Literal

from tensortutor.course.model import Course, Lesson

State = Literal["done", "known", "open", "locked"]


@dataclass(frozen=True)
class Credit:
    """What was passed, and what that shows to be known: id -> the lesson whose passing shows it.

    `id in credit` says whether a lesson counts, passed or known.
    """

    passed: Set[str]
    known: Mapping[str, str]

    def __contains__(self, lesson_id: object) -> bool:
        return lesson_id in self.passed or lesson_id in self.known


def credit(course: Course, passed: Set[str]) -> Credit:
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
    return Credit(passed, known)


def missing(lesson: Lesson, counted: Container[str]) -> tuple[str, ...]:
    """The ids that must count before this lesson opens, in the order the lesson names them."""
    return tuple(id for id in lesson.requires if id not in counted)


def state(lesson: Lesson, earned: Credit) -> State:
    """How a lesson stands. What was passed once is never locked again."""
    if lesson.id in earned.passed:
        return "done"
    if lesson.id in earned.known:
        return "known"
    return "locked" if missing(lesson, earned) else "open"


def opened_by(course: Course, lesson_id: str, passed: Set[str]) -> tuple[Lesson, ...]:
    """The lessons that passing `lesson_id` opens, in reading order.

    It does not matter whether `passed` holds `lesson_id` already.
    """
    before, after = _around(course, lesson_id, passed)
    return tuple(
        lesson
        for lesson in course.lessons
        if state(lesson, before) == "locked" and state(lesson, after) == "open"
    )


def shown_by(course: Course, lesson_id: str, passed: Set[str]) -> tuple[Lesson, ...]:
    """The lessons that passing `lesson_id` shows to be known, and nothing did before."""
    before, after = _around(course, lesson_id, passed)
    return tuple(one for one in course.lessons if one.id in after.known and one.id not in before)


def _around(course: Course, lesson_id: str, passed: Set[str]) -> tuple[Credit, Credit]:
    return credit(course, passed - {lesson_id}), credit(course, passed | {lesson_id})


def built_on(course: Course, lesson: Lesson) -> tuple[Lesson, ...]:
    """All that a lesson requires, and what that requires, in reading order."""
    below = credit(course, {lesson.id}).known
    return tuple(one for one in course.lessons if one.id in below)


def next_lesson(course: Course, lesson_id: str, passed: Set[str]) -> Lesson | None:
    """The first open lesson after this one, else the first open one before it, else None."""
    lessons = course.lessons
    here = next((i for i, lesson in enumerate(lessons) if lesson.id == lesson_id), -1)
    return _first_open((*lessons[here + 1 :], *lessons[: max(here, 0)]), credit(course, passed))


def continue_at(
    course: Course, passed: Set[str], place: tuple[str, int] | None
) -> tuple[Lesson, int] | None:
    """The lesson and step to go on with; None if the course has no lessons.

    That is where the learner was, as long as that lesson is still there: in a locked one, too,
    for it was opened on purpose. Else the first open lesson; else the course's first.
    """
    if place is not None:
        lesson = next((one for one in course.lessons if one.id == place[0]), None)
        if lesson is not None:
            return lesson, min(max(place[1], 0), len(lesson.steps) - 1)
    lesson = _first_open(course.lessons, credit(course, passed))
    lesson = lesson or next(iter(course.lessons), None)
    return None if lesson is None else (lesson, 0)


def _first_open(lessons: tuple[Lesson, ...], earned: Credit) -> Lesson | None:
    return next((lesson for lesson in lessons if state(lesson, earned) == "open"), None)
