"""A class in the app: what a learner shares and sees of it, and the board of who teaches."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from tensortutor.learner.class_board import read_class
from tensortutor.learner.class_report import Report, Sent, encode
from tensortutor.learner.class_sharing import ClassSharing
from tensortutor.learner.settings import LearnerSettings
from tensortutor.ui.app import TutorApp
from tensortutor.ui.class_app import ClassApp
from tensortutor.ui.screens import class_board
from tensortutor.ui.screens.dialogs import Page
from tests.ui.courses import CHECKS, STARTER
from tests.ui.fakes import judges
from tests.ui.test_lesson import arrive, told

TASK = 3
HOSTILE = "\x1b[31m[bold]x[/]\u202e\n"


@pytest.fixture
def folder(tmp_path) -> Path:
    path = tmp_path / "class"
    path.mkdir()
    path.chmod(0o3733)
    return path


def sharing_app(setting, folder: Path) -> TutorApp:
    lesson = setting.accumulation
    for id in lesson.requires:
        setting.progress.mark_passed(id)
    setting.progress.set_place(lesson.id, TASK)
    sharing = ClassSharing(folder, setting.paths.class_stopped)
    return TutorApp(
        setting.course, setting.progress, setting.workspace, setting.runner, lesson=lesson,
        sharing=sharing,
    )  # fmt: skip


def first_line(app) -> str:
    return app.screen.top.render().plain


async def test_the_app_shares_checks_and_code_that_is_sent_and_says_so(setting, folder, until):
    setting.runner.script = judges({CHECKS[0]: True, CHECKS[1]: False})
    app = sharing_app(setting, folder)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        assert first_line(app).startswith(" class ")
        assert list(folder.iterdir()) == []
        screen.action_check()
        await until(pilot, lambda: read_class(folder).learners)
        (learner,) = read_class(folder).learners
        assert learner.uid == os.geteuid()
        assert (learner.report.failing, learner.report.sent) == ((CHECKS[1],), ())
        await pilot.press("escape", "A")
        await until(pilot, lambda: read_class(folder).learners[0].report.asks_for_help)
        assert read_class(folder).learners[0].report.sent[0].code == STARTER
        await until(pilot, lambda: any("with a call for help" in text for text in told(app)))
        app.go_home()
        await until(pilot, lambda: "shares with the class in /" in first_line(app))
        await pilot.press("S")
        await until(pilot, lambda: not list(folder.iterdir()))
        assert "class" not in first_line(app)
        await pilot.press("S")
        await until(pilot, lambda: first_line(app).startswith(" class "))


async def test_a_minute_without_a_key_is_not_reported(setting, folder, until):
    app = sharing_app(setting, folder)
    async with app.run_test(size=(120, 40)) as pilot:
        await arrive(pilot, until)
        app.share()  # what was done before this minute began
        await until(pilot, lambda: read_class(folder).learners or not app._has_acted)
        before = {path: path.stat().st_ino for path in folder.iterdir()}
        app.share()
        assert app.sharing.close(60)
        assert {path: path.stat().st_ino for path in folder.iterdir()} == before


async def test_without_a_class_nothing_is_said_of_one(setting, until):
    app = setting.app(setting.accumulation, TASK)
    async with app.run_test(size=(120, 40)) as pilot:
        screen = await arrive(pilot, until)
        titles = [command.title for command in app.get_system_commands(screen)]
        assert not any("class" in title and "with the class" in title for title in titles)
        await pilot.press("escape", "A")
        assert any("You share with no class" in text for text in told(app))


# The board


def learner(folder: Path, uid: int, report: Report) -> None:
    path = folder / f".{uid}.json"
    path.write_bytes(encode(report))
    if os.geteuid() == 0:
        os.chown(path, uid, -1)
    path.rename(folder / f"{uid}.json")


@pytest.fixture
def now(monkeypatch) -> float:
    """The board reads at once after each change, and the time stands still."""
    monkeypatch.setattr("time.time", lambda: 1_790_000_000.0)
    return 1_790_000_000.0


needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="files of several users can be made by root alone"
)


@needs_root
async def test_the_board_shows_who_is_stuck_what_fails_and_code_that_was_sent(
    setting, folder, until, now, monkeypatch
):
    monkeypatch.setattr("tensortutor.ui.running.class_reader.EACH_S", 0.25)
    id = setting.accumulation.id
    base = Report(id, 4, 5, 2, now, 1, 2, (CHECKS[1],), 3)
    call = Sent(id, 4, now, True, f"print('{HOSTILE}')\n")
    learner(folder, 61_001, replace(base, stuck_s=600.0))
    learner(folder, 61_002, replace(base, stuck_s=900.0, sent=(call,)))
    learner(folder, 61_003, replace(base, lesson=HOSTILE, failing=(HOSTILE,), stuck_s=60.0))
    (folder / "61004.json").symlink_to("/etc/passwd")
    app = ClassApp(folder, setting.course, LearnerSettings())
    async with app.run_test(size=(120, 36)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.query("#class-rows") and screen.rows.option_count == 3)
        rows = [str(screen.rows.get_option_at_index(at).prompt) for at in range(3)]
        assert [row.split()[:2] for row in rows[:2]] == [["?", "61002"], ["✗", "61001"]]
        assert all("\x1b" not in row and "\u202e" not in row for row in rows)
        assert "3 of 3 here   2 stuck   1 asks for help" in screen.top.word
        notices = str(screen.query_one("#class-notices").content)
        assert notices == "1 file of root is not read: it is a symbolic link."
        # The cursor stays on whom it was on, wherever they go.
        await pilot.press("down")
        learner(folder, 61_001, replace(base, stuck_s=6000.0))
        await until(pilot, lambda: screen.rows.highlighted == 0)
        assert screen.chosen.uid == 61_001
        await pilot.press("h", "o")
        await until(pilot, lambda: isinstance(app.screen, Page))
        assert "print('[bold]x[/]<U+202E>" in "".join(
            str(part.content) for part in app.screen.query(".class-code")
        )
        await pilot.press("escape", "f")
        await until(pilot, lambda: screen.rows.option_count == 2)
        assert str(screen.rows.get_option_at_index(0).prompt).split()[0] == "2"
        assert "61001" in str(screen.query_one("#class-about").content)


async def test_a_folder_that_vanishes_is_a_sentence_and_what_was_read_stays(
    setting, folder, until, now, monkeypatch
):
    monkeypatch.setattr("tensortutor.ui.running.class_reader.EACH_S", 0.25)
    learner(folder, os.geteuid(), Report(setting.accumulation.id, 4, 5, 2, now))
    app = ClassApp(folder, setting.course, LearnerSettings())
    async with app.run_test(size=(80, 24)) as pilot:
        screen = app.screen
        await until(pilot, lambda: screen.query("#class-rows") and screen.rows.option_count == 1)
        folder.rename(folder.with_name("elsewhere"))
        said = lambda: str(screen.query_one("#class-notices").content)  # noqa: E731
        await until(pilot, lambda: "cannot be read: no such file or directory." in said())
        assert screen.rows.option_count == 1
        monkeypatch.setattr(class_board.ClassReader, "is_slow", True)
        await until(pilot, lambda: class_board.SLOW in said())
