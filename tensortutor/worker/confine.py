"""Shuts a process in, in three layers (see DESIGN: full, landlock, limits).

The keeper calls `isolate` before it forks the program's process. That process calls `prepare`
while it waits and `shut` when the job is there, since only the job says which scratch folder is
its own.
"""

import contextlib
import glob
import os
import resource
import shutil
import tempfile

from tensortutor.protocol.jobs import Limits
from tensortutor.protocol.layers import FULL, LIMITS
from tensortutor.protocol.setup import Setup
from tensortutor.worker import kernel
from tensortutor.worker.cgroups import ancestors

FRESH = ("/tmp", "/dev/shm")
"""Folders in memory that each run has for itself."""
FOLDER_PREFIX = "tensortutor-run-"
LESSON = "/lesson"
"""Where a program's scratch folder is seen when it has a mount namespace of its own."""
MOST_INODES = 1 << 15
"""Files and folders in each folder in memory: an empty one takes about 1 KB of the kernel's."""
MOST_DESCRIPTORS = 1024
CUTS, SCOPES = 3, 6
"""The versions of Landlock from which on it knows truncation (Linux 6.2) and signals (6.12)."""
NICENESS = 5
WRITABLE_DEVICES = (
    "/dev/null",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/tty",
)
GPU_DEVICES = "/dev/nvidia*"
"""What NVIDIA's driver is spoken to through: opened again by each process that uses a GPU."""


def isolate(layer: str) -> bool:
    """Give the children of this process namespaces of their own (PIDs, mounts, IPC).

    Only inside bubblewrap: it has made the file system read-only already. False where the kernel
    or its security module does not let an unprivileged process do this.
    """
    if layer != FULL:
        return False
    uid, gid = os.getuid(), os.getgid()
    flags = kernel.CLONE_NEWUSER | kernel.CLONE_NEWNS | kernel.CLONE_NEWPID | kernel.CLONE_NEWIPC
    try:
        kernel.unshare(flags)
        kernel.map_own_user(uid, gid)
    except OSError:
        return False
    return True


