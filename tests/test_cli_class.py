"""A class from the command line: sharing, code that is sent, tables, checking again."""

import csv
import json
import os
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensortutor.cli import main
from tensortutor.commands.session import Session
from tensortutor.learner.class_board import read_class
from tensortutor.learner.class_report import Report, Sent, encode
from tensortutor.learner.paths import Paths
from tensortutor.learner.workspace import Workspace
from tests.test_cli import MEANS, REPAIR, RIGHT, tensortutor
from tests.ui.courses import CHECKS, SOLUTION, course
from tests.ui.fakes import FakeRun, FakeRunner, FakeStatus, judges

COURSE = course()
LESSON = COURSE.lessons[1]
TASK = 3
NOW = time.time()
Run = Callable[..., tuple[int, str, str]]


def play(run: FakeRun) -> Any:
    """The checks pass for the solution alone."""
    return judges({CHECKS[0]: True, CHECKS[1]: run.job.source == SOLUTION})(run)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "class"
    path.mkdir()
    path.chmod(0o3733)
    return path


@pytest.fixture
def runner(monkeypatch: pytest.MonkeyPatch) -> FakeRunner:
    fake = FakeRunner(play)
    monkeypatch.setattr(Session, "course", COURSE)
    monkeypatch.setattr(Session, "runner", lambda self, *, preload=False: fake)
    return fake


@pytest.fixture
def command(runner, capsys) -> Run:
    def run(*words: str) -> tuple[int, str, str]:
        status = main(words)
        said = capsys.readouterr()
        return status, said.out, said.err

    return run


def put(folder: Path, **values: Any) -> None:
    """The report of this process's user."""
    report = replace(Report(LESSON.id, TASK + 1, 5, 2, time.time()), **values)
    (folder / f"{os.geteuid()}.json").write_bytes(encode(report))


def mine(folder: Path) -> Report:
    (learner,) = read_class(folder).learners
    return learner.report


def test_nothing_is_written_without_a_folder_and_who_stops_stays_stopped(
    command, folder, monkeypatch
):
    check = ("check", LESSON.id, "--anyway")
    assert command(*check)[0] == 1
    assert list(folder.iterdir()) == []
    assert command("share", "on")[0] == 2
    monkeypatch.setenv("TENSORTUTOR_CLASS", str(folder))
    status, _, err = command(*check)
    assert status == 1
    assert f"Shared with the class in {folder}; tensortutor share off stops it." in err
    assert mine(folder).failing == (CHECKS[1],)
    assert mine(folder).attempts == 2
    assert "Nothing is shared any more" in command("share", "off")[2]
    command(*check)
    assert list(folder.iterdir()) == []
    assert "tensortutor share on begins again" in command("share")[1]
    assert command("ask-for-help", LESSON.id, "--anyway")[0] == 1
    command("share", "on")
    command(*check)
    assert mine(folder).attempts == 4


def test_the_settings_file_names_the_folder_too(command, folder, own_home):
    own_home.mkdir()
    (own_home / "settings.toml").write_text(f'[class]\nfolder = "{folder}"\n')
    command("check", LESSON.id, "--anyway")
    assert mine(folder).lesson == LESSON.id


def test_a_folder_that_is_gone_is_a_sentence_and_the_check_goes_on(command, folder, monkeypatch):
    monkeypatch.setenv("TENSORTUTOR_CLASS", str(folder / "none"))
    status, out, err = command("check", LESSON.id, "--anyway")
    assert status == 1
    assert CHECKS[1] in out
    assert err.count("The class does not see where you are") == 1


