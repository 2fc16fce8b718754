"""How long the lens may take. What comes too late is left out, and the event says so.

Time is the processor's: on a busy machine the clock would count what others take.
"""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

REPORT_S = 0.09
"""For everything that is said after a program has ended."""
GENEROUS_S = 0.01
SHARE = 0.005


class Budget:
    """A deadline that everything that looks at values asks before it begins."""

    def __init__(self, seconds: float = REPORT_S) -> None:
        self._end = time.thread_time() + seconds
        self._seconds = seconds

    def left(self, share: float = 0.0) -> bool:
        """There is time, and more than this share of all of it."""
        return self._end - time.thread_time() > share * self._seconds


class TimeShare:
    """What may be spent while the program runs: GENEROUS_S, and a SHARE of the program's time."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._begun = clock()
        self._spent = 0.0

    def left(self) -> bool:
        """Not all of it has been spent."""
        return self._spent < GENEROUS_S + SHARE * (self._clock() - self._begun)

    @contextmanager
    def spending(self) -> Iterator[None]:
        """What is done inside counts."""
        begun = self._clock()
        try:
            yield
        finally:
            self._spent += self._clock() - begun
