"""What is known well and what is not, from the record alone."""

import pytest

from tensortutor.learner.mastery import Level, duration, standings
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tests.ui.courses import course


@pytest.fixture
def progress(own_home):
    return Progress.open(Paths.find())


def standing(progress):
    """The first lesson's."""
    return standings(course(), progress)[0].lessons[0]


@pytest.fixture
def lesson():
    return course().lessons[0].id


def test_nothing_done_is_not_begun(progress):
    assert standing(progress).level is Level.NEW


@pytest.mark.parametrize(
    "act",
    [
        lambda progress, id: progress.add_time(id, 3.0),
        lambda progress, id: progress.record_attempt(id, False, 0, 3),
        lambda progress, id: progress.record_answer(id, 0, 0, "3", False),
        lambda progress, id: progress.mark_step(id, 0),
    ],
)
def test_anything_done_is_a_beginning(progress, lesson, act):
    act(progress, lesson)
    assert standing(progress).level is Level.BEGUN


def test_passed_alone_and_soon_is_known_well(progress, lesson):
    progress.record_answer(lesson, 0, 0, "3", True)
    progress.record_attempt(lesson, False, 1, 3)
    progress.record_attempt(lesson, True, 3, 3)
    progress.mark_passed(lesson)
    assert standing(progress).level is Level.WELL


def test_attempts_after_passing_do_not_count(progress, lesson):
    progress.record_attempt(lesson, True, 3, 3)
    progress.mark_passed(lesson)
    for _ in range(9):
        progress.record_attempt(lesson, False, 0, 3)
    assert standing(progress).attempts == 1
    assert standing(progress).level is Level.WELL


def test_help_is_named(progress, lesson):
    progress.show_hint(lesson)
    for _ in range(4):
        progress.record_attempt(lesson, False, 1, 3)
    progress.record_attempt(lesson, True, 3, 3)
    progress.record_answer(lesson, 0, 0, "3", False)
    progress.record_answer(lesson, 0, 0, "4", True)
    progress.mark_passed(lesson)
    now = standing(progress)
    assert now.level is Level.HELPED
    assert (now.questions, now.right_at_first) == (1, 0)
    assert now.why == "1 hint, 5 checks, 0 of 1 answers right at first"


def test_a_surprised_guess_and_many_checks_are_no_help(progress, lesson):
    for _ in range(4):
        progress.record_attempt(lesson, False, 1, 3)
    progress.record_answer(lesson, 0, 0, "3", False)
    progress.record_attempt(lesson, True, 3, 3)
    progress.mark_passed(lesson)
    now = standing(progress)
    assert now.level is Level.PASSED
    assert now.level.value == "passed"
    assert now.why == "5 checks, 0 of 1 answers right at first"


def test_the_solution_is_help_until_the_lesson_is_passed(progress, lesson):
    progress.mark_solution_seen(lesson)
    progress.record_attempt(lesson, True, 3, 3)
    progress.mark_passed(lesson)
    assert (standing(progress).level, standing(progress).why) == (Level.HELPED, "the solution")
    progress.reset(lesson)
    progress.mark_passed(lesson)
    progress.mark_solution_seen(lesson)
    assert standing(progress).level is Level.WELL


def test_a_lesson_is_known_by_evidence_or_by_an_answer_and_says_by_which(progress, lesson):
    progress.record_asked(lesson, 0, 0, False)
    assert standing(progress).level is Level.NEW
    progress.record_asked(lesson, 0, 1, True)
    assert standing(progress).level is Level.KNOWN
    assert standing(progress).why == "you skipped it and answered a question of it"
    progress.mark_passed("autograd/hooks")
    assert standing(progress).why == "you passed autograd/hooks"


def test_times_add_up_in_a_chapter(progress, lesson):
    progress.add_time(lesson, 100.0)
    assert standings(course(), progress)[0].seconds == 100.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (3599, "1 h 00 min"), (11100, "3 h 05 min")],
)
def test_durations(seconds, words):
    assert duration(seconds) == words
