"""A course as data. Everything here is frozen; `parse` and `catalog` make it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    # The list of lessons is shown without them.
    from tensortutor.course.check_file import CheckFile
    from tensortutor.course.material import Step

PANES = ("run", "predict", "derive", "fix", "exercise")
JUDGED = ("fix", "exercise")


@dataclass(frozen=True)
class Lesson:
    """One lesson file and its judge. id: chapter/lesson, without the numbers.

    edition: which rules it follows. long: why it may take longer than others, or "". continues: the
    id of the lesson whose program its exercise goes on with, or ""; continued: that lesson, None as
    well if the course has none of this id before this one.

    A lesson made by `later` reads its steps, its judge and what it shows, and computes its minutes,
    when they are first asked for: the list of chapters needs none of them.
    """

    id: str
    title: str
    goal: str
    requires: tuple[str, ...]
    minutes: int
    device: str
    steps: tuple[Step, ...]
    judge: CheckFile
    path: Path
    limits: tuple[tuple[str, float], ...] = ()
    edition: int = 1
    long: str = ""
    continues: str = ""
    continued: Lesson | None = None

    @classmethod
    def later(
        cls,
        read: Callable[[], Lesson],
        read_shows: Callable[[], tuple[str, ...]] = tuple,
        count_minutes: Callable[[], int] = int,
        **known: Any,
    ) -> Lesson:
        """A lesson of which the front matter is known; `read` gives the whole lesson.

        Asking for steps or judge raises what `read` raises. read_shows: gives `shows` without them.
        count_minutes: gives `minutes`, where they are not among the known.
        """
        lesson = object.__new__(cls)
        # Straight into the instance: a frozen dataclass refuses assignments, its own too.
        vars(lesson).update(known, _read=read, _read_shows=read_shows, _count_minutes=count_minutes)
        return lesson

    def __getattr__(self, name: str) -> Any:
        # Called only for what is not there yet.
        kept = vars(self)
        if "_read" in kept and name == "minutes":
            kept["minutes"] = kept["_count_minutes"]()
        elif "_read" in kept and name in ("steps", "judge"):
            whole = kept["_read"]()
            kept.update(steps=whole.steps, judge=whole.judge)
        else:
            raise AttributeError(name)
        return kept[name]

    @property
    def shows(self) -> tuple[str, ...]:
        """The ids of the lessons for which passing this one is evidence."""
        kept = vars(self)
        if "judge" in kept:
            return tuple(shown.text for shown in self.judge.shows)
        if "_shows" not in kept:
            kept["_shows"] = kept["_read_shows"]()
        return tuple(kept["_shows"])

    @property
    def chapter(self) -> str:
        """The chapter's part of the id."""
        return self.id.partition("/")[0]

    @property
    def slug(self) -> str:
        """The lesson's part of the id."""
        return self.id.partition("/")[2]

    @property
    def task(self) -> Step:
        """The step that the checks judge: the one with an exercise or a program to fix."""
        return next(s for s in self.steps if s.pane is not None and s.pane.kind in JUDGED)

    def program(self, part: str, earlier: str | None = None) -> str:
        """The whole program that a starter, a solution or another answer of this lesson is part of.

        part: what the lesson's file holds of it. earlier: the program that it goes on with; None
        for the solution of the lesson that this one continues.
        """
        if self.continued is None:
            return part
        before = self.continued.solution if earlier is None else earlier
        return f"{before.rstrip()}\n\n\n# New in {self.id}\n\n{part}"

    @property
    def solution(self) -> str:
        """The author's answer to the task, as a whole program."""
        return self.program(self.task.solution or "")


@dataclass(frozen=True)
class Chapter:
    """A folder of lessons. id: the folder's name without its number."""

    id: str
    number: int
    title: str
    blurb: str
    lessons: tuple[Lesson, ...]


@dataclass(frozen=True)
class Course:
    """Chapters in order."""

    title: str
    chapters: tuple[Chapter, ...]
    root: Path

    @property
    def lessons(self) -> tuple[Lesson, ...]:
        """All lessons, in reading order."""
        return tuple(lesson for chapter in self.chapters for lesson in chapter.lessons)
