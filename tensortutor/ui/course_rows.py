"""The course as rows of a list: what can be seen and folded. Pure."""

from collections.abc import Set
from typing import NamedTuple

from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.learner.unlock import Credit, State, continue_at, state


class ContinueRow(NamedTuple):
    """Where to go on. step counts from 0."""

    lesson: Lesson
    step: int
    begun: bool


class ReviewRow(NamedTuple):
    """How much is due for another look; None while that is being found out.

    new: how many of the new cards are asked today, in words, if not all are.
    """

    questions: int | None
    exercises: int
    new: str = ""
    drills: int = 0


class ChapterRow(NamedTuple):
    """A chapter's heading. done: lessons passed; known: lessons that count without."""

    chapter: Chapter
    done: int
    known: int
    open: bool


class LessonRow(NamedTuple):
    """A lesson under its chapter. number counts from 1 within the chapter."""

    chapter: Chapter
    lesson: Lesson
    number: int
    state: State


Row = ContinueRow | ReviewRow | ChapterRow | LessonRow


def rows(
    course: Course,
    earned: Credit,
    place: tuple[str, int] | None,
    unfolded: Set[str],
    review: ReviewRow | None,
) -> list[Row]:
    """The rows to show, top to bottom. unfolded: ids of chapters whose lessons show."""
    found: list[Row] = []
    target = continue_at(course, earned, place)
    if target is not None:
        lesson, step = target
        found.append(ContinueRow(lesson, step, place is not None or bool(earned.passed)))
        found += [review] if review is not None else []
    for chapter in course.chapters:
        done = sum(lesson.id in earned.passed for lesson in chapter.lessons)
        known = sum(lesson.id in earned.known for lesson in chapter.lessons)
        show = chapter.id in unfolded
        found.append(ChapterRow(chapter, done, known, show))
        if show:
            found += [
                LessonRow(chapter, lesson, number, state(lesson, earned))
                for number, lesson in enumerate(chapter.lessons, 1)
            ]
    return found
