"""The files beside the learner's program."""

from collections.abc import Iterable
from pathlib import Path

from rich.text import Text
from textual.widgets import DirectoryTree

from tensortutor.ui.outside import OutsideText

HIDDEN = ("__pycache__", "node_modules", "site-packages")
MOST = 500
"""Entries of a folder that are listed; who has more finds nothing in a list."""


class FileTree(DirectoryTree):
    """A folder as a tree. What is hidden (`.git`, `.venv`, caches, environments) is left out."""

    BORDER_TITLE = "Files"
    ICON_NODE = "+ "
    ICON_NODE_EXPANDED = "- "
    ICON_FILE = ""

    def filter_paths(self, paths: Iterable[Path]) -> Iterable[Path]:
        """Leave out what nobody edits."""
        kept = (p for p in paths if not p.name.startswith(".") and p.name not in HIDDEN)
        return [p for p, _ in zip(kept, range(MOST), strict=False) if not _is_environment(p)]

    def process_label(self, label: object) -> Text:
        """A file's name may hold anything; it is shown as one line."""
        return OutsideText(label).rich()


def _is_environment(path: Path) -> bool:
    try:
        return (path / "pyvenv.cfg").exists()
    except OSError:
        return False
