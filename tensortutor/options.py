"""What the command line tells the app. Importing this costs nothing."""

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class OwnOptions:
    """What `open` was told. file: None for the scratch pad. arguments: the program's own.

    read, write: folders that the program may read, or read and write, beside the file's own.
    """

    file: Path | None = None
    arguments: tuple[str, ...] = ()
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()


@dataclass(frozen=True)
class Place:
    """Where programs run, if not on this machine.

    name: what the learner calls it. launch: the words of a command that runs the command behind it
    in that place, with its own stdin and stdout, as `ssh HOST` does; or "unix:SOCKET" (see below).
    setup: a line for the shell there, before the interpreter is started, or "". python: the
    interpreter there.
    """

    name: str
    launch: tuple[str, ...]
    setup: str = ""
    python: str = "python3"

    @property
    def socket(self) -> str:
        """The path behind "unix:", where a worker shares this machine's PyTorch, or ""."""
        kind, _, path = self.launch[0].partition(":")
        return path if kind == "unix" else ""


@dataclass(frozen=True)
class AppOptions:
    """How the app was started.

    course: a course's folder, or None for the built-in one. device: "auto", "cpu", "cuda",
    "cuda:N" or "mps". sandbox: "auto", "full", "landlock" or "limits". python: the interpreter
    that runs the learner's code, or None for this one. on: the name of a place of the settings or a
    command (see `Place`), or "" for this machine. lesson: where to begin, or None for where the
    learner was. teach: for a room, with nothing kept. tour: a short look at the app, with nothing
    kept. own: a program of the learner's own to begin with.
    """

    course: Path | None = None
    device: str = "auto"
    sandbox: str = "auto"
    python: str | None = None
    on: str = ""
    lesson: str | None = None
    teach: bool = False
    tour: bool = False
    own: OwnOptions | None = None
