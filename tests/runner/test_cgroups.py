"""What counts memory: cgroups in a folder that stands for the kernel's, and the real ones."""

import errno
import os
import shutil
import socket
import time
from pathlib import Path

import pytest

from tensortutor.commands.doctor import what_counts_memory
from tensortutor.protocol.events import Finished, Output
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.protocol.layers import FULL, LANDLOCK, LIMITS
from tensortutor.protocol.setup import Allow, Setup
from tensortutor.runner import sandbox
from tensortutor.worker import cgroups, processes
from tensortutor.worker.confine import Confinement
from tensortutor.worker.keeper import MOST_THREADS, Keeper

FILES = {
    "cgroup.controllers": "cpu memory pids\n", "cgroup.procs": "", "cgroup.subtree_control": "",
    "cgroup.kill": "", "memory.max": "max\n", "memory.oom.group": "0\n", "memory.swap.max": "max\n",
    "memory.events": "low 0\nhigh 0\nmax 0\noom 0\noom_kill 0\n", "pids.max": "max\n",
    "pids.events": "max 0\n",
}  # fmt: skip


class Kernel:
    """Stands for `os` in the module: a folder that is made has a cgroup's files at once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.busy = 0
        self.marked: set[str] = set()

    def __getattr__(self, name: str) -> object:
        return getattr(os, name)

    def mkdir(self, path: str) -> None:
        os.mkdir(path)
        for name, text in FILES.items():
            Path(path, name).write_text(text)

    def makedirs(self, path: str, exist_ok: bool) -> None:
        if not os.path.isdir(path):
            self.mkdir(path)

    def rmdir(self, path: str, dir_fd: int | None = None) -> None:
        if self.busy:
            self.busy -= 1
            raise OSError(errno.EBUSY, "busy")
        shutil.rmtree(self.root / "d" / path)

    def getxattr(self, path: str, name: str) -> bytes:
        if path in self.marked:
            return b"1"
        raise OSError(errno.ENODATA, name)


@pytest.fixture
def kernel(tmp_path, monkeypatch):
    """A tree with one cgroup, `d`, that this process and its ancestors are in."""
    found = Kernel(tmp_path / "cgroup")
    found.root.mkdir()
    found.mkdir(str(found.root / "d"))
    (found.root / "d" / "cgroup.procs").write_text("".join(f"{p}\n" for p in cgroups.ancestors()))
    own = tmp_path / "own"
    own.write_text("4:memory:/old\n0::/d\n")
    monkeypatch.setattr(cgroups, "os", found)
    monkeypatch.setattr(cgroups, "ROOT", str(found.root))
    monkeypatch.setattr(cgroups, "OWN", str(own))
    monkeypatch.setattr(cgroups, "RUNTIME", str(tmp_path / "user"))
    return found


def read(*parts: str | Path) -> str:
    return Path(*parts).read_text()


# --- getting hold of one ---


def test_a_cgroup_of_ones_own_is_divided(kernel):
    d = kernel.root / "d"
    assert cgroups.enter_leaf() == str(d)
    assert sorted(read(d, "cgroup.subtree_control").split()) == ["+memory", "+pids"]
    # Each write moves one process; in a file that is no cgroup's they lie over each other.
    assert read(d, cgroups.LEAF, "cgroup.procs")


def test_a_second_worker_finds_what_the_first_has_divided(kernel, tmp_path):
    kernel.mkdir(str(kernel.root / "d" / cgroups.LEAF))
    (tmp_path / "own").write_text(f"0::/d/{cgroups.LEAF}\n")
    assert cgroups.enter_leaf() == str(kernel.root / "d")
    assert read(kernel.root, "d", "cgroup.subtree_control") == ""


def test_a_cgroup_with_others_in_it_is_left_as_it_is(kernel):
    d = kernel.root / "d"
    with (d / "cgroup.procs").open("a") as file:
        file.write("999999999\n")
    assert cgroups.enter_leaf() == ""
    assert not (d / cgroups.LEAF).exists()
    assert read(d, "cgroup.subtree_control") == ""


def test_a_cgroup_that_counts_no_memory_is_none(kernel):
    (kernel.root / "d" / "cgroup.controllers").write_text("cpu pids\n")
    assert cgroups.enter_leaf() == ""
    assert cgroups.find_parent() == ("", "no cgroup of version 2 counts memory here")


def test_a_unit_of_systemds_is_divided_only_if_it_was_given_away(kernel, tmp_path):
    scope = str(kernel.root / "d.scope")
    os.rename(kernel.root / "d", scope)
    (tmp_path / "own").write_text("0::/d.scope\n")
    assert cgroups.enter_leaf() == ""
    kernel.marked.add(scope)
    assert cgroups.enter_leaf() == scope


def systemd(tmp_path, monkeypatch, body):
    """A `busctl` that does as `body` says, and a bus to ask on."""
    runtime = tmp_path / "user" / str(os.getuid())
    runtime.mkdir(parents=True)
    (runtime / "bus").touch()
    busctl = tmp_path / "bin" / "busctl"
    busctl.parent.mkdir()
    busctl.write_text(f'#!/bin/sh\necho "$XDG_RUNTIME_DIR $*" > {tmp_path}/asked\n{body}\n')
    busctl.chmod(0o755)
    monkeypatch.setenv("PATH", str(busctl.parent), prepend=os.pathsep)
    return runtime


def test_systemd_is_asked_for_a_scope(kernel, tmp_path, monkeypatch):
    (kernel.root / "d").rename(kernel.root / "scope")
    kernel.mkdir(str(kernel.root / "d"))
    (kernel.root / "d" / "cgroup.procs").write_text("999999999\n")
    runtime = systemd(tmp_path, monkeypatch, f"echo 0::/scope > {tmp_path}/own")
    assert cgroups.enter_leaf() == str(kernel.root / "scope")
    asked = read(tmp_path, "asked")
    assert asked.startswith(f"{runtime} --user call org.freedesktop.systemd1 ")
    assert f"PIDs au 1 {os.getpid()} Delegate b true 0" in asked


@pytest.mark.parametrize("body", ["exit 1", "exec sleep 1000", "true"])
def test_a_systemd_that_gives_nothing_changes_nothing(kernel, tmp_path, monkeypatch, body):
    (kernel.root / "d" / "cgroup.procs").write_text("999999999\n")
    systemd(tmp_path, monkeypatch, body)
    monkeypatch.setattr(cgroups, "LONGEST_ANSWER_S", 0.2)
    assert cgroups.enter_leaf() == ""
    assert (tmp_path / "asked").exists()


def became(monkeypatch, kernel, *command):
    kernel.execvp = lambda file, words: became.append((file, words))
    became = []
    cgroups.main(*command)
    return became


def test_the_command_learns_where_it_is(kernel, monkeypatch):
    d = str(kernel.root / "d")
    kernel.mkdir(f"{d}/{cgroups.RUN}left")
    assert became(monkeypatch, kernel, "WORD", "bwrap", "--bind", "WORD", "WORD", "x") == [
        ("bwrap", ("bwrap", "--bind", d, d, "x"))
    ]
    assert not os.path.exists(f"{d}/{cgroups.RUN}left")


def test_the_command_is_run_whatever_goes_wrong(kernel, monkeypatch):
    monkeypatch.setattr(cgroups, "enter_leaf", lambda: 1 / 0)
    assert became(monkeypatch, kernel, "WORD", "python", "WORD") == [("python", ("python", "WORD"))]


def test_the_worker_is_started_so_where_version_2_is(tmp_path, monkeypatch):
    monkeypatch.setattr(sandbox, "CGROUPS", str(tmp_path / "none"))
    assert sandbox.cgroup_command(["python"], LANDLOCK) == ["python"]
    monkeypatch.setattr(sandbox, "CGROUPS", str(tmp_path))
    *_, script, word, command = sandbox.cgroup_command(["python"], LIMITS)
    assert (Path(script), word, command) == (Path(cgroups.__file__), sandbox.CGROUP, "python")
    # It is mounted writable: without Landlock a program without mounts of its own could use that.
    monkeypatch.setattr(sandbox, "why_no_landlock", lambda: "too old")
    assert sandbox.cgroup_command(["bwrap"], FULL) == ["bwrap"]
    assert len(sandbox.cgroup_command(["python"], LIMITS)) > 1
    assert sandbox.bubblewrap((), tmp_path).count(sandbox.CGROUP) == 2


def test_doctor_says_what_counts():
    assert what_counts_memory("") == "counted by the kernel: each run has a cgroup of its own"
    assert what_counts_memory("so it is") == "measured from /proc: so it is"


PATIENCE_S = 60.0


def test_the_status_has_what_the_zygote_has_found_out(runner):
    made = set(parent_of(runner).glob(f"{cgroups.RUN}*"))
    if runner.status.why_no_cgroup:
        assert not made
    else:
        await_that(lambda: any(parent_of(runner).glob(f"{cgroups.RUN}*")))


def parent_of(runner):
    """The folder with the cgroups of a Runner's runs, where it has any."""
    assert runner._zygote is not None
    own = read(f"/proc/{runner._zygote._process.pid}/cgroup").rpartition("0::")[2].strip()
    return Path(cgroups.ROOT + os.path.dirname(own))


