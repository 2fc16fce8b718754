"""`doctor`: what works on this machine, and what to do about what does not."""

import os
import platform
import shutil
import sys
from argparse import Namespace
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from tensortutor import __version__
from tensortutor.commands.app import why_not
from tensortutor.commands.errors import Refused
from tensortutor.commands.session import Session
from tensortutor.learner.errors import StorageError
from tensortutor.learner.formatting import find_ruff
from tensortutor.learner.scratch import scratch_use
from tensortutor.protocol.layers import FULL
from tensortutor.transport.slurm import queue_summary

if TYPE_CHECKING:
    from tensortutor.runner import Device

GIB = 2**30
MANY_FILES = 10_000
MUCH_SCRATCH = 2 * GIB
SIGNS = {"ok": ("✓", "green"), "note": ("○", "yellow"), "missing": ("✗", "red")}


@dataclass(frozen=True)
class Finding:
    """One thing looked at. state: "ok", "note" (works, could be better) or "missing".

    advice: what to do about it, as a sentence, or "".
    """

    name: str
    state: str
    value: str
    advice: str = ""


def doctor(session: Session, arguments: Namespace) -> int:
    """Print all findings. Returns 1 if something that is needed is missing."""
    del arguments
    printer = session.printer
    missing = False
    for finding in findings(session):
        missing = missing or finding.state == "missing"
        if session.json:
            printer.json({"event": "finding", **asdict(finding)})
            continue
        sign, style = SIGNS[finding.state]
        mark = printer.paint(f"{sign} {finding.state:<7}", style)
        printer.line(f"{mark}  {finding.name:<12}{finding.value}")
        if finding.advice:
            printer.line(f"{' ' * 23}{finding.advice}")
    return 1 if missing else 0


def findings(session: Session) -> Iterator[Finding]:
    """Everything worth knowing, the quick things first."""
    yield Finding("tensortutor", "ok", __version__)
    yield Finding("python", "ok", f"{platform.python_version()}, {sys.executable}")
    yield terminal(session)
    yield colours(session)
    yield from tools()
    yield home(session)
    yield progress(session)
    yield scratch(session)
    yield course(session)
    yield compiler()
    yield from pytorch(session)


def terminal(session: Session) -> Finding:
    """Whether the app can be shown."""
    columns, lines = shutil.get_terminal_size()
    value = f"{os.environ.get('TERM', 'none')}, {columns} columns, {lines} lines"
    if not session.printer.unicode:
        value += ", ASCII only"
    obstacle = why_not()
    if obstacle:
        return Finding("terminal", "note", value, f"{obstacle} The commands work without.")
    return Finding("terminal", "ok", value)


def colours(session: Session) -> Finding:
    """How many colours there are."""
    if os.environ.get("NO_COLOR"):
        return Finding("colours", "ok", "off: NO_COLOR is set")
    if os.environ.get("COLORTERM") in ("truecolor", "24bit"):
        return Finding("colours", "ok", "16 million")
    if "256color" in os.environ.get("TERM", ""):
        return Finding(
            "colours", "ok", "256", "If your terminal can do more: export COLORTERM=truecolor"
        )
    del session
    return Finding("colours", "note", "16 or fewer", "Try: export TERM=xterm-256color")


def tools() -> Iterator[Finding]:
    """What the editor of the app calls, if it is there."""
    own = os.environ.get("VISUAL") or os.environ.get("EDITOR")
    advice = "The key for your own editor needs it: export EDITOR=vim"
    yield Finding("editor", "ok", own) if own else Finding("editor", "note", "not named", advice)
    ruff = find_ruff()
    advice = f"The app formats code with it: {sys.executable} -m pip install ruff"
    yield Finding("ruff", "ok", ruff) if ruff else Finding("ruff", "note", "not found", advice)


def home(session: Session) -> Finding:
    """Whether what the learner does is kept."""
    paths = session.paths
    if not paths.writable:
        advice = "Nothing is kept: set TENSORTUTOR_HOME to a folder that can be written."
        return Finding("home", "missing", "cannot be written", advice)
    free = shutil.disk_usage(paths.home).free
    value = f"{paths.home}, {free / GIB:.1f} GiB free"
    if free < GIB // 10:
        return Finding("home", "note", value, "The disk is nearly full: make room.")
    return Finding("home", "ok", value)


