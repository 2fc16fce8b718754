"""Where time and memory went."""

from dataclasses import dataclass


@dataclass(frozen=True)
class ProfileRow:
    """An operator. Times in milliseconds, memory in bytes (freed minus taken is negative).

    "self" is without what it called. device: of the accelerator, 0 without one.
    """

    name: str
    calls: int
    self_ms: float
    total_ms: float
    self_bytes: int = 0
    device_self_ms: float = 0.0
    device_total_ms: float = 0.0
    device_self_bytes: int = 0


@dataclass(frozen=True)
class Share:
    """A part of the training step: "data", "forward", "backward", "optimizer" or "other"."""

    part: str
    ms: float
    fraction: float


@dataclass(frozen=True)
class Peak:
    """A peak of memory in bytes. what: exactly what was measured, as a sentence."""

    name: str
    bytes: int
    what: str


@dataclass(frozen=True)
class Allocator:
    """What CUDA's caching allocator says of a device, in bytes, when the program ended."""

    device: str
    allocated: int
    peak_allocated: int
    reserved: int
    peak_reserved: int
    retries: int = 0


@dataclass(frozen=True)
class Profile:
    """Where time and memory went. rows: by self time, the largest first.

    ms: the program's time under the profiler, which is longer than without. steps: how often an
    optimizer stepped. note: a sentence where something is missing, or "".
    """

    ms: float
    rows: tuple[ProfileRow, ...]
    shares: tuple[Share, ...] = ()
    steps: int = 0
    peaks: tuple[Peak, ...] = ()
    allocators: tuple[Allocator, ...] = ()
    left_out: int = 0
    note: str = ""
