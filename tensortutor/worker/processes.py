"""The processes below this one, read from /proc (the keeper's view)."""

import contextlib
import os
import signal
from dataclasses import dataclass

from tensortutor.worker.socket_memory import files_in_flight, socket_bytes

MANY = 1024


def children(pid: str) -> list[str]:
    """The direct children of a process, over all its threads."""
    found: list[str] = []
    try:
        for thread in os.listdir(f"/proc/{pid}/task"):
            with open(f"/proc/{pid}/task/{thread}/children") as file:
                found += file.read().split()
    except OSError:
        return found  # it has just ended
    return found


def descendants(most: int) -> list[str]:
    """The processes below this one, parents before children; the walk ends at more than `most`.

    Without an end it would never catch up with a program that forks without end.
    """
    found = children("self")
    for pid in found:  # grows while it is walked
        if len(found) > most:
            break
        found += children(pid)
    return found


def too_many(most_processes: int, most_threads: int) -> bool:
    """There are more processes, or more threads in all, below this one than allowed."""
    found = descendants(most_processes)
    if len(found) > most_processes:
        return True
    threads = 0
    for pid in found:
        try:
            threads += len(os.listdir(f"/proc/{pid}/task"))
        except OSError:
            continue  # it has just ended
    return threads > most_threads


def end_descendants() -> bool:
    """Kill all processes below this one and collect them. True if there may be more."""
    found = descendants(MANY)
    for pid in found:
        try:
            os.kill(int(pid), signal.SIGKILL)
        except ProcessLookupError:
            continue
    while True:
        try:
            if os.waitpid(-1, os.WNOHANG)[0] == 0:
                return True
        except ChildProcessError:
            return bool(found)


def memory_of_all(enough: int, most: int, shared_before: int) -> int:
    """Bytes of memory that the processes below this one have for themselves, sockets included.

    most: look at no more processes than that; the measuring of many would take seconds, in which
    they could become many more. shared_before: what `machine_shared` said before they began. Exact
    only when it may be more than `enough`: pages that forked processes share are counted in each of
    them at first, and only then divided among them, which takes milliseconds.
    """
    found = descendants(most)[:most]
    files = held_files(found)
    held = files.memory
    if files.hidden or files_in_flight(found):
        # Nobody can say how large they are; the machine knows the sum.
        held = max(held, machine_shared() - shared_before)
    waiting = socket_bytes(found)
    # A page that is only read takes no memory, its entry in the page table does.
    waiting += 1024 * sum(_kib(pid, "status", "VmPTE:") for pid in found)
    anonymous = sum(_kib(pid, "status", "RssAnon:") for pid in found)
    mapped = sum(_kib(pid, "status", "RssShmem:") for pid in found)
    rough = waiting + _with_held(anonymous, mapped, held)
    if rough <= enough:
        return rough
    anonymous = sum(_share(pid, "Pss_Anon:", "RssAnon:") for pid in found)
    mapped = sum(_share(pid, "Pss_Shmem:", "RssShmem:") for pid in found)
    return waiting + _with_held(anonymous, mapped, held)


def _share(pid: str, divided: str, whole: str) -> int:
    """KiB of a process: divided among those that share it, or whole where nobody may look."""
    try:
        with open(f"/proc/{pid}/smaps_rollup") as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(divided))
    except PermissionError:
        return _kib(pid, "status", whole)
    except OSError:
        return 0  # it has just ended


def machine_shared() -> int:
    """Bytes of files in memory (memfd, /dev/shm, tmpfs), mapped or not, of the whole machine."""
    return 1024 * _kib("", "meminfo", "Shmem:")


def _with_held(anonymous_kib: int, mapped_kib: int, held: int) -> int:
    """Bytes in all. A file in memory may be both mapped and open: the larger of the two counts."""
    return 1024 * anonymous_kib + max(1024 * mapped_kib, held)


@dataclass(frozen=True)
class Held:
    """Bytes in open files that have no name: in memory (memfd, /dev/shm), and on disk.

    hidden: there is a process whose files cannot be seen.
    """

    memory: int
    disk: int
    hidden: bool = False


def held_files(pids: list[str]) -> Held:
    """What open files without a name take, each file once. Such files end with their last owner.

    Nobody but root may look into a process whose own program nobody may read.
    """
    memory: dict[tuple[int, int], int] = {}
    disk: dict[tuple[int, int], int] = {}
    hidden = False
    for pid in pids:
        with contextlib.suppress(OSError):  # it has just ended
            try:
                names = os.listdir(f"/proc/{pid}/fd")
            except PermissionError:
                hidden = True
                continue
            for name in names:
                with contextlib.suppress(OSError):
                    path = f"/proc/{pid}/fd/{name}"
                    target = os.readlink(path)
                    if not target.endswith(" (deleted)"):
                        continue
                    status = os.stat(path)
                    in_memory = target.startswith(("/memfd:", SHARED + "/"))
                    into = memory if in_memory else disk
                    into[status.st_dev, status.st_ino] = status.st_blocks * 512
    return Held(sum(memory.values()), sum(disk.values()), hidden)


def _kib(folder: str, file: str, name: str) -> int:
    """One line of a file of /proc; 0 if the process has just ended."""
    with contextlib.suppress(OSError), open(os.path.join("/proc", folder, file)) as opened:
        return sum(int(line.split()[1]) for line in opened if line.startswith(name))
    return 0


SHARED = "/dev/shm"


def shared_files() -> dict[int, str]:
    """The files of shared memory that this user owns, by inode."""
    try:
        with os.scandir(SHARED) as entries:
            return {
                entry.inode(): entry.path
                for entry in entries
                if entry.stat(follow_symlinks=False).st_uid == os.getuid()
            }
    except OSError:
        return {}  # there is no such folder, or one of them has just gone


def remove_shared_files(before: dict[int, str]) -> None:
    """Remove those that were not there before and that no process has mapped or open.

    By inode: a semaphore is mapped under another name than the one that it has in the folder.
    """
    new = {inode: path for inode, path in shared_files().items() if inode not in before}
    if not new:
        return
    used: set[int] = set()
    for pid in filter(str.isdigit, os.listdir("/proc")):
        used |= _used_by(pid)
    for inode, path in new.items():
        if inode not in used:
            with contextlib.suppress(OSError):
                os.unlink(path)


def _used_by(pid: str) -> set[int]:
    """The inodes of shared memory that a process has mapped or open, as far as we may see them."""
    used: set[int] = set()
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as file:
        used |= {int(line.split()[4]) for line in file if SHARED in line}
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                used.add(os.stat(f"/proc/{pid}/fd/{name}").st_ino)
    return used
