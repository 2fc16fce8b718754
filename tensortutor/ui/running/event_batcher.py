"""Carries a run's events from the thread that waits for them to the screen, many at a time."""

import threading
from collections.abc import Callable

from tensortutor.protocol.drawings import DRAWINGS
from tensortutor.protocol.events import Event, Finished, Output
from tensortutor.protocol.jobs import Job
from tensortutor.ui.protocols import Run, Starter

MOST_EVENTS = 500
MOST_TEXT = 200_000
"""So much may wait for the screen; then the thread waits. Memory stays bounded, and to show what
has waited takes no longer than a frame.
"""


class Feed:
    """One run. `pump` belongs to a thread of its own, everything else to the app.

    ready: called from that thread when events wait and none did before.
    """

    def __init__(self, runner: Starter, job: Job, ready: Callable[[], None]) -> None:
        self._runner = runner
        self._job = job
        self._ready = ready
        self._events: list[Event] = []
        self._texts: list[str] = []
        self._drawn: dict[str, int] = {}
        self._stream = ""
        self._size = 0
        self._changed = threading.Condition()
        self._run: Run | None = None
        self._stopped = False
        self._closed = False

    def pump(self) -> None:
        """Run the job to its end. Delivers exactly one Finished, unless closed before."""
        finished = False
        try:
            self._run = run = self._runner.start(self._job)
            # A stop that came before there was a run to stop.
            if self._stopped:
                run.stop()
            for event in run:
                finished = finished or isinstance(event, Finished)
                self._put(event)
        except Exception as error:
            # Whatever the runner throws, the learner gets a sentence and the app goes on.
            self._put(Finished("lost", 1, str(error) or type(error).__name__, 0.0))
            return
        if not finished:
            self._put(Finished("lost", 1, "The run ended without saying how. Run it again.", 0.0))

    def stop(self) -> None:
        """End the program: now if it runs, as soon as it begins otherwise."""
        self._stopped = True
        run = self._run
        if run is not None:
            run.stop()

    def close(self) -> None:
        """Nobody listens any more: end the program and let the thread go."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        self.stop()

    def take(self) -> list[Event]:
        """What waits, in order.

        Neighbouring output of one stream is one event; of each drawing there is the newest state,
        at the place of the oldest that waited.
        """
        with self._changed:
            self._join()
            events, self._events = self._events, []
            self._drawn = {}
            self._size = 0
            self._changed.notify_all()
        return events

    def _put(self, event: Event) -> None:
        with self._changed:
            while not self._closed and self._is_full():
                self._changed.wait()
            if self._closed:
                return
            first = not self._events and not self._texts
            if isinstance(event, Output):
                self._add_text(event)
            elif isinstance(event, DRAWINGS) and event.title in self._drawn:
                self._events[self._drawn[event.title]] = event
            else:
                self._join()
                if isinstance(event, DRAWINGS):
                    self._drawn[event.title] = len(self._events)
                self._events.append(event)
        if first:
            self._ready()

    def _is_full(self) -> bool:
        return len(self._events) >= MOST_EVENTS or self._size >= MOST_TEXT

    def _add_text(self, event: Output) -> None:
        if event.stream != self._stream:
            self._join()
            self._stream = event.stream
        self._texts.append(event.text)
        # An empty piece counts as well, or a flood of them would never be held back.
        self._size += len(event.text) + 1

    def _join(self) -> None:
        if self._texts:
            self._events.append(Output(self._stream, "".join(self._texts)))
            self._texts = []
