"""Watches over one program's process: passes orders on, reports its end, leaves nothing behind.

Where `isolate` gave a PID namespace, the keeper proper is the first process in it, and when it
ends the kernel ends all others. Elsewhere it is the subreaper of all that the program starts, and
ends them by name.
"""

import contextlib
import os
import select
import shutil
import signal
import socket
import time
from collections.abc import Iterator

from tensortutor.protocol.jobs import Limits
from tensortutor.protocol.setup import Allow, Exited, Interrupt, Kill, Setup
from tensortutor.worker import kernel, processes
from tensortutor.worker.cgroups import RunCgroup, make_cgroup
from tensortutor.worker.confine import LESSON, Confinement, isolate, make_folder
from tensortutor.worker.message_socket import MessageSocket
from tensortutor.worker.spare import become

LOOK_EVERY_S = 0.1
MEASURE_EVERY_S = 0.5
LONGEST_CLEAN_UP_S = 60.0
MOST_THREADS = 2048
LONGEST_WALK_S = 0.02
"""How long one look goes on walking over files; memory is measured in between."""
LONGEST_PATH = 2048
"""The system takes 4096 bytes; a program can make folders in folders beyond that."""
LEAST_BYTES = 4096
"""What any file or folder counts for: an empty one takes an inode too."""


def keep(
    setup: Setup, cgroups: str, channel: socket.socket, status: socket.socket, out: int, err: int
) -> None:
    """Run in a process of its own, forked from the zygote. Never returns.

    cgroups: the folder in which a cgroup for the run can be made, or "".
    """
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A scheduler tells all processes of a job: then the program ends, and this one cleans up.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    isolated = isolate(setup.layer)
    if kernel.LINUX:
        # Nobody reads this process's memory. (Not before: mapping users needs the contrary.)
        kernel.prctl(kernel.PR_SET_DUMPABLE, 0)
    folder = make_folder(isolated=isolated)
    cgroup = make_cgroup(cgroups)
    if isolated:
        first = os.fork()
        if first:
            channel.close()
            os.close(out)
            os.close(err)
            os.waitpid(first, 0)
            if cgroup is not None:
                cgroup.remove()
            os._exit(0)
        kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
    confinement = Confinement(setup, isolated=isolated, folder=folder, cgroups=cgroups)
    Keeper(setup, status, confinement, cgroup).watch(channel, out, err)


