"""Programs of the learner's own: which can be opened, and what is said of the others."""

from pathlib import Path

import pytest

from tensortutor.learner.errors import StorageError
from tensortutor.learner.own_files import LARGEST, OwnSession, own_program
from tensortutor.learner.paths import Paths
from tensortutor.learner.workspace import Workspace


def asked(path: Path, read: tuple[Path, ...] = (), write: tuple[Path, ...] = ()):
    return own_program(path, (), read, write)


def test_a_file_is_opened_with_its_folder_and_a_new_one_is_made(tmp_path: Path) -> None:
    program = asked(tmp_path / "a b.py", (tmp_path,), (tmp_path,))
    assert (program.file, program.folder) == (tmp_path / "a b.py", tmp_path)
    assert (program.read, program.write) == ((tmp_path,), (tmp_path,))
    assert program.file.read_text() == ""


def not_text(path: Path) -> None:
    path.write_bytes(b"# caf\xe9")


def too_large(path: Path) -> None:
    path.write_bytes(b"#" * (LARGEST + 1))


@pytest.mark.parametrize(
    ("make", "words"),
    [(not_text, "is not UTF-8 text"), (too_large, "has 1.0 MB"), (Path.mkdir, "it is a folder")],
)
def test_what_cannot_be_edited_is_refused_with_a_sentence(tmp_path, make, words) -> None:
    path = tmp_path / "train.py"
    make(path)
    with pytest.raises(StorageError, match=words):
        asked(path)


def test_folders_that_are_none_or_hold_everything_are_refused(tmp_path, monkeypatch) -> None:
    with pytest.raises(StorageError, match="There is no folder"):
        asked(tmp_path / "gone" / "train.py")
    with pytest.raises(StorageError, match="is no folder"):
        asked(tmp_path / "train.py", read=(tmp_path / "data",))
    monkeypatch.setenv("HOME", str(tmp_path))
    with pytest.raises(StorageError, match="to a folder of its own"):
        asked(tmp_path / "train.py")


def test_a_file_goes_back_to_how_it_was_opened_and_the_rest_is_kept(tmp_path, own_home) -> None:
    path = tmp_path / "train.py"
    path.write_text("a = 1\r\n", newline="")
    told: list[str] = []
    session = OwnSession(asked(path), Workspace(Paths.find()), told.append)
    assert session.code().text == "a = 1\r\n"
    assert session.edit("b = 2\n")
    folder = session.reset()
    assert path.read_bytes() == b"a = 1\r\n"
    assert folder is not None
    assert (Path(folder) / "train.py").read_text() == "b = 2\n"
    assert told == []


def test_another_file_that_cannot_be_shown_is_told_of(tmp_path, own_home) -> None:
    (tmp_path / "train.py").write_text("")
    not_text(tmp_path / "data.bin")
    told: list[str] = []
    session = OwnSession(asked(tmp_path / "train.py"), Workspace(Paths.find()), told.append)
    assert not session.open(tmp_path / "data.bin")
    assert not session.open(tmp_path / "gone.py")
    assert session.shows_main
    assert len(told) == 2
