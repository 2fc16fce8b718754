"""From Enter to the end of a run: ours, confined, against a warm Jupyter cell and a cold Python.

    python -m tests.bench.latency [ROUNDS]

All three run in one process's time, in turns, so that a busy machine slows them alike. Needs the
bench extra. Also reported: a check with all its checks, how a run grows with its output and with
its tensors, and the memory of the idle app: its screen, the zygote, the waiting processes.
"""

import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from jupyter_client.manager import KernelManager

from tensortutor.course.catalog import find_course, find_lesson, load_course
from tensortutor.course.jobs import check_job
from tensortutor.protocol.events import Finished
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings
from tests.bench import memory

ROUNDS = 30
CELL = "import torch\nprint(torch.randn(3, 3) @ torch.randn(3, 3))\n"
LINES = "for i in range(10_000):\n    print(i)\n"
TENSORS = (
    "import torch\nxs = {f'x{i}': torch.zeros(10) for i in range(1_000)}\nglobals().update(xs)\n"
)
LESSON = "tensors/reshape"
PAUSE_S = 0.15
"""Between two runs: a person does not press Enter the moment a run has ended."""


def to_finished(runner: Runner, job: Job) -> float:
    """Milliseconds from handing over a job to its Finished; what follows is cleaning up."""
    begun = time.perf_counter()
    ended = begun
    for event in runner.start(job):
        if isinstance(event, Finished):
            ended = time.perf_counter()
    return (ended - begun) * 1000


def milliseconds(work: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    work()
    return (time.perf_counter() - begun) * 1000


class Jupyter:
    """A kernel that has imported torch."""

    def __init__(self) -> None:
        self._manager = KernelManager(kernel_name="python3")
        self._manager.start_kernel()
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=60)
        self.run(CELL)

    @property
    def pid(self) -> int:
        """Its process."""
        return int(self._manager.provisioner.pid)

    def run(self, code: str) -> None:
        """Execute a cell and wait for the kernel to be idle again."""
        asked = self._client.execute(code)
        while True:
            message = self._client.get_iopub_msg(timeout=60)
            mine = message["parent_header"].get("msg_id") == asked
            if mine and message["content"].get("execution_state") == "idle":
                return

    def close(self) -> None:
        """End the kernel."""
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=True)


def main(rounds: int) -> None:
    """Measure and print."""
    lesson = find_lesson(load_course(find_course()), LESSON)
    answer = lesson.task.solution or ""
    idle = memory.idle_app()  # before others here have loaded PyTorch, and share its pages
    with tempfile.TemporaryDirectory() as folder:
        settings = Settings(scratch=Path(folder), device="cpu")
        script = Path(folder) / "cell.py"
        script.write_text(CELL)
        jupyter = Jupyter()
        with Runner(settings) as runner:
            runner.prepare()
            subjects: dict[str, Callable[[], float]] = {
                "a  run, confined": lambda: to_finished(runner, Job(CELL)),
                "b  Jupyter cell, warm": lambda: milliseconds(lambda: jupyter.run(CELL)),
                "   all checks of " + LESSON: lambda: to_finished(
                    runner, check_job(lesson, answer, "answer.py", seed=1)
                ),
                "   10,000 lines of output": lambda: to_finished(runner, Job(LINES)),
                "   1,000 tensors": lambda: to_finished(runner, Job(TENSORS)),
            }
            layer = runner.status.layer
            time.sleep(5)  # the worker imports the rest of torch once it is quiet
            times: dict[str, list[float]] = {name: [] for name in subjects}
            for _ in range(rounds):
                for name, work in subjects.items():
                    times[name].append(work())
                    time.sleep(PAUSE_S)
        jupyter.close()
        command = [sys.executable, str(script)]
        cold = [
            milliseconds(lambda: subprocess.run(command, capture_output=True, check=True))
            for _ in range(max(3, rounds // 6))
        ]
    report(times, cold, layer, rounds)
    print(memory.report(idle))


def report(times: dict[str, list[float]], cold: list[float], layer: str, rounds: int) -> None:
    """The table and the ratios."""
    medians = {name: statistics.median(values) for name, values in times.items()}
    a, b, check, *_ = medians.values()
    c = statistics.median(cold)
    print(f"sandbox: {layer}; medians of {rounds} rounds, in ms")
    for name, median in medians.items():
        print(f"{name:40}{median:9.1f}   {median / a:6.2f} a")
    print(f"{'c  python file.py, cold':40}{c:9.1f}   {c / a:6.0f} a")
    print(f"a/b = {a / b:.2f} (wanted <= 1.0)   c/a = {c / a:.0f} (wanted >= 100)")
    print(f"check/b = {check / b:.2f} (wanted <= 3)")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
