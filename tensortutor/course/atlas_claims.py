"""What an atlas claims, and the runs that show whether it is so."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace

from tensortutor.course.atlas import ATLAS, NEEDS_CUDA, Entry, Program
from tensortutor.course.claim_checks import Fault, broken_off
from tensortutor.course.claims import NEEDS_CUDA as CUDA_MISSING
from tensortutor.course.claims import Claim, Trial
from tensortutor.course.explain import complaint_of, explain, known
from tensortutor.course.model import Course
from tensortutor.course.run_record import Record
from tensortutor.course.verify import unproved
from tensortutor.protocol.events import Raised, Warned
from tensortutor.protocol.jobs import Job, Limits

NAME = "atlas"
"""What the atlas is called among lessons."""


def keeps_columns(python: str) -> bool:
    """Whether a Python of this version knows which part of a line has failed: from 3.11 on.

    On older ones an explanation names the tensors only where the line does one thing.
    """
    return [int(part) for part in python.split(".")[:2]] >= [3, 11]


def atlas_trials(
    course: Course,
    entries: Sequence[Entry],
    device: str,
    limits: Limits | None = None,
    *,
    columns: bool = True,
) -> Iterator[Trial]:
    """Every program of the entries, run on its own.

    device: the one that the runner uses. columns: its Python keeps them; without them the entries
    must be the right ones, and nothing is claimed of the tensors that they name.
    """
    files = (course.root / ATLAS,)
    for entry in entries:
        lacks = lacking(entry, device)
        if lacks:
            claim = Claim(entry.line, f"the error {entry.id!r}", unproved)
            yield Trial(NAME, files, None, (claim,), lacks)
            continue
        for program in entry.programs:
            claim = Claim(
                program.line,
                f"the error is explained by {entry.id!r}",
                explained(entries, entry, program if columns else replace(program, says="")),
            )
            job = job_of(entry, program, limits or Limits())
            if program.needs and not device.startswith(NEEDS_CUDA):
                yield Trial(NAME, files, None, (claim,), CUDA_MISSING)
            else:
                yield Trial(NAME, files, job, (claim,))


def lacking(entry: Entry, device: str) -> str:
    """Why an entry cannot be proved on this device, or ""."""
    if entry.needs == NEEDS_CUDA:
        return "" if device.startswith("cuda") else CUDA_MISSING
    return f"it needs {entry.needs}" if entry.needs else ""


def job_of(entry: Entry, program: Program, limits: Limits) -> Job:
    """A program as a learner would run it, on the CPU unless it is about a GPU."""
    device = "" if NEEDS_CUDA in (entry.needs, program.needs) else "cpu"
    return Job(program.source, limits=limits, ranks=program.ranks, device=device)


def explained(
    entries: Sequence[Entry], entry: Entry, program: Program
) -> Callable[[Record], Fault | None]:
    """The program's error, or one of its warnings, is known to this entry and to no other."""

    def holds(record: Record) -> Fault | None:
        events: list[Raised | Warned] = [*record.warned]
        if record.raised is not None:
            events.insert(0, record.raised)
        if not events:
            return broken_off(record) or Fault("it raises nothing and is given no warning")
        chosen = {event: known(entries, complaint_of(event)) for event in events}
        others = {e.id for _, found in chosen.values() for e in found} - {entry.id}
        hits = [event for event, (_, found) in chosen.items() if entry in found]
        if not hits and 0 < len(others) == len(others & set(program.elsewhere)):
            return None
        if not hits:
            instead = f"{sorted(others)[0]!r} is chosen for" if others else "no entry knows"
            return Fault(f"{instead} {first_words(events)!r}")
        if others:
            return Fault(f"{sorted(others)[0]!r} is chosen as well for {first_words(hits)!r}")
        here = explain(entry, chosen[hits[0]][0], hits[0].scene).here
        if program.says not in here:
            return Fault(f"the explanation says {here!r}, not {program.says!r}")
        return None

    return holds


def first_words(events: Iterable[Raised | Warned]) -> str:
    """The beginning of the first message."""
    event = next(iter(events))
    return f"{event.type}: {event.message}".split("\n")[0][:120]
