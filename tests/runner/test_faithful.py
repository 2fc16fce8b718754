"""A program prints and exits as it does under plain `python file.py`.

The programs are in `programs/`. What is compared is standard output, byte for byte, and the exit
status. Standard error is not: tracebacks there are shortened to the learner's own frames.
"""

import subprocess
import sys
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tensortutor.protocol.events import Event, Finished, Output, Raised
from tensortutor.protocol.jobs import Job, Limits
from tensortutor.runner import Runner
from tests.hostile import corpus

PROGRAMS = Path(__file__).with_name("programs")
FILE = "lesson_code.py"


@dataclass(frozen=True)
class Case:
    """What a program's header says.

    says: what is faithful. layers: where it can work. runs: so many runs of one folder, one after
    the other. same: the two ways print the same; else each run of either way prints something
    new. arguments: after the file. module: `python -m MODULE ... FILE` instead of `python FILE`.
    stderr: words that the Runner's standard error must hold.
    """

    says: str
    layers: tuple[str, ...] = ("full", "landlock")
    runs: int = 1
    same: bool = True
    arguments: tuple[str, ...] = ()
    stderr: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Ran:
    """What one run printed and how it ended."""

    stdout: bytes
    code: int
    stderr: str = ""


@cache
def case(name: str) -> tuple[Case, str]:
    """The case and the source of a program."""
    ((header, source),) = corpus.read(PROGRAMS, name)
    lists = {key: tuple(value) for key, value in header.items() if isinstance(value, list)}
    return Case(**{**header, **lists}), source


@cache
def plain_runs(name: str, folder: Path) -> tuple[Ran, ...]:
    """`python FILE` in a folder of its own, as often as the case says."""
    about, source = case(name)
    (folder / "code").mkdir(parents=True)
    (folder / "work").mkdir()
    file = folder / "code" / FILE
    file.write_text(source, encoding="utf-8")
    return tuple(plain_run(file, folder / "work", about) for _ in range(about.runs))


def plain_run(file: Path, cwd: Path, about: Case) -> Ran:
    done = subprocess.run(
        [sys.executable, str(file), *about.arguments],
        cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=60,
    )  # fmt: skip
    code = done.returncode if done.returncode >= 0 else 128 - done.returncode
    return Ran(done.stdout, code, done.stderr.decode(errors="replace"))


def runner_run(runner: Runner, name: str) -> Ran:
    about, source = case(name)
    limits = Limits(**{"wall_s": 40.0, **about.limits})
    job = Job(source, FILE, about.arguments, scratch=f"faithful.{name}", limits=limits)
    events = list(runner.start(job))
    finished = events[-1]
    assert isinstance(finished, Finished)
    assert finished.dropped == 0, finished
    return Ran(text_of(events, "stdout").encode("utf-8", "surrogateescape"), finished.code,
               text_of(events, "stderr"))  # fmt: skip


def text_of(events: list[Event], stream: str) -> str:
    """All that was written to a stream; a traceback belongs to stderr."""
    return "".join(
        event.text
        for event in events
        if (isinstance(event, Output) and event.stream == stream)
        or (isinstance(event, Raised) and stream == "stderr")
    )


def pairs() -> list[tuple[str, str]]:
    """Every layer with every program that can work in it; plain Python runs once for both."""
    return [(layer, name) for name in corpus.names(PROGRAMS) for layer in case(name)[0].layers]


@pytest.fixture(scope="session")
def plain_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("plain")


@pytest.mark.parametrize(("layer", "name"), pairs(), indirect=["layer"])
def test_a_program_does_what_plain_python_does(
    name: str, layer: str, runner: Runner, plain_folder: Path
) -> None:
    about, _ = case(name)
    plain = plain_runs(name, plain_folder / name)
    ours = tuple(runner_run(runner, name) for _ in range(about.runs))
    why = f"stderr of the Runner: {ours[-1].stderr}\nstderr of python: {plain[-1].stderr}"
    if about.same:
        assert [ran.stdout for ran in ours] == [ran.stdout for ran in plain], why
    else:
        assert len({ran.stdout for ran in (*ours, *plain)}) == 2 * about.runs, why
    assert [ran.code for ran in ours] == [ran.code for ran in plain], why
    for words in about.stderr:
        assert words in ours[-1].stderr
