"""Small lessons and courses, built without files."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from tensortutor.course.check_file import CheckFile, Declared
from tensortutor.course.material import Pane, Prose, Step
from tensortutor.course.model import Chapter, Course, Lesson

STARTER = "def answer():\n    ...\n"
WALK = "print('walk')\n"


def lesson(
    id: str = "tensors/first", requires: Sequence[str] = (), shows: Sequence[str] = ()
) -> Lesson:
    """Three steps: prose, a `run` pane, the judged one."""
    return Lesson(
        id=id,
        title=id.title(),
        goal="A goal.",
        requires=tuple(requires),
        minutes=5,
        device="any",
        steps=(
            Step("Insight", (Prose("Text.", 1),), 1),
            Step("See it run", (Pane("run", WALK, 2, "walk"),), 2),
            Step("Practice", (Pane("exercise", STARTER, 3),), 3, ("a", "b"), "solution"),
        ),
        judge=CheckFile(
            Path("judge.py"), "", ("a check",), (), (), shows=tuple(Declared(s, 1) for s in shows)
        ),
        path=Path("lesson.md"),
    )


def course(
    requires: Mapping[str, Sequence[str]], shows: Mapping[str, Sequence[str]] | None = None
) -> Course:
    """One chapter; `requires` maps each lesson's slug to those it needs, `shows` to those that
    passing it is evidence for."""

    def ids(slugs: Sequence[str]) -> list[str]:
        return [f"c/{slug}" for slug in slugs]

    lessons = tuple(
        lesson(f"c/{slug}", ids(needs), ids((shows or {}).get(slug, ())))
        for slug, needs in requires.items()
    )
    return Course("A course", (Chapter("c", 1, "C", "", lessons),), Path("."))
