"""A small run and a check: here, over a pipe, and over srun where Slurm is.

    python -m tests.bench.transport [ROUNDS]
    .ci/slurm python -m tests.bench.transport [ROUNDS]

All take turns in one process's time, so that a busy machine slows them alike. srun connects back by
TCP where it can. Prints medians, and their ratios to those on this machine without a transport.

Where the time of a small run goes: the near and the far end work for some 0.9 ms each (what
`/proc/PID/schedstat` says, torch 2.13, two processors) and are woken nine times together. With ten
processes or more that want those two processors, they wait for one for 10 ms: then a place is 1.2
to 1.5 times as slow as this machine, over a pipe as over srun. A ratio counts on a quiet machine.
"""

import contextlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tensortutor.course.catalog import find_course, find_lesson, load_course
from tensortutor.course.jobs import check_job
from tensortutor.options import Place
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tests.bench.latency import CELL, LESSON, PAUSE_S, to_finished

ROUNDS = 30
QUIET_S = 5.0
"""The worker imports the rest of torch once it is quiet."""


def places() -> dict[str, Place | None]:
    """Where programs run, by name; None is this machine without a transport."""
    found: dict[str, Place | None] = {
        "local": None,
        "pipe": Place("pipe", ("env",), python=sys.executable),
    }
    if has_slurm():
        found["srun"] = Place("srun", ("srun", "-Q"), python=sys.executable)
    return found


def has_slurm() -> bool:
    """There is a Slurm here that answers."""
    if not (shutil.which("srun") and shutil.which("sinfo")):
        return False
    return subprocess.run(["sinfo", "-h"], capture_output=True, check=False).returncode == 0


def main(rounds: int) -> None:
    """Measure and print."""
    lesson = find_lesson(load_course(find_course()), LESSON)
    jobs = {
        "small run": Job(CELL),
        f"check {LESSON}": check_job(lesson, lesson.task.solution or "", "answer.py", seed=1),
    }
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        runners = {}
        for name, place in places().items():
            settings = Settings(scratch=Path(folder) / name, device="cpu", place=place)
            runners[name] = stack.enter_context(Runner(settings))
            runners[name].prepare()
        time.sleep(QUIET_S)
        times: dict[tuple[str, str], list[float]] = {}
        for _ in range(rounds):
            for what, job in jobs.items():
                for name, runner in runners.items():
                    times.setdefault((what, name), []).append(to_finished(runner, job))
                    time.sleep(PAUSE_S)
    print(f"medians of {rounds} rounds, in ms")
    for (what, name), values in times.items():
        median = statistics.median(values)
        ratio = median / statistics.median(times[what, "local"])
        print(f"{what:24}{name:8}{median:9.1f}   {ratio:6.2f} local")
    if "srun" not in runners:
        print("srun: no Slurm answers here")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
