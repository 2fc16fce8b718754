"""What is left in a place when a session has ended, or was ended there: nothing."""

import os
import select
import signal
import sys
import tempfile
from pathlib import Path

import pytest

from tensortutor.options import Place
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tensortutor.runner.sandbox import why_no_landlock
from tensortutor.worker.confine import FOLDER_PREFIX
from tensortutor.worker.processes import children

STEP = (sys.executable, str(Path(__file__).with_name("step.py")))
SRUN = """\
#!/bin/sh
# Stands for srun: the far end connects back.
while [ "${{1#-}}" != "$1" ]; do shift; done
exec {} "$@"
"""
LONGEST_S = 60.0

landlock = pytest.mark.skipif(bool(why_no_landlock()), reason=why_no_landlock() or "it is there")
"""In this layer each run has a folder on disk, which its keeper removes."""


@pytest.fixture(params=["by a pipe", "by TCP"])
def step(request, tmp_path):
    """A launch command that ends as Slurm's steps do, and by which stream it leads there."""
    if request.param == "by a pipe":
        return STEP
    srun = tmp_path / "srun"
    srun.write_text(SRUN.format(" ".join(STEP)))
    srun.chmod(0o755)
    return (str(srun),)


def settings_for(tmp_path, step, **more):
    launch = (*step, "env", f"XDG_CACHE_HOME={tmp_path}/cache")
    place = Place("the place", launch, python=sys.executable)
    return Settings(scratch=tmp_path / "s", device="cpu", sandbox="landlock", place=place, **more)


def run_folders(tmp_path):
    """The folders of runs whose library lies in this test's cache."""
    found = []
    for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
        try:
            target = os.readlink(path / "library" / "tensortutor" / "lab")
        except OSError:
            continue
        if target.startswith(str(tmp_path)):
            found.append(path)
    return found


def below(pid):
    """All processes below one, parents first."""
    found = children(str(pid))
    for child in found:  # grows while it is walked
        found += children(child)
    return list(map(int, found))


def launched_by(runner):
    """The process of the launch command, to be waited for."""
    (pid,) = children(str(runner._zygote._process.pid))
    return os.pidfd_open(int(pid))


def await_end(process):
    ended, _, _ = select.select([process], [], [], LONGEST_S)
    os.close(process)
    assert ended, "the launch command does not end"


@landlock
def test_a_session_that_is_closed_right_after_its_start_leaves_no_folders(tmp_path, step):
    """Though whatever is left there is killed as soon as the far end has ended."""
    for _ in range(3):
        with Runner(settings_for(tmp_path, step, spares=3)) as runner:
            runner.prepare()
            process = launched_by(runner)
        await_end(process)
        assert run_folders(tmp_path) == []


@landlock
def test_a_job_that_is_told_to_end_leaves_no_folders(tmp_path, step):
    """All of its processes are told, as `scancel` does, and some time later killed."""
    with Runner(settings_for(tmp_path, step)) as runner:
        process, last = -1, None
        for last in runner.start(Job("print('begun', flush=True)\nwhile True: pass")):
            if isinstance(last, Output):
                process = launched_by(runner)
                assert run_folders(tmp_path)
                _, *job = below(runner._zygote._process.pid)  # the first is the step itself
                for pid in reversed(job):
                    os.kill(pid, signal.SIGTERM)
        assert last.outcome == "lost"
        await_end(process)
        assert run_folders(tmp_path) == []


def test_without_a_home_there_all_lies_in_folders_that_the_next_session_removes(tmp_path):
    temporary = tmp_path / "tmp"
    temporary.mkdir()
    variables = ("HOME=/dev/null/home", "XDG_CACHE_HOME=/dev/null/cache", f"TMPDIR={temporary}")
    place = Place("the place", ("env", *variables), python=sys.executable)
    settings = Settings(scratch=Path("/dev/null/scratch"), device="cpu", place=place, spares=0)
    kept = Job("open('kept', 'w').close()", scratch="kept")

    def folders():
        return {path.name for path in temporary.iterdir()}

    with Runner(settings) as first, Runner(settings) as second:
        assert [*first.start(kept)][-1].outcome == "done"
        of_first = folders()
        second.prepare()
        of_second = folders() - of_first
        assert (len(of_first), len(of_second)) == (2, 2)  # what was sent; the scratch folder
        assert of_first < folders()
        (far,) = children(str(first._zygote._process.pid))
        os.kill(int(far), signal.SIGKILL)
        first.close()
        assert of_first < folders()  # nobody was there to remove them
        with Runner(settings) as third:
            third.prepare()
            assert not of_first & folders()
            assert of_second < folders()
            ends = [
                os.pidfd_open(int(children(str(r._zygote._process.pid))[0]))
                for r in (second, third)
            ]
    for end in ends:
        await_end(end)
    assert folders() == set()
