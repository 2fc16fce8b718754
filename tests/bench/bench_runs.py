"""How long a run takes, against a warm notebook cell and a cold interpreter.

    pytest tests/bench/bench_runs.py

Needs the extra `bench`. Between two rounds there is a pause, as there is between two runs of a
person: the process that waits for the next run is made in it.
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.manager import start_new_kernel
from pytest_benchmark.fixture import BenchmarkFixture

from tensortutor.protocol.events import Finished
from tensortutor.protocol.jobs import Job
from tensortutor.runner import Runner, Settings

PROGRAM = "import torch\nprint(torch.arange(6.0).view(2, 3).sum(0))\n"
PAUSE_S = 0.3
ROUNDS = 20


def pause() -> None:
    time.sleep(PAUSE_S)


@pytest.fixture(params=["full", "landlock", "limits"])
def runner(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Runner]:
    with Runner(Settings(tmp_path, sandbox=request.param)) as runner:
        runner.prepare()
        yield runner


def test_run(benchmark: BenchmarkFixture, runner: Runner) -> None:
    def run() -> Finished:
        *_, finished = runner.start(Job(PROGRAM))
        return finished

    finished = benchmark.pedantic(run, setup=pause, rounds=ROUNDS, warmup_rounds=1)
    assert finished.outcome == "done"


def test_warm_notebook_cell(benchmark: BenchmarkFixture) -> None:
    manager, client = start_new_kernel()

    def cell() -> dict[str, Any]:
        return client.execute_interactive(PROGRAM, output_hook=lambda message: None)

    try:
        reply = benchmark.pedantic(cell, setup=pause, rounds=ROUNDS, warmup_rounds=1)
        assert reply["content"]["status"] == "ok"
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


def test_cold_interpreter(benchmark: BenchmarkFixture) -> None:
    command = [sys.executable, "-c", PROGRAM]
    done = benchmark.pedantic(
        lambda: subprocess.run(command, capture_output=True), rounds=5, warmup_rounds=1
    )
    assert done.returncode == 0
