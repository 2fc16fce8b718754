"""A runner that is made when it is first needed: its code is not loaded before the first paint."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tensortutor.protocol.assist import Answer, Question
    from tensortutor.protocol.jobs import Job
    from tensortutor.ui.protocols import Run, Runner, Status


@dataclass(frozen=True)
class Cold:
    """The status of a runner that has not been made."""

    state: str = "cold"
    device: None = None
    layer: str = ""
    why: str = ""
    needs_consent: bool = False
    caution: str = ""
    place: None = None
    waiting_for: str = ""
    ends_in_s: float | None = None


class LazyRunner:
    """Stands for the runner that `make` returns. All methods may be called from any thread."""

    def __init__(self, make: Callable[[], Runner]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self._runner: Runner | None = None
        self._closed = False

    def _made(self) -> Runner:
        with self._lock:
            if self._runner is None:
                if self._closed:
                    raise RuntimeError("The runner is closed.")
                self._runner = self._make()
            return self._runner

    @property
    def status(self) -> Status:
        """What is known right now."""
        return Cold() if self._runner is None else self._runner.status

    def warm(self) -> None:
        """Make the runner and begin to load PyTorch, or keep it there; returns at once."""
        if self._runner is not None and not self._closed:
            self._runner.warm()
            return
        threading.Thread(target=self._warm, name="warm", daemon=True).start()

    def _warm(self) -> None:
        # An app that ends at once may close the runner before there is one.
        if not self._closed:
            self._made().warm()

    def allow_limits(self) -> None:
        """Run programs without a sandbox from now on."""
        self._made().allow_limits()

    def start(self, job: Job) -> Run:
        """Begin a run."""
        return self._made().start(job)

    def attend(self) -> None:
        """Have somebody ready to answer questions."""
        if self._runner is not None:
            self._runner.attend()

    def ask(self, question: Question) -> Answer | None:
        """What there is to say about a name; None without a runner."""
        return None if self._runner is None else self._runner.ask(question)

    def close(self) -> None:
        """End everything that was started."""
        with self._lock:
            self._closed = True
            if self._runner is not None:
                self._runner.close()
