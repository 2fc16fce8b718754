"""Copy the pictures that the README shows from the snapshots of the screens.

    python -m tests.pictures

The snapshots are taken by tests/ui/test_snapshots.py from the scenes of tests/ui/scenes.py.
"""

import re
import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
SNAPSHOTS = ROOT / "tests/ui/__snapshots__/test_snapshots"
PICTURES = ROOT / "docs/pictures"


def shown() -> list[str]:
    """The names of the pictures that the README shows."""
    return re.findall(r"\]\(docs/pictures/(\w+)\.svg\)", (ROOT / "README.md").read_text("utf-8"))


def snapshot(name: str) -> Path:
    """The snapshot of the scene of this name."""
    return SNAPSHOTS / f"test_screen[{name}].svg"


if __name__ == "__main__":
    PICTURES.mkdir(exist_ok=True)
    for name in shown():
        shutil.copyfile(snapshot(name), PICTURES / f"{name}.svg")
