"""Prerequisites, and the lesson that one continues: they exist, come earlier in the reading order,
and never lead in a circle."""

from collections import deque
from collections.abc import Iterator, Mapping, Sequence

from tensortutor.course.model import Lesson
from tensortutor.course.problems import listed, nearest


def prerequisite_problems(lessons: Sequence[Lesson]) -> Iterator[tuple[Lesson, str, str]]:
    """(lesson, the id it requires, what is wrong), for lessons in reading order."""
    place = {lesson.id: n for n, lesson in enumerate(lessons)}
    requires = {lesson.id: _needed(lesson) for lesson in lessons}
    circles: set[frozenset[str]] = set()
    for lesson in lessons:
        for required in requires[lesson.id]:
            verb = "requires" if required in lesson.requires else "continues"
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
                        f"{verb} {required!r}, which comes later: move one of the two, "
                        "or name something earlier",
                    )
                elif frozenset(back) not in circles:
                    circles.add(frozenset(back))
                    circle = " -> ".join((lesson.id, *back))
                    yield lesson, required, f"{verb} itself in a circle: {circle}"
            elif verb == "continues":
                yield lesson, required, f"continues {required!r}, which is not in requires: add it"


def _needed(lesson: Lesson) -> tuple[str, ...]:
    """What it requires, and what it continues."""
    more = [lesson.continues] if lesson.continues not in ("", *lesson.requires) else []
    return (*lesson.requires, *more)


def continued_problem(lesson: Lesson) -> str:
    """What keeps a lesson from going on with the program of the one that it continues, or ""."""
    if lesson.continued is None:
        return ""
    if not has_exercise(lesson.continued):
        return f"continues {lesson.continues!r}, which has no `python exercise` with a solution"
    if not has_exercise(lesson):
        return f"continues {lesson.continues!r}, and has no `python exercise` with what is new"
    return ""


def has_exercise(lesson: Lesson) -> bool:
    """Whether it has a program to complete, and a solution."""
    tasks = (step for step in lesson.steps if step.pane and step.pane.kind == "exercise")
    return any(step.solution is not None for step in tasks)


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
