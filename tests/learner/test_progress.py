import multiprocessing
import sqlite3
import tempfile
from collections.abc import Callable
from contextlib import closing, suppress
from multiprocessing.synchronize import Barrier
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tensortutor.learner.database import VERSION
from tensortutor.learner.errors import StorageError
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress

ID = "autograd/accumulation"
ROUNDS = 10


@pytest.fixture
def progress(paths: Paths) -> Progress:
    return Progress.open(paths)


def test_a_new_learner_has_nothing(progress: Progress) -> None:
    assert progress.notices == ()
    assert progress.passed() == frozenset()
    assert progress.place() is None
    assert progress.step_of(ID) == 0
    assert progress.steps_done(ID) == frozenset()
    assert progress.hints_shown(ID) == 0
    assert progress.attempts(ID) == 0
    assert progress.answers(ID) == {}
    assert progress.time_spent(ID) == 0


def test_everything_is_there_in_the_next_session(progress: Progress, paths: Paths) -> None:
    progress.mark_passed(ID)
    progress.mark_passed(ID)
    progress.record_attempt(ID, False, 1, 4)
    progress.record_attempt(ID, True, 4, 4)
    progress.record_answer(ID, 2, 0, "6.0", False)
    progress.record_answer(ID, 2, 0, "7.0", True)
    progress.record_answer(ID, 2, 1, "False", True)
    progress.set_place("autograd/first", 1)
    progress.set_place(ID, 3)
    progress.mark_step(ID, 0)
    progress.mark_step(ID, 0)
    progress.mark_step(ID, 2)
    assert [progress.show_hint(ID), progress.show_hint(ID)] == [1, 2]
    progress.add_time(ID, 1.5)
    progress.add_time(ID, 2.0)

    again = Progress.open(paths)
    assert again.passed() == {ID}
    assert again.attempts(ID) == 2
    assert again.answers(ID) == {(2, 0): ("7.0", True), (2, 1): ("False", True)}
    assert again.place() == (ID, 3)
    assert again.step_of(ID) == 3
    assert again.step_of("autograd/first") == 1
    assert again.steps_done(ID) == {0, 2}
    assert again.hints_shown(ID) == 2
    assert again.time_spent(ID) == 3.5


def test_reset_forgets_one_lesson_and_backup_remembers_it(
    progress: Progress, paths: Paths, tmp_path: Path
) -> None:
    for id in (ID, "other/lesson"):
        progress.mark_passed(id)
        progress.show_hint(id)
        progress.record_answer(id, 0, 0, "1", True)
        progress.mark_step(id, 0)
    progress.set_place(ID, 1)
    progress.backup(tmp_path / "copy.db")
    progress.reset(ID)
    assert progress.passed() == {"other/lesson"}
    assert progress.hints_shown(ID) == 0
    assert progress.answers(ID) == {}
    assert progress.steps_done(ID) == frozenset()
    assert progress.place() is None
    assert progress.hints_shown("other/lesson") == 1

    paths.progress.write_bytes((tmp_path / "copy.db").read_bytes())
    assert Progress.open(paths).passed() == {ID, "other/lesson"}


def _garbage(path: Path) -> None:
    path.write_bytes(b"this is no database at all" * 100)


def _fill(path: Path) -> None:
    """Many lessons, so that the file has many pages."""
    with closing(sqlite3.connect(path)) as connection:
        rows = [(f"chapter/lesson_{number}",) for number in range(1000)]
        connection.executemany("INSERT INTO lesson (id) VALUES (?)", rows)
        connection.commit()


def _torn(path: Path) -> None:
    _fill(path)
    data = bytearray(path.read_bytes())
    data[4096:12288] = b"\xaa" * 8192
    path.write_bytes(data)


def _row_lost(path: Path) -> None:
    """Two pages change places: SQLite reads them without complaint, only a check tells."""
    _fill(path)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        roots = "SELECT rootpage FROM sqlite_master WHERE name = ?"
        ((index,),) = connection.execute(roots, ("sqlite_autoindex_step_1",))
        connection.execute(
            "UPDATE sqlite_master SET rootpage = ? WHERE name = 'sqlite_autoindex_lesson_1'",
            (index,),
        )
        connection.commit()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:5000])


def _foreign(path: Path) -> None:
    path.unlink()
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE recipes (name TEXT)")
        connection.commit()


