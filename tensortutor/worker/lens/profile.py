"""Runs a program under torch's profiler, and sums up what it took in time and memory."""

import contextlib
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import torch

from tensortutor.protocol.lens import MOST_ROWS, Allocator, Peak, Profile, ProfileRow, Share
from tensortutor.worker import access
from tensortutor.worker.lens.backward import AUTOGRAD
from tensortutor.worker.lens.step_timing import StepTiming, cuda

MOST_STEPS = 40
"""The table is of so many training steps: more take seconds to sum up and tell the same."""
LONGEST_S = 3.0
"""Or of so long, whatever comes first."""
MOST_EVENTS = 200_000
LONGEST_NAME = 100
OWN_PROFILING = ("torch.profiler", "autograd.profiler", "profiler import", "emit_nvtx")
OWN_ALARMS = ("alarm", "setitimer", "SIGALRM")
PROFILES_ITSELF = "The program profiles itself, so there is no table of operators."
TENSORS = (
    "The most that torch's allocator for the CPU had handed out at once while the table was taken; "
    "tensors from before it are not in it."
)
RESIDENT = (
    "By how much the resident memory of the program's process grew at most: its tensors and "
    "everything else, libraries that it loaded too."
)


@dataclass
class Sum:
    """What an operator took, in nanoseconds and bytes."""

    calls: int = 0
    self_ns: int = 0
    total_ns: int = 0
    bytes: int = 0
    device_ns: int = 0


class Profiler:
    """One program under the profiler."""

    def __init__(self, source: str) -> None:
        # A program's first optimizer imports it, which would be the largest share of a short one.
        import torch._dynamo  # noqa: F401

        self._note = PROFILES_ITSELF if any(word in source for word in OWN_PROFILING) else ""
        self._may_use_alarm = not any(word in source for word in OWN_ALARMS)
        self._stages = StepTiming(self._after_step)
        self._results: Any = None
        self._running = False
        self._begun = self._ended = 0.0
        self._resident = 0
        self._shares: tuple[Share, ...] = ()

    @contextlib.contextmanager
    def profiling(self) -> Iterator[None]:
        """Profile what runs inside."""
        self._resident = resident_peak()
        with ExitStack() as stack:
            try:
                self._stages.begin(stack)
                if not self._note:
                    self._start(stack)
            except Exception as error:  # another version of torch; the program runs all the same
                self._note = access.cut(f"The profiler cannot be used: {error}")
            self._begun = time.perf_counter()
            try:
                yield
            finally:
                self._ended = time.perf_counter()
                self._shares = self._stages.shares()
                self._stop()

    def _start(self, stack: ExitStack) -> None:
        with without_stderr():
            device = "cuda" if cuda.is_available() else None
            # Without use_kineto a GPU's kernels are not among the events.
            profile: Any = torch.autograd.profiler.profile(
                use_device=device, profile_memory=True, use_kineto=True
            )
            config, activities = profile.config(), profile.kineto_activities
            AUTOGRAD["_prepare_profiler"](config, activities)
            AUTOGRAD["_enable_profiler"](config, activities)
        self._running = True
        in_main = threading.current_thread() is threading.main_thread()
        if self._may_use_alarm and in_main:
            before = signal.signal(signal.SIGALRM, lambda *_: self._stop("time"))
            signal.setitimer(signal.ITIMER_REAL, LONGEST_S)
            stack.callback(signal.signal, signal.SIGALRM, before)
            stack.callback(signal.setitimer, signal.ITIMER_REAL, 0)

    def _after_step(self, steps: int) -> None:
        if steps >= MOST_STEPS:
            self._stop("steps")

    def _stop(self, why: str = "") -> None:
        """End the table. The program goes on."""
        if not self._running:
            return
        self._running = False
        with without_stderr():
            if cuda.is_initialized():
                # As torch's own profiler does: kernels that have not ended are not in its table.
                with contextlib.suppress(Exception):  # a broken GPU was the program's own error
                    cuda.synchronize()
            self._results = AUTOGRAD["_disable_profiler"]()
        if why == "steps":
            self._note = f"The table is of the first {MOST_STEPS} training steps."
        elif why == "time":
            self._note = f"The table is of the first {LONGEST_S:g} s."

    def told(self) -> Profile:
        """The event."""
        events = list(self._results.events())[:MOST_EVENTS] if self._results is not None else []
        sums = summed(events)
        rows = sorted(sums.items(), key=lambda item: -(item[1].self_ns + item[1].device_ns))
        grown = resident_peak() - self._resident
        peaks = [Peak("resident memory", grown, RESIDENT)]
        if events:
            peaks.insert(0, Peak("tensors on the CPU", tensor_peak(events), TENSORS))
        return Profile(
            ms=(self._ended - self._begun) * 1000,
            rows=tuple(row(name, one) for name, one in rows[:MOST_ROWS]),
            shares=self._shares,
            steps=self._stages.steps,
            peaks=tuple(peaks),
            allocators=tuple(allocators()),
            left_out=max(0, len(rows) - MOST_ROWS),
            note=self._note,
        )