def test_code_goes_when_it_is_sent_and_comes_back(command, folder, monkeypatch):
    monkeypatch.setenv("TENSORTUTOR_CLASS", str(folder))
    Workspace(Paths.find()).save(LESSON, TASK, SOLUTION)
    status, _, err = command("ask-for-help", LESSON.id, "--anyway")
    assert (status, "with a call for help" in err) == (0, True)
    assert mine(folder).sent[0].code == SOLUTION
    assert command("ask-for-help", LESSON.id, "--anyway", "--withdraw")[0] == 0
    assert mine(folder).sent == ()
    assert command("hand-in", LESSON.id, "--anyway")[0] == 0
    assert [(one.code, one.help) for one in mine(folder).sent] == [(SOLUTION, False)]


def test_a_class_as_a_table_as_json_and_as_csv(command, folder):
    evil = '=HYPERLINK("http://x")\x1b[2J\u202e\n'
    put(folder, failing=(CHECKS[1], evil), checks_passed=1, checks_total=3, stuck_s=600.0)
    (folder / "7.json").symlink_to("/etc/passwd")
    status, out, err = command("class", str(folder))
    assert status == 0
    assert LESSON.id in out
    assert CHECKS[1] in out
    assert "\x1b" not in out
    assert "is not read: it is a symbolic link." in err
    rows = [json.loads(line) for line in command("class", str(folder), "--json")[1].splitlines()]
    assert [row["event"] for row in rows] == ["learner", "failing", "failing", "refused"]
    assert (rows[0]["uid"], rows[0]["stuck_s"]) == (os.geteuid(), 600)
    put(folder, lesson=evil)
    (row,) = csv.DictReader(command("class", str(folder), "--csv")[1].splitlines())
    assert row["lesson"] == '\'=HYPERLINK("http://x")<U+202E>'


def test_misuse_of_class_is_a_sentence(command, folder):
    assert "Name the folder" in command("class")[2]
    assert "cannot be read: not a directory" in command("class", __file__)[2]
    assert "say one of them" in command("class", str(folder), "--csv", "--json")[2]


def test_code_that_was_sent_is_checked_again_with_new_inputs_and_no_shared_folder(
    command, runner, folder
):
    good = Sent(LESSON.id, TASK + 1, NOW, False, SOLUTION)
    odd = Sent("no/lesson", 1, NOW, True, "x")
    put(folder, sent=(good, odd, replace(good, lesson=COURSE.lessons[2].id, step=1)))
    status, out, _ = command("class", str(folder), "--recheck", "--json")
    rows = [json.loads(line) for line in out.splitlines()]
    assert status == 1
    assert [(row["lesson"], row["result"]) for row in rows[:1]] == [(LESSON.id, "passed")]
    assert {row["why"] for row in rows[1:]} >= {"the course has no such lesson"}
    jobs = [job for job in runner.jobs if job.source == SOLUTION]
    assert len({job.judge.seeds for job in jobs}) == 3
    assert {job.scratch for job in jobs} == {""}
    put(folder, sent=(replace(good, code="wrong"),))
    (row,) = csv.DictReader(command("class", str(folder), "--recheck", "--csv")[1].splitlines())
    assert (row["result"], row["checks_passed"], row["failing"]) == ("failed", "1", CHECKS[1])


def test_code_of_others_is_not_run_without_a_sandbox(command, runner, folder):
    runner.status = FakeStatus(layer="limits", why="There is none.")
    put(folder, sent=(Sent(LESSON.id, TASK + 1, NOW, False, SOLUTION),))
    status, _, err = command("class", str(folder), "--recheck")
    assert status == 2
    assert "not run without a sandbox" in err
    assert runner.jobs == []


def test_checking_again_runs_the_code_for_real(folder):
    right, wrong = Sent(MEANS, 4, NOW, False, RIGHT), Sent(REPAIR, 3, NOW, True, "x = 1\n")
    put(folder, sent=(right, wrong))
    done = tensortutor("class", str(folder), "--recheck", "--json")
    rows = {row["lesson"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert (done.returncode, rows[MEANS]["result"]) == (1, "passed"), done
    assert rows[REPAIR]["result"] == "failed"
    assert rows[REPAIR]["failing"]
