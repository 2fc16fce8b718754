from pathlib import Path

import pytest

from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tests.learner.courses import lesson


def test_home_is_made_where_the_environment_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORTUTOR_HOME", str(tmp_path / "deep" / "home"))
    paths = Paths.find()
    assert paths == Paths(tmp_path / "deep" / "home")
    assert paths.home.is_dir()
    assert list(paths.home.iterdir()) == []


def test_without_the_variable_the_platform_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TENSORTUTOR_HOME", "")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.setenv("HOME", str(tmp_path))
    paths = Paths.find()
    assert tmp_path in paths.home.parents
    assert paths.home.name == "tensortutor"


def test_a_relative_home_does_not_move_with_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TENSORTUTOR_HOME", "home")
    assert Paths.find().home == tmp_path / "home"


@pytest.mark.parametrize("where", ["file/home", "file"])
def test_a_home_that_cannot_be_written_is_lent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    (tmp_path / "file").write_text("not a folder")
    monkeypatch.setenv("TENSORTUTOR_HOME", str(tmp_path / where))
    paths = Paths.find()
    assert not paths.writable
    assert len(paths.notices) == 1
    assert str(tmp_path / where) in paths.notices[0]
    assert "TENSORTUTOR_HOME" in paths.notices[0]
    Progress.open(paths).mark_passed("a/b")
    assert (tmp_path / "file").read_text() == "not a folder"


def test_a_lent_home_shows_what_was_kept_and_leaves_it_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Paths(tmp_path / "home")
    Progress.open(own).mark_passed("tensors/first")
    Workspace(own).save(lesson(), 2, "mine\n")
    monkeypatch.setenv("TENSORTUTOR_HOME", str(own.home))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system")

    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    lent = Paths.find()
    assert lent.home != own.home
    assert "read-only file system" in lent.notices[0]
    assert Progress.open(lent).passed() == {"tensors/first"}
    assert Workspace(lent).load(lesson(), 2) == "mine\n"
    Workspace(lent).save(lesson(), 2, "changed\n")
    Progress.open(lent).mark_passed("tensors/second")
    assert Workspace(own).load(lesson(), 2) == "mine\n"
    assert Progress.open(own).passed() == {"tensors/first"}