def progress(session: Session) -> Finding:
    """Whether the record can be read."""
    try:
        count = len(session.progress.passed())
    except StorageError as error:
        return Finding("progress", "missing", "cannot be used", str(error))
    return Finding("progress", "ok", f"{count} lessons passed")


def scratch(session: Session) -> Finding:
    """How much the learner's programs have written."""
    use = scratch_use(session.paths)
    value = f"{use.files:,} files, {use.bytes / GIB:.2f} GiB in {session.paths.scratch}"
    if not use.whole:
        value = f"more than {value}"
    if use.whole and use.files < MANY_FILES and use.bytes < MUCH_SCRATCH:
        return Finding("scratch", "ok", value)
    advice = "tensortutor reset LESSON removes what a lesson's programs have written."
    return Finding("scratch", "note", value, advice)


def course(session: Session) -> Finding:
    """Whether there is a sound course."""
    try:
        found = session.course
    except Refused as error:
        first, *rest = str(error).splitlines()
        more = f" (and {len(rest)} more: tensortutor verify)" if rest else ""
        return Finding("course", "missing", "cannot be used", first + more)
    return Finding("course", "ok", f"{len(found.lessons)} lessons in {found.root}")


def compiler() -> Finding:
    """Whether torch.compile can make code for the processor."""
    for name in (os.environ.get("CXX", "g++"), "g++", "clang++"):
        path = shutil.which(name)
        if path is not None:
            return Finding("compiler", "ok", path)
    return Finding(
        "compiler",
        "note",
        "no C++ compiler: torch.compile cannot make code for the CPU",
        "apt-get install g++",
    )


def pytorch(session: Session) -> Iterator[Finding]:
    """Whether programs run, where, and how well they are shut in."""
    try:
        status = session.runner().status
    except Refused as error:
        yield Finding("pytorch", "missing", "no program can run", str(error))
        return
    except ImportError as error:
        yield Finding("pytorch", "missing", "no program can run", f"{error}.")
        return
    place = status.place
    interpreter = place.interpreter if place else session.options.python or sys.executable
    if place is not None:
        job = f", job {place.job} of Slurm" if place.job else ""
        if status.ends_in_s is not None:
            job += f" that ends in {status.ends_in_s / 60:.0f} min"
        value = f"{place.host}{job}, PyTorch was loaded in {place.load_s:.1f} s"
        yield Finding("place", "ok", value)
        if place.partition:
            yield Finding("queue", "ok", queue_summary(place.partition))
    value = f"{status.torch}, Python {status.python}, {interpreter}"
    yield Finding("pytorch", "note" if status.caution else "ok", value, status.caution)
    for one in status.devices:
        chosen = " (chosen)" if one == status.device else ""
        if one.trouble:
            yield Finding("device", "note", describe(one), f"It cannot be used now: {one.trouble}")
        else:
            yield Finding("device", "ok", describe(one) + chosen)
    if status.why_no_card:
        advice = "The lessons run on the processor. Those about GPUs say what they cannot show."
        yield Finding("device", "note", f"no GPU: {status.why_no_card}", advice)
    elif place is None and len(status.devices) == 1 and shutil.which("nvidia-smi"):
        yield Finding(
            "device",
            "note",
            "there is an NVIDIA driver, but PyTorch sees no GPU",
            "Install a CUDA build of torch, or name an interpreter that has one with --python.",
        )
    yield Finding("memory", "ok", what_counts_memory(status.why_no_cgroup))
    if status.layer == FULL or session.options.sandbox == status.layer:
        yield Finding("sandbox", "ok", status.layer)
    else:
        there = place is not None or shutil.which("bwrap") or sys.platform != "linux"
        advice = "" if there else INSTALL
        yield Finding("sandbox", "note", f"{status.layer}: {status.why}", advice)


def what_counts_memory(why_no_cgroup: str) -> str:
    """What counts the memory of a run. why_no_cgroup: as in `Status`."""
    if not why_no_cgroup:
        return "counted by the kernel: each run has a cgroup of its own"
    return f"measured from /proc: {why_no_cgroup}"


INSTALL = "For the full sandbox: apt-get install bubblewrap"


def describe(one: "Device") -> str:
    """A device with its memory."""
    text = f"{one.name} {one.label}".strip()
    if one.total_bytes:
        text += f", {one.free_bytes / GIB:.0f} of {one.total_bytes / GIB:.0f} GiB free"
    return text
