"""A runner whose runs are written down: what each job says is up to the test."""

from collections.abc import Callable, Iterator
from threading import Lock

from tensortutor.protocol.events import Event, Finished, Judged, Output, Probed, Raised, Verdict
from tensortutor.protocol.jobs import Job

DONE = Finished("done", 0, "Done.", 1.0)


class FakeRun:
    """Says what `say` returns for its job."""

    def __init__(self, job: Job, say: Callable[[Job], list[Event]]) -> None:
        self.job = job
        self.stopped = False
        self._say = say

    def __iter__(self) -> Iterator[Event]:
        yield from self._say(self.job)

    def stop(self) -> None:
        self.stopped = True


class FakeRunner:
    """Keeps the runs that it started, in that order."""

    def __init__(self, say: Callable[[Job], list[Event]]) -> None:
        self.runs: list[FakeRun] = []
        self._say = say
        self._lock = Lock()

    def start(self, job: Job) -> FakeRun:
        run = FakeRun(job, self._say)
        with self._lock:
            self.runs.append(run)
        return run


def judged(job: Job, *failing: str, message: str = "wrong") -> list[Event]:
    """Every check of the job reports; those named fail."""
    assert job.judge is not None
    seed = job.judge.seeds[-1]
    verdicts = [
        Verdict(name, name not in failing, seed, 1.0, message=message if name in failing else "")
        for name in job.judge.checks
    ]
    passed = tuple(v.check for v in verdicts if v.passed)
    return [*verdicts, Judged(passed, tuple(failing)), DONE]


def raised(kind: str, message: str, text: str = "") -> list[Event]:
    """The program raises."""
    report = (
        text or f'Traceback (most recent call last):\n  File "x.py", line 3\n{kind}: {message}\n'
    )
    return [Raised(kind, message, (), report), Finished("raised", 1, f"{kind}.", 1.0)]


def printed(text: str, *values: object) -> list[Event]:
    """The program prints, and its proofs give these values."""
    return [Output("stdout", text), *(Probed(n, v) for n, v in enumerate(values)), DONE]
