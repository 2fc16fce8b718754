"""The learner's settings file, `settings.toml`: what a run may use, how the app looks and is keyed.

[limits]
wall_s = 120
memory_gib = 16

[look]
theme = "nord"
ascii = true

[keys]
"lesson.run" = "f5,ctrl+r"

[review]
new_per_day = 10

[class]
folder = "/srv/torch24"

[places.gpu]
launch = "srun -p gpu --gres=gpu:1 -t 60"
setup = ". /etc/profile; module load cuda"
python = "/opt/torch/bin/python"
"""

import shlex
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tensortutor.course.limits import LIMITS, with_values
from tensortutor.course.read_file import read_file
from tensortutor.course.toml_tables import TomlError, parse_toml, show
from tensortutor.learner.errors import reason
from tensortutor.options import Place
from tensortutor.protocol.jobs import Limits

SWITCHES = {
    "look": ("theme", "ascii", "motion"),
    "lens": ("on",),
    "editor": ("close_brackets", "complete"),
}
"""The tables with switches, and what each of them knows."""
TABLES = ("limits", "look", "keys", "lens", "editor", "review", "class", "places")
NEW_PER_DAY = 10
"""How many new cards a review asks on one day."""
MOST_PER_DAY = 1000
PLACE = ("launch", "setup", "python")


@dataclass(frozen=True)
class LearnerSettings:
    """What the file says, and a sentence for each thing in it that was not understood.

    theme: the name of one, "" for what was chosen in the app. keys: pairs of a binding's id and
    its keys, not yet held against the bindings that there are. lens: look inside after each run.
    close_brackets, complete: the editor closes what is opened, and offers names behind a dot.
    motion: what scrolls may glide; otherwise nothing moves. class_folder: where the learner shares
    with a class, "" for nowhere. places: what `--on` knows by name. new_per_day: how many new cards
    a review asks on one day.
    """

    limits: Limits = field(default_factory=Limits)
    theme: str = ""
    ascii: bool = False
    keys: tuple[tuple[str, str], ...] = ()
    lens: bool = True
    close_brackets: bool = True
    complete: bool = True
    motion: bool = False
    class_folder: str = ""
    places: tuple[Place, ...] = ()
    new_per_day: int = NEW_PER_DAY
    notices: tuple[str, ...] = ()


def read_settings(path: Path) -> LearnerSettings:
    """The settings; the defaults where there is no file or an entry is not understood."""
    try:
        file = parse_toml(read_file(path).decode("utf-8-sig"))
    except FileNotFoundError:
        return LearnerSettings()
    except TomlError as error:
        line = f" (line {error.line})" if error.line else ""
        return LearnerSettings(notices=(f"{path} is not used: {error}{line}.",))
    except OSError as error:
        return LearnerSettings(notices=(f"{path} is not used: {reason(error)}.",))
    except UnicodeDecodeError as error:
        return LearnerSettings(notices=(f"{path} is not used: {error}.",))
    reader = Reader(path, file)
    limits = reader.limits()
    look = reader.table("look", SWITCHES["look"])
    theme = look.get("theme", "")
    if not isinstance(theme, str):
        reader.say(f"look.theme is not a theme's name in quotes: {show(theme)}.")
        theme = ""
    return LearnerSettings(
        limits,
        theme,
        reader.switch("look", "ascii", False),
        reader.keys(),
        reader.switch("lens", "on", True),
        reader.switch("editor", "close_brackets", True),
        reader.switch("editor", "complete", True),
        reader.switch("look", "motion", False),
        reader.class_folder(),
        reader.places(),
        reader.new_per_day(),
        reader.finish(),
    )


