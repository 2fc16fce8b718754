"""A class's folder: what learners write into it, and what whoever teaches reads from it."""

import contextlib
import json
import os
import resource
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tensortutor.learner.class_board import ClassBoard, read_class
from tensortutor.learner.class_report import LARGEST, Report, Sent, encode
from tensortutor.learner.class_sharing import ClassSharing, class_folder
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.settings import LearnerSettings

ROOT = Path(__file__).parents[2]
NOW = 1_790_000_000.0
LESSON = "autograd/accumulation"
CHECKS = ("adds up", "weighs a smaller batch")
LONG = 60.0
"""Seconds for what takes milliseconds, unless something is broken."""
needs_root = pytest.mark.skipif(
    os.geteuid() != 0, reason="learners with user ids of their own can be made by root alone"
)
UIDS = range(61_000, 61_030)


def report(**values: object) -> Report:
    return replace(Report(LESSON, 3, 7, 2, NOW), **values)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "class"
    path.mkdir()
    path.chmod(0o3733)
    return path


class Clock:
    """Seconds since 1970, as a test moves them."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


class LearnerInClass:
    """A learner of this process, who shares with a folder."""

    def __init__(self, paths: Paths, folder: Path) -> None:
        paths.home.mkdir(parents=True, exist_ok=True)
        self.paths, self.folder = paths, folder
        self.progress = Progress.open(paths)
        self.clock = Clock()
        self.sharing = self.again()

    def again(self) -> ClassSharing:
        """Another session of the same learner."""
        return ClassSharing(self.folder, self.paths.class_stopped, self.clock)

    def does(self, act: Callable[[ClassSharing], None]) -> list[str]:
        """Act, wait until it is written, and return what was told."""
        act(self.sharing)
        assert self.sharing.close(LONG)
        told = list(iter(self.sharing.take_notice, ""))
        self.sharing = self.again()
        return told

    def shares(self, step: int = 3) -> list[str]:
        return self.does(lambda sharing: sharing.share(LESSON, step, 7, self.progress))

    def sends(self, code: str, *, help: bool, lesson: str = LESSON) -> list[str]:
        return self.does(lambda s: s.send(lesson, 3, 7, self.progress, code, help=help))

    def checks(self, passed: int) -> None:
        good, failing = CHECKS[:passed], CHECKS[passed:]
        self.progress.record_attempt(LESSON, not failing, len(good), len(CHECKS), failing)

    @property
    def seen(self) -> Report:
        """What whoever teaches sees of them."""
        (learner,) = read_class(self.folder, self.clock.now).learners
        return learner.report


@pytest.fixture
def learner(paths: Paths, folder: Path) -> LearnerInClass:
    return LearnerInClass(paths, folder)


# What is written


def test_a_report_says_where_the_learner_is_and_which_checks_fail(learner, folder):
    learner.checks(0)
    learner.checks(1)
    assert learner.shares() == []
    expected = report(steps_done=0, checks_passed=1, checks_total=2, failing=CHECKS[1:], attempts=2)
    assert learner.seen == expected
    (file,) = folder.iterdir()
    assert file.name == f"{os.geteuid()}.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o640


def test_stuck_is_the_work_since_something_got_better(learner):
    for _ in range(4):
        learner.shares()
        learner.clock.now += 60
    assert learner.seen.stuck_s == 180
    learner.clock.now += 3600  # a pause counts for five minutes
    learner.shares()
    assert learner.seen.stuck_s == 480
    learner.checks(1)
    learner.shares()
    assert learner.seen.stuck_s == 0


def test_code_is_written_when_it_is_sent_and_goes_with_the_call_for_help(learner):
    learner.checks(1)
    learner.shares()
    assert learner.seen.sent == ()
    (told,) = learner.sends("x = 1\n", help=True)
    assert told.startswith("Your code was sent, with a call for help")
    learner.shares()
    assert learner.seen.sent == (Sent(LESSON, 3, NOW, True, "x = 1\n"),)
    (told,) = learner.does(lambda sharing: sharing.withdraw(LESSON))
    assert "taken back" in told
    assert learner.seen.sent == ()
    learner.sends("x = 2\n", help=True)
    learner.sends("y = 2\n", help=False)
    learner.checks(2)
    learner.progress.mark_passed(LESSON)
    learner.shares()
    assert [one.code for one in learner.seen.sent] == ["y = 2\n"]
    learner.sends("z = 2\n", help=True)  # about a lesson that is passed
    learner.shares()
    assert [one.code for one in learner.seen.sent] == ["y = 2\n", "z = 2\n"]


def test_code_that_is_too_long_is_refused_and_old_code_makes_room(learner):
    (told,) = learner.sends("é" * LARGEST, help=True)
    assert told == "Your code was not sent: a file there has 64 KiB at most."
    assert learner.seen.sent == ()
    learner.sends("a" * 40_000, help=False, lesson="first/lesson")
    learner.clock.now += 1
    told = learner.sends("b" * 40_000, help=False)
    assert told[0] == "To make room, your code of first/lesson was taken out there."
    assert [one.lesson for one in learner.seen.sent] == [LESSON]


def test_nobody_shares_without_having_chosen_a_folder(monkeypatch, tmp_path):
    assert class_folder(LearnerSettings()) is None
    assert class_folder(LearnerSettings(class_folder="/srv/class")) == Path("/srv/class")
    monkeypatch.setenv("TENSORTUTOR_CLASS", str(tmp_path))
    assert class_folder(LearnerSettings(class_folder="/srv/class")) == tmp_path


def test_who_stops_is_not_seen_any_more_and_no_session_of_theirs_writes(learner, folder, tmp_path):
    elsewhere = ClassSharing(tmp_path / "another class", learner.paths.class_stopped)
    elsewhere.stop()
    other = learner.again()
    learner.shares()
    learner.does(lambda sharing: sharing.stop())
    assert list(folder.iterdir()) == []
    other.share(LESSON, 3, 7, learner.progress)
    assert other.close(LONG)
    assert not learner.sharing.is_on
    assert learner.sends("x = 1\n", help=True)[0].startswith("Nothing was sent")
    assert list(folder.iterdir()) == []
    learner.does(lambda sharing: sharing.start())
    learner.shares()
    assert learner.seen.lesson == LESSON
    assert not ClassSharing(elsewhere.folder, learner.paths.class_stopped).is_on


# What goes wrong


@contextlib.contextmanager
def no_bytes_left() -> Iterator[None]:
    """No file can grow: what a full disk does to one that writes."""
    usual = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, usual[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, usual)


def test_a_full_disk_is_one_sentence_and_the_report_before_stays(learner, folder):
    learner.shares()
    before = learner.seen
    sharing = learner.sharing
    with no_bytes_left():
        for _ in range(3):
            learner.clock.now += 60
            sharing.share(LESSON, 4, 7, learner.progress)
        assert sharing.close(LONG)
    (told,) = iter(sharing.take_notice, "")
    assert str(folder) in told
    assert learner.seen == before
    assert len(list(folder.iterdir())) == 1  # nothing half-written is left


@needs_root
def test_a_full_file_system_says_that_it_is_full(paths, tmp_path):
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", str(disk)], capture_output=True
    )
    if mounted.returncode:
        pytest.skip("this machine lets root mount nothing")
    try:
        with contextlib.suppress(OSError), open(disk / "fill", "wb") as file:
            file.write(bytes(1 << 20))
        (told,) = LearnerInClass(paths, disk).shares()
        assert told.startswith(f"The class does not see where you are: {disk}: the disk is full.")
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_vanished_is_one_sentence(learner, folder):
    folder.rmdir()
    sharing = learner.sharing
    for _ in range(3):
        sharing.share(LESSON, 3, 7, learner.progress)
    assert sharing.close(LONG)
    (told,) = iter(sharing.take_notice, "")
    assert "no such file or directory. Your own work goes on" in told
    with pytest.raises(Exception, match="cannot be read: no such file"):
        read_class(folder)


def test_a_folder_that_does_not_answer_holds_nobody_up(learner, monkeypatch):
    answers = threading.Event()
    monkeypatch.setattr("os.lstat", lambda path: answers.wait(LONG) and os.stat(path))
    for _ in range(100):
        learner.sharing.share(LESSON, 3, 7, learner.progress)
    assert not learner.sharing.close(0.01)
    told = list(iter(learner.sharing.take_notice, ""))
    assert len(told) == 1
    assert "it does not answer" in told[0]
    answers.set()


# What is refused


def board(folder: Path) -> ClassBoard:
    return read_class(folder, NOW)


def test_links_and_whatever_is_no_report_are_refused_and_counted(folder, tmp_path):
    uid = os.geteuid()
    mine = folder / f"{uid}.json"
    secret = tmp_path / "secret.json"
    secret.write_bytes(encode(report()))

    good = json.loads(encode(report()))
    cases: dict[str, Callable[[], object]] = {
        "symbolic link": lambda: mine.symlink_to(secret),
        "hard link": lambda: os.link(secret, mine),
        "FIFO": lambda: os.mkfifo(mine),
        "folder": mine.mkdir,
        "more than 64 KiB": lambda: mine.write_bytes(b" " * (LARGEST + 1)),
        "not JSON": lambda: mine.write_bytes(b'{"format": 1, "less'),
        "a report that this version": lambda: mine.write_text('{"format": 2}'),
        '"attempts" is missing': lambda: mine.write_text(json.dumps({**good, "attempts": -1})),
        '"stuck_s" is missing': lambda: mine.write_text(json.dumps({**good, "stuck_s": 1e999})),
        '"failing" is missing': lambda: mine.write_text(json.dumps({**good, "failing": [["x"]]})),
        '"lesson" is missing': lambda: mine.write_text(json.dumps({**good, "lesson": "x" * 999})),
        "not JSON ": lambda: mine.write_text("[" * 60_000),
    }
    for words, make in cases.items():
        make()
        found = board(folder)
        assert found.learners == ()
        (refusal,) = found.refusals
        assert words.strip() in refusal.why
        assert str(refusal).startswith("1 file of ")
        mine.rmdir() if mine.is_dir() and not mine.is_symlink() else mine.unlink()
    (folder / "1.json").write_bytes(encode(report()))
    (folder / "notes").write_bytes(encode(report()))
    (refusal,) = board(folder).refusals
    assert refusal.why == "the name of the file is not its owner's number"
    assert refusal.count == 2


def test_a_folder_that_lets_others_replace_files_is_told(folder):
    assert board(folder).notices == ()
    folder.chmod(0o777)
    assert "mode 777; chmod 3733" in board(folder).notices[0]


# What is seen


def test_the_board_puts_the_longest_stuck_first_and_counts_failing_checks(folder, monkeypatch):
    from tensortutor.learner import class_board

    both = report(failing=CHECKS, checks_total=2, stuck_s=900)
    one = report(failing=CHECKS[:1], checks_passed=1, checks_total=2, stuck_s=100)
    away = replace(both, seen=NOW - 3600, stuck_s=9000)
    learners = [
        class_board.Learner(uid, f"user{uid}", what, NOW - what.seen)
        for uid, what in ((1, one), (2, away), (3, both))
    ]
    whole = ClassBoard(class_board.order(learners))
    assert [one.uid for one in whole.learners] == [3, 1, 2]
    assert [one.is_stuck for one in whole.learners] == [True, False, False]
    counted = [(each.check, [who.uid for who in each.learners]) for each in whole.failing()]
    assert counted == [(CHECKS[0], [3, 1]), (CHECKS[1], [3])]


WRITERS = """
import os, sys, time
from pathlib import Path
from tensortutor.learner.class_sharing import ClassSharing

