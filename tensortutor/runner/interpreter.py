"""What must be known of an interpreter before it is shut into a sandbox."""

import json
import os
import subprocess
from dataclasses import dataclass

from tensortutor.runner.environment import environment
from tensortutor.runner.errors import RunnerError
from tensortutor.runner.versions import OLDEST_PYTHON, is_old, requirement, supported

QUESTION = """
import json, sys
python, torch, folders = list(sys.version_info[:2]), None, []
if python >= [3, 4]:
    import importlib.util, os
    spec = importlib.util.find_spec("torch")
    if spec is not None:
        said = {}
        try:
            with open(os.path.join(os.path.dirname(spec.origin), "version.py")) as file:
                exec(file.read(), said)
        except Exception:
            pass
        torch = str(said.get("__version__", ""))
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix] + [f for f in sys.path if f]
print(json.dumps([torch, python, folders]))
"""
"""Any Python can answer, however old. To import torch would take seconds: its version is in a file
of its own. torch: None if there is none, "" if it does not say."""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that has torch. folders: what it needs to read."""

    path: str
    folders: tuple[str, ...]


def inspect_interpreter(path: str) -> Interpreter:
    """Ask an interpreter about itself.

    Raises RunnerError if it cannot be run, is too old, or has no torch that the course is for.
    """
    path = os.path.abspath(os.path.expanduser(path))
    try:
        answer = subprocess.run(
            [path, "-c", QUESTION], env=environment(), cwd="/",
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        torch, python, folders = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise RunnerError(f"{path} cannot be run as a Python interpreter: {why(error)}") from None
    if tuple(python) < OLDEST_PYTHON:
        raise RunnerError(
            f"{path} is Python {python[0]}.{python[1]}; {OLDEST_PYTHON[0]}.{OLDEST_PYTHON[1]} or "
            "newer is needed. Name another interpreter with --python."
        )
    if torch is None or is_old(torch):
        lacks = "no torch" if torch is None else f"torch {torch}; this course is for {supported()}"
        raise RunnerError(
            f"{path} has {lacks}. Install it there ({path} -m pip install '{requirement()}'), "
            "or name another interpreter with --python."
        )
    return Interpreter(path, (*existing(folders), *link_folders(path)))


def why(error: Exception) -> str:
    """Why an interpreter gave no answer, in words: not the question that it was asked."""
    if isinstance(error, OSError):
        return f"{error.strerror or error}."
    if isinstance(error, subprocess.TimeoutExpired):
        return f"it gave no answer within {error.timeout:g} s."
    if isinstance(error, subprocess.CalledProcessError):
        lines = (error.stderr or "").strip().splitlines()
        if lines and "json" not in lines[-1]:  # what is no Python may repeat the question
            return lines[-1]
        return f"it ended with status {error.returncode}."
    return "it does not answer as one."


def existing(folders: list[str]) -> tuple[str, ...]:
    """The folders that are there, each once."""
    return tuple(dict.fromkeys(os.path.abspath(f) for f in folders if os.path.exists(f)))


def link_folders(path: str) -> tuple[str, ...]:
    """The folders along a chain of symbolic links: each name on it must work inside too."""
    chain = [os.path.dirname(path)]
    while os.path.islink(path):
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
        chain.append(os.path.dirname(path))
    return tuple(dict.fromkeys(chain))
