"""One Runner per layer for all tests of a process: PyTorch is loaded once."""

from collections.abc import Iterator

import pytest

from tensortutor.runner import Runner, Settings
from tensortutor.runner.sandbox import why_no_full, why_no_landlock

WHY_NOT = {"full": why_no_full, "landlock": why_no_landlock}


@pytest.fixture(scope="session", params=list(WHY_NOT))
def layer(request: pytest.FixtureRequest) -> str:
    """A layer of confinement that this machine allows."""
    name = str(request.param)
    if reason := WHY_NOT[name]():
        pytest.skip(f"the {name} layer is not possible here: {reason}")
    return name


@pytest.fixture(scope="session")
def runner(layer: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A Runner that is ready, in this layer."""
    settings = Settings(
        scratch=tmp_path_factory.mktemp(f"scratch_{layer}"), device="cpu", sandbox=layer
    )
    with Runner(settings) as runner:
        runner.prepare()
        yield runner
