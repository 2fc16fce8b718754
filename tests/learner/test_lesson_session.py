"""The rules of one lesson, without a face."""

from pathlib import Path

import pytest

from tensortutor.learner.guesses import remarks
from tensortutor.learner.lesson_session import LessonSession
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tensortutor.protocol.events import Judged
from tests.ui.courses import PREDICT, SOLUTION, course

COURSE = course()
LESSON = COURSE.lessons[1]
PREDICTION = next(
    number
    for number, step in enumerate(LESSON.steps)
    if step.pane is not None and step.pane.kind == "predict"
)
TASK = LESSON.steps.index(LESSON.task)


class Learner:
    """Somebody who opens the lesson again and again over the same home."""

    def __init__(self, home: Path) -> None:
        self.paths = Paths(home)
        self.progress = Progress.open(self.paths)
        self.now = 0.0
        self.told: list[str] = []
        for id in LESSON.requires:
            self.progress.mark_passed(id)

    def opens(self, at: int | None = None) -> LessonSession:
        workspace = Workspace(self.paths)
        clock = lambda: self.now  # noqa: E731
        return LessonSession(
            COURSE, LESSON, self.progress, workspace, self.told.append, clock, at=at
        )


@pytest.fixture
def learner(tmp_path: Path) -> Learner:
    return Learner(tmp_path / "home")


def test_guesses_come_before_the_run_and_are_judged_by_it(learner: Learner):
    session = learner.opens(PREDICTION)
    assert session.must_answer_first
    assert session.is_held
    session.answer(0, 4.0)
    assert session.questions_left == 1
    assert session.must_answer_first
    session.answer(1, False)
    assert not session.must_answer_first
    assert session.leave_guess()  # it waits for its run; asked again, it may be left
    assert not session.leave_guess()
    guesses = session.reveal({})
    assert [guess.right for guess in guesses] == [False, True]
    assert list(remarks(guesses, several=True, is_own=False)) == [
        ("wrong", "Guess 1 was 4; it is 7."),
        ("right", "Guess 2 was right."),
    ]
    assert session.reveal({}) == []
    assert not session.is_held


def test_a_guess_about_changed_code_is_judged_by_what_that_code_gives(learner: Learner):
    session = learner.opens(PREDICTION)
    assert session.proofs(PREDICT) == ()
    assert len(session.proofs(PREDICT + "# mine\n")) == 2
    session.answer(0, 4.0)
    session.answer(1, False)
    first, _ = session.reveal({0: 4.0, 1: False})
    assert (first.right, first.own) == (True, True)


def test_a_run_without_a_guess_is_asked_for_once(learner: Learner):
    session = learner.opens(PREDICTION)
    session.skip()
    assert not session.must_answer_first


def test_passing_opens_what_builds_on_it_and_counts_below(learner: Learner):
    session = learner.opens(TASK)
    assert session.judge(Judged(("a",), ("b",))) == ()
    assert not session.counts
    opened = session.judge(Judged(("a", "b"), ()))
    assert session.counts
    assert session.is_passed
    assert all(LESSON.id in lesson.requires for lesson in opened)
    assert learner.progress.passed() >= {LESSON.id}
    assert session.judge(Judged(("a", "b"), ())) == ()  # passed before: nothing new opens
    assert learner.opens().is_passed


def test_what_was_typed_is_kept_and_found_again(learner: Learner):
    session = learner.opens(TASK)
    before = session.code().text
    assert session.edit(SOLUTION)
    assert not session.edit(SOLUTION)
    assert session.task_source() == SOLUTION
    session.finish()
    again = learner.opens(TASK)
    assert again.code().text == SOLUTION
    assert again.reset() is not None
    assert again.code().text == before


def test_the_place_hints_and_time_outlive_the_session(learner: Learner):
    session = learner.opens(TASK)
    session.arrive()
    count = session.hint()
    assert count == 1
    learner.now = 40.0
    session.tick()
    learner.now = 4000.0  # gone for lunch: five minutes of it count
    session.finish()
    again = learner.opens()
    assert again.index == TASK
    assert again.hints_shown == 1
    assert learner.progress.records()[LESSON.id].seconds == pytest.approx(340.0)
