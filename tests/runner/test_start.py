"""Before a program runs: devices, interpreters, layers; and after PyTorch's process has died."""

import os
import select
import shutil
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.setup import Setup
from tensortutor.runner import Device, NoSandbox, Runner, RunnerError, Settings, sandbox, versions
from tensortutor.runner.devices import choose, devices_of
from tensortutor.runner.environment import environment
from tensortutor.runner.interpreter import inspect_interpreter
from tensortutor.runner.sandbox import choose_layer, why_no_full, why_no_landlock, without
from tensortutor.runner.zygote import Zygote
from tensortutor.worker import confine, devices

CPU = Device("cpu", "a processor")
GPUS = (CPU, Device("cuda:0", "H200"), Device("cuda:1", "H200"))


@pytest.mark.parametrize(
    ("wanted", "present", "name"),
    [
        ("auto", (CPU,), "cpu"),
        ("auto", GPUS, "cuda:0"),
        ("cuda", GPUS, "cuda:0"),
        ("cuda:1", GPUS, "cuda:1"),
        ("cpu", GPUS, "cpu"),
    ],
)
def test_the_device_that_was_asked_for(wanted, present, name):
    assert choose(wanted, present).name == name


def test_an_absent_device_is_refused_with_those_that_are_there():
    with pytest.raises(RunnerError, match=r"no device 'cuda:7' here.*cpu, cuda:0, cuda:1"):
        choose("cuda:7", GPUS)


def test_the_refusal_comes_from_a_real_runner_too(tmp_path):
    with Runner(
        Settings(scratch=tmp_path, device="mps" if sys.platform == "linux" else "cuda")
    ) as r:
        with pytest.raises(RunnerError, match="These are there: cpu"):
            r.prepare()
        assert r.status.state == "failed"
        last = list(r.start(Job("print(1)")))[-1]
        assert last.outcome == "lost"
        assert "These are there" in last.sentence


def interpreter(tmp_path, body):
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IEXEC)
    return str(path)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("echo '[null, [3, 12], []]'", r"has no torch.*pip install 'torch>=2.6,<2.14'"),
        ("echo '[\"2.5.1+cu121\", [3, 12], []]'", r"has torch 2.5.1\+cu121; .* for 2.6 to 2.13"),
        ("echo '[\"1.13.1\", [3, 12], []]'", r"has torch 1.13.1; .*pip install 'torch>="),
        ("echo '[\"2.6.0\", [3, 9], []]'", r"is Python 3.9; 3.10 or newer is needed"),
        ("echo '[null, [2, 7], []]'", r"is Python 2.7; 3.10 or newer is needed"),
        ("echo nonsense", "cannot be run as a Python interpreter: it does not answer as one"),
        ("exit 3", "cannot be run as a Python interpreter: it ended with status 3"),
        ("echo no encodings >&2; exit 1", "cannot be run as a Python interpreter: no encodings"),
        ('echo "cannot open $2" >&2; exit 1', "interpreter: it ended with status 1"),
    ],
)
def test_another_interpreter_is_questioned_first(tmp_path, body, words):
    with Runner(Settings(scratch=tmp_path, python=interpreter(tmp_path, body))) as runner:
        with pytest.raises(RunnerError, match=words):
            runner.prepare()