class Record:
    def last_attempt(self, lesson):
        return None
    def attempts(self, lesson):
        return 0
    def passed(self):
        return ()
    steps_done = lambda self, lesson: ()

def write(uid, folder):
    os.setgid(uid)
    os.setuid(uid)
    os.umask(0o077)
    sharing, record, number = ClassSharing(folder), Record(), uid
    while True:
        number += 1
        # The length of the code stands beside it: in a torn file they would not agree.
        code = str(number % 10) * (200 + 97 * (number % 61))
        sharing.send("a/b", 1, len(code), record, code, help=False)
        time.sleep(0.1)

os.setgroups([])
for uid in map(int, sys.argv[2:]):
    if not os.fork():
        write(uid, Path(sys.argv[1]))
os.wait()
"""
INTRUDER = """
import json, os, sys
from pathlib import Path

uid, victim, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
os.setgroups([])
os.setgid(uid)
os.setuid(uid)
theirs, mine = folder / f"{victim}.json", folder / f"{uid}.json"
mine.write_text(sys.stdin.read())
attempts = {
    "list": lambda: os.listdir(folder),
    "read": lambda: theirs.read_bytes(),
    "write": lambda: theirs.write_text("mine"),
    "remove": lambda: theirs.unlink(),
    "replace": lambda: os.rename(mine, theirs),
    "move away": lambda: os.rename(theirs, folder / "gone"),
    "open up": lambda: theirs.chmod(0o666),
}
done = []
for name, attempt in attempts.items():
    try:
        attempt()
        done.append(name)
    except PermissionError:
        pass
