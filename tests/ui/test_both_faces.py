"""The rules of a lesson, once through the app and once through the command line: the same."""

from collections.abc import Callable
from typing import Any

import pytest

from tensortutor.cli import main
from tensortutor.commands.session import Session
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tensortutor.protocol.events import Output
from tensortutor.ui.app import TutorApp
from tests.ui.courses import CHECKS, SOLUTION, course
from tests.ui.fakes import FakeRun, FakeRunner, judges, plays
from tests.ui.test_lesson import arrive, output, told

COURSE = course()
LESSON = COURSE.lessons[1]
PREDICTION, TASK = 2, 3
ID = LESSON.id


def play(run: FakeRun) -> Any:
    """A program prints 7; the checks pass for the solution alone."""
    if not run.job.judge:
        return plays(Output("stdout", "7.0\n"))(run)
    return judges({CHECKS[0]: True, CHECKS[1]: run.job.source == SOLUTION})(run)


def record() -> dict[str, Any]:
    """All that is kept of the lesson, times apart."""
    progress = Progress.open(Paths.find())
    return {
        "answers": progress.answers(ID),
        "steps done": progress.steps_done(ID),
        "hints": progress.hints_shown(ID),
        "passed": progress.passed(),
        "attempts": progress.attempts(ID),
        "begun again": progress.begun_again(),
        "code": Workspace(Paths.find()).load(LESSON, TASK),
    }


@pytest.fixture
def runner() -> FakeRunner:
    progress = Progress.open(Paths.find())
    for id in LESSON.requires:
        progress.mark_passed(id)
    return FakeRunner(play)


async def through_the_app(runner: FakeRunner, until: Callable[..., Any]) -> list[dict[str, Any]]:
    progress, workspace = Progress.open(Paths.find()), Workspace(Paths.find())
    progress.set_place(ID, PREDICTION)
    app = TutorApp(COURSE, progress, workspace, runner, lesson=LESSON)
    records = []
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        first, second = screen.reader.questions
        screen.action_run()
        await until(pilot, lambda: any("Guess first" in text for text in told(app)))
        assert runner.jobs == []
        first.field.focus()
        await pilot.press("4", "enter")
        await until(pilot, lambda: first.verdict.startswith("Your guess: 4."))
        await pilot.press("down", "enter")
        await until(pilot, lambda: second.verdict.startswith("Your guess: False."))
        records.append(record())
        screen.action_run()
        await until(pilot, lambda: "✗ Guess 1 was 4; it is 7." in output(screen))
        records.append(record())
        await pilot.press("escape")
        await screen.action_next()
        await until(pilot, lambda: screen.session.index == TASK)
        screen.action_solution()
        await until(pilot, lambda: any("once the checks have passed" in text for text in told(app)))
        await screen.action_hint()
        screen.action_check()
        await until(pilot, lambda: record()["attempts"] == 1)
        records.append(record())
        screen.editor.text = SOLUTION
        await pilot.pause()
        screen.action_check()
        await until(pilot, lambda: TASK in record()["steps done"])
    records.append(record())
    return records


def through_the_command_line(
    runner: FakeRunner, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> list[dict[str, Any]]:
    monkeypatch.setattr(Session, "course", COURSE)
    monkeypatch.setattr(Session, "runner", lambda self, *, preload=False: runner)
    run = ["run", "--lesson", ID, "--step", str(PREDICTION + 1)]
    records = []
    assert main(run) == 2
    assert "Predict before you run it" in capsys.readouterr().err
    assert runner.jobs == []
    for value in ("4", "False"):
        assert main(["answer", ID, str(PREDICTION + 1), value]) == 0
        assert f"Your guess: {value}" in capsys.readouterr().out
    records.append(record())
    assert main(run) == 0
    assert "✗ Guess 1 was 4; it is 7." in capsys.readouterr().out
    records.append(record())
    assert main(["show", ID, "--solution"]) == 2
    assert main(["hint", ID]) == 0
    assert main(["check", ID]) == 1
    records.append(record())
    Workspace(Paths.find()).save(LESSON, TASK, SOLUTION)
    assert main(["check", ID]) == 0
    records.append(record())
    return records


async def test_one_scenario_leaves_the_same_record_through_both_faces(
    runner, tmp_path, monkeypatch, capsys, until
):
    app = await through_the_app(runner, until)
    monkeypatch.setenv("TENSORTUTOR_HOME", str(tmp_path / "another"))
    progress = Progress.open(Paths.find())
    for id in LESSON.requires:
        progress.mark_passed(id)
    runner.jobs.clear()
    commands = through_the_command_line(runner, monkeypatch, capsys)
    assert commands == app
    guessed, revealed, failed, passed = app
    assert guessed["answers"] == {(PREDICTION, 0): ("4", False), (PREDICTION, 1): ("False", True)}
    assert PREDICTION not in guessed["steps done"]
    assert PREDICTION in revealed["steps done"]
    assert (failed["hints"], failed["attempts"]) == (1, 1)
    assert ID in passed["passed"]
    assert TASK in passed["steps done"]