@pytest.mark.parametrize(
    ("version", "words"),
    [
        ("2.5.1+cu121", r"has torch 2\.5\.1\+cu121"),
        ("2.6.0a0+git1.nv25.01", ""),  # as a vendor's container has it
        ("2.15.0", ""),  # newer is no reason to run nothing
        (None, ""),  # built in a way of its own
    ],
)
def test_torch_tells_its_version_without_being_imported(tmp_path, version, words):
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise SystemExit('imported')")
    if version is not None:
        (tmp_path / "torch/version.py").write_text(f"__version__ = {version!r}\ncuda = None\n")
    python = interpreter(tmp_path, f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"')
    if not words:
        assert inspect_interpreter(python).path == python
        return
    with pytest.raises(RunnerError, match=words):
        inspect_interpreter(python)


def test_a_torch_that_is_newer_than_the_course_runs_and_is_told(runner_on_cpu, monkeypatch):
    monkeypatch.setattr(versions, "NEWEST_TORCH", (2, 5))
    runner_on_cpu.prepare()
    assert runner_on_cpu.status.state == "ready"
    assert "is newer than this course" in runner_on_cpu.status.caution


@pytest.mark.parametrize("proved", ["2.6.0+cu124", "2.6.0a0+git1", "2.13.1", "unknown", ""])
def test_no_caution_for_a_torch_that_is_proved(proved):
    assert versions.caution(proved) == ""


@pytest.mark.parametrize("newer", ["2.14.0", "2.15.0.dev20260101+cpu", "3.0"])
def test_a_caution_names_the_versions(newer):
    assert f"PyTorch {newer} is newer" in versions.caution(newer)
    assert "2.6 to 2.13" in versions.caution(newer)


def test_an_interpreter_that_is_not_there(tmp_path):
    with Runner(Settings(scratch=tmp_path, python=str(tmp_path / "none"))) as runner:
        with pytest.raises(RunnerError, match="cannot be run"):
            runner.prepare()


def test_another_interpreter_runs_programs(tmp_path):
    """A venv that has torch (ours, by a path file) and not tensortutor."""
    import venv

    venv.create(tmp_path / "other", with_pip=False)
    lib = next((tmp_path / "other").glob("lib/python*/site-packages"))
    packages = os.path.dirname(os.path.dirname(torch.__file__))
    for name in os.listdir(packages):
        if "tensortutor" not in name:
            os.symlink(os.path.join(packages, name), lib / name)
    python = str(tmp_path / "other/bin/python")
    with Runner(Settings(scratch=tmp_path / "s", python=python, sandbox="limits")) as runner:
        events = list(runner.start(Job("import sys, torch\nprint(sys.prefix, torch.ones(1))")))
    output = "".join(e.text for e in events if isinstance(e, Output))
    assert output == f"{tmp_path / 'other'} tensor([1.])\n"


def test_a_build_with_cuda_is_asked_for_devices_in_a_child_alone(tmp_path, monkeypatch):
    """CUDA can be used by no child of a process that has as much as counted the devices."""
    asked = tmp_path / "asked"

    def count() -> int:
        with asked.open("a") as file:
            print(os.getpid(), file=file)
        return 0

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    for name in ("is_available", "device_count"):
        monkeypatch.setattr(torch.cuda, name, count)
    assert [device.name for device in devices.find_devices("limits")[0]] == ["cpu"]
    assert str(os.getpid()) not in asked.read_text().split()


def test_a_build_with_cuda_that_sees_no_card_says_why(monkeypatch):
    def init() -> None:
        raise RuntimeError("No CUDA GPUs are available\nmore")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "7")
    found, why = devices.find_devices("limits")
    assert [device.name for device in found] == ["cpu"]
    assert why.startswith("No CUDA GPUs are available. CUDA_VISIBLE_DEVICES is '7'")


def test_a_driver_whose_module_for_cuda_is_not_loaded_says_what_loads_it(monkeypatch, tmp_path):
    def init() -> None:
        raise RuntimeError("CUDA unknown error")

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    monkeypatch.setattr(torch.cuda, "init", init)
    monkeypatch.setattr(devices, "CONTROL", str(tmp_path))
    monkeypatch.setattr(devices, "UNIFIED_MEMORY", str(tmp_path / "nvidia-uvm"))
    assert "CUDA unknown error. The driver's module nvidia_uvm" in devices.find_devices("limits")[1]
    (tmp_path / "nvidia-uvm").touch()
    assert devices.find_devices("limits")[1] == "CUDA unknown error."


def test_a_card_that_cannot_be_used_is_told_and_not_chosen(monkeypatch):
    """Its memory is full, or another process has it for itself."""

    def ask(index: int) -> tuple[int, int]:
        if index == 0:
            raise RuntimeError("CUDA error: out of memory\nCUDA kernel errors might be ...")
        return 70 << 30, 80 << 30

    monkeypatch.setattr(torch.version, "cuda", "13.0")
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"card {index}")
    monkeypatch.setattr(torch.cuda, "mem_get_info", ask)
    present = devices_of(devices.find_devices("limits")[0])
    assert [device.trouble for device in present] == ["", "CUDA error: out of memory", ""]
    assert choose("auto", present).name == "cuda:1"
    with pytest.raises(RunnerError, match="cuda:0 cannot be used now: CUDA error: out of memory"):
        choose("cuda", present)


def test_a_card_that_cannot_be_woken_is_left_for_the_program_to_meet(monkeypatch):
    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("CUDA error: out of memory")

    monkeypatch.setattr(torch, "randn", fail)
    devices.wake("cuda:0")  # raises nothing: a waiting process lives on


