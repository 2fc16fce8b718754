"""What must be known of an interpreter before it is shut into a sandbox."""

import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass

from tensortutor.runner.errors import RunnerError

QUESTION = """
import importlib.util, json, sys
print(json.dumps([importlib.util.find_spec("torch") is not None, list(sys.version_info[:2]),
                  [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]]))
"""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that has torch. folders: what it needs to read."""

    path: str
    folders: tuple[str, ...]


def own_interpreter() -> Interpreter:
    """The one that runs this process. Raises RunnerError if it has no torch."""
    if importlib.util.find_spec("torch") is None:
        raise RunnerError(no_torch(sys.executable))
    folders = [sys.prefix, sys.base_prefix, sys.exec_prefix, *sys.path]
    return Interpreter(sys.executable, existing(sys.executable, folders))


def other_interpreter(path: str) -> Interpreter:
    """The one that the learner named. Raises RunnerError if it cannot run or has no torch."""
    path = os.path.abspath(os.path.expanduser(path))
    try:
        answer = subprocess.run(
            [path, "-c", QUESTION], capture_output=True, text=True, timeout=30, check=True
        )
        has_torch, version, folders = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise RunnerError(f"{path} cannot be run as a Python interpreter: {error}") from None
    if tuple(version) < (3, 10):
        raise RunnerError(f"{path} is Python {version[0]}.{version[1]}; 3.10 or newer is needed.")
    if not has_torch:
        raise RunnerError(no_torch(path))
    return Interpreter(path, existing(path, folders))


def no_torch(path: str) -> str:
    """The sentence for an interpreter without torch."""
    return f"{path} has no torch. Install it there ({path} -m pip install torch), or name another interpreter with --python."


def existing(path: str, folders: list[str]) -> tuple[str, ...]:
    """The folders that are there, and those along the interpreter's chain of links."""
    chain = []
    while os.path.islink(path):
        chain.append(os.path.dirname(path))
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path)))
    chain.append(os.path.dirname(path))
    # The folder itself and not just its target: both names must work inside.
    found = [folder for folder in [*folders, *chain] if folder and os.path.exists(folder)]
    return tuple(dict.fromkeys(os.path.abspath(folder) for folder in found))
