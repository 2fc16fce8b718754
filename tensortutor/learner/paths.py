"""Where everything that belongs to a learner lies."""

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tensortutor.learner.errors import reason


@dataclass(frozen=True)
class Paths:
    """The folders and files under one home.

    writable: False when the learner's own home cannot be written and `home` is a temporary
    folder, gone with this process. notices: sentences that the learner should see.
    """

    home: Path
    writable: bool = True
    notices: tuple[str, ...] = ()

    @classmethod
    def find(cls) -> "Paths":
        """`$TENSORTUTOR_HOME`, else the platform's data folder; made if it is not there.

        If it cannot be written, a temporary copy of what it holds serves, with a notice.
        """
        home = default_home()
        try:
            home.mkdir(parents=True, exist_ok=True)
            # Permission bits say little (root, ACLs, read-only mounts): only writing tells.
            with tempfile.TemporaryFile(dir=home):
                pass
        except OSError as error:
            return _borrowed(home, reason(error))
        return cls(home)

    @property
    def progress(self) -> Path:
        """The database of what was passed, answered and shown."""
        return self.home / "progress.db"

    @property
    def work(self) -> Path:
        """The learner's code, a folder per lesson."""
        return self.home / "work"

    @property
    def scratch(self) -> Path:
        """What programs write while they run."""
        return self.home / "scratch"

    @property
    def data(self) -> Path:
        """The learner's own data files, which programs may read."""
        return self.home / "data"

    @property
    def backups(self) -> Path:
        """What was put aside by a reset."""
        return self.home / "backups"

    @property
    def consent(self) -> Path:
        """Its being there says that the learner lets programs run without a sandbox."""
        return self.home / "runs_without_sandbox"

    @property
    def allowed_limits(self) -> Path:
        """What the learner lets courses use beyond the usual limits."""
        return self.home / "allowed_limits.json"

    @property
    def class_stopped(self) -> Path:
        """The folders of classes with which the learner has stopped sharing, one a line."""
        return self.home / "class_stopped.txt"

    @property
    def ui_state(self) -> Path:
        """How the app was left."""
        return self.home / "remembered.json"

    @property
    def settings(self) -> Path:
        """The learner's preferences."""
        return self.home / "settings.toml"


def default_home() -> Path:
    """Where a learner's things are kept unless told otherwise."""
    chosen = os.environ.get("TENSORTUTOR_HOME")
    if chosen:
        return Path(chosen).expanduser().absolute()
    from platformdirs import user_data_path

    return user_data_path("tensortutor")


def _borrowed(home: Path, why: str) -> Paths:
    folder = Path(tempfile.mkdtemp(prefix="tensortutor-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    notices = [
        f"Nothing of this session will be kept: {home} cannot be written ({why}). "
        "Set TENSORTUTOR_HOME to a folder that can."
    ]
    borrowed = Paths(folder)
    original = Paths(home)
    try:
        if original.progress.is_file():
            shutil.copyfile(original.progress, borrowed.progress)
        if original.settings.is_file():
            shutil.copyfile(original.settings, borrowed.settings)
        if original.class_stopped.is_file():
            shutil.copyfile(original.class_stopped, borrowed.class_stopped)
        if original.work.is_dir():
            shutil.copytree(original.work, borrowed.work)
    except (OSError, shutil.Error):
        notices.append(f"What {home} holds could not be read in full.")
    return Paths(folder, writable=False, notices=tuple(notices))
