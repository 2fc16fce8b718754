"""Lint, format, types and import contracts hold for the whole tree."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
CONTRACTS = "import importlinter.cli as c; raise SystemExit(c.lint_imports(no_logo=True))"


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(["-m", "ruff", "check", "--no-cache", "."], id="lint"),
        pytest.param(["-m", "ruff", "format", "--no-cache", "--check", "."], id="format"),
        pytest.param(["-m", "mypy"], id="types"),
        pytest.param(["-c", CONTRACTS], id="contracts"),
    ],
)
def test_the_tree_is_clean(arguments):
    done = subprocess.run(
        [sys.executable, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
