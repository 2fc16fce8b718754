"""Which layer of confinement this machine allows, and the command line that sets it up."""

import ctypes
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tensortutor.protocol.layers import FULL, LANDLOCK, LIMITS
from tensortutor.runner.errors import NoSandbox, RunnerError
from tensortutor.runner.interpreter import Interpreter, existing, link_folders

PACKAGE = Path(__file__).resolve().parent.parent
GUEST = ("__init__.py", "protocol", "drawing", "lab", "worker", "checking")
"""The parts of our own package that a program's process imports."""
LIBRARIES = ("jedi", "parso")

SYSTEM = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/sys", "/proc",
    "/etc/alternatives", "/etc/fonts", "/etc/group", "/etc/host.conf", "/etc/hosts",
    "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/localtime",
    "/etc/mime.types", "/etc/nsswitch.conf", "/etc/OpenCL", "/etc/passwd", "/etc/protocols",
    "/etc/services", "/etc/ssl/certs", "/etc/timezone",
)  # fmt: skip
"""What programs may read of the system. Everything else, homes above all, is not there."""

LANDLOCK_CREATE, LANDLOCK_VERSION = 444, 1
CGROUPS = "/sys/fs/cgroup/cgroup.controllers"
"""Where version 2 has the machine for itself."""
CGROUP = "/sys/fs/cgroup/of this worker"
"""Stands for a folder that is known only when the worker starts."""


@dataclass(frozen=True)
class Layer:
    """A layer, and why it is no stronger one ("" for the strongest)."""

    name: str
    why: str = ""


def choose_layer(wanted: str, full: Sequence[str] = ()) -> Layer:
    """The strongest layer that works here, or the one asked for.

    full: how an interpreter would be started in the full layer (see `why_no_full`). Raises
    RunnerError if the layer asked for does not work here, NoSandbox if "auto" finds none.
    """
    if wanted == LIMITS:
        return Layer(LIMITS, "you asked for it")
    no_full = why_no_full(full)
    if wanted in ("auto", FULL) and not no_full:
        return Layer(FULL)
    if wanted == FULL:
        raise RunnerError(f"The full sandbox does not work here: {no_full}.")
    no_landlock = why_no_landlock()
    if not no_landlock:
        return Layer(LANDLOCK, "you asked for it" if wanted == LANDLOCK else no_full)
    if wanted == LANDLOCK:
        raise RunnerError(f"Landlock does not work here: {no_landlock}.")
    raise NoSandbox(
        f"Programs cannot be confined here: {no_full}; {no_landlock}. They could read and change "
        "your files. To run them all the same, say --sandbox limits."
    )