class Reader:
    """Takes a file's tables apart, and keeps a sentence for each thing that it cannot mean."""

    def __init__(self, path: Path, file: dict[str, Any]) -> None:
        self._path = path
        self._file = file
        self._notices: list[str] = []

    def say(self, sentence: str) -> None:
        """Keep a sentence, with the file's name before it; once."""
        text = f"{self._path}: {sentence}"
        if text not in self._notices:
            self._notices.append(text)

    def finish(self) -> tuple[str, ...]:
        """All sentences, those about unknown tables last."""
        for name in self._file:
            if name not in TABLES:
                self.say(f"there is no setting {show(name)}; there are: {', '.join(TABLES)}.")
        return tuple(self._notices)

    def table(self, name: str, known: tuple[str, ...] = ()) -> dict[str, Any]:
        """One table, without the entries that are not known."""
        table = self._file.get(name, {})
        if not isinstance(table, dict):
            # "limits is not a table" is read as plain words, whatever stands in its place.
            self.say(f"{name} is not a table; begin it with [{name}].")
            return {}
        for entry in table:
            if known and entry not in known:
                self.say(f"there is no {name}.{short(entry)}; there are: {', '.join(known)}.")
        return {entry: value for entry, value in table.items() if not known or entry in known}

    def switch(self, name: str, entry: str, usual: bool) -> bool:
        """An entry that is true or false."""
        value = self.table(name, SWITCHES[name]).get(entry, usual)
        if isinstance(value, bool):
            return value
        self.say(f"{name}.{entry} is neither true nor false: {show(value)}.")
        return usual

    def keys(self) -> tuple[tuple[str, str], ...]:
        """Binding ids and keys. `lesson.run = "f5"`, unquoted, is a table in a table: the same."""
        found = []
        for name, value in _flat(self.table("keys")):
            if isinstance(value, str):
                found.append((name, value))
            else:
                self.say(f"keys.{short(name)} is not a key in quotes: {show(value)}.")
        return tuple(found)

    def places(self) -> tuple[Place, ...]:
        """The tables below `places`, each with a command and what goes with it."""
        found = []
        for name in self.table("places"):
            entries = self._entries(name)
            try:
                launch = tuple(shlex.split(entries.pop("launch", "")))
            except ValueError as error:
                self.say(f"places.{short(name)}.launch cannot be read as a command: {error}.")
                continue
            if launch:
                found.append(Place(name, launch, **entries))
            else:
                self.say(f'places.{short(name)} needs a command: launch = "ssh HOST".')
        return tuple(found)

    def _entries(self, name: str) -> dict[str, str]:
        """What is understood of a place."""
        entries = self.table("places")[name]
        if not isinstance(entries, dict):
            self.say(f"places.{short(name)} is not a table; begin it with [places.{short(name)}].")
            return {}
        for entry, value in entries.items():
            if entry not in PLACE:
                there = ", ".join(PLACE)
                self.say(f"there is no places.{short(name)}.{short(entry)}; there are: {there}.")
            elif not isinstance(value, str):
                what = f"places.{short(name)}.{entry}"
                self.say(f"{what} is not a text in quotes: {show(value)}.")
        return {e: v for e, v in entries.items() if e in PLACE and isinstance(v, str)}

    def class_folder(self) -> str:
        """The folder of a class, a whole path; `~` stands for the learner's home."""
        value = self.table("class", ("folder",)).get("folder", "")
        if value == "":
            return ""
        if isinstance(value, str) and value.startswith(("/", "~")) and "\0" not in value:
            return value
        self.say(f"class.folder is not a whole path in quotes: {show(value)}.")
        return ""

    def new_per_day(self) -> int:
        """How many new cards a review asks on one day."""
        value = self.table("review", ("new_per_day",)).get("new_per_day", NEW_PER_DAY)
        if type(value) is int and 0 <= value <= MOST_PER_DAY:
            return value
        self.say(
            f"review.new_per_day must be a whole number from 0 to {MOST_PER_DAY}, "
            f"not {show(value)}."
        )
        return NEW_PER_DAY

    def limits(self) -> Limits:
        """The usual limits with the entries of the table."""
        found: dict[str, float] = {}
        for name, value in self.table("limits").items():
            if name not in LIMITS:
                self.say(f"there is no limit {show(name)}; there are: {', '.join(LIMITS)}.")
            elif not LIMITS[name].fits(value):
                self.say(f"limits.{name} must be {LIMITS[name].words}, not {show(value)}.")
            else:
                found[name] = value
        return with_values(Limits(), found)


def short(name: str) -> str:
    """A key as it stands in the file; of a long one its beginning."""
    return name if len(name) <= 40 else name[:39] + "…"


def _flat(table: dict[str, Any], before: str = "") -> list[tuple[str, Any]]:
    """The entries of tables in tables, their names joined by dots."""
    rows: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            rows += _flat(value, f"{before}{name}.")
        else:
            rows.append((before + name, value))
    return rows
