"""What the learner has passed, answered and seen, in one SQLite file.

Each method is one short transaction on a connection of its own, so that threads and several
sessions at once need not know of each other. The journal is the default one: homes on GPU
servers are often NFS, where a write-ahead log breaks.
"""

import json
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from tensortutor.learner.database import connect, immediate, make_ready
from tensortutor.learner.errors import StorageError, reason
from tensortutor.learner.paths import Paths
from tensortutor.learner.unlock import History


@dataclass(frozen=True)
class Record:
    """What there is about one lesson. attempts: checks until it was passed, or until now.

    questions: how many were answered; right_at_first: how many of those with the first answer.
    solution: 1 if it was opened before the lesson was passed.
    """

    passed_at: str = ""
    seconds: float = 0.0
    hints: int = 0
    steps: int = 0
    attempts: int = 0
    questions: int = 0
    right_at_first: int = 0
    solution: int = 0


RECORDS = """
SELECT l.id, coalesce(l.passed_at, ''), l.seconds, l.hints,
    (SELECT count(*) FROM step s WHERE s.lesson = l.id),
    (SELECT count(*) FROM attempt a WHERE a.lesson = l.id AND a.id <= coalesce(
        (SELECT min(p.id) FROM attempt p WHERE p.lesson = l.id AND p.passed), a.id)),
    (SELECT count(DISTINCT q.step * 1000 + q.quiz) FROM answer q WHERE q.lesson = l.id),
    (SELECT count(*) FROM answer f WHERE f.lesson = l.id AND f.correct AND f.id = (
        SELECT min(e.id) FROM answer e
        WHERE e.lesson = f.lesson AND e.step = f.step AND e.quiz = f.quiz)),
    l.solution
FROM (
    SELECT id, passed_at, seconds, hints, solution FROM lesson
    UNION ALL
    SELECT DISTINCT lesson, NULL, 0, 0, 0 FROM (
        SELECT lesson FROM answer UNION SELECT lesson FROM attempt UNION SELECT lesson FROM step)
    WHERE lesson NOT IN (SELECT id FROM lesson)
) l
"""


