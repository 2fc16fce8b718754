"""What is due, computed from the record alone."""

from datetime import datetime, timedelta, timezone

import pytest

from tensortutor.course.catalog import open_course
from tensortutor.learner import progress as progress_module
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.review import Review, cards, due, next_due, record_drill
from tests.course.test_drills import DRILLS, FILE
from tests.course.tiny import copy_of_tiny
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


def drills_course(folder):
    """The tiny course with one drill."""
    root = copy_of_tiny(folder)
    (root / FILE).write_text(DRILLS)
    return root


def first_question(of):
    """Step and number of the first question of a course's first lesson."""
    steps = of.lessons[0].steps
    return next(index for index, step in enumerate(steps) if step.quizzes), 0


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
    assert due(course(), progress, START).cards == ()
    assert len(due(course(), progress, START + 400 * DAY).cards) == 1


def test_so_many_new_cards_are_asked_on_one_day_and_the_others_wait(progress, at):
    questions = [
        (lesson.id, index, number)
        for lesson in course().lessons
        for index, step in enumerate(lesson.steps)
        for number in range(len(step.quizzes))
    ]
    at(START)
    for question in questions:
        progress.record_answer(*question, "x", True)
    later = START + 40 * DAY
    first = due(course(), progress, later, new_per_day=4)
    assert (len(first.cards), first.words) == (4, f"4 of {len(questions)} new cards today")
    at(later)
    for card in first.cards[:3]:
        progress.record_answer(card.lesson.id, card.step, card.quiz, "x", True)
    rest = len(questions) - 3
    again = due(course(), progress, later, new_per_day=4)
    assert (again.cards, again.words) == (first.cards[3:], f"1 of {rest} new cards today")
    # What was looked at before is due whatever the number of new cards.
    much_later = due(course(), progress, later + 400 * DAY, new_per_day=0)
    assert len(much_later.cards) == 3
    assert much_later.words == f"0 of {rest} new cards today"
    assert due(course(), progress, later + DAY, new_per_day=50).words == ""


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


def test_a_drill_comes_back_once_its_lesson_was_passed(progress, at, tmp_path):
    drilled = open_course(drills_course(tmp_path))
    at(START)
    assert cards(drilled, progress) == []
    progress.mark_passed("basics/means")
    (card,) = cards(drilled, progress)
    assert card.drill is not None
    assert (card.is_new, card.is_question, card.is_exercise) == (True, False, False)
    assert card.due > START + DAY
    at(card.due)
    record_drill(progress, card.drill, "x", correct=True)
    (later,) = cards(drilled, progress)
    assert later.due > card.due + DAY
    assert not later.is_new


def test_answers_to_drills_are_no_answers_of_their_lesson(progress, tmp_path):
    drilled = open_course(drills_course(tmp_path))
    progress.mark_passed("basics/means")
    (card,) = cards(drilled, progress)
    record_drill(progress, card.drill, "x", correct=False)
    assert progress.answers("basics/means") == {}
    assert progress.records()["basics/means"].questions == 0


def test_a_broken_file_of_drills_takes_no_other_card_away(progress, at, asking, tmp_path):
    root = drills_course(tmp_path)
    (root / FILE).write_text("[[drills")
    progress.mark_passed("basics/means")
    progress.record_answer("basics/means", *first_question(open_course(root)), "x", True)
    assert [card.is_question for card in cards(open_course(root), progress)] == [True]
