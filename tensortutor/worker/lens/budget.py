"""How long the lens may take. What comes too late is left out, and the event says so.

Time is the processor's: on a busy machine the clock would count what others take.
"""

import time

REPORT_S = 0.09
"""For everything that is said after a program has ended."""


class Budget:
    """A deadline that everything that looks at values asks before it begins."""

    def __init__(self, seconds: float = REPORT_S) -> None:
        self._end = time.thread_time() + seconds
        self._seconds = seconds

    def left(self, share: float = 0.0) -> bool:
        """There is time, and more than this share of all of it."""
        return self._end - time.thread_time() > share * self._seconds
