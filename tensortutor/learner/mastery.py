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


class Level(Enum):
    """How well a lesson is known. `value` is the word for it.

    HELPED: a hint was opened. A prediction that was wrong is no help: it is meant to surprise.
    """

    NEW = "not begun"
    BEGUN = "begun"
    KNOWN = "known by another"
    HELPED = "passed with help"
    PASSED = "passed"
    WELL = "known well"


@dataclass(frozen=True)
class Standing:
    """A learner and a lesson. seconds: spent in the app with a key pressed now and then.

    known_by: for KNOWN, the id of the lesson whose passing counts for this one, else "".
    """

    lesson: Lesson
    level: Level
    seconds: float
    attempts: int
    hints: int
    questions: int
    right_at_first: int
    known_by: str = ""

    @property
    def why(self) -> str:
        """What keeps a passed lesson from being known well, or ""."""
        if self.level not in (Level.HELPED, Level.PASSED):
            return ""
        reasons = []
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
    passed = {id for id, record in records.items() if record.passed_at}
    known = credit(course, passed, progress.begun_again()).known
    return tuple(
        ChapterStanding(
            chapter,
            tuple(
                _standing(lesson, records.get(lesson.id, Record()), known.get(lesson.id, ""))
                for lesson in chapter.lessons
            ),
        )
        for chapter in course.chapters
    )


def _standing(lesson: Lesson, record: Record, known_by: str) -> Standing:
    return Standing(
        lesson, _level(record, known_by), record.seconds, record.attempts, record.hints,
        record.questions, record.right_at_first, known_by,
    )  # fmt: skip


def _level(record: Record, known_by: str) -> Level:
    if known_by:
        return Level.KNOWN
    if not record.passed_at:
        begun = record.seconds or record.attempts or record.questions or record.steps
        return Level.BEGUN if begun else Level.NEW
    if record.hints:
        return Level.HELPED
    right = record.right_at_first >= SURE_ANSWERS * record.questions
    return Level.WELL if right and record.attempts <= SURE_ATTEMPTS else Level.PASSED


def duration(seconds: float) -> str:
    """A time in words: 40 s, 12 min, 3 h 05 min."""
    minutes = round(seconds / 60)
    if seconds < 60:
        return f"{round(seconds)} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"
