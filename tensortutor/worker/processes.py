"""The processes below this one, read from /proc (the keeper's view)."""

import os
import signal


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


def descendants() -> list[str]:
    """All processes below this one, parents before children."""
    found = children("self")
    for pid in found:  # grows while it is walked
        found += children(pid)
    return found


def too_many(most_processes: int, most_threads: int) -> bool:
    """There are more processes, or more threads in all, below this one than allowed."""
    found = descendants()
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
    found = descendants()
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
