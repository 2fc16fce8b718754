"""Sessions of one user that share a zygote: each with its own runs, none hurt by another's end."""

import contextlib
import os
import select
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tensortutor.learner.places import find_place
from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.framing import encode
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.setup import Setup, message_to_json
from tensortutor.runner import Runner, RunnerError, Settings
from tensortutor.runner.sandbox import why_no_landlock
from tensortutor.transport.join_worker import join
from tensortutor.worker.processes import children

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="SO_PEERCRED is Linux's")
NOBODY = 65534
LONGEST_S = 60.0
WORKER = (sys.executable, "-m", "tensortutor", "worker", "--listen")


@pytest.fixture
def path():
    """A short path: a Unix socket's may have 107 bytes. Others may enter its folder."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o711)
        yield f"{folder}/worker"
        for pid in worker_of(f"{folder}/worker"):
            os.kill(pid, signal.SIGKILL)


def worker_of(path):
    """The process that listens, in a list that is empty if there is none."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        try:
            connection.connect(path)
        except OSError:
            return []
        said = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
        return [struct.unpack("3i", said)[0]]


def await_end(process):
    ended, _, _ = select.select([process], [], [], LONGEST_S)
    os.close(process)
    assert ended, "it does not end"


def session(path, tmp_path, **more):
    place = find_place(f"unix:{path}", (), None)
    return Runner(Settings(scratch=tmp_path / "s", device="cpu", place=place, **more))


def printed(runner, source):
    return "".join(e.text for e in runner.start(Job(source)) if isinstance(e, Output))


def test_two_sessions_share_a_zygote_and_the_first_to_come_may_go(path, tmp_path):
    with session(path, tmp_path) as second, contextlib.ExitStack() as stack:
        first = stack.enter_context(session(path, tmp_path))
        assert printed(first, "print('first')") == "first\n"
        (worker,) = worker_of(path)
        (zygote,) = children(str(worker))
        run, last = second.start(Job("print('second', flush=True)\nwhile True: pass")), None
        for last in run:
            if isinstance(last, Output):
                assert last.text == "second\n"
                assert printed(first, "print('meanwhile')") == "meanwhile\n"
                stack.close()
                assert printed(second, "print('still there')") == "still there\n"
                run.stop()
        assert isinstance(last, Finished)
        assert last.outcome == "stopped"
        assert children(str(worker)) == [zygote]
        assert worker_of(path) == [worker]


def test_when_the_zygote_dies_all_are_told_and_their_next_runs_share_a_new_one(path, tmp_path):
    with session(path, tmp_path) as first, session(path, tmp_path) as second:
        first.prepare()
        second.prepare()
        (worker,) = worker_of(path)
        process = os.pidfd_open(worker)
        (zygote,) = children(str(worker))
        os.kill(int(zygote), signal.SIGKILL)
        await_end(process)
        assert printed(first, "print('again')") == "again\n"
        assert printed(second, "print('again, too')") == "again, too\n"
        (other,) = worker_of(path)
        assert other != worker
        assert len(children(str(other))) == 1


