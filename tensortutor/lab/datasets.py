"""The data of the lessons, and files of the learner's own, by name.

What ships with the package lies in `data`, beside this file; `data/SOURCES.md` says where it comes
from. A learner's own files lie in the folder `data` of the learner's folder: the tutor names it in
`DATA_FOLDER` and lets programs read it.
"""

import os
import sys
from pathlib import Path
from typing import overload

DATA_FOLDER = "TENSORTUTOR_DATA"
"""The environment variable in which a run of the tutor finds the folder of the learner's files."""
SHIPPED = Path(__file__).parent / "data"
ABOUT = "SOURCES.md"


@overload
def data() -> list[str]: ...
@overload
def data(name: str) -> Path: ...
def data(name: str | None = None) -> Path | list[str]:
    """The path of a data file or folder; without a name, the names of all that there are.

        import numpy
        digits = numpy.load(data("digits.npz"))      # images (1797, 8, 8), labels (1797,)

    name: a file of the package (digits.npz, penguins.csv, names.txt, the folder digits_png), or of
    the learner's own folder of data, which the error names; of two of the same name the learner's
    is meant. Parts below a folder are joined with "/", as in "digits_png/3". The files can be read
    and not changed.

    Raises FileNotFoundError for a name that is not there, with the names that are and with the
    folder for own files; ValueError for a name that leads out of these folders.
    """
    if name is None:
        return names()
    parts = Path(name).parts
    if os.path.isabs(name) or ".." in parts or not parts:
        raise ValueError(
            f"data() takes a name such as 'digits.npz', and {name!r} leads elsewhere. "
            "Open a file of another place by its path."
        )
    for folder in (own_folder(), SHIPPED):
        path = folder / name
        if path.exists():
            return path
    raise FileNotFoundError(
        f"There is no data {name!r}. There are: {', '.join(names())}. "
        f"Files of your own go into {own_folder()}."
    )


def names() -> list[str]:
    """What there is, in the order of the alphabet."""
    found: set[str] = set()
    for folder in (own_folder(), SHIPPED):
        if folder.is_dir():
            found |= {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    return sorted(found - {ABOUT})


def own_folder() -> Path:
    """Where a learner's own files lie, whether or not the folder is there."""
    named = os.environ.get(DATA_FOLDER)
    if named:
        return Path(named)
    home = os.environ.get("TENSORTUTOR_HOME")
    return (Path(home).expanduser().absolute() if home else user_data()) / "data"


def user_data() -> Path:
    """The learner's folder where no variable names it: as the library platformdirs has it.

    That library need not be there in the interpreter that runs programs.
    """
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "tensortutor"
    base = os.environ.get("XDG_DATA_HOME", "").strip()
    return (Path(base) if base else Path.home() / ".local" / "share") / "tensortutor"
