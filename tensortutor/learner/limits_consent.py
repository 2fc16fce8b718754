"""Which limits beyond the usual ones the learner lets a course have. Our own course needs no leave.

A course is text from somebody else: it may ask for more memory or time, and gets it once the
learner has agreed to that course and that value.
"""

import contextlib
import json
from pathlib import Path

from tensortutor.course.catalog import is_own
from tensortutor.course.limits import LIMITS, value_of
from tensortutor.course.model import Course, Lesson
from tensortutor.course.read_file import read_file
from tensortutor.protocol.jobs import Limits


class LimitsConsent:
    """What was agreed to: for each course's folder, the largest value of each limit."""

    def __init__(self, path: Path | None) -> None:
        """path: a JSON file; None remembers for as long as this object lives."""
        self._path = path
        self._allowed: dict[str, dict[str, float]] = {}
        if path is not None:
            with contextlib.suppress(OSError, ValueError, RecursionError):
                read = json.loads(read_file(path))
                self._allowed = read if isinstance(read, dict) else {}

    def asked(self, course: Course, lesson: Lesson, base: Limits) -> dict[str, float]:
        """The limits that a lesson asks for and may not have yet, with their values.

        base: what the learner's settings allow every run.
        """
        if is_own(course.root):
            return {}
        return {
            name: value
            for name, value in lesson.limits
            if value > max(value_of(base, name), self._given(course, name))
        }

    def allow(self, course: Course, lesson: Lesson) -> None:
        """The learner has agreed. Where that cannot be written, it holds until the program ends."""
        known = {name: self._given(course, name) for name in LIMITS}
        for name, value in lesson.limits:
            known[name] = max(known[name], value)
        self._allowed[str(course.root)] = {name: v for name, v in known.items() if v}
        if self._path is not None:
            with contextlib.suppress(OSError):
                self._path.parent.mkdir(parents=True, exist_ok=True)
                self._path.write_text(json.dumps(self._allowed, indent=1), "utf-8")

    def _given(self, course: Course, name: str) -> float:
        values = self._allowed.get(str(course.root))
        value = values.get(name) if isinstance(values, dict) else None
        if value is None or not LIMITS[name].fits_as_number(value):
            return 0.0
        return float(value)


def sentence(lesson: Lesson, asked: dict[str, float], base: Limits) -> str:
    """What a lesson asks for, against what a run has otherwise."""
    rows = [f"{name} = {asked[name]:g} (usual: {value_of(base, name):g})" for name in asked]
    return f"{lesson.id} asks for more than a run of this course may use: {', '.join(rows)}."
