"""The learner's code: every pane that can be edited is a real file."""

import hashlib
import os
import shutil
import stat
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

from tensortutor.course.model import JUDGED, Lesson
from tensortutor.course.read_file import read_file
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.paths import Paths

if TYPE_CHECKING:
    from tensortutor.course.material import Pane

NOT_WRITTEN = "# You have written nothing in {id} yet: this is its solution.\n\n"
"""Stands above a program that goes on with a lesson that the learner has left out."""


def file_name(lesson: Lesson, step: int) -> str:
    """What a step's code is called: `<slug>.py` if it is judged, else `<slug>_<step from 1>.py`.

    step counts from 0, as everywhere in the code.
    """
    pane = _pane(lesson, step)
    return f"{lesson.slug}.py" if pane.kind in JUDGED else f"{lesson.slug}_{step + 1}.py"


class Workspace:
    """The files under `paths.work`: `<chapter>/<lesson>/<file>`."""

    def __init__(self, paths: Paths) -> None:
        self._paths = paths

    @property
    def paths(self) -> Paths:
        """The learner's folders."""
        return self._paths

    def folder(self, lesson: Lesson) -> Path:
        """Where a lesson's files lie."""
        return self._paths.work / lesson.chapter / lesson.slug

    def path(self, lesson: Lesson, step: int) -> Path:
        """Where a step's code lies, or would lie. Raises ValueError for a step without code."""
        return self.folder(lesson) / file_name(lesson, step)

    def load(self, lesson: Lesson, step: int) -> str:
        """What the learner wrote, else the code that the step begins with.

        Raises StorageError if there is a file that cannot be read as text.
        """
        text = self._read(self.path(lesson, step), lesson)
        if text is None or self._is_as_begun(lesson, step):
            return self.begins_with(lesson, step)
        return text

    def begins_with(self, lesson: Lesson, step: int) -> str:
        """The code that a step begins with.

        The exercise of a lesson that continues another begins with what the learner wrote there:
        the code that passed last, else what its file holds. Who has changed nothing there gets
        the solution, and a remark that says so. Raises StorageError if that cannot be read.
        """
        pane, before = _pane(lesson, step), lesson.continued
        if before is None or pane.kind not in JUDGED:
            return pane.source
        text = self._read(self._passed(before), before)
        task = before.steps.index(before.task)
        if text is None and self.edited(before, task):
            text = self.load(before, task)
        if text is not None:
            return lesson.program(pane.source, text)
        return NOT_WRITTEN.format(id=before.id) + lesson.program(pane.source)

    def keep_passed(self, lesson: Lesson, text: str) -> None:
        """Keep the code that passed a lesson's checks, for one that continues the lesson.

        It lies beside the file, which may change afterwards. Raises StorageError.
        """
        write_atomic(self._passed(lesson), text)

    def _passed(self, lesson: Lesson) -> Path:
        return self.folder(lesson) / f"{lesson.slug}_passed.py"

    def _read(self, path: Path, lesson: Lesson) -> str | None:
        """The text of a lesson's file, None if there is none. Raises StorageError."""
        try:
            return read_file(path).decode("utf-8-sig")
        except FileNotFoundError:
            return None
        except OSError as error:
            raise StorageError(f"{path} cannot be read: {reason(error)}.") from None
        except UnicodeDecodeError as error:
            raise StorageError(
                f"{path} is not UTF-8 text (byte {error.start}). Save it as UTF-8, or put it "
                f"aside with: tensortutor reset {lesson.id}"
            ) from None

    def save(self, lesson: Lesson, step: int, text: str) -> None:
        """Keep what the learner wrote. After a crash the file is the old or the new, never a mix.

        Raises StorageError if it cannot be kept; the file is then as it was.
        """
        write_atomic(self.path(lesson, step), text)

    def start(self, lesson: Lesson, step: int) -> Path:
        """The step's file, made from the code that the step begins with if there is none yet.

        In a lesson that continues another it is made anew as long as nobody has changed it: the
        earlier lesson's code may be another one by now. Raises StorageError if it cannot be made.
        """
        path = self.path(lesson, step)
        if path.exists() and not self._is_as_begun(lesson, step):
            return path
        text = self.begins_with(lesson, step)
        if self._read(path, lesson) != text:
            self.save(lesson, step, text)
        if lesson.continued is not None:
            write_atomic(_begun(path), _digest(text.encode("utf-8", "replace")))
        return path

    def _is_as_begun(self, lesson: Lesson, step: int) -> bool:
        """Whether `start` made the file of a lesson that continues another, and nobody else."""
        if lesson.continued is None:
            return False
        path = self.path(lesson, step)
        try:
            return read_file(_begun(path)) == _digest(read_file(path)).encode()
        except OSError:
            return False

    def edited(self, lesson: Lesson, step: int) -> bool:
        """Whether the learner has changed the step's code."""
        return self.load(lesson, step) != self.begins_with(lesson, step)

    def reset(
        self, lesson: Lesson, step: int | None = None, *, keep: Path | None = None
    ) -> Path | None:
        """Put the files of a lesson, or of one step, aside.

        Returns the folder under `paths.backups` where they are now (`keep`, if given), or None if
        there were none. Raises StorageError if they cannot be moved.
        """
        folder = self.folder(lesson)
        found = [folder] if step is None else [self.path(lesson, step)]
        found = [path for path in found if path.exists()]
        if not found:
            return None
        try:
            backup = keep or self.new_backup()
            for path in found:
                target = backup / path.relative_to(self._paths.work)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.move(path, target)
        except OSError as error:
            raise StorageError(
                f"{folder} could not be put aside, so nothing was reset: {reason(error)}."
            ) from None
        return backup

    def new_backup(self) -> Path:
        """A fresh folder under `paths.backups`, named by the time. Raises StorageError."""
        name = datetime.now().strftime("%Y-%m-%d_%H-%M-%S")
        try:
            self._paths.backups.mkdir(parents=True, exist_ok=True)
            for number in range(1000):
                folder = self._paths.backups / (f"{name}_{number}" if number else name)
                try:
                    folder.mkdir()
                except FileExistsError:
                    continue
                return folder
        except OSError as error:
            raise StorageError(
                f"No backup can be made in {self._paths.backups}: {reason(error)}."
            ) from None
        raise StorageError(f"No backup can be made in {self._paths.backups}: it is too full.")


def _begun(path: Path) -> Path:
    """Where the digest lies of what `start` wrote to a file."""
    return path.with_name(f".{path.name}.begun")


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def write_atomic(path: Path, text: str) -> None:
    """Replace a file's text in one move, keeping its mode and following a link.

    Raises StorageError with the old file untouched.
    """
    # A learner may have linked the file into a repository of their own: the link stays.
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".{target.name}.{os.urandom(4).hex()}.tmp")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            _write_whole(temporary, text.encode("utf-8", "replace"), _mode(target))
            os.replace(temporary, target)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise StorageError(
            f"{path} was not saved: {reason(error)}. The file is as it was before."
        ) from None


def _write_whole(path: Path, data: bytes, mode: int | None) -> None:
    with open(path, "xb") as file:
        if mode is not None:
            os.fchmod(file.fileno(), mode)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _mode(path: Path) -> int | None:
    try:
        return stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return None


def _pane(lesson: Lesson, step: int) -> "Pane":
    pane = lesson.steps[step].pane
    if pane is None:
        raise ValueError(f"step {step + 1} of {lesson.id} has no code")
    return pane
