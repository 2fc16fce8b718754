"""Explains errors: finds the one entry of an atlas that knows an error, and fills it."""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cached_property

from tensortutor.course.atlas import Entry, Where, read_atlas
from tensortutor.course.catalog import find_course
from tensortutor.course.error_logs import Complaint, read_complaint
from tensortutor.course.model import Course
from tensortutor.course.placeholders import fill
from tensortutor.course.problems import CourseError
from tensortutor.protocol.events import Event, Explained, Raised, Verdict, Warned
from tensortutor.protocol.scene import UNKNOWN, Scene

INNER = "Original Traceback (most recent call last):"
"""In a message that carries the error of another process."""
RAISED = re.compile(r"(?:rank \d+: )?(?P<type>[A-Za-z_][\w.]*): (?P<message>.*)", re.DOTALL)
"""What a check says of an answer that raised."""
LONGEST_LINE = 300
LONGEST = 20_000
"""Characters of an error that are looked at."""


def matching(entries: Sequence[Entry], complaint: Complaint) -> list[Entry]:
    """The entries that know an error: those with conditions that hold, else those without.

    More than one is a fault of the atlas.
    """
    # Of other types of the same name, only the last part is told apart.
    subject = f"{complaint.type.rpartition('.')[2]}: {complaint.message}"[:LONGEST]
    found = [entry for entry in entries if entry.pattern.match(subject) is not None]
    special = [e for e in found if e.where is not None and _holds(e.where, complaint)]
    return special or [entry for entry in found if entry.where is None]


def _holds(where: Where, complaint: Complaint) -> bool:
    if where.inside is not None:
        found = (where.inside.search(name[:LONGEST_LINE]) for name in complaint.inside)
        if all(groups is None for groups in found):
            return False
    return where.line is None or where.line.search(complaint.code[:LONGEST_LINE]) is not None


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


def explain(entry: Entry, complaint: Complaint, scene: Scene) -> Explained:
    """An entry that knows the complaint, filled with what was at hand."""
    subject = f"{complaint.type.rpartition('.')[2]}: {complaint.message}"[:LONGEST]
    here = fill(entry.facts, entry.pattern.match(subject) or {}, scene.operands)
    return Explained(
        check="",
        entry=entry.id,
        error=f"{complaint.type}: {complaint.message}".strip().split("\n")[0][:LONGEST_LINE],
        title=entry.title,
        here=here[:1].upper() + here[1:],
        means=entry.means,
        way_out=entry.way_out,
        lesson=entry.lesson,
    )


def complaint_of(event: Raised | Warned) -> Complaint:
    """An exception or a warning of a run."""
    return Complaint(event.type, event.message, event.scene.inside, event.scene.code)


class Explainer:
    """Explains errors: by a course's own atlas, else by the built-in one.

    course: None for the built-in atlas alone, without its lessons.
    """

    def __init__(self, course: Course | None) -> None:
        self._lessons = frozenset(x.id for x in course.lessons) if course is not None else ()
        self._root = course.root if course is not None else None

    @cached_property
    def atlases(self) -> tuple[tuple[Entry, ...], ...]:
        """The entries to look among, the course's first. Those that are not sound are left out."""
        roots = [self._root] if self._root is not None else []
        with contextlib.suppress(CourseError):
            if (built_in := find_course()) not in roots:
                roots.append(built_in)
        return tuple(read_atlas(root, thorough=False)[0] for root in roots)

    def complaint(self, complaint: Complaint, scene: Scene = UNKNOWN) -> Explained | None:
        """What is known about an error or a warning, or None."""
        for entries in self.atlases:
            cause, found = known(entries, complaint)
            if found:
                told = explain(found[0], cause, scene)
                return told if told.lesson in self._lessons else replace(told, lesson="")
        return None

    def event(self, event: Event) -> Explained | None:
        """What is known about what an event of a run tells, or None if it tells of no error."""
        if isinstance(event, (Raised, Warned)):
            return self.complaint(complaint_of(event), event.scene)
        if isinstance(event, Verdict) and not event.passed:
            said = RAISED.match(event.message)
            if said is not None:
                error = Warned(said["type"], said["message"], scene=event.scene)
                told = self.complaint(complaint_of(error), event.scene)
                return replace(told, check=event.check) if told is not None else None
        return None


def explained(
    events: Iterable[Event], explain: Callable[[Event], Explained | None]
) -> Iterator[Event]:
    """The same events, each error that is known followed by its explanation, told once."""
    told: set[tuple[str, str]] = set()
    for event in events:
        yield event
        if not isinstance(event, (Raised, Warned, Verdict)):
            continue
        explanation = explain(event)
        if explanation is not None and (explanation.entry, explanation.here) not in told:
            told.add((explanation.entry, explanation.here))
            yield explanation
