"""What is due, computed from the record alone."""

from datetime import datetime, timedelta, timezone

import pytest

from tensortutor.learner import progress as progress_module
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.review import Review, cards, due, next_due
from tests.ui.courses import course

DAY = timedelta(days=1)


@pytest.fixture
def progress(own_home):
    return Progress.open(Paths.find())


@pytest.fixture
def at(monkeypatch):
    """Set the record's clock."""

    def set_clock(time):
        stamp = time.isoformat(timespec="seconds")
        monkeypatch.setattr(progress_module, "_now", lambda: stamp)

    return set_clock


START = datetime(2026, 3, 1, 12, tzinfo=timezone.utc)


@pytest.fixture
def asking():
    """The first lesson with a question: its id, step and quiz."""
    for lesson in course().lessons:
        for index, step in enumerate(lesson.steps):
            if step.quizzes:
                return lesson.id, index, 0
    raise AssertionError


def test_nothing_done_nothing_due(progress):
    assert cards(course(), progress) == []


def test_a_right_answer_comes_back_later_than_a_wrong_one(progress, at, asking):
    at(START)
    progress.record_answer(*asking, "x", True)
    (card,) = cards(course(), progress)
    assert card.due > START + DAY
    assert next_due([Review(START, 1)]) < card.due


def test_only_the_first_answer_of_a_day_counts(progress, at, asking):
    at(START)
    progress.record_answer(*asking, "x", False)
    first = cards(course(), progress)[0].due
    progress.record_answer(*asking, "y", True)
    (card,) = cards(course(), progress)
    assert (card.due, card.reviews) == (first, 1)


def test_intervals_grow_with_right_answers(progress, at, asking):
    time, gaps = START, []
    for _ in range(4):
        at(time)
        progress.record_answer(*asking, "x", True)
        (card,) = cards(course(), progress)
        gaps.append(card.due - time)
        time = card.due + timedelta(hours=1)
    assert gaps == sorted(gaps)
    assert gaps[-1] > 4 * gaps[0]


def test_due_is_a_matter_of_the_clock(progress, at, asking):
    at(START)
    progress.record_answer(*asking, "x", True)
    assert due(course(), progress, START) == []
    assert len(due(course(), progress, START + 400 * DAY)) == 1


def test_an_exercise_is_a_card_once_it_was_passed(progress, at):
    at(START)
    id = course().lessons[0].id
    progress.record_attempt(id, False, 0, 3)
    assert cards(course(), progress) == []
    progress.record_attempt(id, True, 3, 3)
    progress.mark_passed(id)
    (hard,) = cards(course(), progress)
    assert hard.is_exercise
    assert hard.lesson.steps[hard.step] is hard.lesson.task


def test_questions_that_are_gone_are_left_out(progress, at):
    at(START)
    id = course().lessons[0].id
    progress.record_answer(id, 99, 0, "x", True)
    progress.record_answer("no/lesson", 0, 0, "x", True)
    assert cards(course(), progress) == []


def test_a_clock_that_was_set_back_does_no_harm(progress, at, asking):
    at(START)
    progress.record_answer(*asking, "x", True)
    at(START - 10 * DAY)
    progress.record_answer(*asking, "x", True)
    (card,) = cards(course(), progress)
    assert card.reviews == 2
