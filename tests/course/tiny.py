"""The tiny course of these tests, and copies of it with one thing broken."""

import shutil
from dataclasses import dataclass
from pathlib import Path

TINY = Path(__file__).parent / "data" / "tiny"
LESSON = "lessons/01_basics/01_means.md"
CHECKS = "checks/01_basics/01_means.py"
FIX = "lessons/02_repairs/01_lost_dim.md"
FIX_CHECKS = "checks/02_repairs/01_lost_dim.py"
CONTENTS = "lessons/course.toml"


@dataclass(frozen=True)
class Edit:
    """Replace `old`, which occurs once in the file, by `new`."""

    file: str
    old: str
    new: str

    def apply(self, root: Path) -> None:
        path = root / self.file
        text = path.read_text("utf-8")
        assert text.count(self.old) == 1, f"{self.old!r} occurs {text.count(self.old)} times"
        path.write_text(text.replace(self.old, self.new), "utf-8")


def copy_of_tiny(folder: Path, *edits: Edit) -> Path:
    """A copy of the tiny course in `folder`, edited."""
    root = folder / "course"
    shutil.copytree(TINY, root)
    for edit in edits:
        edit.apply(root)
    return root


def line_of(root: Path, file: str, marker: str) -> int:
    """The number of the first line of a file that contains `marker`."""
    lines = (root / file).read_text("utf-8").split("\n")
    return next(number for number, line in enumerate(lines, 1) if marker in line)
