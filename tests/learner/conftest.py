from pathlib import Path

import pytest

from tensortutor.learner.paths import Paths


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths(tmp_path / "home")
