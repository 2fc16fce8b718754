"""A runner that plays scripts instead of programs."""

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from tensortutor.protocol.assist import Answer, Question
from tensortutor.protocol.events import (
    CheckStarted,
    Event,
    Finished,
    Judged,
    Output,
    Started,
    Verdict,
)
from tensortutor.protocol.jobs import Job
from tensortutor.protocol.setup import PlaceInfo


@dataclass(frozen=True)
class FakeDevice:
    name: str = "cpu"
    label: str = "CPU"
    total_bytes: int = 0
    free_bytes: int = 0


@dataclass(frozen=True)
class FakeStatus:
    state: str = "ready"
    device: FakeDevice | None = FakeDevice()
    layer: str = "full"
    why: str = ""
    needs_consent: bool = False
    caution: str = ""
    place: PlaceInfo | None = None
    waiting_for: str = ""
    ends_in_s: float | None = None


DONE = Finished("done", 0, "The program is done.", 12.0)
Script = Callable[["FakeRun"], Iterator[Event]]


@dataclass
class FakeRun:
    """stopped: set by `stop`; a script may wait for it."""

    job: Job
    script: Script
    stopped: threading.Event = field(default_factory=threading.Event)

    def __iter__(self) -> Iterator[Event]:
        yield Started("cpu", "full")
        yield from self.script(self)

    def stop(self) -> None:
        self.stopped.set()


class FakeRunner:
    """Plays `script` for every job. jobs: what was asked for."""

    def __init__(self, script: Script | None = None, status: FakeStatus | None = None) -> None:
        self.script = script or says("hello\n")
        self.status = status or FakeStatus()
        self.jobs: list[Job] = []
        self.runs: list[FakeRun] = []
        self.warmed = 0
        self.error: Exception | None = None
        self.attended = 0
        self.questions: list[Question] = []
        self.answer: Callable[[Question], Answer | None] = lambda question: None

    def warm(self) -> None:
        self.warmed += 1

    def allow_limits(self) -> None:
        self.status = FakeStatus(layer="limits")

    def start(self, job: Job) -> FakeRun:
        if self.error is not None:
            raise self.error
        self.jobs.append(job)
        run = FakeRun(job, self.script)
        self.runs.append(run)
        return run

    def attend(self) -> None:
        self.attended += 1

    def ask(self, question: Question) -> Answer | None:
        self.questions.append(question)
        return self.answer(question)

    def close(self) -> None:
        for run in self.runs:
            run.stop()


def plays(*events: Event) -> Script:
    """These events, then the end if they do not end."""

    def script(_: FakeRun) -> Iterator[Event]:
        yield from events
        if not events or not isinstance(events[-1], Finished):
            yield DONE

    return script


def says(text: str, stream: str = "stdout") -> Script:
    """One piece of output."""
    return plays(Output(stream, text))


def waits(*events: Event) -> Script:
    """These events, then nothing until it is stopped."""

    def script(run: FakeRun) -> Iterator[Event]:
        yield from events
        assert run.stopped.wait(30), "nobody stopped the run"
        yield Finished("stopped", 130, "You stopped the program.", 50.0)

    return script


FAILURE = Verdict(
    "", False, 811, 4.0, "0.weight.grad differs from what one pass over all samples leaves.",
    "accumulate(Sequential, [(f32[8, 5], f32[8, 2]), ...], mse_loss)", "0.113", "0.097",
    "[2, 4]", "off by a constant factor of 1.16", "Weight each batch by its number of samples.",
)  # fmt: skip


def judges(results: dict[str, bool]) -> Script:
    """A check run with these verdicts."""
    import dataclasses

    events: list[Event] = []
    for check, passed in results.items():
        events.append(CheckStarted(check))
        verdict = Verdict(check, True, 811, 4.0)
        events.append(verdict if passed else dataclasses.replace(FAILURE, check=check))
    passed = tuple(check for check, ok in results.items() if ok)
    failed = tuple(check for check, ok in results.items() if not ok)
    sentence = "All checks passed." if not failed else f"{len(failed)} checks did not pass."
    events += [Judged(passed, failed), Finished("done", 0, sentence, 30.0)]
    return plays(*events)
