"""Whether this machine, or the cgroup that we are in, is short of memory."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

SHORT = 0.25
"""Of the memory there is: less than this much to be had is short."""
PROC = Path("/proc")
CGROUPS = Path("/sys/fs/cgroup")


def is_short(proc: Path = PROC, cgroups: Path = CGROUPS) -> bool:
    """Less than a quarter can be had, of the machine's memory or of a limit that we are under.

    proc: where /proc is mounted. cgroups: where cgroups of version 1 or 2 are. What cannot be read
    is taken for enough.
    """
    return any(
        available < SHORT * total
        for total, available in (*of_machine(proc), *of_cgroups(proc, cgroups))
    )


def of_machine(proc: Path) -> Iterator[tuple[int, int]]:
    """Bytes that there are, and that can be had."""
    with contextlib.suppress(OSError, ValueError, LookupError):
        lines = (proc / "meminfo").read_text().splitlines()
        kib = {line.split(":")[0]: int(line.split()[1]) for line in lines if ":" in line}
        yield kib["MemTotal"] * 1024, kib["MemAvailable"] * 1024


def of_cgroups(proc: Path, root: Path) -> Iterator[tuple[int, int]]:
    """The same of each cgroup with a limit, from our own up to the root."""
    try:
        lines = (proc / "self/cgroup").read_text().splitlines()
    except OSError:
        return
    for line in lines:
        _, controllers, path = line.split(":", 2)
        if not controllers:
            files, top = ("memory.max", "memory.current", "inactive_file"), root
        elif "memory" in controllers.split(","):
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
            files, top = names, root / "memory"
        else:
            continue
        # In a container our own may be out of sight: its root is the container's.
        own = top / path.strip("/")
        for folder in (own, *own.parents):
            yield from of_cgroup(folder, *files)
            if folder == top:
                break


def of_cgroup(folder: Path, limit: str, used: str, cache: str) -> Iterator[tuple[int, int]]:
    """The same of one cgroup, if it has a limit. Its page cache can be had."""
    with contextlib.suppress(OSError, ValueError):
        total = int((folder / limit).read_text())  # "max": no limit
        taken = int((folder / used).read_text())
        with contextlib.suppress(OSError):
            fields = (line.split() for line in (folder / "memory.stat").read_text().splitlines())
            taken -= sum(int(value) for name, value in fields if name == cache)
        yield total, total - taken
