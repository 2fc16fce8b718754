import asyncio
import contextlib
import os
import stat
import sys
from pathlib import Path

import pytest
from textual.app import SuspendNotSupported
from textual.widgets import TextArea

from tensortutor.protocol.events import Output
from tests.ui.courses import CHECKS, PREDICT, STARTER
from tests.ui.fakes import judges, says, waits
from tests.ui.test_lesson import INSIGHT, PRACTICE, PREDICTION, RUN, arrive, ended, told

SIZES = [(80, 24), (130, 36)]


@pytest.fixture(autouse=True)
def quick_looks(monkeypatch):
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.POLL_S", 0.02)


def file_of(setting) -> Path:
    return setting.workspace.path(setting.accumulation, PRACTICE)


def program(path: Path, text: str) -> Path:
    """An executable Python program."""
    path.write_text(f"#!{sys.executable}\nimport pathlib, sys\n{text}")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


@contextlib.contextmanager
def stepped_aside():
    yield


# Undo


async def test_undo_lasts_from_step_to_step(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("x", "enter", "y")
        assert screen.editor.text == "x\ny" + STARTER
        place = screen.editor.cursor_location
        for _ in range(2):
            await pilot.press("escape", "p")
        await until(pilot, lambda: screen.session.index == RUN)
        await pilot.press("f3", "z", "ctrl+z")
        walk = screen.editor.text
        await pilot.press("ctrl+z")
        assert screen.editor.text == walk
        for _ in range(2):
            await pilot.press("f8")
        await until(pilot, lambda: screen.session.index == PRACTICE)
        assert screen.editor.cursor_location == place
        screen.panes.turn_to("editor")
        await pilot.press("ctrl+z", "ctrl+z", "ctrl+z")
        assert screen.editor.text == STARTER
        await pilot.press("ctrl+y")
        assert screen.editor.text == "x" + STARTER


async def test_a_reset_and_a_change_from_outside_can_be_undone(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("x")
        await until(pilot, lambda: file_of(setting).is_file())
        file_of(setting).write_text("y" + STARTER)
        await until(pilot, lambda: screen.editor.text == "y" + STARTER)
        await pilot.press("ctrl+z")
        assert screen.editor.text == "x" + STARTER
        await pilot.press("escape", "R", "y")
        await until(pilot, lambda: screen.editor.text == STARTER)
        screen.panes.turn_to("editor")
        await pilot.press("ctrl+z")
        assert screen.editor.text == "x" + STARTER
        screen.session.flush()
        assert file_of(setting).read_text() == "x" + STARTER


# Formatting


async def test_ruff_lays_the_code_out_in_one_step(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        editor = screen.editor
        editor.renew("x=[1,\n2]\ndef f( ):\n  return   x\n")
        editor.move_cursor((3, 5))
        await pilot.press("ctrl+j")
        after = "x = [1, 2]\n\n\ndef f():\n    return x\n"
        await until(pilot, lambda: editor.text == after)
        assert editor.cursor_location == (4, 7)
        await pilot.press("ctrl+z")
        assert editor.text == "x=[1,\n2]\ndef f( ):\n  return   x\n"
        editor.renew(after)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: any("well already" in text for text in told(app)))


async def test_what_cannot_be_formatted_is_said(setting, until, monkeypatch):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        screen.editor.renew("x = 1\ny = (\n")
        await pilot.press("ctrl+j")
        await until(pilot, lambda: any("line 3 does not parse" in text for text in told(app)))
        monkeypatch.setattr("tensortutor.learner.formatting.find_ruff", lambda: None)
        await pilot.press("ctrl+j")
        await until(pilot, lambda: any("pip install ruff" in text for text in told(app)))
        assert screen.editor.text == "x = 1\ny = (\n"


# The learner's own editor


@pytest.mark.parametrize("key", ["e", "f6"])
async def test_the_own_editor_gets_the_file_and_what_it_saves_comes_back(
    setting, until, monkeypatch, tmp_path, key
):
    seen = tmp_path / "seen"
    vim = program(
        tmp_path / "vim",
        f"path = pathlib.Path(sys.argv[-1])\npathlib.Path({str(seen)!r}).write_text("
        "repr(sys.argv[1:]) + path.read_text())\npath.write_text('# mine\\n')\n",
    )
    monkeypatch.setenv("VISUAL", f"{vim} --clean")
    app = setting.app(setting.accumulation, PRACTICE)
    monkeypatch.setattr(app, "suspend", stepped_aside)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("x", "down")
        if key == "e":
            await pilot.press("escape")
        await pilot.press(key)
        await until(pilot, lambda: screen.editor.text == "# mine\n")
        arguments = repr(["--clean", "+2", str(file_of(setting))])
        assert seen.read_text() == arguments + "x" + STARTER
        assert told(app) == []
        screen.panes.turn_to("editor")
        await pilot.press("ctrl+z")
        assert screen.editor.text == "x" + STARTER


@pytest.mark.parametrize(
    ("visual", "editor", "words"),
    [
        (None, None, "No editor is named. Set VISUAL or EDITOR"),
        (None, "no-such-editor", "EDITOR names no-such-editor, which cannot be found."),
        ("vim '", "cat", "VISUAL is no command"),
        (None, "false", "false ended with status 1."),
    ],
)
async def test_why_there_is_no_own_editor_is_said(
    setting, until, monkeypatch, visual, editor, words
):
    for name, value in (("VISUAL", visual), ("EDITOR", editor)):
        monkeypatch.delenv(name, raising=False)
        if value is not None:
            monkeypatch.setenv(name, value)
    app = setting.app(setting.accumulation, PRACTICE)
    monkeypatch.setattr(app, "suspend", stepped_aside)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press("escape", "e")
        await until(pilot, lambda: any(words in text for text in told(app)))


async def test_where_the_app_cannot_step_aside_the_path_is_told(setting, until, monkeypatch):
    monkeypatch.setenv("VISUAL", "cat")
    app = setting.app(setting.accumulation, PRACTICE)

    @contextlib.contextmanager
    def refuse():
        raise SuspendNotSupported
        yield

    monkeypatch.setattr(app, "suspend", refuse)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press("escape", "e")
        await until(pilot, lambda: any(str(file_of(setting)) in text for text in told(app)))


async def test_a_step_without_code_has_nothing_to_edit(setting, until):
    app = setting.app(setting.accumulation, INSIGHT)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        await pilot.press("e")
        assert any("no code to edit" in text for text in told(app))


# Watching


@pytest.mark.parametrize("size", SIZES)
async def test_a_save_elsewhere_is_shown_and_in_watch_mode_checked(setting, until, size):
    setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=size) as pilot:
        screen = await arrive(pilot, until)
        path = setting.workspace.start(setting.accumulation, PRACTICE)
        path.write_text("a = 1\n")
        await until(pilot, lambda: screen.editor.text == "a = 1\n")
        assert setting.runner.jobs == []
        await pilot.press("escape", "w")
        assert "watched" in str(screen.editor._border_title)
        assert any(str(path) in text for text in told(app))
        # As vim saves: the old file moves away, a new one takes its name.
        os.replace(path, path.with_name("backup~"))
        path.write_text("a = 2\n")
        await until(pilot, lambda: "All checks passed" in ended(screen))
        assert [job.source for job in setting.runner.jobs] == ["a = 2\n"]
        assert setting.runner.jobs[0].judge is not None
        await until(pilot, lambda: "autograd/accumulation" in setting.progress.passed())
        # The same text once more is a save, too.
        os.utime(path)
        await until(pilot, lambda: len(setting.runner.jobs) == 2)
        await until(pilot, lambda: not screen.results.is_running)
        await pilot.press("escape", "w")
        path.write_text("a = 3\n")
        await until(pilot, lambda: screen.editor.text == "a = 3\n")
        assert len(setting.runner.jobs) == 2


async def test_what_is_typed_here_is_no_save_elsewhere(setting, until):
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "w", "f3", "x")
        await until(pilot, lambda: file_of(setting).is_file())
        for _ in range(8):
            await pilot.pause(0.02)
        assert setting.runner.jobs == []
        assert screen.editor.text == "x" + STARTER


