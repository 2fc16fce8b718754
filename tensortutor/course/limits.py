"""A lesson's limits in the units of a job."""

from dataclasses import fields, replace

from tensortutor.course.model import Lesson
from tensortutor.protocol.jobs import Limits

UNITS = {
    "wall_s": ("wall_s", 1.0),
    "memory_gib": ("memory_bytes", 2**30),
    "processes": ("processes", 1),
    "file_gib": ("file_bytes", 2**30),
    "output_mb": ("output_bytes", 1_000_000),
}
"""The names of a lesson's limits: the fields of `Limits` that they raise, and their units."""


def limits_for(lesson: Lesson | None, base: Limits | None = None) -> Limits:
    """The limits of a run: `base`, raised where the lesson asks for more."""
    base = base or Limits()
    types = {field.name: type(getattr(base, field.name)) for field in fields(base)}
    raised = {}
    for name, value in lesson.limits if lesson is not None else ():
        key, unit = UNITS[name]
        raised[key] = types[key](max(getattr(base, key), value * unit))
    return replace(base, **raised)
