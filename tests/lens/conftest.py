"""One Runner for all tests of the lens, and the events of a program under it."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tensortutor.protocol.events import Event
from tensortutor.protocol.jobs import Job, Look
from tensortutor.runner import Runner, Settings

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


@pytest.fixture(scope="session")
def lens_runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    with Runner(Settings(scratch=tmp_path_factory.mktemp("scratch"), device="cpu")) as runner:
        runner.prepare()
        yield runner


@pytest.fixture
def look(lens_runner: Runner) -> Callable[..., Seen]:
    """Run a program under the lens."""

    def look(source: str, look: Look = EVERYTHING, **more: Any) -> Seen:
        return Seen(lens_runner.start(Job(source, look=look, **more)))

    return look
