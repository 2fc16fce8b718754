"""What the learner chose about running programs."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tensortutor.options import Place
from tensortutor.runner.memory import is_short


@dataclass(frozen=True)
class Settings:
    """How programs are run.

    device: "auto", "cpu", "cuda", "cuda:N" or "mps". sandbox: "auto" or a layer
    (protocol/layers.py). python: an interpreter that has torch, or None for our own. scratch: the
    folder that holds one folder per lesson. idle_s: let go of PyTorch after so long without a run
    and without `warm`. spares: processes kept waiting. memory_is_short: while it says so, one
    process waits, and idle_short_s is long enough. data: a folder that programs may read, made if
    it is not there: the learner's own files. read, write: more folders that programs may read, or
    read and write: they must be there. preload: many runs follow: have the slow parts of torch
    imported before the first, and let the threads of several programs share the cores. place: where
    programs run, None for this machine; python is then of no meaning.
    """

    scratch: Path
    device: str = "auto"
    sandbox: str = "auto"
    python: str | None = None
    idle_s: float = 600.0
    idle_short_s: float = 120.0
    spares: int = 2
    preload: bool = False
    data: Path | None = None
    read: tuple[Path, ...] = ()
    write: tuple[Path, ...] = ()
    place: Place | None = None
    memory_is_short: Callable[[], bool] = is_short
