"""The limits that a settings file or a lesson may name: their units, and how far each may go."""

from dataclasses import dataclass, fields, replace
from typing import Any

from tensortutor.protocol.jobs import Limits


@dataclass(frozen=True)
class Limit:
    """One limit. field: of `Limits`. unit: what its value is multiplied with. Both ends may be.

    whole: a count. The largest values are beyond what a run can use on machines of today, and
    small enough for every system call that they are given to.
    """

    field: str
    unit: float
    smallest: float
    largest: float
    whole: bool = False

    @property
    def words(self) -> str:
        """What the value must be, for a message."""
        kind = "whole number" if self.whole else "number"
        return f"a {kind} from {self.smallest:g} to {self.largest:g}"

    def fits(self, value: Any) -> bool:
        """Whether this is such a value."""
        return self.fits_as_number(value) and not (self.whole and type(value) is float)

    def fits_as_number(self, value: Any) -> bool:
        """Whether it lies between both ends; a count may be written as 8.0 too."""
        return type(value) in (int, float) and self.smallest <= value <= self.largest


LIMITS = {
    "wall_s": Limit("wall_s", 1.0, 0.1, 86_400),
    "memory_gib": Limit("memory_bytes", 2**30, 0.25, 4096),
    "processes": Limit("processes", 1, 1, 4096, whole=True),
    "file_gib": Limit("file_bytes", 2**30, 0.001, 1024),
    "output_mb": Limit("output_bytes", 1_000_000, 0.001, 1000),
}


def with_values(limits: Limits, values: dict[str, float]) -> Limits:
    """`limits` with some of them replaced: values by name, in the units of the files."""
    types = {field.name: type(getattr(limits, field.name)) for field in fields(limits)}
    known = {LIMITS[name].field: (LIMITS[name].unit, value) for name, value in values.items()}
    return replace(limits, **{key: types[key](v * unit) for key, (unit, v) in known.items()})


def value_of(limits: Limits, name: str) -> float:
    """A limit's value in the unit of the files."""
    limit = LIMITS[name]
    return float(getattr(limits, limit.field)) / limit.unit