print(json.dumps(done))
"""


def python(script: str, *arguments: object, **settings: Any) -> "subprocess.Popen[str]":
    """A process that knows this tree, wherever its user may not look."""
    start = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{script}"
    command = [sys.executable, "-c", start, *map(str, arguments)]
    return subprocess.Popen(command, cwd="/", text=True, stdout=subprocess.PIPE, **settings)


@pytest.fixture
def shared_folder() -> Iterator[Path]:
    """A class's folder that other users can reach: pytest's own folders are closed to them."""
    with tempfile.TemporaryDirectory() as outer:
        os.chmod(outer, 0o755)
        folder = Path(outer) / "class"
        folder.mkdir()
        folder.chmod(0o3733)
        yield folder


@needs_root
def test_thirty_learners_write_while_the_board_reads_and_nobody_reaches_another(shared_folder):
    writers = python(WRITERS, shared_folder, *UIDS, start_new_session=True)
    lengths: dict[int, set[int]] = {uid: set() for uid in UIDS}
    until = time.monotonic() + LONG
    try:
        while min(map(len, lengths.values())) < 6:
            assert time.monotonic() < until, "the learners do not write"
            seen = read_class(shared_folder)
            assert seen.sentences == ()
            for learner in seen.learners:
                (sent,) = learner.report.sent
                assert len(sent.code) == learner.report.steps
                assert set(sent.code) == {sent.code[0]}
                lengths[learner.uid].add(len(sent.code))
        forged = json.dumps({**json.loads(encode(report())), "uid": UIDS[0], "name": "root"})
        intruder = python(INTRUDER, 61_030, UIDS[0], shared_folder, stdin=subprocess.PIPE)
        out, _ = intruder.communicate(forged, timeout=LONG)
        assert json.loads(out) == []
        seen = read_class(shared_folder)
        assert {one.uid for one in seen.learners} == {*UIDS, 61_030}
        (guest,) = (one for one in seen.learners if one.uid == 61_030)
        assert (guest.name, guest.report.lesson) == ("61030", LESSON)
    finally:
        os.killpg(writers.pid, signal.SIGKILL)
        writers.communicate()


@needs_root
def test_who_has_taken_anothers_name_is_refused_and_told_of(shared_folder):
    taken = shared_folder / f"{UIDS[0]}.json"
    taken.write_bytes(encode(report()))
    os.chown(taken, UIDS[1], -1)
    (refusal,) = read_class(shared_folder).refusals
    assert refusal.owners == (str(UIDS[1]),)
    mine = shared_folder / "0.json"
    mine.write_bytes(encode(report()))
    os.chown(mine, UIDS[1], -1)
    sharing = ClassSharing(shared_folder)
    sharing.withdraw(LESSON)
    assert sharing.close(LONG)
    assert "somebody else's file has your name (0.json)" in sharing.take_notice()
    assert mine.stat().st_uid == UIDS[1]
