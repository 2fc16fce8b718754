"""Runs the gate's jobs, several threads at once, and stops those under way when it is closed."""

import threading
import time
from collections.abc import Iterator
from typing import Protocol

from tensortutor.course.run_record import Record, gather
from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job


class Run(Protocol):
    """A run under way."""

    def __iter__(self) -> Iterator[Event]: ...

    def stop(self) -> None:
        """End it, from any thread."""


class Runner(Protocol):
    """What runs jobs. Several threads use it at once."""

    def start(self, job: Job) -> Run:
        """Begin a run."""


class JobPool:
    """Runs jobs and can stop those under way."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._lock = threading.Lock()
        self._under_way: set[Run] = set()
        self._closed = False

    def run(self, job: Job) -> tuple[Record, float]:
        """The record of a job, and the seconds it took."""
        begun = time.perf_counter()
        run = self._runner.start(job)
        with self._lock:
            self._under_way.add(run)
            closed = self._closed
        if closed:
            run.stop()
        try:
            return gather(run), time.perf_counter() - begun
        finally:
            with self._lock:
                self._under_way.discard(run)

    def close(self) -> None:
        """Stop what runs, and what is still to come."""
        with self._lock:
            self._closed = True
            under_way = tuple(self._under_way)
        for run in under_way:
            run.stop()
