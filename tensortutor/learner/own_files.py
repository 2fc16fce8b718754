"""The learner's own programs, edited where they lie."""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tensortutor.course.read_file import read_file
from tensortutor.learner.edited_files import Code, EditedFiles
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.workspace import Workspace, write_atomic

LARGEST = 1 << 20
"""Bytes that the editor takes. Code has less; a larger file is data, and would make keys slow."""
PAD = "scratch_pad.py"
PAD_STARTS_WITH = """\
import torch

x = torch.arange(6.0).view(2, 3)
print(x @ x.T)
"""


@dataclass(frozen=True)
class OwnProgram:
    """A program of the learner's own, and what it may do. All paths are absolute.

    file: what is run. folder: where it works, and what it may import from and read; None for the
    scratch pad, which works in a folder of its own. arguments: as on a command line. read, write:
    more folders that it may read, or read and write.
    """

    file: Path
    folder: Path | None
    arguments: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


def read_text(path: Path) -> str:
    """The text of a file. Raises StorageError, and FileNotFoundError if there is none."""
    try:
        data = read_file(path)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise StorageError(f"{path} cannot be opened: {reason(error)}.") from None
    if len(data) > LARGEST:
        size = len(data) / 1e6
        raise StorageError(
            f"{path} has {size:.1f} MB; this editor takes files of up to {LARGEST >> 20} MiB."
        )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise StorageError(
            f"{path} is not UTF-8 text (byte {error.start}), so it cannot be edited here."
        ) from None


class OwnStore:
    """The files beside a program, by path. What they held when they were opened is kept."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._backup: Path | None = None
        self._first: dict[Path, str] = {}
        self._last: dict[Path, str] = {}

    @property
    def pictures(self) -> Path:
        """The learner's folder for work, which exists."""
        return self._workspace.paths.work

    def path(self, key: Path) -> Path:
        """The key itself."""
        return key

    def load(self, key: Path) -> str:
        """What the file holds; if it is gone, what it held last. Raises StorageError."""
        try:
            text = read_text(key)
        except FileNotFoundError:
            if key not in self._last:
                raise StorageError(f"{key} is not there.") from None
            return self._last[key]
        self._first.setdefault(key, text)
        self._last[key] = text
        return text

    def save(self, key: Path, text: str) -> None:
        """Replace the file; before the first time, keep it in a backup. Raises StorageError."""
        if not self.may_change(key):
            raise StorageError(f"{key} was not saved: it may only be read.")
        if self._backup is None or not (self._backup / key.name).exists():
            self.put_aside(key)
        write_atomic(key, text)
        self._last[key] = text

    def start(self, key: Path) -> Path:
        """The file; one that is gone is written anew. Raises StorageError."""
        if not key.exists():
            write_atomic(key, self._last.get(key, ""))
        return key

    def put_aside(self, key: Path) -> Path | None:
        """Keep a copy of the file as it is now. Returns the folder. Raises StorageError."""
        try:
            data = read_file(key)
        except OSError:
            return None
        folder = self._workspace.new_backup()
        try:
            (folder / key.name).write_bytes(data)
        except OSError as error:
            raise StorageError(f"No backup of {key} can be made: {reason(error)}.") from None
        self._backup = folder
        return folder

    def unread(self, key: Path) -> str:
        """Nothing is known of it."""
        return self._last.get(key, "")

    def may_change(self, key: Path) -> bool:
        """Whether the learner may write the file."""
        return not key.exists() or os.access(key, os.W_OK)

    def gone(self, key: Path) -> str:
        """It was taken away."""
        return f"{key} is gone. The next change here writes it anew."

    def as_opened(self, key: Path) -> str:
        """What the file held when it was opened."""
        return self._first.get(key, "")


class OwnSession:
    """The files of a program while it is open: which one is shown, and what was typed.

    report: shows a sentence.
    """

    has_code = True
    judged = False

    def __init__(
        self, program: OwnProgram, workspace: Workspace, report: Callable[[str], None]
    ) -> None:
        self.program = program
        self._report = report
        self._store = OwnStore(workspace)
        self._files = EditedFiles(self._store, report)
        self.path = program.file

    @property
    def index(self) -> Path:
        """What the editor knows the shown file by."""
        return self.path

    @property
    def picture(self) -> Path:
        """Where a picture of the shown file goes: not beside it, where the name may be taken."""
        return self._store.pictures / f"{self.path.stem}.svg"

    @property
    def shows_main(self) -> bool:
        """Whether the file that is run is shown."""
        return self.path == self.program.file

    def open(self, path: Path) -> bool:
        """Show another file. Returns whether it can be shown; if not, that has been told."""
        try:
            read_text(path)
        except FileNotFoundError:
            self._report(f"{path} is not there any more.")
            return False
        except StorageError as error:
            self._report(str(error))
            return False
        self.flush()
        self.path = path
        return True

    def source(self) -> str:
        """The text of the file that is run."""
        return self._files.code(self.program.file).text

    def code(self) -> Code:
        """The text of the file that is shown."""
        return self._files.code(self.path)

    def edit(self, text: str) -> bool:
        """The learner changed the shown file. Returns whether it is to be saved."""
        return self._files.edit(self.path, text)

    def tick(self) -> None:
        """Time is counted in lessons alone."""

    def flush(self) -> bool:
        """Save what is not saved yet. Returns whether everything is."""
        return self._files.flush()

    def make_file(self) -> Path | None:
        """The shown file, all that was typed in it. Raises StorageError."""
        return self._files.make(self.path)

    def saved_elsewhere(self) -> bool:
        """Whether another program has saved the shown file."""
        return self._files.saved_elsewhere(self.path)

    def changed_elsewhere(self) -> Code | None:
        """The shown file's text, if another program has changed it."""
        return self._files.changed_elsewhere(self.path)

    def reset(self) -> str | None:
        """Back to what the shown file held when it was opened. Returns where the rest is kept."""
        if not self.flush():
            return None
        try:
            folder = self._store.put_aside(self.path)
            self._store.save(self.path, self._store.as_opened(self.path))
        except StorageError as error:
            self._report(str(error))
            return None
        self._files.forget(self.path)
        return str(folder) if folder else None


def own_program(
    file: Path, arguments: tuple[str, ...], read: tuple[Path, ...], write: tuple[Path, ...]
) -> OwnProgram:
    """A program as it was named on the command line. Raises StorageError.

    It may read the folder that it lies in: not a whole home, and not the root.
    """
    file = Path(os.path.abspath(file.expanduser()))
    try:
        read_text(file)
    except FileNotFoundError:
        if not file.parent.is_dir():
            raise StorageError(f"There is no folder {file.parent}.") from None
        write_atomic(file, "")
    folder = file.parent
    if folder.resolve() in (Path.home().resolve(), Path(folder.anchor)):
        raise StorageError(
            f"A program may read the folder that it lies in, and {folder} holds all that is yours: "
            f"move {file.name} to a folder of its own."
        )
    return OwnProgram(
        file, folder, arguments, *(tuple(map(_folder, folders)) for folders in (read, write))
    )


def _folder(path: Path) -> Path:
    path = Path(os.path.abspath(path.expanduser()))
    if not path.is_dir():
        raise StorageError(f"{path} is no folder, so no program can be given it.")
    return path


def scratch_pad(workspace: Workspace) -> OwnProgram:
    """A file to try things in. Raises StorageError if it cannot be made."""
    path = workspace.paths.work / PAD
    if not path.exists():
        write_atomic(path, PAD_STARTS_WITH)
    return OwnProgram(path, None)