@pytest.mark.skipif(torch.version.cuda is None, reason="this build of PyTorch cannot use CUDA")
def test_a_programs_process_could_use_cuda(tmp_path):
    with Runner(Settings(scratch=tmp_path, device="cpu", preload=True)) as runner:
        events = list(runner.start(Job("import torch\nprint(torch.cuda._is_in_bad_fork())")))
    assert [e.text for e in events if isinstance(e, Output)] == ["False\n"]


def test_without_bubblewrap_the_layer_below_says_why(monkeypatch, tmp_path):
    monkeypatch.setenv("PATH", str(tmp_path))
    layer = choose_layer("auto")
    assert layer.name in ("landlock", "limits")
    assert "bubblewrap is not installed" in layer.why
    with pytest.raises(RunnerError, match="full sandbox does not work here"):
        choose_layer("full")


NEEDS_A_USER_NAMESPACE = """
case "$*" in *--unshare-user*) echo "bwrap: Creating new namespace failed" >&2; exit 1;; esac
exec {bwrap} "$@"
"""


@pytest.mark.skipif(bool(why_no_full() or why_no_landlock()), reason="it takes both layers")
def test_the_layer_is_tried_with_the_arguments_that_it_is_used_with(monkeypatch, tmp_path):
    """As for root where user namespaces are closed: bubblewrap can do without, but not our way."""
    stand_in = tmp_path / "bin" / "bwrap"
    stand_in.parent.mkdir()
    stand_in.write_text("#!/bin/sh" + NEEDS_A_USER_NAMESPACE.format(bwrap=shutil.which("bwrap")))
    stand_in.chmod(0o755)
    monkeypatch.setenv("PATH", f"{stand_in.parent}:{os.environ['PATH']}")
    with Runner(Settings(scratch=tmp_path / "scratch", device="cpu")) as runner:
        runner.prepare()
        assert runner.status.layer == "landlock"
        assert "Creating new namespace failed" in runner.status.why


CLOSED = """
from pathlib import Path
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
with Runner(Settings(scratch=Path({scratch!r}), device="cpu")) as runner:
    runner.prepare()
    run = list(runner.start(Job("import os; print(os.path.exists('/lesson'))")))
    print(runner.status.layer, *(event.text.strip() for event in run if isinstance(event, Output)))
    print(runner.status.why)
"""


@pytest.mark.skipif(bool(why_no_full() or why_no_landlock()), reason="it takes both layers")
@pytest.mark.parametrize("allowed", [0, 1])
def test_root_where_user_namespaces_are_closed_is_told_the_layer_that_is_used(tmp_path, allowed):
    """0: bubblewrap cannot make one; 1: it can, and programs cannot have theirs inside."""
    program = CLOSED.format(scratch=str(tmp_path))
    close = f"echo {allowed} > /proc/sys/user/max_user_namespaces || exit 77"
    done = subprocess.run(
        ["unshare", "-Ur", "sh", "-c", f'{close}; exec "$0" -c "$1"', sys.executable, program],
        capture_output=True, text=True,
    )  # fmt: skip
    if done.returncode == 77:
        pytest.skip("the number of user namespaces cannot be limited here")
    used, why = done.stdout.splitlines()
    assert used == "landlock False", done.stderr
    assert "user namespaces are closed here" in why


def test_a_process_that_ends_before_it_has_listened_says_why():
    leaves_it_unread = (
        "import socket, sys\n"
        "socket.socket(fileno=int(sys.argv[1])).recv(1, socket.MSG_PEEK)\n"
        "sys.exit('no namespace')"
    )
    zygote = Zygote((sys.executable, "-c", leaves_it_unread), Setup("full", ""), os.environ)
    with pytest.raises(RunnerError, match="ended with status 1: no namespace"):
        zygote.wait_ready()
    zygote.close()


def test_a_file_in_the_place_of_the_scratch_folder_is_named(tmp_path):
    (tmp_path / "scratch").write_text("")
    with Runner(Settings(scratch=tmp_path / "scratch", device="cpu")) as runner:
        with pytest.raises(RunnerError, match=f"{tmp_path}/scratch cannot be made .File exists"):
            runner.prepare()


def test_with_no_sandbox_nothing_runs_until_that_is_allowed(monkeypatch, tmp_path):
    monkeypatch.setattr(sandbox, "why_no_full", lambda _: "no bubblewrap")
    monkeypatch.setattr(sandbox, "why_no_landlock", lambda: "no Landlock")
    with Runner(Settings(scratch=tmp_path, device="cpu")) as runner:
        with pytest.raises(NoSandbox, match=r"no bubblewrap; no Landlock.*--sandbox limits"):
            runner.prepare()
        assert runner.status.needs_consent
        runner.allow_limits()
        events = list(runner.start(Job("print('open')")))
        assert [e.text for e in events if isinstance(e, Output)] == ["open\n"]
        assert runner.status.layer == "limits"


