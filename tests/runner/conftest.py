"""One Runner per layer for all tests of a process: PyTorch is loaded once."""

import os
import shlex
import sys
from collections.abc import Callable, Iterator

import pytest

from tensortutor.options import Place
from tensortutor.runner import Runner, Settings
from tensortutor.runner.sandbox import why_no_full, why_no_landlock

ELSEWHERE = os.environ.get("TENSORTUTOR_TEST_ON", "env")
"""The command by which a place is reached; .ci/slurm names others."""
WHY_NOT = {"full": why_no_full, "landlock": why_no_landlock}


@pytest.fixture(scope="session", params=list(WHY_NOT))
def layer(request: pytest.FixtureRequest) -> str:
    """A layer of confinement that this machine allows."""
    name = str(request.param)
    if reason := WHY_NOT[name]():
        pytest.skip(f"the {name} layer is not possible here: {reason}")
    return name


@pytest.fixture(scope="session")
def runner_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Runner]]:
    """The Runner of a layer, ready. Tests of the two layers may alternate."""
    runners: dict[str, Runner] = {}

    def runner_in(layer: str) -> Runner:
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
    place: Place | None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Runner]:
    """A Runner that is ready, here and in a place: for tests of what must be the same there."""
    scratch = tmp_path_factory.mktemp("scratch_anywhere")
    with Runner(Settings(scratch=scratch, device="cpu", place=place)) as runner:
        runner.prepare()
        yield runner
