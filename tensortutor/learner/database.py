"""The file of the learner's record: its tables, whether it is sound, connections to it."""

import fcntl
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from datetime import datetime
from pathlib import Path

from tensortutor.learner.errors import StorageError

VERSION = 4
ASKED = ("id", "lesson", "at", "step", "quiz", "correct")
ADDED = {
    ("afresh", "lesson"): 2, ("attempt", "failing"): 3, ("lesson", "solution"): 4,
    **{("asked", column): 4 for column in ASKED},
}  # fmt: skip
"""The version from which on a column is there, where that is not the first."""
NEW_COLUMNS = {
    3: "ALTER TABLE attempt ADD COLUMN failing TEXT NOT NULL DEFAULT '[]';",
    4: "ALTER TABLE lesson ADD COLUMN solution INTEGER NOT NULL DEFAULT 0;",
}
"""What brings a table that is there already up to a version."""
BUSY_S = 10.0

SCHEMA = f"""
CREATE TABLE IF NOT EXISTS lesson (
    id TEXT PRIMARY KEY,
    passed_at TEXT,
    step INTEGER NOT NULL DEFAULT 0,
    hints INTEGER NOT NULL DEFAULT 0,
    seconds REAL NOT NULL DEFAULT 0,
    solution INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS step (
    lesson TEXT NOT NULL,
    step INTEGER NOT NULL,
    PRIMARY KEY (lesson, step)
);
CREATE TABLE IF NOT EXISTS attempt (
    id INTEGER PRIMARY KEY,
    lesson TEXT NOT NULL,
    at TEXT NOT NULL,
    passed INTEGER NOT NULL,
    checks_passed INTEGER NOT NULL,
    checks_total INTEGER NOT NULL,
    failing TEXT NOT NULL DEFAULT '[]'
);
CREATE TABLE IF NOT EXISTS answer (
    id INTEGER PRIMARY KEY,
    lesson TEXT NOT NULL,
    at TEXT NOT NULL,
    step INTEGER NOT NULL,
    quiz INTEGER NOT NULL,
    answer TEXT NOT NULL,
    correct INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS asked (
    id INTEGER PRIMARY KEY,
    lesson TEXT NOT NULL,
    at TEXT NOT NULL,
    step INTEGER NOT NULL,
    quiz INTEGER NOT NULL,
    correct INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS place (
    one INTEGER PRIMARY KEY CHECK (one = 1),
    lesson TEXT NOT NULL,
    step INTEGER NOT NULL
);
CREATE TABLE IF NOT EXISTS afresh (
    lesson TEXT PRIMARY KEY
);
PRAGMA user_version = {VERSION};
"""


def make_ready(path: Path) -> tuple[str, ...]:
    """Make the file if there is none, or bring it up to this version. Returns notices.

    A file that is broken is set aside under a new name. Raises StorageError if the file was written
    by a newer version; OSError and sqlite3.Error if nothing can be opened.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    # Two sessions that start at once must not set each other's new file aside.
    with _alone(path.with_name("progress.lock")):
        notices = () if _sound(path) else (_set_aside(path),)
        _create(path)
    return notices


def connect(path: Path, create: bool = False) -> sqlite3.Connection:
    """A connection that leaves transactions to us. A file that vanished is not made anew."""
    uri = f"{path.absolute().as_uri()}?mode={'rwc' if create else 'rw'}"
    return sqlite3.connect(uri, uri=True, timeout=BUSY_S, isolation_level=None)


@contextmanager
def immediate(connection: sqlite3.Connection) -> Iterator[None]:
    """One change, all of it or nothing."""
    # IMMEDIATE takes the lock at once: two readers that both want to write would deadlock.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        with suppress(sqlite3.Error):  # a full disk has rolled back already
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")


@contextmanager
def _alone(lock: Path) -> Iterator[None]:
    # Opened for both, because a FIFO opened for writing alone waits for a reader.
    with open(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666), "rb") as file:
        # Some network file systems have no locks: then starting at once is a small risk.
        with suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_EX)
        yield


def _sound(path: Path) -> bool:
    """Whether the file can serve: it is absent, empty, or a whole record of a known version.

    Raises StorageError for a newer version.
    """
    if not path.exists():
        return True
    try:
        with closing(connect(path)) as connection:
            ((version,),) = connection.execute("PRAGMA user_version")
            if version > VERSION:
                raise StorageError(
                    f"The progress in {path} was written by a newer tensortutor (version "
                    f"{version}, this one knows {VERSION}). Update tensortutor, or set "
                    "TENSORTUTOR_HOME to another folder. The file was left as it is."
                )
            whole = connection.execute("PRAGMA quick_check").fetchall() == [("ok",)]
            layout = _layout(connection)
            whole = whole and all(_is_typed(connection, table) for table, _ in layout)
    except sqlite3.OperationalError:
        raise  # locked, unreadable, full: nothing that says the file is broken
    except (sqlite3.DatabaseError, UnicodeDecodeError):
        return False  # the second: a damaged name within SQLite's own report
    if version == 0 and not layout:
        return True
    with closing(sqlite3.connect(":memory:", isolation_level=None)) as model:
        model.executescript(SCHEMA)
        wanted = {(table, x) for table, x in _layout(model) if ADDED.get((table, x), 1) <= version}
        return whole and layout == wanted


def _layout(connection: sqlite3.Connection) -> frozenset[tuple[str, str]]:
    """The (table, column) pairs of a database."""
    return frozenset(
        connection.execute(
            "SELECT m.name, c.name FROM sqlite_master m, pragma_table_info(m.name) c "
            "WHERE m.type = 'table'"
        )
    )


def _is_typed(connection: sqlite3.Connection, table: str) -> bool:
    """Whether a table's columns of numbers hold numbers: SQLite would keep a text there too."""
    columns = connection.execute("SELECT name, type FROM pragma_table_info(?)", (table,))
    odd = [f"typeof(\"{name}\") IN ('text', 'blob')" for name, kind in columns if kind != "TEXT"]
    if not odd:
        return True
    found = connection.execute(f'SELECT 1 FROM "{table}" WHERE {" OR ".join(odd)} LIMIT 1')
    return found.fetchone() is None


def _set_aside(path: Path) -> str:
    stamp = datetime.now().strftime("%Y%m%d-%H%M%S")
    aside = path.with_name(f"{path.name}.broken-{stamp}")
    number = 1
    while aside.exists():
        number += 1
        aside = path.with_name(f"{path.name}.broken-{stamp}-{number}")
    path.rename(aside)
    # A journal belongs to the file it was written for: beside a new one it would spoil it.
    journal = path.with_name(f"{path.name}-journal")
    if journal.exists():
        journal.rename(aside.with_name(f"{aside.name}-journal"))
    return (
        f"The progress file was broken and is now {aside}. A new one was begun; "
        "your code is untouched."
    )


def _create(path: Path) -> None:
    with closing(connect(path, create=True)) as connection:
        ((version,),) = connection.execute("PRAGMA user_version")
        if version < VERSION:
            old = range(version + 1, VERSION + 1) if version else ()
            added = "".join(NEW_COLUMNS.get(number, "") for number in old)
            connection.executescript(f"BEGIN IMMEDIATE;{added}{SCHEMA}COMMIT;")
