"""What lies around the sandbox: a home with secrets, others' files, open ports, a terminal."""

import contextlib
import hashlib
import json
import os
import secrets
import select
import socket
import subprocess
import termios
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[2]


@dataclass
class World:
    """A folder to attack. token marks what belongs to the test, secret must never be printed.

    since: when it was made, in the clock ticks that /proc gives for the start of a process.
    """

    folder: Path
    token: str = field(default_factory=lambda: f"tt{secrets.token_hex(6)}")
    secret: str = field(default_factory=lambda: f"secret{secrets.token_hex(8)}")

    def __post_init__(self) -> None:
        self.home = self.folder / "home"
        self.elsewhere = self.folder / "elsewhere"
        self.scratch = self.folder / "scratch"
        self.other_lesson = self.scratch / "other.lesson"
        for path in (self.home / ".ssh", self.elsewhere, self.other_lesson):
            path.mkdir(parents=True)
        for path in (
            self.home / ".ssh" / "id_ed25519", self.home / ".bashrc", self.home / "notes.txt",
            self.elsewhere / "data.txt", self.other_lesson / "model.pt",
        ):  # fmt: skip
            path.write_text(f"{self.secret}\n")
            path.chmod(0o600)
        # Somebody else's process, with a secret in its environment.
        self._neighbour = subprocess.Popen(
            ["sleep", "infinity"], env={"PASSWORD": self.secret, "MARK": self.token}
        )
        self.since = int(_about(self.neighbour)[19])
        self._listeners = [
            listen(socket.AF_INET, ("127.0.0.1", 0)),
            listen(socket.AF_UNIX, f"\0{self.token}"),
            listen(socket.AF_UNIX, str(self.elsewhere / "s")),
        ]
        self._screen, self._terminal = os.openpty()

    @property
    def neighbour(self) -> int:
        """The pid of a process beside the sandbox."""
        return self._neighbour.pid

    def environment(self) -> dict[str, str]:
        """Variables of the host. The first marks our processes, the others are secrets."""
        port = self._listeners[0].getsockname()[1]
        proxy = f"http://me:{self.secret}@127.0.0.1:{port}"
        return {
            "TORCH_TEST_MARKER": self.token, "HOME": str(self.home), "HF_TOKEN": self.secret,
            "AWS_SECRET_ACCESS_KEY": self.secret, "TORCH_PASSWORD": self.secret,
            "DATABASE_URL": self.secret, "SSH_AUTH_SOCK": str(self.elsewhere / "s"),
            "https_proxy": proxy, "HTTP_PROXY": proxy,
        }  # fmt: skip

    def told(self, zygote: int) -> str:
        """What every program learns about the world, as JSON in its first argument."""
        folders = {
            "home": self.home, "elsewhere": self.elsewhere, "scratch": self.scratch,
            "other_lesson": self.other_lesson, "checkout": CHECKOUT, "socket": self.elsewhere / "s",
            "terminal": os.ttyname(self._terminal),
        }  # fmt: skip
        about = {
            "token": self.token, "abstract": self.token, "host": os.getpid(), "zygote": zygote,
            "neighbour": self.neighbour, "port": self._listeners[0].getsockname()[1],
        }  # fmt: skip
        return json.dumps({**about, **{name: str(path) for name, path in folders.items()}})

    def fingerprint(self) -> dict[str, str]:
        """Every file around the sandbox with its owner, mode, times and content; the terminal."""
        found = {
            "terminal": str(
                (termios.tcgetattr(self._terminal), os.get_terminal_size(self._terminal))
            )
        }
        for top in (self.home, self.elsewhere, self.other_lesson):
            for path in (top, *sorted(top.rglob("*"))):
                status = path.lstat()
                content = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
                digest = hashlib.blake2b(content).hexdigest()
                found[str(path)] = (
                    f"{status.st_mode:o} {status.st_uid} {status.st_gid} {status.st_mtime_ns} "
                    f"{status.st_nlink} {os.listxattr(path, follow_symlinks=False)} {digest}"
                )
        return found

    def left_behind(self) -> list[str]:
        """Files with the token in their names, where a program may have put them."""
        own = (CHECKOUT, CHECKOUT / "tensortutor", self.folder, self.scratch)
        places = ("/tmp", "/var/tmp", "/dev/shm", "/dev/mqueue", "/", *map(str, own))
        return [
            os.path.join(place, name)
            for place in places
            if os.path.isdir(place)
            for name in os.listdir(place)
            if self.token in name
        ]

    def visited(self) -> list[str]:
        """The listeners that somebody has connected to, and the terminal if it has been used."""
        ends = {self._screen: "written to a terminal", self._terminal: "typed in a terminal"}
        found = []
        for end in select.select(ends, [], [], 0)[0]:
            os.read(end, 65536)
            found.append(ends[end])
        for listener in self._listeners:
            with contextlib.suppress(BlockingIOError):
                listener.accept()[0].close()
                found.append(repr(listener.getsockname()))
        return found

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        os.close(self._screen)
        os.close(self._terminal)
        self._neighbour.kill()
        self._neighbour.wait()

    def tidy(self) -> None:
        """Remove what an attack has left, so that it is not held against the next one."""
        self.visited()
        for path in self.left_behind():
            with contextlib.suppress(OSError):
                os.remove(path)


def listen(family: int, address: tuple[str, int] | str) -> socket.socket:
    """A socket that takes connections."""
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen()
    listener.setblocking(False)
    return listener


def processes(world: World) -> set[tuple[int, str]]:
    """Processes that carry the token in their environment or command line: (pid, start time).

    A keeper's environment is closed to all but root: to an ordinary user a process of their own
    that cannot be read counts if it comes from one that carries the token.
    """
    others = (os.getpid(), world.neighbour)
    table = {pid: found for pid in _pids() if pid not in others and (found := _seen(pid, world))}

    def belongs(pid: int) -> bool:
        seen = table.get(pid)
        if seen is None:
            return False
        return seen.marked is True or (seen.marked is None and belongs(seen.parent))

    return {(pid, seen.start) for pid, seen in table.items() if belongs(pid)}


@dataclass(frozen=True)
class Seen:
    """A process in /proc. marked: it carries the token; None if it cannot be read."""

    parent: int
    start: str
    marked: bool | None


def _pids() -> Iterator[int]:
    for name in os.listdir("/proc"):
        if name.isdigit():
            yield int(name)


def _about(pid: int) -> list[bytes]:
    """What /proc/PID/stat says after the name. Raises OSError."""
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].split()


def _read(path: str) -> bytes:
    with open(path, "rb", buffering=0) as file:  # read at once: this is done thousands of times
        return file.read()


def _seen(pid: int, world: World) -> Seen | None:
    """None: it is older than the world and has nothing to do with it, or it has just ended."""
    token = world.token.encode()
    try:
        about = _about(pid)
        if int(about[19]) < world.since:
            return None
        words = _read(f"/proc/{pid}/cmdline")
        try:
            words += _read(f"/proc/{pid}/environ")
            marked = token in words
        except PermissionError:
            # A process that has ended and waits to be collected ("Z") counts no more.
            marked = False if about[0] == b"Z" else (token in words or None)
    except OSError:
        return None
    return Seen(int(about[1]), about[19].decode(), marked)
