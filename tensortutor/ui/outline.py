"""The course as rows of a list: what can be seen, folded and filtered. Pure."""

from collections.abc import Set
from typing import NamedTuple

from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.learner.unlock import State, continue_at, state


class ContinueRow(NamedTuple):
    """Where to go on. step counts from 0."""

    lesson: Lesson
    step: int
    begun: bool


class ChapterRow(NamedTuple):
    """A chapter's heading."""

    chapter: Chapter
    done: int
    open: bool


class LessonRow(NamedTuple):
    """A lesson under its chapter. number counts from 1 within the chapter."""

    chapter: Chapter
    lesson: Lesson
    number: int
    state: State


Row = ContinueRow | ChapterRow | LessonRow


def rows(
    course: Course,
    passed: Set[str],
    place: tuple[str, int] | None,
    unfolded: Set[str],
    wanted: str = "",
) -> list[Row]:
    """The rows to show, top to bottom.

    unfolded: ids of chapters whose lessons show. wanted: words that a lesson's title, id, goal or
    chapter must all hold; then only such lessons and their chapters show.
    """
    words = wanted.casefold().split()
    found: list[Row] = []
    if not words:
        found += _continue_row(course, passed, place)
    for chapter in course.chapters:
        lessons = [
            LessonRow(chapter, lesson, number, state(lesson, passed))
            for number, lesson in enumerate(chapter.lessons, 1)
            if _matches(chapter, lesson, words)
        ]
        if not lessons and words:
            continue
        show = bool(words) or chapter.id in unfolded
        done = sum(lesson.id in passed for lesson in chapter.lessons)
        found.append(ChapterRow(chapter, done, show))
        if show:
            found += lessons
    return found


def _continue_row(
    course: Course, passed: Set[str], place: tuple[str, int] | None
) -> list[ContinueRow]:
    target = continue_at(course, passed, place)
    if target is None:
        return []
    lesson, step = target
    return [ContinueRow(lesson, step, place is not None or bool(passed))]


def _matches(chapter: Chapter, lesson: Lesson, words: list[str]) -> bool:
    text = f"{lesson.title} {lesson.id} {lesson.goal} {chapter.title}".casefold()
    return all(word in text for word in words)
