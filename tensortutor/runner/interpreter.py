"""What must be known of an interpreter before it is shut into a sandbox."""

import json
import os
import subprocess
from dataclasses import dataclass

from tensortutor.runner.environment import environment
from tensortutor.runner.errors import RunnerError

OLDEST = (3, 10)
QUESTION = """
import importlib.util, json, sys
print(json.dumps([importlib.util.find_spec("torch") is not None, list(sys.version_info[:2]),
                  [sys.prefix, sys.base_prefix, sys.exec_prefix, *filter(None, sys.path)]]))
"""


@dataclass(frozen=True)
class Interpreter:
    """An interpreter that has torch. folders: what it needs to read."""

    path: str
    folders: tuple[str, ...]


def inspect_interpreter(path: str) -> Interpreter:
    """Ask an interpreter about itself.

    Raises RunnerError if it cannot be run, is too old, or has no torch.
    """
    path = os.path.abspath(os.path.expanduser(path))
    try:
        answer = subprocess.run(
            [path, "-c", QUESTION], env=environment(), cwd="/",
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        has_torch, version, folders = json.loads(answer.stdout.splitlines()[-1])
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        raise RunnerError(f"{path} cannot be run as a Python interpreter: {error}") from None
    if tuple(version) < OLDEST:
        raise RunnerError(f"{path} is Python {version[0]}.{version[1]}; 3.10 or newer is needed.")
    if not has_torch:
        raise RunnerError(
            f"{path} has no torch. Install it there ({path} -m pip install torch), "
            "or name another interpreter with --python."
        )
    return Interpreter(path, (*existing(folders), *link_folders(path)))


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
