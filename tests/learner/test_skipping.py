"""Skipping ahead, without a face."""

import pytest

from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.skipping import (
    answer,
    is_locked,
    question_of,
    skipped,
    without_questions_left,
)
from tensortutor.learner.workspace import Workspace
from tensortutor.protocol.events import Judged
from tests.ui.courses import course

COURSE = course()
WRONG = {"choice": "a copy", "shape": [9], "text": "x", "order": ["step"]}
SHAPES, ACCUMULATION, HOOKS = COURSE.lessons


@pytest.fixture
def progress(own_home):
    return Progress.open(Paths.find())


def of(lesson, progress):
    question = question_of(lesson, progress)
    assert question is not None
    return question


def test_a_right_answer_makes_the_lesson_count_and_none_below(progress):
    assert skipped(COURSE, HOOKS, progress) == (ACCUMULATION, SHAPES)
    question = of(ACCUMULATION, progress)
    assert answer(question, question.quiz.answer, progress)
    assert not is_locked(COURSE, HOOKS, progress)
    assert skipped(COURSE, HOOKS, progress) == (SHAPES,)
    assert progress.history().answered == {ACCUMULATION.id}


def test_a_wrong_answer_changes_nothing_and_the_question_is_not_asked_again(progress):
    count = sum(len(step.quizzes) for step in SHAPES.steps)
    questions = []
    for _ in range(count):
        question = of(SHAPES, progress)
        questions.append((question.step, question.number))
        assert not answer(question, WRONG[question.quiz.kind], progress)
    assert len(set(questions)) == count
    assert question_of(SHAPES, progress) is None
    assert without_questions_left((ACCUMULATION, SHAPES), progress) == (SHAPES,)
    assert SHAPES in skipped(COURSE, HOOKS, progress)
    assert not progress.is_begun(SHAPES.id)
    assert progress.answers(SHAPES.id) == {}, "what the lesson itself asks has no answer yet"


def test_the_best_question_asks_for_a_prediction_that_was_not_made_yet(progress):
    first = of(ACCUMULATION, progress)
    step = ACCUMULATION.steps[first.step]
    assert step.pane is not None
    assert step.pane.kind == "predict"
    assert first.quiz.kind != "truth"
    progress.record_answer(ACCUMULATION.id, first.step, first.number, "4", False)
    other = of(ACCUMULATION, progress)
    assert (other.step, other.number) != (first.step, first.number)


def test_begun_again_a_lesson_can_be_answered_for_again(progress):
    progress.reset(SHAPES.id, begun_again=True)
    question = of(SHAPES, progress)
    answer(question, question.quiz.answer, progress)
    assert progress.begun_again() == frozenset()


def test_reading_a_locked_lesson_leaves_no_trace_until_it_is_worked_on(progress):
    before = progress.path.read_bytes()
    told = []
    session = LessonSession(
        COURSE, ACCUMULATION, progress, Workspace(Paths.find()), told.append, reading=True
    )
    session.arrive()
    for index, step in enumerate(ACCUMULATION.steps):
        session.go(index)
        for number, quiz in enumerate(step.quizzes):
            session.answer(number, quiz.answer)
    assert session.judge(Judged(("a",), ())) == ()
    session.finish()
    assert progress.path.read_bytes() == before
    session.begin()
    assert len(progress.answers(ACCUMULATION.id)) == len(session.answered)
    assert progress.place() == (ACCUMULATION.id, len(ACCUMULATION.steps) - 1)
    session.judge(Judged(("a",), ()))
    assert progress.passed() == {ACCUMULATION.id}
    assert progress.history().answered == frozenset()
    assert told == []
