"""Prerequisites: they exist, come earlier in the reading order, and never lead in a circle."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from tensortutor.course.model import Lesson
from tensortutor.course.problems import listed, nearest


def prerequisite_problems(lessons: Sequence[Lesson]) -> Iterator[tuple[Lesson, str, str]]:
    """(lesson, the id it requires, what is wrong), for lessons in reading order."""
    place = {lesson.id: n for n, lesson in enumerate(lessons)}
    requires = {lesson.id: lesson.requires for lesson in lessons}
    circles: set[frozenset[str]] = set()
    for lesson in lessons:
        for required in lesson.requires:
            if required not in place:
                near = listed(nearest(required, list(place), 3), "or")
                yield lesson, required, f"there is no lesson {required!r}; the nearest are {near}"
            elif place[required] >= place[lesson.id]:
                # Every circle has an edge that points forward, so looking at those is enough.
                back = way(requires, required, lesson.id)
                if not back:
                    yield (
                        lesson,
                        required,
                        f"requires {required!r}, which comes later: move one of the two, "
                        "or require something earlier",
                    )
                elif frozenset(back) not in circles:
                    circles.add(frozenset(back))
                    circle = " -> ".join((lesson.id, *back))
                    yield lesson, required, f"requires itself in a circle: {circle}"


def way(requires: Mapping[str, Sequence[str]], start: str, end: str) -> tuple[str, ...]:
    """The shortest chain of prerequisites from `start` to `end`, both in it, or ()."""
    chains: deque[tuple[str, ...]] = deque([(start,)])
    seen = {start}
    while chains:
        chain = chains.popleft()
        if chain[-1] == end:
            return chain
        for following in requires.get(chain[-1], ()):
            if following not in seen:
                seen.add(following)
                chains.append((*chain, following))
    return ()
