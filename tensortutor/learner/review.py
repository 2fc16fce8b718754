"""Spaced repetition: which questions and exercises are due, scheduled by FSRS.

Nothing is stored for it. The record keeps every answer and every check with its time, and the
schedule is computed from them: the first answer of a day is a review of its question, the checks
of a day are a review of their exercise. Losing the schedule is impossible, and a lesson that was
answered before there was a schedule has one.

Rules: a question is a card once it was answered, an exercise once its lesson was passed. Right at
once is "good"; a pass after failed checks is "hard"; wrong, or not passed that day, is "again".
A drill is a card once its lesson was passed, as if it had been solved on that day.
A card is new until it was looked at on a second day. Of the new ones only so many are due on one
day (in UTC, as all days here): an afternoon of lessons is not asked back on a single morning.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import TYPE_CHECKING

from tensortutor.course.drills import Drill, read_drills
from tensortutor.course.model import Course, Lesson
from tensortutor.learner.settings import NEW_PER_DAY

if TYPE_CHECKING:
    from tensortutor.learner.progress import Progress

EXERCISE = -1
"""Stands for a question's number where the card is the exercise."""
DRILL = -2
"""Stands for it where the card is a drill."""


@dataclass(frozen=True)
class Review:
    """One look at a card. rating: 1 again, 2 hard, 3 good, as FSRS counts."""

    at: datetime
    rating: int


@dataclass(frozen=True)
class Card:
    """A question, the exercise of a lesson (quiz is EXERCISE) or a drill, and when it is due (UTC).

    second: when it was looked at again for the first time.
    """

    lesson: Lesson
    step: int
    quiz: int
    due: datetime
    reviews: int
    second: datetime | None = None
    drill: Drill | None = None

    @property
    def is_new(self) -> bool:
        """It was not looked at again since the day on which it became a card."""
        return self.second is None

    @property
    def is_exercise(self) -> bool:
        """The card is the lesson's exercise."""
        return self.quiz == EXERCISE

    @property
    def is_question(self) -> bool:
        """The card is a question of the lesson's text."""
        return self.quiz >= 0


@dataclass(frozen=True)
class Due:
    """What is asked now, the longest due first.

    new: how many of the cards are new. waiting: how many new cards are due, with those that wait
    for another day.
    """

    cards: tuple[Card, ...] = ()
    new: int = 0
    waiting: int = 0

    @property
    def words(self) -> str:
        """How many of the new cards are asked today, "" if all are."""
        if self.new == self.waiting:
            return ""
        return f"{self.new} of {self.waiting} new cards today"


def due(
    course: Course,
    progress: Progress,
    now: datetime | None = None,
    new_per_day: int = NEW_PER_DAY,
) -> Due:
    """What is due, with no more than `new_per_day` new cards on one day. Raises StorageError."""
    now = now or datetime.now(timezone.utc)
    all_cards = cards(course, progress)
    today = sum(card.second is not None and card.second.date() == now.date() for card in all_cards)
    found = [card for card in all_cards if card.due <= now]
    new = [card for card in found if card.is_new]
    asked = new[: max(0, new_per_day - today)]
    old = [card for card in found if not card.is_new]
    both = sorted([*old, *asked], key=lambda card: card.due)
    return Due(tuple(both), len(asked), len(new))


def cards(course: Course, progress: Progress) -> list[Card]:
    """All cards, the earliest due first. Those of questions that are gone are left out."""
    lessons = {lesson.id: lesson for lesson in course.lessons}
    histories = [*question_reviews(progress), *exercise_reviews(progress)]
    found = []
    for (id, step, quiz), reviews in histories:
        lesson = lessons.get(id)
        if lesson is None:
            continue
        if quiz == EXERCISE:
            step = lesson.steps.index(lesson.task)
        elif step >= len(lesson.steps) or quiz >= len(lesson.steps[step].quizzes):
            continue
        found.append(_card(lesson, step, quiz, reviews))
    found += drill_cards(course, progress)
    return sorted(found, key=lambda card: card.due)