def why_not_isolated() -> str:
    """Why the runs of the full layer cannot have namespaces of their own here, or "".

    For a process that ends then: it tries. A security module may give namespaces and let nobody
    mount in them.
    """
    if not isolate(FULL):
        return "a program can have none of its own inside bubblewrap"
    try:
        kernel.mount("tmpfs", "/tmp", "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
    except OSError as error:
        return str(error)
    return ""


class Confinement:
    """What shuts one program's process in."""

    def __init__(self, setup: Setup, *, isolated: bool, folder: str, cgroups: str = "") -> None:
        """isolated: what `isolate` said. folder: the run's own temporary folder.

        cgroups: the folder of those of all runs, for no run to see, or "".
        """
        self._setup = setup
        self.isolated = isolated
        self.folder = folder
        self._cgroups = cgroups
        self._landlock: kernel.Landlock | None = None

    def prepare(self) -> None:
        """Everything that does not depend on the job."""
        if self._setup.layer == LIMITS or not kernel.LINUX:
            return
        if self.isolated:
            mount_proc()
            for path in FRESH:
                self._mount_fresh(path)
            # Its own cgroup is the root of all that it can see of them.
            kernel.unshare(kernel.CLONE_NEWCGROUP)
            if self._cgroups:
                kernel.mount("tmpfs", self._cgroups, "tmpfs", kernel.MS_RDONLY)
            os.makedirs(self.folder, exist_ok=True)
        elif kernel.landlock_version():
            self._landlock = kernel.Landlock()
            for path in self._setup.readable:
                self._landlock.allow(path)
            for path in self._setup.writable:
                self._landlock.allow(path, write=True, make=True)
            for path in WRITABLE_DEVICES:
                self._landlock.allow(path, write=True)
            self._landlock.allow("/dev/shm", write=True, make=True)
            nodes = glob.glob(GPU_DEVICES)
            for path in nodes:
                self._landlock.allow(path, write=True)
            # CUDA names its threads in /proc, also in processes that are yet to come. Root could
            # change the kernel's settings there: root's programs use the GPU in this process alone.
            everywhere = bool(nodes) and os.getuid() != 0
            self._landlock.allow("/proc" if everywhere else "/proc/self", write=True)
            self._landlock.allow(self.folder, write=True, make=True)

    def shut(self, scratch: str, limits: Limits, *, network: bool = False) -> str:
        """Close everything but `scratch` (a name below the setup's folder, or "").

        network: leave TCP open, which ranks need (in the full layer: of this sandbox alone).
        Returns the folder to work in.
        """
        cwd = self._scratch_folder(scratch)
        if self.isolated:
            cwd = self._cover_scratch(cwd, limits)
        if kernel.LINUX:
            kernel.drop_capabilities()  # root has them in every layer
        if self._setup.layer != LIMITS and kernel.LINUX:
            kernel.prctl(kernel.PR_SET_NO_NEW_PRIVS, 1)
            if self._landlock is not None:
                self._landlock.allow(cwd, write=True, make=True)
                self._landlock.enforce()
            # Where Landlock does not keep signals from other processes, the filter does.
            exposed = kernel.landlock_version() < SCOPES and not self.isolated
            kernel.seccomp(
                network=network or self._setup.layer == FULL,
                truncation=self._landlock is None or kernel.landlock_version() >= CUTS,
                protected=protected_processes() if exposed else (),
            )
        set_limits(limits)
        os.chdir(cwd)
        return cwd

    def _mount_fresh(self, folder: str) -> None:
        """An empty folder in memory, with what must stay visible below it bound again."""
        below = [
            p for p in (*self._setup.readable, self._setup.scratch) if p.startswith(folder + "/")
        ]
        held = [(path, os.open(path, os.O_PATH)) for path in below if os.path.exists(path)]
        kernel.mount("tmpfs", folder, "tmpfs", kernel.MS_NOSUID | kernel.MS_NODEV)
        for path, descriptor in held:
            source = f"/proc/self/fd/{descriptor}"
            made = False
            if os.path.isdir(source):
                os.makedirs(path, exist_ok=True)
            elif not os.path.exists(path):  # it may lie in a folder bound before, read-only
                os.makedirs(os.path.dirname(path), exist_ok=True)
                os.close(os.open(path, os.O_CREAT | os.O_WRONLY))
                made = True
            try:
                kernel.mount(source, path, "", kernel.MS_BIND | kernel.MS_REC)
            except FileNotFoundError:
                # An editor has replaced the file since the sandbox was made: it has no name now.
                if made:
                    os.unlink(path)
            os.close(descriptor)

    def _scratch_folder(self, scratch: str) -> str:
        if not scratch:
            return self.folder
        path = os.path.join(self._setup.scratch, os.path.basename(scratch))
        os.makedirs(path, exist_ok=True)
        return path

    def _cover_scratch(self, cwd: str, limits: Limits) -> str:
        """Show this lesson's folder alone, and limit the memory that files in /tmp may take."""
        size = f"size={limits.file_bytes},nr_inodes={MOST_INODES}"
        again = kernel.MS_REMOUNT | kernel.MS_NOSUID | kernel.MS_NODEV
        for path in FRESH:
            kernel.mount("tmpfs", path, "tmpfs", again, size)
        if cwd == self.folder:
            kernel.mount("tmpfs", self._setup.scratch, "tmpfs", kernel.MS_RDONLY)
            return cwd
        kernel.mount(cwd, LESSON, "", kernel.MS_BIND | kernel.MS_REC)
        kernel.mount("tmpfs", self._setup.scratch, "tmpfs", kernel.MS_RDONLY)
        return LESSON


def mount_proc() -> None:
    """A /proc of this PID namespace, where nothing but a process's own files can be changed.

    Those must be open to writing: CUDA names its threads there, and fails where it cannot. What is
    not about processes belongs to root, who could write the kernel's settings: then it is made
    read-only.
    """
    flags = kernel.MS_NOSUID | kernel.MS_NODEV | kernel.MS_NOEXEC
    again = kernel.MS_BIND | kernel.MS_REMOUNT | kernel.MS_RDONLY
    try:
        kernel.mount("proc", "/proc", "proc", flags)
    except OSError:
        # Refused where parts of the outer one are covered; then that one, read-only.
        kernel.mount("", "/proc", "", again | flags)
        return
    if os.getuid() != 0:
        return
    for name in os.listdir("/proc"):
        path = os.path.join("/proc", name)
        if not name.isdigit() and not os.path.islink(path):
            with contextlib.suppress(FileNotFoundError):  # a driver has gone meanwhile
                kernel.mount(path, path, "", kernel.MS_BIND)
                kernel.mount("", path, "", again | flags)


def continue_in_own_namespaces(layer: str) -> None:
    """Go on in a child that is confined as far as a waiting program is, and sees itself in /proc.

    Where that cannot be, go on in this process. The parent ends with its child.
    """
    if isolate(layer):
        child = os.fork()
        if child:
            os.waitpid(child, 0)
            os._exit(0)
        mount_proc()


def set_limits(limits: Limits) -> None:
    """Per-process limits. Memory by RLIMIT_DATA: RLIMIT_AS would break CUDA."""
    lower(resource.RLIMIT_DATA, limits.memory_bytes)
    lower(resource.RLIMIT_FSIZE, limits.file_bytes)
    lower(resource.RLIMIT_CORE, 0)
    # Each socket holds buffers that no process has mapped.
    lower(resource.RLIMIT_NOFILE, MOST_DESCRIPTORS)
    # The app answers keys while a program computes.
    os.nice(NICENESS)
    # Twice the wall time on every core: the wall clock is the keeper's, this one is a backstop.
    lower(resource.RLIMIT_CPU, int(limits.wall_s * 2 * (os.cpu_count() or 1)) + 10)


def protected_processes() -> list[int]:
    """The keeper, the zygote, the app and what started them; their groups as negative numbers."""
    found = [int(pid) for pid in ancestors() if int(pid) != os.getpid()]
    groups: set[int] = set()
    for pid in found:
        with contextlib.suppress(OSError):  # of another session, on some systems
            groups.add(-os.getpgid(pid))
    return [*found, *groups]


def lower(which: int, value: int) -> None:
    """Set a limit, never above what the system has set already."""
    _, hard = resource.getrlimit(which)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(which, (value, value))


def make_folder(*, isolated: bool) -> str:
    """A temporary folder for one run; in namespaces of its own the path alone is needed."""
    if isolated:
        return "/tmp/run"
    # Not in the learner's home: a Unix socket's path, and multiprocessing makes some there, may
    # have 107 bytes.
    return tempfile.mkdtemp(prefix=f"{FOLDER_PREFIX}{namespace()}-{os.getpid()}-")


def remove_stale_folders() -> None:
    """Remove the folders of keepers that were killed. Another PID namespace's are not judged."""
    ours = f"{FOLDER_PREFIX}{namespace()}-"
    with os.scandir(tempfile.gettempdir()) as entries:
        found = [entry.path for entry in entries if entry.name.startswith(ours)]
    for path in found:
        try:
            os.kill(int(os.path.basename(path)[len(ours) :].partition("-")[0]), 0)
        except ProcessLookupError:
            shutil.rmtree(path, ignore_errors=True)
        except (OSError, ValueError):
            continue  # somebody else's process, or folder


def namespace() -> str:
    """The number of this process's PID namespace, "0" where there is no such thing."""
    try:
        return str(os.stat("/proc/self/ns/pid").st_ino)
    except OSError:
        return "0"
