"""The processes that a far end has started, and those that they have started and left behind."""

import contextlib
import ctypes
import os
import sys
import time

PR_SET_CHILD_SUBREAPER = 36
LOOK_S = 0.01


def adopt_orphans() -> None:
    """From now on a process below this one becomes its child when its own parent ends."""
    if sys.platform.startswith("linux"):
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, ctypes.c_ulong(1), 0, 0, 0)


def await_children(until: float) -> None:
    """Wait for the end of all children, those to come as well. until: a time of time.monotonic."""
    with contextlib.suppress(ChildProcessError):  # there is none any more
        while os.waitpid(-1, os.WNOHANG)[0] or time.monotonic() < until:
            time.sleep(LOOK_S)
