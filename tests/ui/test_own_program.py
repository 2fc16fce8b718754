"""A program of the learner's own in the app: edited where it lies, run with its arguments."""

import pytest
from textual.actions import parse

from tensortutor.learner.own_files import PAD, own_program, scratch_pad
from tensortutor.protocol.events import Finished, Raised
from tensortutor.ui.app import TutorApp
from tensortutor.ui.screens.own_program import SCRATCH, OwnProgramScreen
from tensortutor.ui.widgets.output import OutputPane
from tests.ui.fakes import says

TRAIN = "import helper\nprint(helper.x)\n"
HELPER = "x = 1\n"


@pytest.fixture
def project(tmp_path):
    folder = tmp_path / "my project"
    folder.mkdir()
    (folder / "train.py").write_text(TRAIN)
    (folder / "helper.py").write_text(HELPER)
    return folder


def app_of(setting, program) -> TutorApp:
    return TutorApp(
        setting.course, setting.progress, setting.workspace, setting.runner, own=program
    )


def opened(setting, folder, *arguments):
    return app_of(setting, own_program(folder / "train.py", arguments, (), ()))


async def arrive(pilot, until) -> OwnProgramScreen:
    await until(pilot, lambda: isinstance(pilot.app.screen, OwnProgramScreen))
    screen = pilot.app.screen
    await until(pilot, lambda: screen.editor.has_focus)
    return screen


def output(screen) -> str:
    return "\n".join(text for _, text in screen.results.query_one(OutputPane).transcript.lines)


async def choose(pilot, until, screen, name) -> None:
    """Open a file of the tree."""
    await pilot.press("escape")
    await until(pilot, lambda: len(screen.files.root.children) >= 2)
    node = next(n for n in screen.files.root.children if n.data.path.name == name)
    screen.files.move_cursor(node)
    await pilot.press("enter")


@pytest.mark.parametrize("size", [(80, 24), (160, 50)])
async def test_it_says_what_the_program_may_do_and_runs_it_with_its_arguments(
    setting, until, project, size
):
    app = opened(setting, project, "--epochs", "3")
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        assert str(project) in output(screen)
        assert "may write temporary files alone" in output(screen)
        assert setting.runner.jobs == []
        await pilot.press("f5")
        await until(pilot, lambda: "hello" in output(screen))
        (job,) = setting.runner.jobs
        assert (job.source, job.filename) == (TRAIN, "train.py")
        assert (job.arguments, job.folder) == (("--epochs", "3"), str(project))
        assert (job.scratch, job.judge) == (SCRATCH, None)
        assert job.look.trace


async def test_another_file_is_edited_and_the_program_is_what_runs(setting, until, project):
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await choose(pilot, until, screen, "helper.py")
        await until(pilot, lambda: screen.editor.text == HELPER and screen.editor.has_focus)
        await pilot.press("y", "f5")
        await until(pilot, lambda: setting.runner.jobs)
        assert setting.runner.jobs[0].source == TRAIN
        assert (project / "helper.py").read_text() == "y" + HELPER
        kept = list(setting.paths.backups.rglob("helper.py"))
        assert [path.read_text() for path in kept] == [HELPER]


async def test_any_file_name_is_listed_and_what_nobody_edits_is_not(setting, until, project):
    names = ["bad[/b].py".replace("/", ""), "[@click=app.quit]x[].py", "esc\x1b[31m.py", " .py"]
    for name in names:
        (project / name).write_text("")
    for folder in (".git", "__pycache__", "venv"):
        (project / folder).mkdir()
    (project / "venv" / "pyvenv.cfg").write_text("")
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await until(pilot, lambda: len(screen.files.root.children) == 6)
        labels = [str(node.label) for node in screen.files.root.children]
        assert "\x1b" not in "".join(labels)
        assert not {".git", "__pycache__", "venv"} & set(labels)
        await choose(pilot, until, screen, names[0])
        await until(pilot, lambda: screen.session.path.name == names[0])


async def test_what_another_program_saves_is_shown_and_run_if_watched(setting, until, project):
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "w")
        (project / "train.py").write_text("print(2)\n")
        await until(pilot, lambda: setting.runner.jobs)
        assert setting.runner.jobs[0].source == "print(2)\n" == screen.editor.text


async def test_a_file_that_is_gone_stays_in_the_editor_and_is_written_at_the_next_change(
    setting, until, project
):
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        (project / "train.py").unlink()
        await pilot.press("f5")
        await until(pilot, lambda: setting.runner.jobs)
        assert setting.runner.jobs[0].source == TRAIN
        await until(pilot, lambda: not screen.results.is_running)
        await pilot.press("z", "ctrl+s")
        assert (project / "train.py").read_text() == "z" + TRAIN


async def test_an_error_of_the_sandbox_says_how_a_folder_is_opened(setting, until, project):
    error = OSError(30, "Read-only file system", "net.pt")
    event = Raised("OSError", str(error), (), "Traceback\n")
    setting.runner.script = lambda run: iter([event, Finished("failed", 1, "It failed.", 1.0)])
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("f5")
        await until(pilot, lambda: "--write FOLDER" in output(screen).partition("Traceback")[2])


async def test_a_file_that_the_program_has_written_is_listed(setting, until, project):
    def script(run):
        (project / "result.txt").write_text("1")
        return says("written\n")(run)

    setting.runner.script = script
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        await until(pilot, lambda: len(screen.files.root.children) == 2)
        await pilot.press("f5")
        await until(pilot, lambda: len(screen.files.root.children) == 3)
        assert screen.editor.has_focus


async def test_the_scratch_pad_is_kept_and_leads_back_to_the_lessons(setting, until):
    setting.runner.script = says("pad\n")
    app = app_of(setting, scratch_pad(setting.workspace))
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("#", "f5")
        await until(pilot, lambda: setting.runner.jobs)
        (job,) = setting.runner.jobs
        assert job.folder == ""
        assert (setting.paths.work / PAD).read_text() == job.source
        assert job.source.startswith("#")
        await until(pilot, lambda: not screen.results.is_running)
        await pilot.press("escape", "l")
        await until(pilot, lambda: not isinstance(app.screen, OwnProgramScreen))
        app.action_scratch_pad()
        screen = await arrive(pilot, until)
        assert screen.editor.text == job.source


async def test_y_saves_a_picture_of_the_program_beside_nothing_of_the_project(
    setting, until, project
):
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        await arrive(pilot, until)
        await pilot.press("escape", "y")
        path = setting.paths.work / "train.svg"
        await until(pilot, path.exists)
        assert "helper" in path.read_text("utf-8")
        assert not list(project.glob("*.svg"))


async def test_every_key_of_the_screen_does_something(setting, until, project):
    app = opened(setting, project)
    async with app.run_test(size=(120, 36)) as pilot:
        screen = await arrive(pilot, until)
        for binding in screen.BINDINGS:
            namespace, name, _ = parse(binding.action)
            owner = app if namespace == "app" else screen
            assert hasattr(owner, f"action_{name}"), binding.id
