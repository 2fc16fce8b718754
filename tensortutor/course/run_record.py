"""What one run said, gathered from its events."""

from collections.abc import Iterable
from dataclasses import dataclass

from tensortutor.protocol.events import (
    Event,
    Finished,
    Judged,
    Output,
    Probed,
    Raised,
    Verdict,
    Warned,
)

LOST = Finished("lost", 70, "The run ended without a word.", 0.0)


@dataclass(frozen=True)
class Record:
    """One run. raised: the exception that ended it; judged: None if it was not judged.

    events: all that it said, in order.
    """

    stdout: str
    stderr: str
    raised: Raised | None
    probed: tuple[Probed, ...]
    verdicts: tuple[Verdict, ...]
    judged: Judged | None
    finished: Finished
    warned: tuple[Warned, ...] = ()
    events: tuple[Event, ...] = ()

    def verdict(self, check: str) -> Verdict | None:
        """What the check of this name found, if it reported."""
        return next((v for v in self.verdicts if v.check == check), None)

    def probe(self, index: int) -> Probed | None:
        """What the proof of this number gave, if it was evaluated."""
        return next((p for p in self.probed if p.index == index), None)


def gather(events: Iterable[Event]) -> Record:
    """Consume a run's events."""
    text = {"stdout": "", "stderr": ""}
    raised: Raised | None = None
    judged: Judged | None = None
    finished = LOST
    probed: list[Probed] = []
    verdicts: list[Verdict] = []
    warned: list[Warned] = []
    events = tuple(events)
    for event in events:
        if isinstance(event, Output):
            text[event.stream] += event.text
        elif isinstance(event, Raised):
            raised = event
        elif isinstance(event, Warned):
            warned.append(event)
        elif isinstance(event, Probed):
            probed.append(event)
        elif isinstance(event, Verdict):
            verdicts.append(event)
        elif isinstance(event, Judged):
            judged = event
        elif isinstance(event, Finished):
            finished = event
    return Record(
        text["stdout"], text["stderr"], raised, tuple(probed), tuple(verdicts), judged, finished,
        tuple(warned), events,
    )  # fmt: skip