def row(name: str, one: Sum) -> ProfileRow:
    """A row of the table."""
    return ProfileRow(
        access.cut(name, LONGEST_NAME), one.calls, one.self_ns / 1e6, one.total_ns / 1e6, one.bytes,
        one.device_ns / 1e6, one.device_ns / 1e6,
    )  # fmt: skip


def is_on_cpu(event: Any) -> bool:
    """Not a kernel of an accelerator."""
    return str(event.device_type()).endswith("CPU")


def summed(events: list[Any]) -> dict[str, Sum]:
    """The operators by name. An event lies inside another of its thread if its time does."""
    sums: dict[str, Sum] = {}
    threads: dict[int, list[tuple[int, int, str, int]]] = {}
    for event in events:
        name, start = event.name(), event.start_ns()
        is_memory = name == "[memory]"
        if is_on_cpu(event):
            end = start if is_memory else start + event.duration_ns()
            size = event.nbytes() if is_memory else 0
            threads.setdefault(event.start_thread_id(), []).append((start, -end, name, size))
        elif not is_memory:
            one = sums.setdefault(name, Sum())
            one.calls += 1
            one.device_ns += event.duration_ns()
    for inside in threads.values():
        add_up(sorted(inside), sums)
    return sums


def add_up(events: list[tuple[int, int, str, int]], sums: dict[str, Sum]) -> None:
    """Events of one thread, sorted by their beginning, longer ones first: (start, -end, ...)."""
    open_: list[tuple[int, str]] = []
    for start, minus_end, name, size in events:
        while open_ and open_[-1][0] <= start:
            open_.pop()
        if name == "[memory]":
            if open_:
                sums[open_[-1][1]].bytes += size
            continue
        duration = -minus_end - start
        if open_:
            sums[open_[-1][1]].self_ns -= duration
        one = sums.setdefault(name, Sum())
        one.calls += 1
        one.self_ns += duration
        # What calls itself is counted once: its total holds that of the inner one already.
        if all(outer != name for _, outer in open_):
            one.total_ns += duration
        open_.append((-minus_end, name))


def tensor_peak(events: list[Any]) -> int:
    """The largest sum of what was taken and given back."""
    now = most = 0
    changes = [
        (event.start_ns(), event.nbytes())
        for event in events
        if event.name() == "[memory]" and is_on_cpu(event)
    ]
    for _, size in sorted(changes):
        now += size
        most = max(most, now)
    return most


def resident_peak() -> int:
    """The most memory that this process has had at once, in bytes."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def allocators() -> Iterator[Allocator]:
    """CUDA's caching allocator, device by device; nothing where CUDA was not used."""
    if not cuda.is_available() or not cuda.is_initialized():
        return
    for index in range(cuda.device_count()):
        stats = cuda.memory_stats(index)
        if stats.get("reserved_bytes.all.peak", 0):
            yield Allocator(
                f"cuda:{index}",
                int(stats["allocated_bytes.all.current"]),
                int(stats["allocated_bytes.all.peak"]),
                int(stats["reserved_bytes.all.current"]),
                int(stats["reserved_bytes.all.peak"]),
                int(stats.get("num_alloc_retries", 0)),
            )


@contextlib.contextmanager
def without_stderr() -> Iterator[None]:
    """kineto writes to descriptor 2, whatever one tells it."""
    kept = os.dup(2)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
