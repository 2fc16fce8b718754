"""A run on a waiting process whose context is up, beside a warm notebook cell and a cold start."""

import contextlib
import os
import signal
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Iterator

from tensortutor.course.catalog import find_course, find_lesson, load_course
from tensortutor.course.jobs import check_job
from tensortutor.protocol.events import Finished
from tests.gpu.kit import Kit, run

CELL = "import torch\nx = torch.randn(512, 512, device={device!r})\nprint((x @ x).sum().item())\n"
LESSON = "tensors/reshape"
PAUSE_S = 0.7
"""Between two runs: a person does not press Enter the moment a run has ended, and a waiting
process needs its time to bring the card up."""

ECHO = """
import sys
names = {}
for line in sys.stdin:
    exec(eval(line), names)
    print("done", flush=True)
"""


def main(kit: Kit, deadline: float) -> None:
    """Medians, and their ratio."""
    del deadline
    rounds = 3 if kit.quick else 12
    cell = CELL.format(device=kit.device)
    lesson = find_lesson(load_course(find_course()), LESSON)
    answer = lesson.task.solution or ""
    with kit.runner() as runner, warm_peer(kit) as (peer, peer_cell):
        peer_cell(cell)
        begun = time.perf_counter()
        run(runner, cell)
        kit.figure("first run after the start", (time.perf_counter() - begun) * 1000, "ms")
        ours, theirs, checks, empty = [], [], [], []
        for _ in range(rounds):
            time.sleep(PAUSE_S)
            ours.append(run(runner, cell).finished_s * 1000)
            theirs.append(timed(lambda: peer_cell(cell)))
            time.sleep(PAUSE_S)
            empty.append(run(runner, "pass\n").finished_s * 1000)
            time.sleep(PAUSE_S)
            checks.append(judged(runner, check_job(lesson, answer, "answer.py", seed=1)))
        at_once = [run(runner, cell).finished_s * 1000 for _ in range(rounds)]
    a, b = statistics.median(ours), statistics.median(theirs)
    kit.figure("run on the device, sandboxed", a, "ms", f"median of {rounds}")
    kit.figure(f"{peer}", b, "ms", f"median of {rounds}")
    kit.figure("ratio run / warm cell", a / b, "", "wanted <= 1.5")
    kit.figure("an empty program", statistics.median(empty), "ms")
    kit.figure(f"all checks of {LESSON}", statistics.median(checks), "ms")
    kit.figure("run right after a run", statistics.median(at_once), "ms", "no waiting process yet")
    cold = [cold_start(cell) for _ in range(1 if kit.quick else 3)]
    kit.figure("python file.py, cold", statistics.median(cold), "ms")


def timed(work: Callable[[], object]) -> float:
    """Milliseconds of a call."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


def judged(runner: object, job: object) -> float:
    """Milliseconds to the end of a check."""
    begun = ended = time.perf_counter()
    for event in runner.start(job):  # type: ignore[attr-defined]
        if isinstance(event, Finished):
            ended = time.perf_counter()
    return (ended - begun) * 1000


def cold_start(cell: str) -> float:
    """Milliseconds of a new interpreter that imports torch and runs the cell."""
    command = [sys.executable, "-c", cell]
    return timed(lambda: subprocess.run(command, capture_output=True, check=True))


@contextlib.contextmanager
def warm_peer(kit: Kit) -> Iterator[tuple[str, Callable[[str], object]]]:
    """A Jupyter kernel; where Jupyter is missing, a plain Python process that is told by a pipe.

    The plain process has none of a kernel's messages: a ratio against it is harder to win.
    """
    try:
        from tests.bench.latency import Jupyter
    except ImportError:
        kit.note("no Jupyter here", "the peer is a plain process that executes what a pipe sends")
        process = subprocess.Popen(
            [sys.executable, "-c", ECHO], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert process.stdin is not None
        assert process.stdout is not None

        def execute(code: str) -> None:
            process.stdin.write(repr(code) + "\n")
            process.stdin.flush()
            while process.stdout.readline().strip() != "done":
                pass

        try:
            yield "warm plain process", execute
        finally:
            os.kill(process.pid, signal.SIGTERM)
            process.wait()
        return
    kernel = Jupyter()
    try:
        yield "warm Jupyter cell", kernel.run
    finally:
        kernel.close()
