"""An exercise that goes on with another lesson's program: the same code through both faces."""

import json
from dataclasses import replace

import pytest

from tensortutor.cli import main
from tensortutor.commands.session import Session
from tensortutor.course.material import Pane
from tensortutor.course.model import Course, Lesson
from tensortutor.learner.paths import Paths
from tensortutor.learner.workspace import Workspace
from tests.ui.courses import CHECKS, SOLUTION, accumulation, course
from tests.ui.fakes import FakeRunner, judges
from tests.ui.test_lesson import arrive

TASK = 3
NEW = "def more():\n    ...\n"
MINE = "mine = 1\n"
WHOLE = f"mine = 1\n\n\n# New in autograd/more\n\n{NEW}"


def later(first: Lesson) -> Lesson:
    """A lesson that goes on with the program of the first one."""
    task = first.steps[TASK]
    steps = (*first.steps[:TASK], replace(task, blocks=(Pane("exercise", NEW, 1),)))
    return replace(
        first, id="autograd/more", title="More", requires=(first.id,), continues=first.id,
        continued=first, steps=(*steps, *first.steps[TASK + 1 :]),
    )  # fmt: skip


@pytest.fixture
def two(setting) -> Course:
    """The course with that lesson, open."""
    chapters = setting.course.chapters
    where = next(c for c in chapters if c.id == "autograd")
    lessons = (accumulation(), later(accumulation()))
    setting.course = replace(
        course(),
        chapters=tuple(replace(c, lessons=lessons) if c is where else c for c in chapters),
    )
    setting.progress.mark_passed("tensors/shapes")
    return setting.course


async def test_what_passed_in_the_app_is_what_the_later_exercise_opens_with(setting, two, until):
    first, second = (one for one in two.lessons if one.chapter == "autograd")
    setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    app = setting.app(first, TASK)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        screen.editor.text = MINE
        await pilot.pause()
        screen.action_check()
        await until(pilot, lambda: first.id in setting.progress.passed())
    setting.workspace.save(first, TASK, "spoilt afterwards\n")
    app = setting.app(second, TASK)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        assert screen.editor.text == WHOLE
        assert not setting.workspace.path(second, TASK).exists()  # nothing was typed
        screen.editor.text = WHOLE + "# more\n"
        await pilot.pause()
        screen.session.flush()
        assert setting.workspace.path(second, TASK).read_text() == WHOLE + "# more\n"


def test_the_commands_compose_the_same_code(two, monkeypatch, capsys, tmp_path):
    first, second = (one for one in two.lessons if one.chapter == "autograd")
    runner = FakeRunner(judges(dict.fromkeys(CHECKS, True)))
    monkeypatch.setattr(Session, "course", two)
    monkeypatch.setattr(Session, "runner", lambda self, *, preload=False: runner)
    workspace = Workspace(Paths.find())
    mine = tmp_path / "mine.py"
    mine.write_text(MINE)
    assert main(["check", first.id, str(mine)]) == 0
    assert main(["export", second.id, "--to", str(tmp_path)]) == 0
    assert not workspace.path(second, TASK).exists()
    (written,) = tmp_path.glob("*more.ipynb")
    cells = ["".join(cell["source"]) for cell in json.loads(written.read_text())["cells"]]
    assert WHOLE.strip() in cells
    capsys.readouterr()
    assert main(["show", second.id, "--step", str(TASK + 1)]) == 0
    shown = capsys.readouterr().out
    assert all(f"    {line}".rstrip() in shown.splitlines() for line in WHOLE.splitlines())
    assert main(["where", second.id]) == 0
    path = workspace.path(second, TASK)
    assert capsys.readouterr().out.strip() == str(path)
    assert path.read_text() == WHOLE
    assert main(["check", second.id]) == 0
    assert runner.jobs[-1].source == WHOLE
    assert "You have not changed the code yet." in capsys.readouterr().err
    assert main(["show", second.id, "--solution"]) == 0
    assert capsys.readouterr().out.startswith(SOLUTION.rstrip() + "\n\n\n# New in autograd/more\n")
    assert main(["review", "--fresh", second.id]) == 0
    fresh = capsys.readouterr().out.strip()
    with open(fresh) as file:
        assert file.read() == WHOLE


async def test_the_board_of_a_classroom_shows_the_whole_program(setting, two, until):
    from tensortutor.ui.screens.teach import TeachSession

    _, second = (one for one in two.lessons if one.chapter == "autograd")
    setting.workspace.save(second.continued, TASK, MINE)
    session = TeachSession(
        two, second, setting.progress, setting.workspace, lambda text: None, at=TASK
    )
    assert session.pieces == (WHOLE,)
