"""A connection back from the far end: taken where it can be had, and only with the token."""

import contextlib
import json
import os
import socket
import sys

import pytest

from tensortutor.options import Place
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tensortutor.transport import slurm
from tensortutor.transport.dial_back import STDIO, Listener, dial, read_offer

SRUN = """\
#!/bin/sh
# Stands for srun: it starts the command behind its options, on this machine.
while [ "${1#-}" != "$1" ]; do shift; done
exec "$@"
"""


@pytest.fixture
def listener():
    made = Listener()
    yield made
    made.close()


@pytest.fixture
def srun(tmp_path):
    """A command that is called srun."""
    path = tmp_path / "srun"
    path.write_text(SRUN)
    path.chmod(0o755)
    return str(path)


@pytest.fixture(scope="module")
def cache(tmp_path_factory) -> str:
    return str(tmp_path_factory.mktemp("cache"))


def port_of(listener):
    return json.loads(listener.offer)["port"]


def test_who_knows_the_token_is_connected(listener):
    far = dial(listener.offer)
    assert far is not None
    with far, listener.connection() as near:
        near.sendall(b"x" * 3000)
        assert far.recv(1) == b"x"
        far.sendall(b"back")
        assert near.recv(4) == b"back"


@pytest.mark.parametrize(
    "said", [b"", b"0" * 64, b"GET / HTTP/1.1\r\n\r\n" * 9], ids=["nothing", "zeros", "http"]
)
def test_who_does_not_know_it_is_hung_up_on_and_the_right_one_still_comes(listener, said):
    with socket.create_connection(("127.0.0.1", port_of(listener))) as stranger:
        with contextlib.suppress(OSError):  # it may be hung up on before all is sent
            stranger.sendall(said)
            stranger.shutdown(socket.SHUT_WR)
        with contextlib.suppress(ConnectionResetError):  # what it had sent was not read
            assert stranger.recv(1) == b""
    far = dial(listener.offer)
    assert far is not None
    with far, listener.connection() as near:
        near.sendall(b"k")
        assert far.recv(1) == b"k"


def test_after_closing_nobody_gets_in(listener):
    offer = listener.offer
    listener.close()
    assert dial(offer) is None


@pytest.mark.parametrize(
    "offer",
    [STDIO, b"", b"[]\n", b"{", b'{"port": "x", "token": "t", "hosts": []}\n',
     b'{"port": 1, "token": "t", "hosts": []}\n'],
)  # fmt: skip
def test_an_offer_of_nothing_is_no_connection(offer, monkeypatch):
    monkeypatch.delenv("SLURM_LAUNCH_NODE_IPADDR", raising=False)
    assert dial(offer) is None


def test_slurms_own_address_comes_first(listener, monkeypatch):
    said = json.loads(listener.offer)
    said["hosts"] = []
    monkeypatch.setenv("SLURM_LAUNCH_NODE_IPADDR", "127.0.0.1")
    far = dial(json.dumps(said).encode() + b"\n")
    assert far is not None
    far.close()


def test_the_offer_ends_at_its_line():
    read, write = os.pipe()
    os.write(write, STDIO + b"rest")
    assert read_offer(read) == STDIO
    assert os.read(read, 9) == b"rest"
    os.close(write)
    assert read_offer(read) == b""
    os.close(read)


def prints(runner, source):
    return "".join(e.text for e in runner.start(Job(source)) if isinstance(e, Output))


def connections_of(pid):
    """The sockets of TCP that a process and those below it have open."""
    from tensortutor.worker.processes import children

    found = []
    for one in (pid, *map(int, children(pid))):
        for name in os.listdir(f"/proc/{one}/fd"):
            try:
                found.append(os.readlink(f"/proc/{one}/fd/{name}"))
            except OSError:
                continue
    with open("/proc/net/tcp") as table:
        inodes = {line.split()[9] for line in table if line.split()[3] == "01"}
    return [link for link in found if link[8:-1] in inodes]


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
@pytest.mark.parametrize("is_tcp", [True, False])
def test_programs_run_over_the_connection_and_without_it(tmp_path, srun, cache, is_tcp):
    """Where the far end cannot reach us, srun's own stream carries everything."""
    setup = f"export XDG_CACHE_HOME={cache}"
    if not is_tcp:
        setup += f"; export PYTHONPATH={no_connections(tmp_path)}"
    place = Place("the cluster", (srun,), setup=setup, python=sys.executable)
    with Runner(Settings(scratch=tmp_path / "s", device="cpu", place=place)) as runner:
        assert prints(runner, "print('x' * 5000)") == "x" * 5000 + "\n"
        pid = runner._zygote._process.pid
        assert bool(connections_of(pid)) == is_tcp
        assert prints(runner, "print(2 + 2)") == "4\n"


def no_connections(folder):
    """A folder whose sitecustomize lets nobody connect by TCP."""
    (folder / "site").mkdir()
    (folder / "site" / "sitecustomize.py").write_text(
        "import socket\n"
        "def refuse(*args, **kwargs):\n"
        "    raise OSError('no network here')\n"
        "socket.create_connection = refuse\n"
    )
    return folder / "site"


@pytest.mark.parametrize(
    ("said", "seconds"),
    [
        ("29:55", 1795.0), ("1:00:00", 3600.0), ("2-01:00:05", 176_405.0), ("UNLIMITED", 0.0),
        ("INVALID", 0.0), ("", 0.0), ("0:00", 0.0),
    ],
)  # fmt: skip
def test_the_time_that_a_job_has_left_is_read(tmp_path, monkeypatch, said, seconds):
    squeue = tmp_path / "squeue"
    squeue.write_text(f"#!/bin/sh\n[ \"$*\" = '-h -j 7 -o %L' ] && echo '{said}'\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    assert slurm.seconds_left("7") == seconds


def test_without_slurm_no_end_is_known(monkeypatch):
    monkeypatch.setenv("PATH", "/nowhere")
    assert slurm.seconds_left("7") == 0.0
    assert slurm.seconds_left("") == 0.0
    assert slurm.why_queued("7", 59.0) == "waiting for Slurm: in the queue (job 7)"
    assert slurm.why_queued("7", 200.0) == "waiting for Slurm: in the queue (job 7), 3 min"
