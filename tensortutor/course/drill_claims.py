"""What drills claim, and the runs that show whether it is so."""

from collections.abc import Iterable, Iterator, Sequence

from tensortutor.course.claim_checks import Fault, ended, passes, rejected
from tensortutor.course.claims import WRONG_SEEDS, Claim, Trial
from tensortutor.course.drills import Drill, answer_job, picture_job
from tensortutor.course.model import Course
from tensortutor.course.problems import Problem
from tensortutor.course.run_record import Record
from tensortutor.protocol.drawings import CellGrid

NAME = "drills"
"""What `verify` calls all drills together."""


def drill_trials(drills: Iterable[Drill], seeds: int) -> Iterator[Trial]:
    """Right lines pass with so many seeds, wrong ones fail with each of three, pictures appear."""
    for drill in drills:
        claims = [
            (answer_job(drill, line, range(seeds)), f"{line} is right", passes(0))
            for line in (drill.answer, *drill.accepted)
        ]
        claims += [
            (answer_job(drill, wrong.line, WRONG_SEEDS, every=True), f"{wrong.line} is wrong",
             rejected)
            for wrong in drill.wrong
        ]  # fmt: skip
        claims.append((picture_job(drill, 0), "inputs and result are drawn", _is_drawn))
        for job, what, holds in claims:
            claim = Claim(drill.at, f"{drill.id}: {what}", holds)
            yield Trial(NAME, (drill.path,), job, (claim,))


def _is_drawn(record: Record) -> Fault | None:
    """What is wanted was drawn, and something beside it was drawn or printed."""
    grids = [event.title for event in record.events if isinstance(event, CellGrid)]
    if "wanted" in grids and (len(set(grids)) > 1 or record.stdout):
        return None
    return ended(record) or Fault("it draws no tensor: inputs and result are to be tensors")


def drill_problems(course: Course, drills: Sequence[Drill]) -> Iterator[Problem]:
    """Drills that name a line as right and as wrong."""
    for drill in drills:
        path = drill.path.relative_to(course.root).as_posix()
        for line in (drill.answer, *drill.accepted):
            if drill.because(line):
                yield Problem(path, drill.at, f"{line!r} is right and wrong at once")