def await_that(holds):
    """Wait until something is so: no event tells of the processes that wait."""
    deadline = time.monotonic() + PATIENCE_S
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.005)


# --- one for each run ---


@pytest.fixture
def cgroup(kernel):
    return cgroups.RunCgroup(str(kernel.root / "d"))


def folder_of(kernel):
    (found,) = (kernel.root / "d").glob(f"{cgroups.RUN}*")
    return found


def test_the_limits_are_written(kernel, cgroup):
    folder = folder_of(kernel)
    cgroup.limit(123, 45)
    cgroup.add(678)
    cgroup.kill()
    assert read(folder, "memory.max")[:3] == "123"
    assert read(folder, "pids.max")[:2] == "45"
    assert read(folder, "cgroup.procs") == "678"
    assert read(folder, "memory.swap.max")[0] == "0"
    assert read(folder, "memory.oom.group")[0] == "1"
    assert read(folder, "cgroup.kill") == "1"
    assert cgroup.processes() == 1


@pytest.mark.parametrize("missing", ["memory.swap.max", "cgroup.kill"])
def test_what_a_kernel_lacks_is_done_without(kernel, monkeypatch, missing):
    monkeypatch.delitem(FILES, missing)
    cgroups.RunCgroup(str(kernel.root / "d")).kill()