def _missing_column(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("ALTER TABLE lesson DROP COLUMN hints")
        connection.commit()


def _text_for_number(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("INSERT INTO lesson (id, step) VALUES ('a/b', 'the third')")
        connection.commit()


@pytest.mark.parametrize(
    "spoil", [_garbage, _torn, _row_lost, _cut, _foreign, _missing_column, _text_for_number]
)
def test_a_broken_file_is_set_aside_never_deleted(
    progress: Progress, paths: Paths, spoil: Callable[[Path], None]
) -> None:
    spoil(paths.progress)
    broken = paths.progress.read_bytes()
    opened = Progress.open(paths)
    (aside,) = paths.home.glob("progress.db.broken-*")
    assert aside.read_bytes() == broken
    assert len(opened.notices) == 1
    assert str(aside) in opened.notices[0]
    opened.mark_passed(ID)
    assert Progress.open(paths).passed() == {ID}
    assert Progress.open(paths).notices == ()


def _use(progress: Progress) -> None:
    """Ask and tell it everything."""
    progress.mark_passed(ID)
    progress.set_place(ID, 2)
    progress.show_hint(ID)
    progress.add_time(ID, 1.0)
    assert ID in progress.passed()
    progress.records(), progress.begun_again(), progress.place(), progress.answers(ID)
    progress.all_answers(), progress.all_attempts(), progress.step_of(ID), progress.time_spent(ID)


@settings(max_examples=25)
@example([(3232, 128)])  # a name within SQLite's own report is no text
@given(st.lists(st.tuples(st.integers(0, 40_000), st.integers(0, 255)), min_size=1, max_size=20))
def test_whatever_bytes_are_in_the_file(changes: list[tuple[int, int]]) -> None:
    """It serves, or it is set aside, or a sentence says why not."""
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(Path(folder))
        _use(Progress.open(paths))
        data = bytearray(paths.progress.read_bytes())
        for place, byte in changes:
            data[place % len(data)] = byte
        paths.progress.write_bytes(data)
        with suppress(StorageError):
            _use(Progress.open(paths))


@settings(max_examples=25)
@given(st.text(), st.integers(0, 1000), st.integers(0, 1000), st.booleans())
def test_whatever_is_answered_is_kept(text: str, step: int, quiz: int, right: bool) -> None:
    with tempfile.TemporaryDirectory() as folder:
        progress = Progress.open(Paths(Path(folder)))
        progress.record_answer(ID, step, quiz, text + "\ud800", right)
        assert progress.answers(ID) == {(step, quiz): (f"{text}?", right)}


@pytest.mark.parametrize("version", [1, 2, 3])
def test_a_file_of_an_earlier_version_is_brought_up_to_date(
    version: int, progress: Progress, paths: Paths
) -> None:
    progress.mark_passed(ID)
    progress.record_attempt(ID, False, 1, 3, ["adds up", "is fast"])
    with closing(sqlite3.connect(paths.progress)) as connection:
        connection.execute("DROP TABLE asked")
        connection.execute("ALTER TABLE lesson DROP COLUMN solution")
        if version < 3:
            connection.execute("ALTER TABLE attempt DROP COLUMN failing")
        if version == 1:
            connection.execute("DROP TABLE afresh")
        connection.execute(f"PRAGMA user_version = {version}")
        connection.commit()
    again = Progress.open(paths)
    assert (again.notices, again.passed(), again.begun_again()) == ((), {ID}, frozenset())
    assert again.last_attempt(ID) == (1, 3, () if version < 3 else ("adds up", "is fast"))
    again.record_asked("other/lesson", 2, 0, True)
    assert again.history().answered == {"other/lesson"}
    again.record_attempt(ID, False, 2, 3, ["is fast"])
    assert again.last_attempt(ID) == (2, 3, ("is fast",))
    again.reset(ID, begun_again=True)
    assert Progress.open(paths).begun_again() == {ID}


def test_what_was_begun_again_counts_when_it_or_what_is_evidence_for_it_is_passed(
    progress: Progress,
) -> None:
    for id in (ID, "other/lesson"):
        progress.reset(id, begun_again=True)
    progress.reset(ID)  # again, before it counts
    assert progress.begun_again() == {ID, "other/lesson"}
    progress.mark_passed(ID)
    assert progress.begun_again() == {"other/lesson"}
    progress.mark_passed("third/lesson", shown=["other/lesson"])
    assert progress.begun_again() == frozenset()


def test_an_empty_file_is_a_beginning(paths: Paths) -> None:
    paths.home.mkdir()
    paths.progress.touch()
    progress = Progress.open(paths)
    assert progress.notices == ()
    progress.mark_passed(ID)
    assert progress.passed() == {ID}


def test_a_newer_file_is_refused_and_untouched(progress: Progress, paths: Paths) -> None:
    progress.mark_passed(ID)
    with closing(sqlite3.connect(paths.progress)) as connection:
        connection.execute(f"PRAGMA user_version = {VERSION + 1}")
    before = paths.progress.read_bytes()
    with pytest.raises(StorageError, match="newer tensortutor") as caught:
        Progress.open(paths)
    assert str(paths.progress) in str(caught.value)
    assert paths.progress.read_bytes() == before
    assert not list(paths.home.glob("*broken*"))


def test_a_file_that_vanished_is_a_sentence_not_a_new_file(
    progress: Progress, paths: Paths
) -> None:
    paths.progress.unlink()
    with pytest.raises(StorageError, match="was not saved"):
        progress.mark_passed(ID)
    with pytest.raises(StorageError, match="cannot be read"):
        progress.passed()
    assert not paths.progress.exists()


def test_a_full_disk_is_a_sentence_and_keeps_what_was_saved(
    progress: Progress, monkeypatch: pytest.MonkeyPatch
) -> None:
    progress.mark_passed(ID)
    real = sqlite3.connect

    def nearly_full(*args: object, **kwargs: object) -> sqlite3.Connection:
        connection = real(*args, **kwargs)  # type: ignore[call-overload]
        # The file may not grow: what SQLite then meets is its "disk is full".
        connection.execute("PRAGMA max_page_count = 1")
        assert isinstance(connection, sqlite3.Connection)
        return connection

    monkeypatch.setattr(sqlite3, "connect", nearly_full)
    with pytest.raises(StorageError, match="the disk is full"):
        progress.record_answer(ID, 0, 0, "long " * 20_000, True)
    monkeypatch.undo()
    assert progress.passed() == {ID}


def test_a_folder_in_the_files_place_is_a_sentence(paths: Paths) -> None:
    paths.progress.mkdir(parents=True)
    with pytest.raises(StorageError, match=r"progress\.db cannot be opened"):
        Progress.open(paths)


def _session(home: Path, number: int) -> None:
    progress = Progress.open(Paths(home))
    for index in range(10):
        progress.mark_passed(f"chapter/{number}_{index}")
        progress.show_hint("shared/lesson")
        progress.set_place("shared/lesson", index)


def _open_broken(home: Path, number: int, barrier: Barrier) -> None:
    """Again and again, open a file that the first session has just spoilt."""
    for _ in range(ROUNDS):
        if number == 0:
            _garbage(Paths(home).progress)
        barrier.wait()
        Progress.open(Paths(home)).show_hint("shared/lesson")
        barrier.wait()


def _run_two(target: Callable[..., None], home: Path, *arguments: object) -> None:
    context = multiprocessing.get_context("spawn")
    sessions = [context.Process(target=target, args=(home, n, *arguments)) for n in range(2)]
    for session in sessions:
        session.start()
    for session in sessions:
        session.join()
    assert [session.exitcode for session in sessions] == [0, 0]


def test_two_sessions_at_once_lose_nothing(paths: Paths) -> None:
    _run_two(_session, paths.home)
    progress = Progress.open(paths)
    assert progress.passed() == {f"chapter/{n}_{i}" for n in range(2) for i in range(10)}
    assert progress.hints_shown("shared/lesson") == 20


def test_two_sessions_that_find_a_broken_file_set_it_aside_once(paths: Paths) -> None:
    paths.home.mkdir()
    barrier = multiprocessing.get_context("spawn").Barrier(2, timeout=60)
    _run_two(_open_broken, paths.home, barrier)
    aside = list(paths.home.glob("progress.db.broken-*"))
    assert len(aside) == ROUNDS
    assert all(file.read_bytes().startswith(b"this is no database") for file in aside)
    assert Progress.open(paths).hints_shown("shared/lesson") == 2
