"""One Runner per layer for all tests of a process: PyTorch is loaded once for each."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator
from functools import cache

import pytest

from tensortutor.options import Place
from tensortutor.runner import Runner, Settings
from tensortutor.runner.sandbox import why_no_full, why_no_landlock

ELSEWHERE = os.environ.get("TENSORTUTOR_TEST_ON", "env")
"""The command by which a place is reached; .ci/slurm names others."""
WHY_NOT = {"full": why_no_full, "landlock": why_no_landlock}


@cache
def why_not(layer: str) -> str:
    """What keeps this machine from a layer, or ""."""
    return WHY_NOT[layer]()


@pytest.fixture(params=list(WHY_NOT))
def layer(request: pytest.FixtureRequest) -> str:
    """A layer of confinement that this machine allows.

    For each test by itself: pytest would run all tests of one layer before those of the other, and
    what plain Python does with a program would be asked for in two processes.
    """
    name = str(request.param)
    if reason := why_not(name):
        pytest.skip(f"the {name} layer is not possible here: {reason}")
    return name


@pytest.fixture(scope="session")
def runner_in(
    runner_on_cpu: Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Callable[[str], Runner]]:
    """The Runner of a layer, ready. Tests of the two layers may alternate."""
    runners: dict[str, Runner] = {}

    def runner_in(layer: str) -> Runner:
        if layer == runner_on_cpu.status.layer:
            return runner_on_cpu
        if layer not in runners:
            scratch = tmp_path_factory.mktemp(f"scratch_{layer}")
            runners[layer] = Runner(Settings(scratch=scratch, device="cpu", sandbox=layer))
            runners[layer].prepare()
        return runners[layer]

    yield runner_in
    for runner in runners.values():
        runner.close()


@pytest.fixture
def runner(layer: str, runner_in: Callable[[str], Runner]) -> Runner:
    """A Runner that is ready, in this layer."""
    return runner_in(layer)


@pytest.fixture(scope="session", params=["here", "in a place"])
def place(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Place | None:
    """Where programs run: on this machine, and over the byte stream of a command."""
    if request.param == "here":
        return None
    cache = tmp_path_factory.mktemp("cache")
    launch = (*shlex.split(ELSEWHERE), "env", f"XDG_CACHE_HOME={cache}")
    return Place(ELSEWHERE, launch, python=sys.executable)


@pytest.fixture(scope="session")
def runner_anywhere(
    place: Place | None, runner_on_cpu: Runner, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """A Runner that is ready, here and in a place: for tests of what must be the same there."""
    if place is None:
        yield runner_on_cpu
        return
    scratch = tmp_path_factory.mktemp("scratch_anywhere")
    with Runner(Settings(scratch=scratch, device="cpu", place=place)) as runner:
        runner.prepare()
        yield runner
