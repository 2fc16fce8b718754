"""`verify --mutate`: how many single edits of the solutions the checks notice."""

import time
from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby

from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.course.model import Course, Lesson
from tensortutor.course.mutants import LibraryMissing
from tensortutor.course.mutation_testing import (
    Excused,
    Fate,
    Killed,
    Survived,
    Unsound,
    count,
    survivors,
)
from tensortutor.protocol.wire import to_wire

WANTED = 95.0
"""Per cent of the mutants that are no equivalents."""
ADVICE = (
    "Give the check an input that tells the two apart. If there is none, say so in the check file: "
    'equivalent("BEFORE", "AFTER", because="...")'
)


def try_mutants(
    session: Session,
    course: Course,
    lessons: Sequence[Lesson],
    expected: int,
    jobs: int,
) -> bool:
    """Judge the mutants of lessons and tell their fates.

    expected: how many there are. Returns whether enough of them are noticed, and nothing is wrong
    with what the check files say of them.
    """
    begun = time.monotonic()
    tally = _Tally(session, expected)
    if lessons:
        runner = session.runner(preload=True)
        fates = survivors(course, lessons, runner, jobs=jobs, device=runner.device)
        for lesson, of_lesson in groupby(fates, _lesson_of):
            tally.add(lesson, of_lesson)
    tally.tell(time.monotonic() - begun)
    return tally.whole.holds


def expected_mutants(lessons: Iterable[Lesson]) -> int:
    """How many mutants there will be at most. Raises Refused if they cannot be made here."""
    try:
        return count(lessons, device="cuda")
    except LibraryMissing as error:
        raise Refused(str(error)) from None


def _lesson_of(fate: Fate) -> str:
    return fate.lesson


class _Score:
    """What became of some mutants."""

    def __init__(self) -> None:
        self.counts: dict[type, int] = dict.fromkeys((Killed, Survived, Excused, Unsound), 0)
        self.seconds = 0.0

    def take(self, fate: Fate) -> None:
        self.counts[type(fate)] += 1
        self.seconds += getattr(fate, "seconds", 0.0)

    @property
    def share(self) -> float:
        """Per cent killed of those that are no equivalents."""
        killed, survived = self.counts[Killed], self.counts[Survived]
        return 100 * killed / (killed + survived) if killed + survived else 100.0

    @property
    def holds(self) -> bool:
        return self.share >= WANTED and not self.counts[Unsound]

    @property
    def mark(self) -> tuple[str, str]:
        """A sign and a word, and their colour."""
        if self.counts[Unsound]:
            return "✗ failed", "red"
        return ("• survived", "yellow") if self.counts[Survived] else ("✓ passed", "green")

    def __str__(self) -> str:
        killed, survived, excused = (self.counts[k] for k in (Killed, Survived, Excused))
        beside = f", {excused} equivalent" if excused else ""
        return f"{killed} of {killed + survived} mutants killed ({self.share:.1f} %){beside}"


class _Tally:
    """Prints what survives in full, the rest as sums."""

    def __init__(self, session: Session, expected: int) -> None:
        self._session = session
        self._printer = session.printer
        self._expected = expected
        self._seen = 0
        self.whole = _Score()

    def add(self, lesson: str, fates: Iterator[Fate]) -> None:
        """The mutants of one lesson, as they come."""
        score = _Score()
        for fate in fates:
            score.take(fate)
            self.whole.take(fate)
            self._tell_one(fate)
        if self._session.json:
            return
        self._printer.line(
            f"{self._printer.paint(*score.mark)}  {lesson}: {score}, {score.seconds:.1f} s"
        )

    def _tell_one(self, fate: Fate) -> None:
        self._seen += 1
        if self._session.json:
            name = type(fate).__name__.lower()
            self._printer.json({"event": name, **to_wire(fate)})
            return
        if isinstance(fate, Survived):
            self._printer.line(f"{fate.path}:{fate.line}: survived: {fate.edit}")
        elif isinstance(fate, Unsound):
            self._printer.line(str(fate))
        else:
            self._printer.progress(self._seen, self._expected, f"{fate.lesson}: {fate.edit}")

    def tell(self, seconds: float) -> None:
        """The sum."""
        if self._session.json:
            return
        if self.whole.counts[Survived]:
            self._printer.line(ADVICE)
        self._printer.line(f"{self.whole}; at least {WANTED:.0f} % wanted ({seconds:.0f} s)")
