"""The learner's own editor, as $VISUAL or $EDITOR names it."""

import os
import shlex
import shutil
import subprocess
from pathlib import Path

JUMPS = frozenset(
    ("vi", "vim", "nvim", "view", "ex", "nano", "pico", "emacs", "emacsclient", "micro", "joe",
     "jed", "mg", "ne", "kak", "mcedit")
)  # fmt: skip
"""Those that go to a line which is given as +N."""


class NoEditor(Exception):
    """There is none. `str` is the sentence for the learner."""


def own_editor() -> list[str]:
    """The command, in parts. Raises NoEditor."""
    for name in ("VISUAL", "EDITOR"):
        value = os.environ.get(name, "").strip()
        if not value:
            continue
        try:
            command = shlex.split(value)
        except ValueError:
            raise NoEditor(f"{name} is no command: {value}") from None
        if shutil.which(command[0]) is None:
            raise NoEditor(f"{name} names {command[0]}, which cannot be found.")
        return command
    raise NoEditor("No editor is named. Set VISUAL or EDITOR, for example: export EDITOR=vim")


def open_file(command: list[str], path: Path, line: int) -> str:
    """Edit a file until the editor ends, with the terminal in its hands.

    line: where to begin, from 1. Returns "" or a sentence about what went wrong.
    """
    name = Path(command[0]).name
    place = [f"+{line}"] if name in JUMPS else []
    try:
        done = subprocess.run([*command, *place, str(path)], check=False)
    except OSError as error:
        return f"{name} could not be started: {(error.strerror or str(error)).lower()}."
    if done.returncode:
        return f"{name} ended with status {done.returncode}. The file is as it left it."
    return ""
