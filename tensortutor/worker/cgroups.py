"""Lets the kernel count what a run takes: a cgroup of version 2 for each run.

Cited below is the kernel's Documentation/admin-guide/cgroup-v2.rst, by its sections.

Run as a script, in front of the command that starts a zygote and outside its sandbox, this module
gets hold of a cgroup that may be divided, moves to a leaf of it and becomes that command:
`PYTHON -I -S cgroups.py WORD COMMAND...`, where each WORD in the command becomes the folder of that
cgroup. The zygote tries that folder out (`find_parent`), and each keeper makes a `RunCgroup` in it.
Whatever fails on the way means that memory is measured from /proc instead (`processes.py`).
"""

import contextlib
import errno
import os
import sys
import time

ROOT = "/sys/fs/cgroup"
"""Where version 2 is mounted if it has the machine for itself. Beside version 1 it counts none."""
CONTROLLERS = {"memory", "pids"}
LEAF = "tensortutor-worker"
"""The cgroup of zygote and keepers, beside those of the runs: "No Internal Process Constraint"."""
RUN = "tensortutor-run-"
OWN = "/proc/self/cgroup"
RUNTIME = "/run/user"
UNITS = (".scope", ".service", ".slice")
LONGEST_ANSWER_S = 1.0
LONGEST_REMOVAL_S = 2.0


class RunCgroup:
    """The cgroup of one run. All methods but `remove` raise OSError where the kernel refuses."""

    def __init__(self, parent: str) -> None:
        """Make it. It is reached by a descriptor: the run's own mounts will cover the path."""
        self._name = RUN + os.urandom(8).hex()
        os.mkdir(os.path.join(parent, self._name))
        self._parent = os.open(parent, os.O_RDONLY | os.O_DIRECTORY)
        # "Memory Interface Files": with one process of a run all of them are killed.
        self._write("memory.oom.group", "1")
        with contextlib.suppress(FileNotFoundError):  # the kernel swaps nothing
            self._write("memory.swap.max", "0")

    def limit(self, memory_bytes: int, tasks: int) -> None:
        """Set how much memory, and how many processes and threads together, there may be."""
        self._write("memory.max", str(memory_bytes))
        self._write("pids.max", str(tasks))

    def add(self, pid: int) -> None:
        """Move a process in. What it has taken before stays where it is ("Memory Ownership")."""
        self._write("cgroup.procs", str(pid))

    def processes(self) -> int:
        """How many there are; those that have ended and wait to be collected do not count."""
        return len(self._read("cgroup.procs").split())

    def exceeded(self) -> str:
        """The limit that was hit: "memory", "processes" or ""."""
        # `oom` counts this cgroup's own limit, `oom_kill` also kills for want of the machine's.
        memory = self._counts("memory.events")
        if memory.get("oom") and memory.get("oom_kill"):
            return "memory"
        return "processes" if self._counts("pids.events").get("max") else ""

    def kill(self) -> None:
        """Kill all that is in it, at once (since Linux 5.14; nothing happens before that)."""
        with contextlib.suppress(FileNotFoundError):
            self._write("cgroup.kill", "1")

    def remove(self) -> None:
        """Remove it as soon as all that was in it has ended; one that never empties stays."""
        deadline = time.monotonic() + LONGEST_REMOVAL_S
        while True:
            try:
                os.rmdir(self._name, dir_fd=self._parent)
            except OSError as error:
                if error.errno == errno.EBUSY and time.monotonic() < deadline:
                    time.sleep(0.01)
                    continue
            return

    def _write(self, file: str, text: str) -> None:
        write_file(f"{self._name}/{file}", text, self._parent)

    def _read(self, file: str) -> str:
        descriptor = os.open(f"{self._name}/{file}", os.O_RDONLY, dir_fd=self._parent)
        with open(descriptor, encoding="ascii") as opened:
            return opened.read()

    def _counts(self, file: str) -> dict[str, int]:
        """A "flat keyed" file ("Format")."""
        rows = (line.split() for line in self._read(file).splitlines())
        return {name: int(count) for name, count in rows}


def make_cgroup(parent: str) -> RunCgroup | None:
    """One for a run, in the folder that `find_parent` has named; None where there can be none."""
    with contextlib.suppress(OSError):
        return RunCgroup(parent) if parent else None
    return None


def write_file(path: str, text: str, folder: int | None = None) -> None:
    """Write a file of a cgroup's, which takes its text at once. folder: what path is relative to.

    Raises OSError.
    """
    descriptor = os.open(path, os.O_WRONLY, dir_fd=folder)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def read_words(path: str) -> list[str]:
    """The words of a small file. Raises OSError."""
    with open(path, encoding="ascii") as file:
        return file.read().split()


