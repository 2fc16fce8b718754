"""`verify --watch`: proves a lesson again whenever one of its files is saved."""

import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from tensortutor.commands.session import Session
from tensortutor.learner.file_watch import POLL_S, FilesWatch

WATCHED = ("lessons/course.toml", "lessons/*/*.md", "checks/*/*.py")

Prove = Callable[[Collection[Path], Callable[[], bool]], None]
"""Proves the lessons of some files; gives up when its second argument says that it is stale."""


def watch(session: Session, root: Path, first: Collection[Path], prove: Prove) -> int:
    """Prove the lessons of `first`, then those whose files are saved. Ends with Ctrl+C: returns 0.

    root: the course.
    """

    def files() -> Iterator[Path]:
        for pattern in WATCHED:
            yield from root.glob(pattern)

    watched = FilesWatch(files)
    saved = set(first)
    news = set[Path]()

    def is_stale() -> bool:
        news.update(watched.poll())
        return bool(news)

    try:
        while True:
            if saved:
                prove(saved, is_stale)
            if not session.json:
                session.printer.note("Waiting for a lesson to be saved. Ctrl+C ends.")
            while not is_stale():
                time.sleep(POLL_S)
            saved = set(news)
            news.clear()
    except KeyboardInterrupt:
        return 0