@pytest.mark.parametrize(
    ("file", "text", "limit"),
    [
        ("memory.events", "oom 1\noom_kill 3\n", "memory"),
        ("memory.events", "oom 0\noom_kill 1\n", ""),  # the machine had none left
        ("memory.events", "max 900\noom 0\noom_kill 0\n", ""),
        ("pids.events", "max 2\n", "processes"),
        ("pids.events", "max 0\n", ""),
    ],
)
def test_the_limit_that_was_hit_is_known(kernel, cgroup, file, text, limit):
    (folder_of(kernel) / file).write_text(text)
    assert cgroup.exceeded() == limit


def test_it_is_removed_once_it_is_empty(kernel, cgroup):
    folder = folder_of(kernel)
    kernel.busy = 3
    cgroup.remove()
    assert not folder.exists()
    cgroup.remove()  # gone: nothing to do


def test_without_a_folder_there_is_none(kernel):
    assert cgroups.make_cgroup("") is None
    assert cgroups.make_cgroup(str(kernel.root / "nowhere")) is None


# --- the keeper ---


@pytest.fixture
def keeper(kernel, cgroup, tmp_path):
    setup = Setup(LIMITS, str(tmp_path))
    confinement = Confinement(setup, isolated=False, folder=str(tmp_path / "run"))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        yield Keeper(setup, theirs, confinement, cgroup)


def test_a_keeper_lets_the_kernel_count(kernel, keeper, monkeypatch):
    monkeypatch.setattr(processes, "memory_of_all", lambda *_: 1 << 60)
    keeper._count(678)
    folder = folder_of(kernel)
    assert read(folder, "memory.max").strip("max\n") == str(Limits().memory_bytes)
    assert read(folder, "pids.max").startswith(str(MOST_THREADS))
    assert read(folder, "cgroup.procs") == "678"
    assert keeper._over_limit() == ""
    keeper._allowed = Allow(2, 1 << 30, 1 << 30)
    (folder / "cgroup.procs").write_text("1\n2\n3\n")
    assert keeper._over_limit() == "processes"
    (folder / "memory.events").write_text("oom 1\noom_kill 1\n")
    assert keeper._over_limit() == "memory"


def test_a_keeper_measures_where_the_kernel_refuses(kernel, keeper, monkeypatch):
    monkeypatch.setattr(processes, "memory_of_all", lambda *_: 1 << 60)
    (folder_of(kernel) / "memory.max").unlink()
    keeper._count(678)
    assert keeper._over_limit() == "memory"


# --- the real ones ---

SHARED = """
import mmap
area = mmap.mmap(-1, 1 << 30)
for start in range(0, len(area), 4096):
    area[start] = 1
print("survived")
"""
FORKS = "import os, time\nfor _ in range(5):\n    os.fork()\ntime.sleep(1000)\n"


@pytest.fixture
def counting(runner):
    """A Runner whose runs the kernel counts, and the folder of their cgroups."""
    if reason := runner.status.why_no_cgroup:
        pytest.skip(f"memory is measured from /proc here: {reason}")
    return runner, parent_of(runner)


@pytest.mark.parametrize(
    ("program", "outcome"), [(SHARED, "memory"), (FORKS, "processes"), ("print(1)", "done")]
)
def test_the_kernel_ends_a_run_and_nothing_stays(counting, program, outcome):
    runner, parent = counting
    runner.prepare()
    limits = Limits(memory_bytes=1 << 29, processes=8)
    run = iter(runner.start(Job(program, limits=limits)))
    next(run)
    before = set(parent.glob(f"{cgroups.RUN}*"))
    *_, finished = run
    assert isinstance(finished, Finished)
    assert finished.outcome == outcome, finished
    assert before
    await_that(lambda: not before <= set(parent.glob(f"{cgroups.RUN}*")))


def test_a_program_cannot_change_its_cgroup(counting):
    runner, _ = counting
    program = (
        "import os, sys\n"
        "for folder, _, files in os.walk('/sys/fs/cgroup'):\n"
        "    for name in files:\n"
        "        try:\n"
        "            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))\n"
        "            print(folder, name)\n"
        "        except OSError:\n"
        "            pass\n"
    )
    said = [event for event in runner.start(Job(program)) if isinstance(event, Output)]
    assert said == []
