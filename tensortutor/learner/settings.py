"""The learner's settings file: what a run may use.

[limits]
wall_s = 120
memory_gib = 16
"""

import sys
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from tensortutor.course.jobs import UNITS
from tensortutor.protocol.jobs import Limits

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # type: ignore[import-not-found, unused-ignore]


@dataclass(frozen=True)
class LearnerSettings:
    """What the file says, and a sentence for each thing in it that was not understood."""

    limits: Limits = field(default_factory=Limits)
    notices: tuple[str, ...] = ()


def read_settings(path: Path) -> LearnerSettings:
    """The settings; the defaults where there is no file or an entry is not understood."""
    try:
        table = tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return LearnerSettings()
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        return LearnerSettings(notices=(f"{path} is not used: {error}.",))
    limits, notices = limits_from(table.pop("limits", {}), path)
    unknown = [f"{path}: there is no setting {name!r}; there is: limits." for name in table]
    return LearnerSettings(limits, (*notices, *unknown))


def limits_from(table: Any, path: Path) -> tuple[Limits, tuple[str, ...]]:
    """Limits with the entries of a table, and sentences about those that make no sense."""
    if not isinstance(table, dict):
        return Limits(), (f"{path}: limits is not a table; begin it with [limits].",)
    usual = Limits()
    types = {known.name: type(getattr(usual, known.name)) for known in fields(usual)}
    found: dict[str, Any] = {}
    notices = []
    for name, value in table.items():
        if name not in UNITS:
            notices.append(f"{path}: there is no limit {name!r}; there are: {', '.join(UNITS)}.")
        elif type(value) not in (int, float) or not 0 < value < float("inf"):
            notices.append(f"{path}: limits.{name} is not a number above 0: {value!r}.")
        else:
            key, unit = UNITS[name]
            found[key] = types[key](value * unit)
    return replace(usual, **found), tuple(notices)