def why_no_full(full: Sequence[str] = ()) -> str:
    """What keeps bubblewrap from working, or "".

    full: the command line to try, which ends with an interpreter's path; without one, that of this
    process's own interpreter. The trial has the arguments of the real run: bubblewrap has several
    ways to the same namespaces, and not all of them are open to everybody. Inside it a program must
    be able to get namespaces of its own, or it would run in a weaker layer than the one told.
    """
    if not sys.platform.startswith("linux"):
        return "namespaces exist on Linux only"
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed (apt-get install bubblewrap)"
    script = os.path.join(PACKAGE, "worker", "__main__.py")
    try:
        trial = subprocess.run(
            [*(full or own_full()), "-I", "-S", script, "try"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, errors="replace", timeout=10,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError) as error:
        return f"bubblewrap cannot run ({error})"
    if trial.returncode != 0:
        reason = (trial.stderr.strip().splitlines() or ["no reason given"])[-1]
        return f"user namespaces are closed here ({reason})"
    return ""


def own_full() -> list[str]:
    """How this process's own interpreter would be started in the full layer."""
    folders = existing([sys.prefix, sys.base_prefix, sys.exec_prefix])
    own = Interpreter(sys.executable, (*folders, *link_folders(sys.executable)))
    return [*bubblewrap(readable_paths(own), Path(tempfile.gettempdir())), own.path]


def why_no_landlock() -> str:
    """What keeps Landlock from working, or ""."""
    if not sys.platform.startswith("linux"):
        return "Landlock exists on Linux only"
    libc = ctypes.CDLL(None, use_errno=True)
    version = libc.syscall(LANDLOCK_CREATE, None, ctypes.c_size_t(0), LANDLOCK_VERSION)
    if version > 0:
        return ""
    return f"the kernel offers no Landlock ({os.strerror(ctypes.get_errno())})"


def readable_paths(interpreter: Interpreter) -> tuple[str, ...]:
    """What a program may read: the system, the interpreter, our guest parts; no course."""
    roots = [*SYSTEM, *interpreter.folders, *library_folders()]
    roots = [root for root in roots if os.path.exists(root) and not is_home(root)]
    hidden = hidden_folders()
    found: list[str] = []
    for root in dict.fromkeys(roots):
        found += without(root, hidden)
    found += [str(PACKAGE / part) for part in GUEST]
    found += library_packages()
    return tuple(dict.fromkeys(found))


def data_folder(folder: Path | None) -> tuple[str, ...]:
    """The folder of the learner's own data, which programs may read; none where it cannot be made.

    It is made now, because what is bound into a sandbox must be there when that is set up.
    """
    if folder is None:
        return ()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError:
        return ()
    return (str(folder.resolve()),)


def own_folders(folders: Iterable[Path]) -> tuple[str, ...]:
    """Folders that the learner opens to programs: nothing of the course's checks and solutions."""
    hidden = hidden_folders()
    found = [part for folder in folders for part in without(str(folder.resolve()), hidden)]
    return tuple(dict.fromkeys(found))


def whole_folders(folders: Iterable[Path]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The same for the full layer: folders as they are, and what is to be covered in them.

    A file that is bound alone is lost to programs as soon as an editor replaces it.
    """
    hidden = hidden_folders()
    whole: list[str] = []
    covered: list[str] = []
    for folder in folders:
        root = str(folder.resolve())
        within = [path for path in hidden if path.startswith(root.rstrip(os.sep) + os.sep)]
        whole += [root] if within else without(root, hidden)
        covered += within
    return tuple(dict.fromkeys(whole)), tuple(dict.fromkeys(covered))


def scratch_folder(folder: Path) -> Path:
    """The folder that holds one folder per lesson, absolute, made if it is not there.

    Raises RunnerError.
    """
    folder = folder.absolute()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise RunnerError(
            f"Programs have no place to write: the folder {folder} cannot be made "
            f"({error.strerror or error}). Move away what is in its place."
        ) from None
    return folder


def library_packages() -> tuple[str, ...]:
    """The folders of the packages that the assistant reads programs with, beside the guest's own.

    They are pure Python and are read by whatever interpreter there is.
    """
    specs = (importlib.util.find_spec(name) for name in LIBRARIES)
    return tuple(os.path.dirname(spec.origin) for spec in specs if spec and spec.origin)


def hidden_folders() -> tuple[str, ...]:
    """Where solutions, checks and the host's own code lie: this package, and its checkout."""
    beside = PACKAGE.parent
    checkout = [beside] if (beside / "checks").is_dir() and (beside / "lessons").is_dir() else []
    return tuple(str(path) for path in (PACKAGE, *checkout))


def without(root: str, hidden: tuple[str, ...]) -> list[str]:
    """`root`, or what is left of it (its children, and theirs) when a hidden folder lies in it."""
    real = os.path.realpath(root)
    if any(real == h or real.startswith(h + os.sep) for h in hidden):
        # An interpreter's own folder may lie in a checkout (a venv); its code does not.
        return [root] if os.path.exists(os.path.join(root, "pyvenv.cfg")) else []
    if not any(h.startswith(real + os.sep) for h in hidden):
        return [root]
    found: list[str] = []
    for name in sorted(os.listdir(root)):
        found += without(os.path.join(root, name), hidden)
    return found


def is_home(path: str) -> bool:
    """A home folder, or one that holds them: never shown whole."""
    home = os.path.realpath(os.path.expanduser("~"))
    real = os.path.realpath(path)
    return home == real or home.startswith(real.rstrip("/") + "/")


def library_folders() -> list[str]:
    """LD_LIBRARY_PATH, where CUDA's libraries may lie."""
    return [path for path in os.environ.get("LD_LIBRARY_PATH", "").split(":") if path]


def cgroup_command(command: list[str], layer: str) -> list[str]:
    """The same command, in a cgroup that may be divided if this machine gives it one.

    In the full layer that cgroup is mounted writable. Programs have mounts of their own, which
    cover it; where they cannot have those, Landlock alone keeps them from it.
    """
    if not os.path.exists(CGROUPS) or (layer == FULL and why_no_landlock()):
        return command
    script = os.path.join(PACKAGE, "worker", "cgroups.py")
    return [sys.executable, "-I", "-S", script, CGROUP, *command]


def bubblewrap(
    readable: tuple[str, ...],
    scratch: Path,
    writable: tuple[str, ...] = (),
    covered: tuple[str, ...] = (),
) -> list[str]:
    """The command line in front of the interpreter's. writable: of the readable ones.

    covered: folders in readable ones that are shown empty.

    Programs get namespaces of their own inside; here the file system is put together.
    """
    # Each program mounts a /proc of its own. The kernel allows that only where no part of the one
    # outside is covered, and for root bubblewrap covers parts of those that it mounts itself.
    proc = ("--bind", "/proc", "/proc") if os.getuid() == 0 else ("--proc", "/proc")
    command = [
        shutil.which("bwrap") or "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc",
        "--unshare-net", "--unshare-uts", "--hostname", "localhost",
        "--die-with-parent", "--new-session", *proc, "--dev", "/dev",
        "--tmpfs", "/tmp", "--tmpfs", "/dev/shm", "--dir", "/lesson", "--dir", "/run",
    ]  # fmt: skip
    # What lies in a folder comes after it: a longer path.
    for path in sorted({*readable, *covered} - {"/proc"}, key=len):
        if path in covered:
            command += ["--tmpfs", path]
        else:
            command += ["--bind-try" if path in writable else "--ro-bind-try", path, path]
    for node in sorted(Path("/dev").glob("nvidia*")):
        command += ["--dev-bind-try", str(node), str(node)]
    # Not `--unshare-cgroup`: a process can only be moved between cgroups of one namespace.
    command += ["--bind-try", CGROUP, CGROUP]  # nothing is there until `cgroup_command` names one
    command += ["--bind", str(scratch), str(scratch)]
    # What holds it all together is a folder in memory that every run would share.
    for path in ("/dev", *covered, "/"):
        command += ["--remount-ro", path]
    return [*command, "--chdir", "/tmp", "--"]
