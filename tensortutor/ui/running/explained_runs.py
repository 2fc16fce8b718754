"""Runs whose errors are explained on the way to the screen, in the thread that waits for them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tensortutor.course.explain import Explainer, explained

if TYPE_CHECKING:
    from tensortutor.protocol.events import Event
    from tensortutor.protocol.jobs import Job
    from tensortutor.ui.protocols import Run, Starter


class RunWithExplanations:
    """A run, with what is known about its errors."""

    def __init__(self, run: Run, explainer: Explainer) -> None:
        self._run = run
        self._explainer = explainer

    def __iter__(self) -> Iterator[Event]:
        return explained(self._run, self._explainer.event)

    def stop(self) -> None:
        """End the program, from any thread."""
        self._run.stop()


class ExplainedRuns:
    """Starts runs whose errors are explained."""

    def __init__(self, starter: Starter, explainer: Explainer) -> None:
        self._starter = starter
        self._explainer = explainer

    def start(self, job: Job) -> Run:
        """Begin a run. Raises an exception whose text is a sentence if it cannot."""
        return RunWithExplanations(self._starter.start(job), self._explainer)