def _card(
    lesson: Lesson, step: int, quiz: int, reviews: list[Review], drill: Drill | None = None
) -> Card:
    times = sorted(review.at for review in reviews)
    second = times[1] if len(times) > 1 else None
    return Card(lesson, step, quiz, next_due(reviews), len(reviews), second, drill)


def drill_cards(course: Course, progress: Progress) -> list[Card]:
    """The drills of lessons that were passed, in the course's order.

    What is wrong with a file of drills is told by `verify`; its other drills are asked.
    """
    passed = {
        id: read_time(record.passed_at)
        for id, record in progress.records().items() if record.passed_at
    }  # fmt: skip
    lessons = {lesson.id: lesson for lesson in course.lessons}
    answered = {key[0]: reviews for key, reviews in question_reviews(progress)}
    drills, _ = read_drills(course, {id.partition("/")[0] for id in passed})
    found = []
    for drill in drills:
        if drill.lesson in passed:
            first = Review(passed[drill.lesson], 3)
            reviews = [first, *answered.get(drill_key(drill), [])]
            found.append(_card(lessons[drill.lesson], 0, DRILL, reviews, drill))
    return found


def drill_key(drill: Drill) -> str:
    """What answers to a drill are recorded under, in the place of a lesson."""
    return f"drill:{drill.id}"


def record_drill(progress: Progress, drill: Drill, line: str, correct: bool) -> None:
    """A line was written for a drill, and checked. Raises StorageError."""
    progress.record_answer(drill_key(drill), 0, 0, line, correct)


Key = tuple[str, int, int]


def question_reviews(progress: Progress) -> list[tuple[Key, list[Review]]]:
    """The first answer of each day, question by question."""
    days: dict[Key, dict[str, Review]] = {}
    for lesson, at, step, quiz, correct in progress.all_answers():
        time = read_time(at)
        day = time.date().isoformat()
        days.setdefault((lesson, step, quiz), {}).setdefault(day, Review(time, 3 if correct else 1))
    return [(key, list(reviews.values())) for key, reviews in days.items()]


def exercise_reviews(progress: Progress) -> list[tuple[Key, list[Review]]]:
    """The checks of each day, lesson by lesson, for lessons that were passed."""
    passed = progress.passed()
    days: dict[str, dict[str, tuple[datetime, list[bool]]]] = {}
    for lesson, at, well in progress.all_attempts():
        time = read_time(at)
        day = days.setdefault(lesson, {}).setdefault(time.date().isoformat(), (time, []))
        day[1].append(bool(well))
    return [
        ((lesson, 0, EXERCISE), [Review(time, rating(tries)) for time, tries in by_day.values()])
        for lesson, by_day in days.items() if lesson in passed
    ]  # fmt: skip


def rating(tries: list[bool]) -> int:
    """A day's checks as one rating; what came after the first pass does not count."""
    if not any(tries):
        return 1
    return 3 if tries[0] else 2


def next_due(reviews: Iterable[Review]) -> datetime:
    """When a card with these reviews is due. A clock that was set back is taken as it is."""
    from fsrs import Card as FsrsCard
    from fsrs import Rating, Scheduler

    # Steps of minutes are for vocabulary; here the next look is tomorrow at the soonest. Without
    # fuzz the same record gives the same schedule.
    scheduler = Scheduler(learning_steps=(), relearning_steps=(), enable_fuzzing=False)
    card = FsrsCard(card_id=0)
    for review in sorted(reviews, key=lambda one: one.at):
        card, _ = scheduler.review_card(card, Rating(review.rating), review.at)
    return card.due


def read_time(text: str) -> datetime:
    """A time of the record, in UTC."""
    time = datetime.fromisoformat(text)
    return time if time.tzinfo else time.replace(tzinfo=timezone.utc)