def test_who_wants_other_settings_is_told(path, tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    with session(path, tmp_path) as first, session(path, tmp_path, read=(folder,)) as second:
        first.prepare()
        with pytest.raises(RunnerError, match="The shared worker serves other settings"):
            second.prepare()


def test_a_worker_that_nobody_needs_ends(path):
    with subprocess.Popen([*WORKER, path, "--idle", "1"]) as worker:
        control, theirs = socket.socketpair()
        with control, theirs:
            while not join(path, b"true", theirs.fileno()):
                assert worker.poll() is None
            second = subprocess.run([*WORKER, path], capture_output=True, text=True, check=False)
            assert second.returncode == 2
            assert f"A worker listens at {path} already." in second.stderr
            assert worker.poll() is None  # for a session is there
        assert worker.wait(LONGEST_S) == 0
    assert not os.path.exists(path)


STRANGER = """
import os, socket, sys
os.setgroups([]); os.setgid({nobody}); os.setuid({nobody})
try:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
        connection.connect({path!r})
        socket.send_fds(connection, [b"true"], [0])
        print(connection.recv(1))
except OSError as error:
    print(type(error).__name__)
join({path!r}, b"true", 0)
"""


def stranger(path):
    """What another user hears who connects, and then joins."""
    script = "from tensortutor.transport.join_worker import join\n" + STRANGER.format(
        nobody=NOBODY, path=path
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr


@pytest.mark.skipif(os.getuid() != 0, reason="only root can be another user")
def test_another_user_is_refused(path, tmp_path):
    with session(path, tmp_path) as owner:
        owner.prepare()
        assert stranger(path) == f"PermissionError\n{path} leads to no worker: Permission denied\n"
        os.chmod(path, 0o777)  # though the socket itself lets everybody in
        heard, said = stranger(path).splitlines()
        assert heard in ("b''", "BrokenPipeError", "ConnectionResetError")
        assert said == f"the worker at {path} is another user's"
        assert printed(owner, "print('undisturbed')") == "undisturbed\n"


def test_a_file_in_the_sockets_place_stays(path, tmp_path):
    notes = tmp_path / "notes.txt"
    notes.write_text("mine")
    done = subprocess.run([*WORKER, str(notes)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (
        2, f"tensortutor: No worker can listen at {notes}: what is there is no socket.\n"
    )  # fmt: skip
    with session(notes, tmp_path) as other, pytest.raises(RunnerError, match="is no socket"):
        other.prepare()
    assert notes.read_text() == "mine"
    assert not (tmp_path / "notes.txt.lock").exists()


def test_a_file_in_the_locks_place_stays(tmp_path):
    lock = tmp_path / "poetry.lock"
    lock.write_text("mine")
    words = [*WORKER, str(tmp_path / "poetry")]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, f"{lock} is no worker's." in done.stderr) == (2, True)
    assert lock.read_text() == "mine"


def test_the_worker_imports_nothing_from_the_learners_folder(path, tmp_path, monkeypatch):
    (tmp_path / "socket.py").write_text("open('was_imported', 'w')\n")
    monkeypatch.chdir(tmp_path)
    with session(path, tmp_path) as one:
        assert printed(one, "print('runs')") == "runs\n"
    assert not (tmp_path / "was_imported").exists()


def test_a_command_that_is_no_text_ends_nobody(path, tmp_path):
    with session(path, tmp_path) as one:
        one.prepare()
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
            connection.connect(path)
            socket.send_fds(connection, [Path(f"{path}.lock").read_bytes() + b"\xff"], [0])
            assert connection.recv(1) == b""
        assert printed(one, "print('undisturbed')") == "undisturbed\n"


ESCAPE = """
import os, socket
session, theirs = socket.socketpair()
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as connection:
    connection.connect({path!r})
    print("connected")
    try:
        secret = open({path!r} + ".lock", "rb").read()
    except OSError:
        secret = bytes(32)
    for begin in (b"", secret):
        socket.send_fds(connection, [begin + {command!r}], [theirs.fileno()])
        session.sendall({setup!r})
    session.settimeout(5)
    try:
        print(connection.recv(1), session.recv(1))
    except OSError as error:
        print(type(error).__name__)
"""


@pytest.mark.skipif(bool(why_no_landlock()), reason="only Landlock leaves sockets with a path open")
def test_a_program_is_no_session(path, tmp_path):
    """It would have the worker start what it likes, outside its own sandbox."""
    command = b"\0".join(
        (b"/bin/sh", b"-c", b"echo escaped > " + os.fsencode(tmp_path / "escaped"))
    )
    setup = encode(message_to_json(Setup("landlock", "/nowhere")))
    with subprocess.Popen([*WORKER, path]) as worker:
        while not worker_of(path):
            assert worker.poll() is None
        source = ESCAPE.format(path=path, command=command, setup=setup)
        with Runner(Settings(scratch=tmp_path / "s", device="cpu", sandbox="landlock")) as runner:
            assert printed(runner, source).startswith("connected")
        assert worker.poll() is None
        worker.kill()
    assert not (tmp_path / "escaped").exists()
