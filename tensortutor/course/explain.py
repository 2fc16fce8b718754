"""Explains errors: finds the one entry of an atlas that knows an error, and fills it."""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tensortutor.course.atlas import Entry, Where, read_atlas
from tensortutor.course.catalog import find_course
from tensortutor.course.filling import fill
from tensortutor.course.logs import Complaint, read_complaint
from tensortutor.course.model import Course, Lesson
from tensortutor.course.problems import CourseError
from tensortutor.protocol.events import Raised, Verdict, Warned
from tensortutor.protocol.scene import UNKNOWN, Scene

INNER = "Original Traceback (most recent call last):"
"""In a message that carries the error of another process."""
RAISED = re.compile(r"(?:rank \d+: )?(?P<type>[A-Za-z_][\w.]*): (?P<message>.*)", re.DOTALL)
"""What a check says of an answer that raised."""
LONGEST = 20_000
"""Characters of an error that are looked at."""


@dataclass(frozen=True)
class Explanation:
    """An entry of the atlas, filled.

    error: the line that is explained, `Type: message`. here: what happened in this case, "" if
    nothing can be said. lesson: the id of the lesson about it, "" if the course has none.
    """

    entry: str
    error: str
    title: str
    here: str
    means: str
    way_out: str
    lesson: str


def matching(entries: Sequence[Entry], complaint: Complaint) -> list[Entry]:
    """The entries that know an error: those with conditions that hold, else those without.

    More than one is a fault of the atlas.
    """
    # Of other types of the same name, only the last part is told apart.
    subject = f"{complaint.type.rpartition('.')[2]}: {complaint.message}"[:LONGEST]
    found = [entry for entry in entries if entry.pattern.match(subject)]
    special = [e for e in found if e.where is not None and _holds(e.where, complaint)]
    return special or [entry for entry in found if entry.where is None]


def _holds(where: Where, complaint: Complaint) -> bool:
    if where.inside is not None and not any(map(where.inside.search, complaint.inside)):
        return False
    return where.line is None or where.line.search(complaint.code) is not None


def causes(complaint: Complaint) -> list[Complaint]:
    """The error that a message carries from another process, then the error itself."""
    if INNER in complaint.message:
        inner = read_complaint(complaint.message.partition(INNER)[2], headed=True)
        if inner is not None:
            return [inner, complaint]
    return [complaint]


def known(entries: Sequence[Entry], complaint: Complaint) -> tuple[Complaint, list[Entry]]:
    """The complaint that entries know, and those entries; the complaint itself if none is known."""
    for cause in causes(complaint):
        found = matching(entries, cause)
        if found:
            return cause, found
    return complaint, []


def explain(entry: Entry, complaint: Complaint, scene: Scene) -> Explanation:
    """An entry that knows the complaint, filled with what was at hand."""
    subject = f"{complaint.type.rpartition('.')[2]}: {complaint.message}"[:LONGEST]
    found = entry.pattern.match(subject)
    groups = found.groupdict() if found else {}
    here = fill(entry.facts, groups, scene.operands)
    return Explanation(
        entry.id, first_line(complaint), entry.title, sentence(here), entry.means, entry.way_out,
        entry.lesson,
    )  # fmt: skip


def first_line(complaint: Complaint) -> str:
    """`Type: message`, without further lines."""
    return f"{complaint.type}: {complaint.message}".strip().split("\n")[0]


def sentence(text: str) -> str:
    """With a capital letter, unless it begins with code."""
    return text[:1].upper() + text[1:]


def complaint_of(event: Raised | Warned) -> Complaint:
    """An exception or a warning of a run."""
    return Complaint(event.type, event.message, event.scene.inside, event.scene.code)


class Explainer:
    """Explains the errors of one course: by its own atlas, else by the built-in one."""

    def __init__(self, course: Course) -> None:
        self._course = course

    @cached_property
    def atlases(self) -> tuple[tuple[Entry, ...], ...]:
        """The entries to look among, first the course's. What is wrong with them is left out."""
        roots = [self._course.root]
        try:
            built_in = find_course()
        except CourseError:
            built_in = self._course.root
        if built_in not in roots:
            roots.append(built_in)
        return tuple(read_atlas(root)[0] for root in roots)

    def error(self, complaint: Complaint, scene: Scene = UNKNOWN) -> Explanation | None:
        """What is known about a complaint, or None."""
        for entries in self.atlases:
            cause, found = known(entries, complaint)
            if found:
                explanation = explain(found[0], cause, scene)
                has_lesson = self.lesson(explanation) is not None
                return explanation if has_lesson else replace(explanation, lesson="")
        return None

    def event(self, event: Raised | Warned | Verdict) -> Explanation | None:
        """What is known about an error or a warning of a run, or the error that ended a check."""
        if isinstance(event, Verdict):
            said = None if event.passed else RAISED.match(event.message)
            if said is None:
                return None
            event = Warned(said["type"], said["message"], scene=event.scene)
        return self.error(complaint_of(event), event.scene)

    def lesson(self, explanation: Explanation) -> Lesson | None:
        """The lesson about it, if the course has it."""
        return next((x for x in self._course.lessons if x.id == explanation.lesson), None)
