import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tensortutor.learner.errors import StorageError
from tensortutor.learner.paths import Paths
from tensortutor.learner.workspace import Workspace, file_name
from tests.learner.courses import STARTER, WALK, lesson

LESSON = lesson("autograd/accumulation")


@pytest.fixture
def workspace(paths: Paths) -> Workspace:
    return Workspace(paths)


def test_the_judged_file_bears_the_lessons_name_and_others_their_step() -> None:
    assert file_name(LESSON, 2) == "accumulation.py"
    assert file_name(LESSON, 1) == "accumulation_2.py"
    with pytest.raises(ValueError, match="step 1"):
        file_name(LESSON, 0)


def test_a_pane_begins_with_its_source_and_keeps_what_is_saved(
    workspace: Workspace, paths: Paths
) -> None:
    assert workspace.load(LESSON, 2) == STARTER
    assert not workspace.edited(LESSON, 2)
    assert not paths.work.exists()
    workspace.save(LESSON, 2, "x = 'ä'\r\n")
    assert workspace.load(LESSON, 2) == "x = 'ä'\r\n"
    assert workspace.edited(LESSON, 2)
    assert workspace.load(LESSON, 1) == WALK
    file = paths.home / "work" / "autograd" / "accumulation" / "accumulation.py"
    assert file.read_bytes() == "x = 'ä'\r\n".encode()


def test_start_makes_the_file_once(workspace: Workspace) -> None:
    path = workspace.start(LESSON, 2)
    assert path.read_text() == STARTER
    path.write_text("mine")
    assert workspace.start(LESSON, 2).read_text() == "mine"


def test_saving_keeps_the_mode_and_follows_a_link(workspace: Workspace, tmp_path: Path) -> None:
    own = tmp_path / "repository.py"
    own.write_text("old")
    own.chmod(0o751)
    path = workspace.path(LESSON, 2)
    path.parent.mkdir(parents=True)
    path.symlink_to(own)
    workspace.save(LESSON, 2, "new")
    assert path.is_symlink()
    assert own.read_text() == "new"
    assert own.stat().st_mode & 0o777 == 0o751


def test_a_new_file_has_the_mode_that_any_new_file_has(
    workspace: Workspace, tmp_path: Path
) -> None:
    (tmp_path / "plain").touch()
    workspace.save(LESSON, 2, "new")
    mode = workspace.path(LESSON, 2).stat().st_mode
    assert mode == (tmp_path / "plain").stat().st_mode


WRITER = """
import sys
from pathlib import Path
from tensortutor.learner.workspace import write_atomic

texts = [letter * 200_000 for letter in "ab"]
print("ready", flush=True)
while True:
    for text in texts:
        write_atomic(Path(sys.argv[1]), text)
        print(text[0], flush=True)
"""


def test_a_killed_writer_leaves_the_old_or_the_new_never_a_mix(tmp_path: Path) -> None:
    target = tmp_path / "code.py"
    target.write_text("a" * 200_000)
    for writes in range(6):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(target)], stdout=subprocess.PIPE
        ) as writer:
            assert writer.stdout is not None
            for _ in range(writes + 1):
                writer.stdout.readline()
            writer.send_signal(signal.SIGKILL)
        assert target.read_text() in ("a" * 200_000, "b" * 200_000)


def test_a_writer_that_dies_between_writing_and_moving_leaves_the_old(tmp_path: Path) -> None:
    target = tmp_path / "code.py"
    target.write_text("old")
    script = (
        "import os, sys; from pathlib import Path\n"
        "from tensortutor.learner import workspace\n"
        "os.fsync = lambda fd: os._exit(9)\n"
        "workspace.write_atomic(Path(sys.argv[1]), 'new')\n"
    )
    assert subprocess.run([sys.executable, "-c", script, str(target)]).returncode == 9
    assert target.read_text() == "old"


def test_a_full_disk_gives_a_sentence_and_keeps_the_old_file(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    workspace.save(LESSON, 2, "old")

    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"accumulation\.py was not saved: the disk is full"):
        workspace.save(LESSON, 2, "new")
    assert workspace.load(LESSON, 2) == "old"
    assert [path.name for path in workspace.folder(LESSON).iterdir()] == ["accumulation.py"]


def test_a_file_that_is_not_text_is_named(workspace: Workspace) -> None:
    path = workspace.start(LESSON, 2)
    path.write_bytes(b"ab\xff")
    with pytest.raises(StorageError, match=r"accumulation\.py is not UTF-8 text \(byte 2\)"):
        workspace.load(LESSON, 2)


def test_reset_moves_the_files_and_says_where(workspace: Workspace, paths: Paths) -> None:
    workspace.save(LESSON, 2, "mine")
    workspace.save(LESSON, 1, "mine too")
    backup = workspace.reset(LESSON)
    assert backup is not None
    assert backup.parent == paths.backups
    kept = backup / "autograd" / "accumulation"
    assert (kept / "accumulation.py").read_text() == "mine"
    assert (kept / "accumulation_2.py").read_text() == "mine too"
    assert workspace.load(LESSON, 2) == STARTER
    assert workspace.load(LESSON, 1) == WALK


def test_reset_of_one_step_leaves_the_others(workspace: Workspace) -> None:
    workspace.save(LESSON, 2, "mine")
    workspace.save(LESSON, 1, "mine too")
    workspace.reset(LESSON, 1)
    assert workspace.load(LESSON, 1) == WALK
    assert workspace.load(LESSON, 2) == "mine"


def test_two_resets_in_one_second_keep_both(workspace: Workspace) -> None:
    kept = []
    for text in ("first", "second"):
        workspace.save(LESSON, 2, text)
        backup = workspace.reset(LESSON)
        assert backup is not None
        kept.append(backup / "autograd" / "accumulation" / "accumulation.py")
    assert [file.read_text() for file in kept] == ["first", "second"]


def test_reset_without_files_has_nothing_to_keep(workspace: Workspace, paths: Paths) -> None:
    assert workspace.reset(LESSON) is None
    assert not paths.backups.exists()


def test_a_backup_that_cannot_be_made_resets_nothing(workspace: Workspace, paths: Paths) -> None:
    workspace.save(LESSON, 2, "mine")
    paths.backups.write_text("in the way")
    with pytest.raises(StorageError, match="No backup"):
        workspace.reset(LESSON)
    assert workspace.load(LESSON, 2) == "mine"


def test_a_fifo_in_the_files_place_is_a_sentence(workspace: Workspace) -> None:
    path = workspace.path(LESSON, 2)
    path.parent.mkdir(parents=True)
    os.mkfifo(path)
    with pytest.raises(StorageError) as caught:
        workspace.load(LESSON, 2)
    assert str(caught.value) == f"{path} cannot be read: it is a FIFO, not a file."
