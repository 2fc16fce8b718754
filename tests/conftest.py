"""What every test gets: a home of its own and the same terminal everywhere."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tensortutor.runner import Runner, Settings
from tests.runner.plain_python import PlainPython

# No deadlines: on a busy machine they fail for no fault of the code.
settings.register_profile("tensortutor", deadline=None, derandomize="CI" in os.environ)
settings.load_profile("tensortutor")

# Two test processes share the cores: OpenMP's threads do not spin while they wait.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

TERMINAL = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "COLUMNS": "120", "LINES": "40"}
UNWANTED = (
    "NO_COLOR", "FORCE_COLOR", "PYTHONSTARTUP", "PYTHONINSPECT", "PYTHONWARNINGS",
    "TENSORTUTOR_CLASS",
)  # fmt: skip


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The learner's home of this test. No test reads or writes the real one."""
    home = tmp_path / "home"
    monkeypatch.setenv("TENSORTUTOR_HOME", str(home))
    for name, value in TERMINAL.items():
        monkeypatch.setenv(name, value)
    for name in UNWANTED:
        monkeypatch.delenv(name, raising=False)
    return home


@pytest.fixture(scope="session")
def runner_on_cpu(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    """A runner with the usual settings. It takes two seconds to start, so tests share it."""
    scratch = tmp_path_factory.mktemp("scratch")
    with Runner(Settings(scratch=scratch, device="cpu", spares=2)) as runner:
        runner.prepare()
        yield runner


@pytest.fixture(scope="session")
def plain_python(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PlainPython]:
    """What programs do in plain Python. It takes as long, so tests share it."""
    plain = PlainPython(tmp_path_factory.mktemp("plain"))
    yield plain
    plain.close()
