"""Reads a folder of programs, each with a header that says what must be seen."""

import sys
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]

CUT = "# ---\n"
"""Between two programs of one file, which run one after the other."""


def names(folder: Path) -> list[str]:
    """The names of the programs in a folder, sorted."""
    return sorted(path.stem for path in folder.glob("*.py"))


def read(folder: Path, name: str) -> list[tuple[dict[str, Any], str]]:
    """The programs of one file, each as (header, source).

    The header is TOML in the comment lines that the program begins with. The source keeps them.
    """
    text = (folder / f"{name}.py").read_text(encoding="utf-8")
    return [(header(source), source) for source in text.split(CUT)]


def header(source: str) -> dict[str, Any]:
    """The TOML of the leading comment lines."""
    lines = []
    for line in source.lstrip().splitlines():
        if not line.startswith("#"):
            break
        lines.append(line[1:].strip())
    found: dict[str, Any] = tomllib.loads("\n".join(lines))
    return found
