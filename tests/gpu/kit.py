"""What every section works with: the device, runners on it, and programs to run."""

import contextlib
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

from tensortutor.course.run_record import Record, gather
from tensortutor.protocol.events import Event, Finished, Started
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.runner import Runner, Settings
from tests.gpu.report import Finding, Report

ROOT = Path(__file__).resolve().parents[2]
WHEELS = Path(__file__).parent / "wheels"

ASK_TORCH = """
import json, sys
import torch
about = {"torch": torch.__version__, "cuda": torch.version.cuda or torch.version.hip or ""}
try:
    torch.cuda.init()
    about["cards"] = [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())]
    about["free"], about["total"] = torch.cuda.mem_get_info()
except Exception as error:
    about["why"] = str(error).splitlines()[0]
print(json.dumps(about))
"""


def use_wheels(folder: Path = WHEELS) -> list[str]:
    """Put the wheels of a folder on the path of this process and of its children.

    Only wheels of plain Python work this way: they are read as zip files, nothing is installed.
    """
    found = sorted(str(path) for path in folder.glob("*.whl"))
    sys.path[:0] = found
    if found:
        rest = os.environ.get("PYTHONPATH")
        os.environ["PYTHONPATH"] = os.pathsep.join([*found, *([rest] if rest else [])])
    return found


@dataclass
class Kit:
    """One run of the kit. quick: few rounds and a part of the course, to prove the kit itself."""

    device: str
    report: Report
    quick: bool = False
    jobs: int = field(default_factory=lambda: max(2, min(8, (os.cpu_count() or 2) // 2)))
    section: str = ""

    @property
    def on_cuda(self) -> bool:
        """Whether the device is a card."""
        return self.device.startswith("cuda")

    def ok(self, name: str, good: bool, text: str = "") -> bool:
        """Report something that holds or does not."""
        self.report.add(Finding(self.section, name, "ok" if good else "fail", text))
        return good

    def note(self, name: str, text: str) -> None:
        """Report something worth knowing that is neither right nor wrong."""
        self.report.add(Finding(self.section, name, "note", text))

    def figure(
        self, name: str, value: float, unit: str, text: str = "", good: bool | None = None
    ) -> None:
        """Report a figure. good: whether it is as wanted; None if nothing is wanted of it."""
        state = "note" if good is None else "ok" if good else "fail"
        self.report.add(Finding(self.section, name, state, text, value, unit))

    def skip(self, name: str, why: str) -> None:
        """Report something that cannot be tried here."""
        self.report.add(Finding(self.section, name, "skip", why))

    @contextlib.contextmanager
    def runner(self, sandbox: str = "auto", **settings: Any) -> Iterator[Runner]:
        """A runner on the kit's device that is ready. Raises RunnerError."""
        with tempfile.TemporaryDirectory() as folder:
            made = Settings(Path(folder), device=self.device, sandbox=sandbox, **settings)
            with Runner(made) as runner:
                runner.prepare()
                yield runner


@dataclass(frozen=True)
class Ran:
    """A run: what it said, in short and whole, and when (seconds since it was handed over)."""

    record: Record
    events: tuple[Event, ...]
    layer: str
    finished_s: float

    @property
    def outcome(self) -> str:
        """As in `Finished`."""
        return self.record.finished.outcome

    @property
    def last_line(self) -> str:
        """The error in a line, or the sentence that ended the run."""
        error = self.record.raised
        if error is not None:
            return f"{error.type}: {error.message.splitlines()[0] if error.message else ''}"
        return self.record.finished.sentence


def run(runner: Runner, source: str, wall_s: float = 60.0, **job: Any) -> Ran:
    """Run a program to its end."""
    return run_job(runner, Job(source, limits=Limits(wall_s=wall_s), **job))


def run_job(runner: Runner, job: Job) -> Ran:
    """Run a job to its end."""
    events: list[Event] = []
    begun = time.perf_counter()
    finished = begun
    for event in runner.start(job):
        events.append(event)
        if isinstance(event, Finished):
            finished = time.perf_counter()
    layer = next((event.layer for event in events if isinstance(event, Started)), "")
    return Ran(gather(events), tuple(events), layer, finished - begun)


def about_machine(device: str) -> dict[str, Any]:
    """What the figures were taken on. "why" says why there is no card, "" if there is one."""
    import json

    done = subprocess.run(
        [sys.executable, "-c", ASK_TORCH], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise SystemExit(f"PyTorch cannot be imported by {sys.executable}:\n{done.stderr.strip()}")
    torch = json.loads(done.stdout.splitlines()[-1])
    cards = torch.get("cards", [])
    index = int(device.partition(":")[2] or 0)
    label = cards[index] if device.startswith("cuda") and index < len(cards) else cpu_name()
    why = torch.get("why", "") or ("" if cards else "PyTorch sees no card")
    return {
        "device": device, "label": label, "driver": driver(), "torch": torch["torch"],
        "cuda": torch["cuda"], "python": platform.python_version(), "cores": os.cpu_count(),
        "cards": cards, "free": torch.get("free", 0), "total": torch.get("total", 0), "why": why,
        "commit": commit(), "date": date.today().isoformat(),
    }  # fmt: skip


def cpu_name() -> str:
    """The processor's name."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as file:
        for line in file:
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.machine()


def driver() -> str:
    """The version of NVIDIA's driver, "none" without one."""
    try:
        words = Path("/proc/driver/nvidia/version").read_text().split()
    except OSError:
        return "none"
    return next((word for word in words if word[0].isdigit() and "." in word), "unknown")


def commit() -> str:
    """The commit of this tree, "" outside a repository."""
    done = subprocess.run(
        ["git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    return done.stdout.strip()