def test_limits_can_be_asked_for():
    assert choose_layer("limits").name == "limits"


def test_hidden_folders_are_cut_out_of_what_is_readable(tmp_path):
    for name in ("site/torch", "site/tensortutor/lessons", "site/numpy"):
        (tmp_path / name).mkdir(parents=True)
    found = without(str(tmp_path / "site"), (str(tmp_path / "site/tensortutor"),))
    assert found == [str(tmp_path / "site/numpy"), str(tmp_path / "site/torch")]


def test_secrets_of_the_environment_stay_outside(monkeypatch):
    monkeypatch.setenv("TORCH_API_TOKEN", "s3cret")
    monkeypatch.setenv("MY_THING", "x")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":16:8")
    kept = environment()
    assert "s3cret" not in kept.values()
    assert "MY_THING" not in kept
    assert (kept["OMP_NUM_THREADS"], kept["CUBLAS_WORKSPACE_CONFIG"]) == ("3", ":16:8")


def test_a_killed_zygote_comes_back(runner_on_cpu):
    runner = runner_on_cpu  # it serves the tests after this one as well
    runner.prepare()
    # What waits in the sandbox dies a moment after bubblewrap: the next run may begin in it.
    os.killpg(runner._zygote._process.pid, signal.SIGKILL)
    runner._zygote._process.wait()
    for _ in range(2):
        events = list(runner.start(Job("print('again')")))
        assert [e.text for e in events if isinstance(e, Output)] == ["again\n"]


HOST = """
import sys
from pathlib import Path
from tensortutor.runner import Runner, Settings
Runner(Settings(scratch=Path(sys.argv[1]), python=sys.argv[2], sandbox="limits")).prepare()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process cannot ask for that")
def test_a_zygote_goes_with_its_host_while_it_loads(tmp_path):
    """The interpreter has a torch that is never done loading, and says when it has begun."""
    begun = tmp_path / "begun"
    os.mkfifo(begun)
    (tmp_path / "torch.py").write_text(
        f"import time\nwith open({str(begun)!r}, 'w') as file:\n"
        "    print('begun', file=file, flush=True)\n    time.sleep(600)\n"
    )
    python = interpreter(tmp_path, f'PYTHONPATH={tmp_path} exec {sys.executable} "$@"')
    command = [sys.executable, "-c", HOST, str(tmp_path / "scratch"), python]
    with subprocess.Popen(command) as host:
        with open(begun) as file:
            assert file.readline() == "begun\n"
            host.kill()
            # The other end is closed when the zygote has ended.
            assert select.select([file], [], [], 20)[0]
            assert file.read() == ""


def test_a_closed_runner_says_so(tmp_path):
    runner = Runner(Settings(scratch=tmp_path))
    runner.close()
    assert list(runner.start(Job("print(1)")))[-1].outcome == "lost"


def test_warming_in_the_background_lasts(tmp_path):
    """The thread that warms ends; what it has started must not end with it."""
    with Runner(Settings(scratch=tmp_path, device="cpu")) as runner:
        thread = threading.Thread(target=runner.prepare)
        thread.start()
        thread.join()
        zygote = runner._zygote
        assert list(runner.start(Job("print(1)")))[-1].code == 0
        assert runner._zygote is zygote


def test_after_idling_the_processes_are_let_go_and_come_back(tmp_path):
    with Runner(Settings(scratch=tmp_path, device="cpu", idle_s=0.05)) as runner:
        runner.prepare()
        runner._idle.join()
        assert runner.status.state == "cold"  # before anything has run
        assert list(runner.start(Job("print(1)")))[-1].code == 0
        runner._idle.join()
        assert runner.status.state == "cold"  # and after a run


def test_folders_of_killed_keepers_are_removed_and_no_others(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    ended = subprocess.Popen(["true"])
    ended.wait()
    mine = Path(confine.make_folder(isolated=False))
    killed = mine.with_name(mine.name.replace(f"-{os.getpid()}-", f"-{ended.pid}-"))
    (killed / "inside").mkdir(parents=True)
    others = [tmp_path / f"tensortutor-run-1-{ended.pid}-abcdefgh", tmp_path / "tensortutor-run-"]
    for other in others:
        other.mkdir()
    confine.remove_stale_folders()
    assert set(tmp_path.iterdir()) == {mine, *others}
