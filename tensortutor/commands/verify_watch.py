"""`verify --watch`: proves a lesson again whenever one of its files is saved."""

import time
from collections.abc import Callable, Collection
from functools import partial
from pathlib import Path

from tensortutor.commands.session import Session

LOOK_EVERY_S = 0.3
WATCHED = ("lessons/course.toml", "lessons/*/*.md", "checks/*/*.py")

Stamps = dict[Path, tuple[int, int]]
Prove = Callable[[Collection[Path], Callable[[], bool]], None]
"""Proves the lessons of some files; gives up when its second argument says that it is stale."""


def watch(session: Session, root: Path, first: Collection[Path], prove: Prove) -> int:
    """Prove the lessons of `first`, then those whose files are saved. Ends with Ctrl+C: returns 0.

    root: the course. Looks at the files' times every LOOK_EVERY_S: that works on every file
    system, and a course has a few hundred files.
    """
    seen = stamps(root)
    try:
        if first:
            prove(first, partial(has_changed, root, seen))
        while True:
            if not session.json:
                session.printer.note("Waiting for a lesson to be saved. Ctrl+C ends.")
            while (now := stamps(root)) == seen:
                time.sleep(LOOK_EVERY_S)
            saved = {path for path in now.keys() | seen.keys() if now.get(path) != seen.get(path)}
            seen = now
            prove(saved, partial(has_changed, root, seen))
    except KeyboardInterrupt:
        return 0


def has_changed(root: Path, seen: Stamps) -> bool:
    """Something has been saved since then."""
    return stamps(root) != seen


def stamps(root: Path) -> Stamps:
    """When each file of a course was written, and its size."""
    found = {}
    for pattern in WATCHED:
        for path in root.glob(pattern):
            try:
                status = path.stat()
            except OSError:
                continue  # an editor puts a new file in the place of the old one
            found[path] = status.st_mtime_ns, status.st_size
    return found