async def test_a_save_during_a_run_stops_it_and_runs_again(setting, until):
    setting.runner.script = waits(Output("stdout", "begun\n"))
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path = setting.workspace.start(setting.accumulation, PRACTICE)
        await pilot.press("escape", "w", "c")
        await until(pilot, lambda: screen.results.is_running)
        setting.runner.script = judges(dict.fromkeys(CHECKS, True))
        path.write_text("a = 2\n")
        await until(pilot, lambda: "All checks passed" in ended(screen))
        assert [job.source for job in setting.runner.jobs] == [STARTER, "a = 2\n"]


async def test_who_types_without_a_pause_is_saved_all_the_same(setting, until, monkeypatch):
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_AFTER_S", 0.5)
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_WITHIN_S", 0.6)
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        await arrive(pilot, until)
        for count in (3, 12):  # again and again
            for _ in range(150):
                await pilot.press("x")
                if path.read_text().count("x") >= count:
                    break
            else:
                pytest.fail("typing on and on has put off saving for ever")


async def test_changes_on_both_sides_are_both_kept(setting, until, monkeypatch):
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_AFTER_S", 60)
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_WITHIN_S", 60)
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "w", "f3")
        await pilot.press("x")
        await until(pilot, lambda: screen.session.is_unsaved)
        path.write_text("theirs\n")
        for _ in range(5):
            await pilot.pause(0.02)
        assert screen.editor.text == "x" + STARTER
        await pilot.press("ctrl+s")
        await until(pilot, lambda: any("by another program" in text for text in told(app)))
        assert path.read_text() == "x" + STARTER == screen.editor.text
        kept = list(setting.paths.backups.rglob(path.name))
        assert [one.read_text() for one in kept] == ["theirs\n"]


