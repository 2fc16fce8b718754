"""The processes below this one, read from /proc (the keeper's view)."""

import contextlib
import os
import signal

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


def memory_of_all(enough: int, most: int) -> int:
    """Bytes of memory that the processes below this one have for themselves.

    most: look at no more processes than that; the measuring of many would take seconds, in which
    they could become many more. Exact only when it may be more than `enough`: pages that forked
    processes share are counted in each of them at first, and only then divided among them, which
    takes milliseconds.
    """
    found = descendants(most)[:most]
    rough = sum(_kib(f"/proc/{pid}/status", ("RssAnon:", "RssShmem:")) for pid in found)
    if rough * 1024 <= enough:
        return rough * 1024
    names = ("Pss_Anon:", "Pss_Shmem:")
    return 1024 * sum(_kib(f"/proc/{pid}/smaps_rollup", names) for pid in found)


def _kib(path: str, names: tuple[str, ...]) -> int:
    """The sum of some lines of a file of /proc."""
    try:
        with open(path) as file:
            return sum(int(line.split()[1]) for line in file if line.startswith(names))
    except OSError:
        return 0  # it has just ended


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
