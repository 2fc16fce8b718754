"""Which lessons are open. Pure rules over what was passed."""

from collections.abc import Set
from typing import Literal

from tensortutor.course.model import Course, Lesson

State = Literal["done", "open", "locked"]


def missing(lesson: Lesson, passed: Set[str]) -> tuple[str, ...]:
    """The ids that must be passed before this lesson opens, in the order the lesson names them."""
    return tuple(id for id in lesson.requires if id not in passed)


def state(lesson: Lesson, passed: Set[str]) -> State:
    """Whether a lesson is done, open or locked. What was passed once is never locked again."""
    if lesson.id in passed:
        return "done"
    return "locked" if missing(lesson, passed) else "open"


def opened_by(course: Course, lesson_id: str, passed: Set[str]) -> tuple[Lesson, ...]:
    """The lessons that passing `lesson_id` opens, in reading order.

    It does not matter whether `passed` holds `lesson_id` already.
    """
    before = passed - {lesson_id}
    after = passed | {lesson_id}
    return tuple(
        lesson
        for lesson in course.lessons
        if state(lesson, before) == "locked" and state(lesson, after) == "open"
    )


def next_lesson(course: Course, lesson_id: str, passed: Set[str]) -> Lesson | None:
    """The first open lesson after this one, else the first open one before it, else None."""
    lessons = course.lessons
    here = next((i for i, lesson in enumerate(lessons) if lesson.id == lesson_id), -1)
    return _first_open((*lessons[here + 1 :], *lessons[: max(here, 0)]), passed)


def continue_at(
    course: Course, passed: Set[str], place: tuple[str, int] | None
) -> tuple[Lesson, int] | None:
    """The lesson and step to go on with; None if the course has no lessons.

    That is where the learner was, as long as that lesson is still there and not locked; else the
    first open lesson; else, with everything passed, the course's first.
    """
    if place is not None:
        lesson = next((one for one in course.lessons if one.id == place[0]), None)
        if lesson is not None and state(lesson, passed) != "locked":
            return lesson, min(max(place[1], 0), len(lesson.steps) - 1)
    lesson = _first_open(course.lessons, passed) or next(iter(course.lessons), None)
    return None if lesson is None else (lesson, 0)


def _first_open(lessons: tuple[Lesson, ...], passed: Set[str]) -> Lesson | None:
    return next((lesson for lesson in lessons if state(lesson, passed) == "open"), None)