class Keeper:
    """The watching loop."""

    def __init__(
        self,
        setup: Setup,
        status: socket.socket,
        confinement: Confinement,
        cgroup: RunCgroup | None,
    ) -> None:
        """cgroup: where the kernel counts what the run takes; without one it is measured."""
        self._setup = setup
        self._status = status
        self._confinement = confinement
        self._isolated = confinement.isolated
        self._folder = confinement.folder
        self._cgroup = cgroup
        self._reason = ""
        self._allowed = Allow(Limits().processes, Limits().file_bytes, Limits().memory_bytes)
        self._next_memory = 0.0
        self._next_disk = 0.0
        self._walk: Iterator[int] | None = None
        self._taken = 0
        self._most_bytes = -1
        self._interrupting = False
        self._shared_before = processes.shared_files()
        self._machine_shared = 0

    def watch(self, channel: socket.socket, out: int, err: int) -> None:
        """Fork the program's process, see it through, clean up. Never returns."""
        if kernel.LINUX and not self._isolated:
            kernel.prctl(kernel.PR_SET_CHILD_SUBREAPER, 1)
        wakeup, wakeup_end = os.pipe()
        for descriptor in (wakeup, wakeup_end):
            os.set_blocking(descriptor, False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(wakeup_end, warn_on_full_buffer=False)
        hold, hold_end = os.pipe()
        program = os.fork()
        if program == 0:
            signal.set_wakeup_fd(-1)
            os.close(hold_end)
            os.read(hold, 1)  # the keeper closes its end when this process is in its cgroup
            for descriptor in (wakeup, wakeup_end, hold):
                os.close(descriptor)
            self._status.close()
            self._hand_over(channel, out, err)
        channel.close()
        for descriptor in (out, err, hold):
            os.close(descriptor)
        self._count(program)
        os.close(hold_end)
        ended = self._wait(program, wakeup)
        if self._cgroup is not None and not self._reason:
            # Nobody was asked: the kernel kills at the limit of memory.
            self._reason = self._cgroup.exceeded()
        self._clean_up(program)
        self._report(ended)
        os._exit(0)

    def _hand_over(self, channel: socket.socket, out: int, err: int) -> None:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        if kernel.LINUX:
            kernel.prctl(kernel.PR_SET_DUMPABLE, 1)
            kernel.prctl(kernel.PR_SET_PDEATHSIG, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        for source, target in ((nothing, 0), (out, 1), (err, 2)):
            os.dup2(source, target)
        keep_open = channel.fileno()
        os.closerange(3, keep_open)
        os.closerange(keep_open + 1, 1 << 12)
        become(channel, self._setup, self._confinement, self._folder)

    def _count(self, program: int = 0) -> None:
        """Have the kernel hold what is allowed. Where it refuses, memory is measured from here on.

        program: the process to count, if it is not counted yet.
        """
        if self._cgroup is None:
            return
        try:
            self._cgroup.limit(self._allowed.memory_bytes, MOST_THREADS)
            if program:
                self._cgroup.add(program)
        except OSError:
            self._cgroup = None

    def _wait(self, program: int, wakeup: int) -> int | None:
        """Until the program's process ends or is to be ended. Its wait status, or None."""
        link = MessageSocket(self._status)
        while True:
            ready, _, _ = select.select([self._status.fileno(), wakeup], [], [], LOOK_EVERY_S)
            if wakeup in ready:
                os.read(wakeup, 512)
            ended = reap(program)
            if ended is not None:
                return ended
            orders = link.receive_all() if self._status.fileno() in ready else []
            for order in orders:
                if isinstance(order, Allow):
                    self._allowed = order
                    self._count()
                    self._most_bytes, self._walk = -1, None
                    self._machine_shared = processes.machine_shared()
                    self._next_memory = self._next_disk = 0.0
                elif isinstance(order, Interrupt):
                    self._interrupting = True
                elif order is None or isinstance(order, Kill):
                    return None
            if self._interrupting:
                # Again and again: one that arrives just before a system call begins is noticed
                # only when the call returns. The program takes the first and ignores the others.
                os.kill(program, signal.SIGINT)
            self._reason = self._over_limit()
            if self._reason:
                return None

    def _over_limit(self) -> str:
        """The limit that the program has gone over, or ""."""
        if self._cgroup is not None:
            over = self._cgroup.exceeded()
            if not over and self._cgroup.processes() > self._allowed.processes:
                over = "processes"
        else:
            over = self._measure()
        return over or ("files" if self._too_much_disk() else "")

    def _measure(self) -> str:
        """As `RunCgroup.exceeded`, from /proc."""
        if processes.too_many(self._allowed.processes, MOST_THREADS):
            return "processes"
        now = time.monotonic()
        if now >= self._next_memory:
            memory, most = self._allowed.memory_bytes, self._allowed.processes
            if processes.memory_of_all(memory, most, self._machine_shared) > memory:
                return "memory"
            # Measuring takes time: never more than a tenth of it.
            self._next_memory = now + max(MEASURE_EVERY_S, 10 * (time.monotonic() - now))
        return ""

    def _too_much_disk(self) -> bool:
        """More on disk than allowed. A walk over many files goes on at the next look."""
        if self._walk is None:
            if time.monotonic() < self._next_disk:
                return False
            self._walk = disk_use(self._folders())
        began = time.monotonic()
        for taken in self._walk:
            # What has been counted already is too much, whatever is left to count.
            if 0 <= self._most_bytes < taken:
                return True
            self._taken = taken
            if time.monotonic() - began > LONGEST_WALK_S:
                return False
        self._walk = None
        self._next_disk = time.monotonic() + MEASURE_EVERY_S
        # What an earlier run left behind does not count, or this one could not even remove it.
        if self._most_bytes < 0:
            self._most_bytes = max(self._taken, self._allowed.file_bytes)
        found = processes.descendants(self._allowed.processes)
        return self._taken + processes.held_files(found).disk > self._most_bytes

    def _folders(self) -> tuple[str, ...]:
        """Where the program writes to disk. In namespaces of its own, /tmp is memory."""
        scratch = os.path.basename(self._allowed.scratch)
        if self._isolated:
            return (LESSON,) if scratch else ()
        own = (self._folder,)
        return (*own, os.path.join(self._setup.scratch, scratch)) if scratch else own

    def _clean_up(self, program: int) -> None:
        """End what is left. In a PID namespace the kernel does it when this process ends."""
        if self._isolated:
            return
        # All of its group at once: a program that forks without end cannot outrun that.
        if self._cgroup is not None:
            self._cgroup.kill()
        with contextlib.suppress(ProcessLookupError):
            os.killpg(program, signal.SIGKILL)
        deadline = time.monotonic() + LONGEST_CLEAN_UP_S
        while processes.end_descendants() and time.monotonic() < deadline:
            reap(program)
        shutil.rmtree(self._folder, ignore_errors=True)
        processes.remove_shared_files(self._shared_before)
        if self._cgroup is not None:
            self._cgroup.remove()

    def _report(self, ended: int | None) -> None:
        if ended is None or self._reason:
            exited = Exited(137, signal.SIGKILL, self._reason)
        elif os.WIFSIGNALED(ended):
            exited = Exited(128 + os.WTERMSIG(ended), os.WTERMSIG(ended))
        else:
            exited = Exited(os.WEXITSTATUS(ended))
        try:
            MessageSocket(self._status).send(exited)
        except OSError:
            return  # the host is gone; there is nobody to tell


def disk_use(roots: tuple[str, ...]) -> Iterator[int]:
    """Bytes on disk below some folders: the sum so far, after each entry; 0 first."""
    total = 0
    yield total
    folders: list[tuple[OpenFolder | None, str]] = [(None, root) for root in roots]
    while folders:
        above, path = folders.pop()
        try:
            if len(path) > LONGEST_PATH:
                above = OpenFolder(path)
                path = above.path
            with os.scandir(path) as entries:
                for entry in entries:
                    blocks = entry.stat(follow_symlinks=False).st_blocks
                    total += max(blocks * 512, LEAST_BYTES)
                    if entry.is_dir(follow_symlinks=False):
                        folders.append((above, entry.path))
                    yield total
        except OSError:
            continue  # removed while we looked


class OpenFolder:
    """A short path to a folder that lies deeper than any path reaches, for as long as it is used.

    Raises OSError.
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        self.path = f"/proc/self/fd/{self._descriptor}"

    def __del__(self) -> None:
        if hasattr(self, "_descriptor"):
            os.close(self._descriptor)


def reap(program: int) -> int | None:
    """Collect every dead child; the program's own wait status if it is among them."""
    found = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        if pid == program:
            found = status
