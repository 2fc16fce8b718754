"""What the app asks of whoever runs programs. The real one lives in `tensortutor.runner`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tensortutor.protocol.assist import Answer, Question
    from tensortutor.protocol.events import Event
    from tensortutor.protocol.jobs import Job
    from tensortutor.protocol.setup import PlaceInfo


class Device(Protocol):
    """Where tensors live. Bytes are 0 when not known."""

    @property
    def name(self) -> str:
        """As torch names it: "cpu", "cuda:0"."""

    @property
    def label(self) -> str:
        """As people name it: "H200"."""

    @property
    def total_bytes(self) -> int:
        """Its memory."""

    @property
    def free_bytes(self) -> int:
        """What of it is free."""


class Status(Protocol):
    """What the runner is able to do now."""

    @property
    def state(self) -> str:
        """One of "cold", "loading", "ready", "failed"."""

    @property
    def device(self) -> Device | None:
        """The device that programs get."""

    @property
    def layer(self) -> str:
        """One of protocol.layers.LAYERS."""

    @property
    def why(self) -> str:
        """Why no stronger layer, or the sentence of a failure."""

    @property
    def place(self) -> PlaceInfo | None:
        """Where programs run, None for this machine."""

    @property
    def waiting_for(self) -> str:
        """What has to happen before PyTorch can be loaded in that place, or ""."""

    @property
    def ends_in_s(self) -> float | None:
        """Seconds until the job in that place ends, None if no end is known."""

    @property
    def needs_consent(self) -> bool:
        """It failed because nothing confines a program here, and waits for `allow_limits`."""

    @property
    def caution(self) -> str:
        """What to know of this PyTorch, as a sentence, or ""."""


class Run(Protocol):
    """One program on its way. Iterating blocks; it ends after one `Finished`."""

    def __iter__(self) -> Iterator[Event]: ...

    def stop(self) -> None:
        """End the program, from any thread."""


class Starter(Protocol):
    """What begins runs."""

    def start(self, job: Job) -> Run:
        """Begin a run. Raises an exception whose text is a sentence if it cannot."""


class Runner(Starter, Protocol):
    """Runs programs."""

    @property
    def status(self) -> Status:
        """What is known right now; never blocks."""

    def warm(self) -> None:
        """Begin to load PyTorch in the background."""

    def allow_limits(self) -> None:
        """Run programs without a sandbox from now on."""

    def attend(self) -> None:
        """Have somebody ready to answer questions, in the background."""

    def ask(self, question: Question) -> Answer | None:
        """What there is to say about a name, None if nobody can say. May take seconds."""

    def close(self) -> None:
        """End everything that was started."""
