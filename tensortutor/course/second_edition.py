"""The rules of a lesson's second edition that can be told without running it."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from tensortutor.course.key_lines import key_lines, programs
from tensortutor.course.material import Prose
from tensortutor.course.model import JUDGED, Lesson
from tensortutor.course.problems import Problem, listed, nearest
from tensortutor.course.reading_time import LONGEST
from tensortutor.course.task_sentences import Task, uncovered

DRAWS = re.compile(
    r"^\s*from tensortutor\.lab import .*\b(plot|image|show|hist|contour|regions|grid|graph)\b"
)
EXPERIMENT = re.compile(
    r"\b(?:run (?:it |this |the program )?(?:once more|again)|and run (?:it|this)\b)", re.IGNORECASE
)
"""How prose proposes an experiment."""


def edition_problems(lesson: Lesson, root: Path) -> Iterator[Problem]:
    """What keeps a lesson from the second edition; nothing for one of the first.

    root: the course's folder. The check file must have been read thoroughly.
    """
    if lesson.edition < 2:
        return
    file = lesson.path.relative_to(root).as_posix()
    judge = lesson.judge.path.relative_to(root).as_posix()
    if lesson.minutes > LONGEST and not lesson.long:
        yield Problem(
            file, 1,
            f"the lesson takes {lesson.minutes} minutes, {LONGEST} are the most: split it, or give "
            'the reason for its length in the front matter: long = "..."',
        )  # fmt: skip
    yield from (Problem(file, *found) for found in _experiments(lesson))
    if not any(step.looks for step in lesson.steps) and not _draws(lesson):
        yield Problem(
            file, 1,
            "the lesson shows no picture: draw one with tensortutor.lab, or send the reader to an "
            "instrument with a `look` fence",
        )  # fmt: skip
    task = next((s for s in lesson.steps if s.pane is not None and s.pane.kind in JUDGED), None)
    if task is None or task.pane is None or task.solution is None:
        return  # reported when the lesson was read
    for beside, line, message in uncovered(Task(task), lesson.judge):
        yield Problem(judge if beside else file, line, message)
    if all(answer.hint != 1 for answer in lesson.judge.hinted):
        yield Problem(
            judge, 1,
            "nobody has followed the first hint: write the answer that it leads to, "
            "@hinted(1, reaches=check_function)",
        )  # fmt: skip
    shown = [declared.text for declared in lesson.judge.key_lines_shown]
    yield from (Problem(file, *found) for found in key_lines(lesson, shown))


def evidence_problems(lessons: Sequence[Lesson], root: Path) -> Iterator[Problem]:
    """Check files that name lessons or mutants which the course has not, or their own lesson."""
    known = [lesson.id for lesson in lessons]
    mutants = {lesson.id: [v.name for v in lesson.judge.mutants] for lesson in lessons}
    for lesson in lessons:
        path = lesson.judge.path.relative_to(root).as_posix()
        of_mutants = ((v.misconception, v.line) for v in lesson.judge.mutants if v.misconception)
        for id, line in (*((s.text, s.line) for s in lesson.judge.shows), *of_mutants):
            if id not in known:
                yield Problem(
                    path,
                    line,
                    f"there is no lesson {id!r}; the nearest is {nearest(id, known)[0]!r}",
                )
        for mutant in lesson.judge.mutants:
            there = mutants.get(mutant.misconception)
            # A file without mutants may be one that cannot be read, which is told elsewhere.
            if mutant.like and there and mutant.like not in there:
                yield Problem(
                    path,
                    mutant.line,
                    f"{mutant.misconception} has no mutant {mutant.like!r}; it has {listed(there)}",
                )
        for shown in lesson.judge.shows:
            if shown.text == lesson.id:
                yield Problem(path, shown.line, "shows names the lesson itself: remove it")


def _experiments(lesson: Lesson) -> Iterator[tuple[int, str]]:
    """Experiments that are told in prose."""
    for step in lesson.steps:
        if step.pane is not None and step.pane.kind in JUDGED:
            continue
        for block in step.blocks:
            if isinstance(block, Prose) and (found := EXPERIMENT.search(block.markdown)):
                line = block.line + block.markdown.count("\n", 0, found.start())
                yield line, f"{found[0]!r} proposes an experiment: make it a `try` fence"


def _draws(lesson: Lesson) -> bool:
    """A program of the lesson draws."""
    return any(DRAWS.search(line) for _, source in programs(lesson) for line in source.split("\n"))