async def test_a_prediction_still_comes_first_and_a_walkthrough_is_run(setting, until):
    setting.runner.script = says("done\n")
    app = setting.app(setting.accumulation, PREDICTION)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path = setting.workspace.start(setting.accumulation, PREDICTION)
        await pilot.press("escape", "w")
        path.write_text("a = 1\n")
        await until(pilot, lambda: screen.editor.text == "a = 1\n")
        assert setting.runner.jobs == []
        await pilot.press("escape", "p")
        await until(pilot, lambda: screen.session.index == RUN)
        path = setting.workspace.start(setting.accumulation, RUN)
        path.write_text("b = 1\n")
        await until(pilot, lambda: len(setting.runner.jobs) == 1)
        assert setting.runner.jobs[0].judge is None


async def test_code_is_never_kept_under_the_step_that_comes_next(setting, until):
    """The editor's news of one step may arrive when the next one is already under way."""
    app = setting.app(setting.accumulation, INSIGHT)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        await asyncio.gather(pilot.press("n"), pilot.press("n"))
        await until(pilot, lambda: screen.editor.text == PREDICT)
        screen.session.flush()
        assert setting.workspace.load(setting.accumulation, PREDICTION) == PREDICT
        screen.session.go(PRACTICE)
        screen.post_message(TextArea.Changed(screen.editor))
        await pilot.pause()
        screen.session.flush()
        assert setting.workspace.load(setting.accumulation, PRACTICE) == STARTER


async def test_a_file_that_cannot_be_read_locks_the_editor_until_it_can(setting, until):
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path.write_bytes(b"# caf\xe9\n")
        await until(pilot, lambda: any("is not UTF-8 text" in text for text in told(app)))
        await until(pilot, lambda: screen.editor.read_only)
        assert screen.editor.text == STARTER
        await pilot.press("x")
        screen.session.flush()
        assert path.read_bytes() == b"# caf\xe9\n"
        path.write_text("# café\n", "utf-8")
        await until(pilot, lambda: screen.editor.text == "# café\n")
        await pilot.press("x", "ctrl+s")
        await until(pilot, lambda: path.read_text("utf-8") == "x# café\n")
        assert sum("is not UTF-8" in text for text in told(app)) == 1


async def test_line_ends_of_another_system_stay_as_they_are(setting, until):
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path.write_bytes(b"a = 1\r\nb = 2\r\n")
        await until(pilot, lambda: screen.editor.text == "a = 1\r\nb = 2\r\n")
        screen.session.flush()
        assert path.read_bytes() == b"a = 1\r\nb = 2\r\n"
        screen.panes.turn_to("editor")
        screen.editor.move_cursor((0, 5))
        await pilot.press("1", "ctrl+s")
        await until(pilot, lambda: path.read_bytes() == b"a = 11\r\nb = 2\r\n")
        assert not setting.paths.backups.exists()


async def test_a_key_that_was_just_pressed_is_not_lost_to_a_save_elsewhere(setting, until):
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        path.write_text("theirs\n")
        screen.editor.insert("x", (0, 0))
        screen.code.read_again()  # before the screen has been told of the key
        assert screen.editor.text == "x" + STARTER
        await until(pilot, lambda: any("by another program" in text for text in told(app)))
        assert path.read_text() == "x" + STARTER
        assert [one.read_text() for one in setting.paths.backups.rglob(path.name)] == ["theirs\n"]


async def test_a_file_that_is_gone_is_said_to_be_gone(setting, until):
    setting.workspace.save(setting.accumulation, PRACTICE, "mine = 1\n")
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        file_of(setting).unlink()
        screen.code.read_again()
        await until(pilot, lambda: screen.editor.text == STARTER)
        await until(pilot, lambda: any("is gone: here is what" in text for text in told(app)))
        screen.panes.turn_to("editor")
        await pilot.press("ctrl+z", "ctrl+s")
        await until(pilot, lambda: file_of(setting).is_file())
        assert file_of(setting).read_text() == "mine = 1\n"


async def test_after_a_conflict_saves_elsewhere_are_heard_again(setting, until, monkeypatch):
    monkeypatch.setattr("tensortutor.ui.lesson.code_file.SAVE_AFTER_S", 60)
    setting.runner.script = judges(dict.fromkeys(CHECKS, True))
    path = setting.workspace.start(setting.accumulation, PRACTICE)
    app = setting.app(setting.accumulation, PRACTICE)
    async with app.run_test(size=(80, 24)) as pilot:
        screen = await arrive(pilot, until)
        await pilot.press("escape", "w", "f3", "x")
        path.write_text("theirs = 1\n")
        await pilot.press("ctrl+s")
        await until(pilot, lambda: any("by another program" in text for text in told(app)))
        assert path.read_text() == "x" + STARTER
        # The next save from outside, after that, is shown and checked as ever.
        path.write_text("theirs = 2\n")
        await until(pilot, lambda: screen.editor.text == "theirs = 2\n")
        await until(pilot, lambda: [job.source for job in setting.runner.jobs] == ["theirs = 2\n"])
        await until(pilot, lambda: not screen.results.is_running)
