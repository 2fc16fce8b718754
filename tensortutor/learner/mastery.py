"""How a learner stands in each lesson: what is known well, what is not, and what it took.

Pure rules over the record; both faces show them.
"""

from dataclasses import dataclass
from enum import Enum

from tensortutor.course.model import Chapter, Course, Lesson
from tensortutor.learner.progress import Progress, Record
from tensortutor.learner.unlock import credit

SURE_ATTEMPTS = 3
"""Who passes within so many checks, unaided, knows a lesson well."""
SURE_ANSWERS = 0.75
"""And gets so large a share of the questions right at first."""
ANSWERED = "you skipped it and answered a question of it"
"""Why a lesson is known that no passing shows to be."""


class Level(Enum):
    """How well a lesson is known. `value` is the word for it.

    HELPED: a hint was opened, or the solution before the lesson was passed. A prediction that was
    wrong is no help: it is meant to surprise. KNOWN: another lesson's checks are evidence for it,
    or it was skipped and one of its questions answered right.
    """

    NEW = "not begun"
    BEGUN = "begun"
    KNOWN = "known"
    HELPED = "passed with help"
    PASSED = "passed"
    WELL = "known well"


@dataclass(frozen=True)
class Standing:
    """A learner and a lesson. seconds: spent in the app with a key pressed now and then.

    known_by: for KNOWN, the id of the lesson whose passing is evidence for this one, "" if it is
    known by an answer. solution: it was opened before the lesson was passed.
    """

    lesson: Lesson
    level: Level
    seconds: float
    attempts: int
    hints: int
    questions: int
    right_at_first: int
    known_by: str = ""
    solution: bool = False

    @property
    def why(self) -> str:
        """What makes a lesson known, or keeps a passed one from being known well, or ""."""
        if self.level is Level.KNOWN:
            return f"you passed {self.known_by}" if self.known_by else ANSWERED
        if self.level not in (Level.HELPED, Level.PASSED):
            return ""
        reasons = []
        if self.solution:
            reasons.append("the solution")
        if self.hints:
            reasons.append(f"{self.hints} hint{'s' if self.hints > 1 else ''}")
        if self.attempts > SURE_ATTEMPTS:
            reasons.append(f"{self.attempts} checks")
        if self.questions and self.right_at_first < SURE_ANSWERS * self.questions:
            reasons.append(f"{self.right_at_first} of {self.questions} answers right at first")
        return ", ".join(reasons)


@dataclass(frozen=True)
class ChapterStanding:
    """A learner and a chapter."""

    chapter: Chapter
    lessons: tuple[Standing, ...]

    def count(self, *levels: Level) -> int:
        """How many lessons are at one of these levels."""
        return sum(standing.level in levels for standing in self.lessons)

    @property
    def passed(self) -> int:
        """How many lessons are passed."""
        return self.count(Level.HELPED, Level.PASSED, Level.WELL)

    @property
    def seconds(self) -> float:
        """Time spent in the chapter."""
        return sum(standing.seconds for standing in self.lessons)


def standings(course: Course, progress: Progress) -> tuple[ChapterStanding, ...]:
    """The learner's standing, chapter by chapter. Raises StorageError."""
    records = progress.records()
    known = credit(course, progress.history()).known
    return tuple(
        ChapterStanding(
            chapter,
            tuple(
                _standing(lesson, records.get(lesson.id, Record()), known.get(lesson.id))
                for lesson in chapter.lessons
            ),
        )
        for chapter in course.chapters
    )


def _standing(lesson: Lesson, record: Record, known_by: str | None) -> Standing:
    return Standing(
        lesson, _level(record, known_by is not None), record.seconds, record.attempts, record.hints,
        record.questions, record.right_at_first, known_by or "", bool(record.solution),
    )  # fmt: skip


def _level(record: Record, is_known: bool) -> Level:
    if is_known:
        return Level.KNOWN
    if not record.passed_at:
        begun = record.seconds or record.attempts or record.questions or record.steps
        return Level.BEGUN if begun else Level.NEW
    if record.hints or record.solution:
        return Level.HELPED
    right = record.right_at_first >= SURE_ANSWERS * record.questions
    return Level.WELL if right and record.attempts <= SURE_ATTEMPTS else Level.PASSED


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3 h 05 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