def own_cgroup() -> str:
    """The folder of this process's cgroup, "" where version 2 counts no memory."""
    with contextlib.suppress(OSError), open(OWN) as file:
        for line in file:
            if line.startswith("0::"):
                folder = (ROOT + line[3:].rstrip("\n")).rstrip("/")
                if set(read_words(f"{folder}/cgroup.controllers")) >= CONTROLLERS:
                    return folder
    return ""


def find_parent() -> tuple[str, str]:
    """Where cgroups of runs can be made, tried out with one; or "", and why nowhere."""
    folder = own_cgroup()
    if not folder:
        return "", "no cgroup of version 2 counts memory here"
    parent, leaf = os.path.split(folder)
    if leaf != LEAF:
        return "", "the cgroup here may not be divided, and no systemd of yours gave another"
    try:
        trial = RunCgroup(parent)
        try:
            trial.limit(1 << 30, 64)
            child = os.fork()
            if child == 0:
                with contextlib.suppress(OSError):
                    trial.add(os.getpid())
                    os._exit(0)
                os._exit(1)
            if os.waitpid(child, 0)[1] != 0:
                return "", "no process can be moved to another cgroup here"
        finally:
            trial.remove()
    except OSError as error:
        return "", f"a cgroup cannot be used here ({error.strerror})"
    return parent, ""


# --- outside the sandbox, before there is a zygote ---


def enter_leaf() -> str:
    """Move to a leaf of a cgroup that may be divided. That cgroup, "" if there is none."""
    own = own_cgroup()
    parent, leaf = os.path.split(own)
    if leaf == LEAF:
        return parent  # another one has been here: what started this process was moved along
    if own and is_delegated(own) and enable_controllers(own):
        return own
    if own and move_to_scope():
        own = own_cgroup()
        if enable_controllers(own):
            return own
    return ""


def is_delegated(folder: str) -> bool:
    """The cgroup is this user's to divide ("Delegation"), and systemd will not do so itself."""
    if not os.access(folder, os.W_OK):
        return False
    if not folder.endswith(UNITS):
        return True
    with contextlib.suppress(OSError):
        return os.getxattr(folder, "user.delegate") == b"1"  # systemd marks what it has given away
    return False


def enable_controllers(folder: str) -> bool:
    """Let cgroups in this one count. That moves all processes in it to a leaf: this one and those
    that have started it; where there are others it is left as it is."""
    with contextlib.suppress(OSError):
        inside = read_words(f"{folder}/cgroup.procs")
        if not set(inside) <= ancestors():
            return False
        os.makedirs(f"{folder}/{LEAF}", exist_ok=True)
        for pid in inside:
            write_file(f"{folder}/{LEAF}/cgroup.procs", pid)
        write_file(f"{folder}/cgroup.subtree_control", " ".join(f"+{name}" for name in CONTROLLERS))
        return True
    return False


def ancestors() -> set[str]:
    """This process, what started it, and so on."""
    found, pid = set(), str(os.getpid())
    while pid != "0":
        found.add(pid)
        with open(f"/proc/{pid}/stat") as file:
            pid = file.read().rpartition(")")[2].split()[1]
    return found


def remove_empty(parent: str) -> None:
    """Remove what keepers have left that were killed. The kernel keeps those that are in use."""
    for name in os.listdir(parent) if parent else ():
        if name.startswith(RUN):
            with contextlib.suppress(OSError):
                os.rmdir(os.path.join(parent, name))


def move_to_scope() -> bool:
    """Have this user's systemd make a cgroup for this process and delegate it.

    What `systemd-run --user --scope -p Delegate=yes` asks for, asked for a process that runs
    already: where there is no answer in time, it goes on as if nothing had been asked.
    """
    runtime = f"{RUNTIME}/{os.getuid()}"
    if not os.path.exists(f"{runtime}/bus"):
        return False
    import subprocess

    pid, before = str(os.getpid()), own_cgroup()
    systemd = ("org.freedesktop.systemd1", "/org/freedesktop/systemd1")
    what = ("org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))")
    properties = ("2", "PIDs", "au", "1", pid, "Delegate", "b", "true", "0")
    try:
        subprocess.run(
            ["busctl", "--user", "call", *systemd, *what, f"tensortutor-{pid}.scope", "fail",
             *properties],
            env={**os.environ, "XDG_RUNTIME_DIR": runtime}, timeout=LONGEST_ANSWER_S, check=True,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return False
    deadline = time.monotonic() + LONGEST_ANSWER_S
    while own_cgroup() == before and time.monotonic() < deadline:
        time.sleep(0.005)  # the answer comes before the process is moved
    return own_cgroup() != before


def main(word: str, *command: str) -> None:
    """Become the command, in a leaf of a cgroup that may be divided if there is one."""
    parent = ""
    with contextlib.suppress(Exception):  # whatever goes wrong here, programs are run
        parent = enter_leaf()
        remove_empty(parent)
    command = tuple(parent if parent and part == word else part for part in command)
    os.execvp(command[0], command)


if __name__ == "__main__":
    main(*sys.argv[1:])
