"""Formatting a program with ruff, if it is installed."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

LONGEST_S = 10.0
UNREADABLE = re.compile(r"Failed to parse .*?:(\d+):\d+: (.*)")


class NotFormatted(Exception):
    """The program stays as it is. `str` is the sentence for the learner."""


def find_ruff() -> str | None:
    """The path of ruff: the one beside our interpreter, else the first on PATH."""
    beside = Path(sys.executable).with_name("ruff")
    return str(beside) if beside.is_file() else shutil.which("ruff")


def formatted(source: str, path: Path) -> str:
    """The program as ruff lays it out, by the settings that hold for a file at `path`.

    Blocks while ruff runs (about 20 ms). Raises NotFormatted.
    """
    ruff = find_ruff()
    if ruff is None:
        raise NotFormatted(
            f"Formatting needs ruff, which is not installed: {sys.executable} -m pip install ruff"
        )
    try:
        done = subprocess.run(
            [ruff, "format", "--stdin-filename", str(path), "-"],
            input=source.encode("utf-8", "replace"), capture_output=True, timeout=LONGEST_S,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NotFormatted(f"ruff could not be run: {error}") from None
    if done.returncode == 0:
        return done.stdout.decode("utf-8", "replace")
    said = done.stderr.decode("utf-8", "replace").strip()
    if found := UNREADABLE.search(said):
        line, why = found.groups()
        raise NotFormatted(f"Not formatted: line {line} does not parse ({why.rstrip('.')}).")
    last = (said.splitlines() or [f"it ended with status {done.returncode}"])[-1]
    raise NotFormatted(f"ruff did not format this: {last}")
