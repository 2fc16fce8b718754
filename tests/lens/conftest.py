"""One Runner for all tests of the lens, and the events of a program under it."""

from collections.abc import Callable
from typing import Any

import pytest

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job, Look
from tensortutor.runner import Runner

EVERYTHING = Look(trace=True, names=True)


class Seen(list[Event]):
    """The events of a run."""

    def one(self, kind: type) -> Any:
        """The event of this kind, which must come exactly once."""
        (found,) = (event for event in self if isinstance(event, kind))
        return found

    def none(self, kind: type) -> bool:
        """There is no such event."""
        return not any(isinstance(event, kind) for event in self)


@pytest.fixture
def look(runner_on_cpu: Runner) -> Callable[..., Seen]:
    """Run a program under the lens."""

    def look(source: str, look: Look = EVERYTHING, **more: Any) -> Seen:
        return Seen(runner_on_cpu.start(Job(source, look=look, **more)))

    return look