class Progress:
    """The learner's record. Every method may raise StorageError.

    Steps and quizzes count from 0. notices: sentences that the learner should see.
    """

    def __init__(self, path: Path, notices: tuple[str, ...] = ()) -> None:
        self._path = path
        self.notices = notices

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @classmethod
    def open(cls, paths: Paths) -> "Progress":
        """The record under `paths`, made if there is none.

        A file that is broken is set aside under a new name, with a notice. Raises StorageError if
        the file was written by a newer version, or if nothing can be opened.
        """
        path = paths.progress
        try:
            notices = make_ready(path)
        except (OSError, sqlite3.Error) as error:
            raise StorageError(
                f"The progress in {path} cannot be opened: {reason(error)}."
            ) from None
        return cls(path, notices)

    def passed(self) -> frozenset[str]:
        """The ids of the lessons that were passed."""
        rows = self._read("SELECT id FROM lesson WHERE passed_at IS NOT NULL")
        return frozenset(id for (id,) in rows)

    def records(self) -> dict[str, Record]:
        """What there is about each lesson, by id."""
        return {id: Record(*values) for id, *values in self._read(RECORDS)}

    def is_begun(self, lesson_id: str) -> bool:
        """Whether the learner has been in this lesson."""
        return bool(self._read("SELECT 1 FROM lesson WHERE id = ?", lesson_id))

    def begun_again(self) -> frozenset[str]:
        """The ids of the lessons that were begun again, and have not counted since."""
        return frozenset(id for (id,) in self._read("SELECT lesson FROM afresh"))

    def answered_instead(self) -> frozenset[str]:
        """The ids of the lessons that were skipped, and of which a question was answered right."""
        rows = self._read("SELECT DISTINCT lesson FROM asked WHERE correct")
        return frozenset(id for (id,) in rows)

    def asked(self, lesson_id: str) -> frozenset[tuple[int, int]]:
        """The questions, as (step, quiz), that were asked because the lesson was skipped."""
        rows = self._read("SELECT step, quiz FROM asked WHERE lesson = ?", lesson_id)
        return frozenset((step, quiz) for step, quiz in rows)

    def record_asked(self, lesson_id: str, step: int, quiz: int, correct: bool) -> None:
        """A question of a skipped lesson was answered. Nothing else about that lesson changes, but
        that it no longer waits to be begun again if the answer is right."""
        with self._transaction() as connection:
            connection.execute(
                "INSERT INTO asked (lesson, at, step, quiz, correct) VALUES (?, ?, ?, ?, ?)",
                (lesson_id, _now(), step, quiz, correct),
            )
            if correct:
                connection.execute("DELETE FROM afresh WHERE lesson = ?", (lesson_id,))

    def history(self) -> History:
        """What decides which lessons are open."""
        return History(self.passed(), self.answered_instead(), self.begun_again())

    def mark_passed(self, lesson_id: str, shown: Iterable[str] = ()) -> None:
        """A lesson's checks all passed. The first time counts.

        shown: the ids of lessons for which this is evidence, those begun again among them.
        """
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO lesson (id) VALUES (?)", (lesson_id,))
            connection.execute(
                "UPDATE lesson SET passed_at = coalesce(passed_at, ?) WHERE id = ?",
                (_now(), lesson_id),
            )
            connection.executemany(
                "DELETE FROM afresh WHERE lesson = ?", [(id,) for id in (lesson_id, *shown)]
            )

    def record_attempt(
        self, lesson_id: str, passed: bool, checks_passed: int, checks_total: int,
        failing: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """The checks were put to the learner's code. failing: the names of those that failed."""
        self._write(
            "INSERT INTO attempt (lesson, at, passed, checks_passed, checks_total, failing) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (lesson_id, _now(), passed, checks_passed, checks_total, json.dumps([*failing])),
        )

    def last_attempt(self, lesson_id: str) -> tuple[int, int, tuple[str, ...]] | None:
        """What came of the last check: how many checks passed, of how many, which did not.

        None if there was no check of this lesson.
        """
        rows = self._read(
            "SELECT checks_passed, checks_total, failing FROM attempt WHERE lesson = ? "
            "ORDER BY id DESC LIMIT 1",
            lesson_id,
        )
        if not rows:
            return None
        passed, total, failing = rows[0]
        return int(passed), int(total), _names(failing)

    def attempts(self, lesson_id: str) -> int:
        """How often the checks were put to the learner's code."""
        ((count,),) = self._read("SELECT count(*) FROM attempt WHERE lesson = ?", lesson_id)
        return int(count)

    def record_answer(
        self, lesson_id: str, step: int, quiz: int, answer: str, correct: bool
    ) -> None:
        """The learner answered a question. Earlier answers stay in the file."""
        text = answer.encode("utf-8", "replace").decode()  # a terminal may send half a character
        self._write(
            "INSERT INTO answer (lesson, at, step, quiz, answer, correct) "
            "VALUES (?, ?, ?, ?, ?, ?)",
            (lesson_id, _now(), step, quiz, text, correct),
        )

    def answers(self, lesson_id: str) -> dict[tuple[int, int], tuple[str, bool]]:
        """The latest answer to each question: (step, quiz) -> (answer, correct)."""
        rows = self._read(
            "SELECT step, quiz, answer, correct FROM answer WHERE lesson = ? ORDER BY id",
            lesson_id,
        )
        return {(step, quiz): (answer, bool(correct)) for step, quiz, answer, correct in rows}

    def all_answers(self) -> list[tuple[str, str, int, int, int]]:
        """Every answer, as (lesson, time, step, quiz, correct), in the order of giving."""
        return self._read("SELECT lesson, at, step, quiz, correct FROM answer ORDER BY id")

    def all_attempts(self) -> list[tuple[str, str, int]]:
        """Every check, as (lesson, time, passed), in order."""
        return self._read("SELECT lesson, at, passed FROM attempt ORDER BY id")

    def place(self) -> tuple[str, int] | None:
        """The lesson and step where the learner was last."""
        rows = self._read("SELECT lesson, step FROM place")
        return (str(rows[0][0]), int(rows[0][1])) if rows else None

    def set_place(self, lesson_id: str, step: int) -> None:
        """The learner is at this step now."""
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO lesson (id) VALUES (?)", (lesson_id,))
            connection.execute("UPDATE lesson SET step = ? WHERE id = ?", (step, lesson_id))
            connection.execute("INSERT OR REPLACE INTO place VALUES (1, ?, ?)", (lesson_id, step))

    def step_of(self, lesson_id: str) -> int:
        """The step where the learner was last in this lesson, 0 at first."""
        return int(self._value(lesson_id, "step"))

    def steps_done(self, lesson_id: str) -> frozenset[int]:
        """The steps that the learner has worked through."""
        rows = self._read("SELECT step FROM step WHERE lesson = ?", lesson_id)
        return frozenset(step for (step,) in rows)

    def mark_step(self, lesson_id: str, step: int) -> None:
        """The learner has worked through a step."""
        self._write("INSERT OR IGNORE INTO step (lesson, step) VALUES (?, ?)", (lesson_id, step))

    def hints_shown(self, lesson_id: str) -> int:
        """How many hints the learner has seen."""
        return int(self._value(lesson_id, "hints"))

    def show_hint(self, lesson_id: str) -> int:
        """One more hint is shown; how many that makes."""
        return int(self._change(lesson_id, "hints = hints + ?", 1, "hints"))

    def mark_solution_seen(self, lesson_id: str) -> None:
        """The solution was opened before the lesson was passed; afterwards it is no help."""
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO lesson (id) VALUES (?)", (lesson_id,))
            connection.execute(
                "UPDATE lesson SET solution = 1 WHERE id = ? AND passed_at IS NULL", (lesson_id,)
            )

    def add_time(self, lesson_id: str, seconds: float) -> None:
        """The learner spent this much more time on a lesson."""
        self._change(lesson_id, "seconds = seconds + ?", seconds)

    def time_spent(self, lesson_id: str) -> float:
        """Seconds spent on a lesson."""
        return float(self._value(lesson_id, "seconds"))

    def reset(self, lesson_id: str, begun_again: bool = False) -> None:
        """Forget everything about a lesson, that it was passed too. See `backup`.

        begun_again: it counted until now, and is to be done again.
        """
        with self._transaction() as connection:
            connection.execute("DELETE FROM lesson WHERE id = ?", (lesson_id,))
            for table in ("step", "attempt", "answer", "asked", "place"):
                connection.execute(f"DELETE FROM {table} WHERE lesson = ?", (lesson_id,))
            if begun_again:
                connection.execute("INSERT OR IGNORE INTO afresh VALUES (?)", (lesson_id,))

    def backup(self, target: Path) -> None:
        """Write a copy of the whole record to a file that does not exist yet."""
        try:
            with (
                closing(connect(self._path)) as source,
                closing(connect(target, create=True)) as copy,
            ):
                source.backup(copy)
        except sqlite3.Error as error:
            raise StorageError(
                f"{self._path} could not be copied to {target}: {reason(error)}."
            ) from None

    def _read(self, query: str, *values: Any) -> list[tuple[Any, ...]]:
        try:
            with closing(connect(self._path)) as connection:
                return connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise StorageError(
                f"The progress in {self._path} cannot be read: {reason(error)}."
            ) from None

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        try:
            with closing(connect(self._path)) as connection, immediate(connection):
                yield connection
        except sqlite3.Error as error:
            raise StorageError(
                f"Your progress was not saved in {self._path}: {reason(error)}. "
                "What was saved before is still there."
            ) from None

    def _write(self, statement: str, values: tuple[Any, ...]) -> None:
        with self._transaction() as connection:
            connection.execute(statement, values)

    def _value(self, lesson_id: str, column: str) -> Any:
        rows = self._read(f"SELECT {column} FROM lesson WHERE id = ?", lesson_id)
        return rows[0][0] if rows else 0

    def _change(self, lesson_id: str, change: str, value: Any, column: str = "id") -> Any:
        with self._transaction() as connection:
            connection.execute("INSERT OR IGNORE INTO lesson (id) VALUES (?)", (lesson_id,))
            connection.execute(f"UPDATE lesson SET {change} WHERE id = ?", (value, lesson_id))
            row = connection.execute(f"SELECT {column} FROM lesson WHERE id = ?", (lesson_id,))
            return row.fetchone()[0]


def _names(text: str) -> tuple[str, ...]:
    """Names as they are kept. What another program has put there instead holds none."""
    try:
        names = json.loads(text)
    except (ValueError, RecursionError):
        return ()
    return tuple(map(str, names)) if isinstance(names, list) else ()


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")
