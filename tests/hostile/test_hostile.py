"""Every program of the corpus, in every layer: see README.md for the format."""

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tensortutor.protocol.events import (
    Event,
    Finished,
    Judged,
    Notice,
    Output,
    Raised,
    event_to_json,
)
from tensortutor.protocol.jobs import Job, Judge, Limits
from tensortutor.runner import Runner, Settings, run
from tensortutor.runner.sandbox import why_no_full, why_no_landlock
from tests.hostile import corpus
from tests.hostile.world import World, processes

PROGRAMS = Path(__file__).with_name("programs")
EXERCISE = Path(__file__).with_name("exercise.py")
PROBE = Path(__file__).with_name("probe.py")
CHECKS = ("doubles every number", "keeps the type of whole numbers")
WHY_NOT = {"full": why_no_full, "landlock": why_no_landlock}
STRONGEST = "strongest"
"""Stands for the first of these layers that this machine has."""
LIMITS = {"wall_s": 60.0, "memory_bytes": 2 << 30, "file_bytes": 1 << 24, "output_bytes": 200_000}
PATIENCE_S = 60.0
"""How long what must happen may take before it counts as never."""
WAITING = {"full": 6, "landlock": 3}
"""Processes between two runs. full: bubblewrap (2), the zygote, a keeper (2), the waiting program;
landlock: the zygote, a keeper, the waiting program."""
LASTING = {"full": 3, "landlock": 1}
"""Those of them that outlive a run."""
LASTING_FOLDERS = ("other.lesson", ".runs")
"""What is in the scratch folder between two runs."""
ROOM = 1_000_000
"""Bytes of events beside the output that a run may cause."""


@dataclass(frozen=True)
class Attack:
    """What a program's header says; README.md explains the fields."""

    source: str
    tries: str = ""
    outcome: tuple[str, ...] = ("done",)
    output: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    sentence: tuple[str, ...] = ()
    layers: tuple[str, ...] = ()
    limits: dict[str, Any] = field(default_factory=dict)
    patience_s: float = PATIENCE_S
    judged: bool = False
    stop_at: str = ""
    other_lesson: bool = False
    known: dict[str, str] = field(default_factory=dict)

    def where(self) -> tuple[str, ...]:
        """The layers to try it in.

        An answer that cheats is found out by the judge and the host, the same in every layer.
        """
        return self.layers or ((STRONGEST,) if self.judged else tuple(WHY_NOT))


def attacks(name: str) -> list[Attack]:
    """The programs of one file."""
    found = []
    for header, source in corpus.read(PROGRAMS, name):
        lists = {key: tuple(value) for key, value in header.items() if isinstance(value, list)}
        found.append(Attack(source, **{**header, **lists}))
    return found


def pairs() -> Iterator[object]:
    """Every layer with every program that is meant for it."""
    for layer in (*WHY_NOT, STRONGEST):
        for name in corpus.names(PROGRAMS):
            first = attacks(name)[0]
            marks = [
                # What one layer alone cannot prevent depends on the kernel, too.
                pytest.mark.xfail(reason=first.known[key], strict=key == "all")
                for key in ("all", layer)
                if key in first.known
            ]
            if layer in first.where():
                yield pytest.param(layer, name, marks=marks, id=f"{layer}-{name}")


# --- the place ---


@dataclass
class Place:
    """A Runner in one layer with a world around it."""

    layer: str
    runner: Runner
    world: World

    def run(self, job: Job, stop_at: str = "") -> list[Event]:
        """All events of a run, which is stopped when it has printed `stop_at`."""
        run = self.runner.start(job)
        events = []
        for event in run:
            events.append(event)
            if stop_at and isinstance(event, Output) and stop_at in event.text:
                run.stop()
        assert isinstance(events[-1], Finished)
        return events

    def told(self) -> tuple[str, ...]:
        return (self.world.told(min(self.processes())[0]),)

    def processes(self) -> set[tuple[int, str]]:
        return processes(self.world)

    def await_quiet(self, before: set[tuple[int, str]] | None = None) -> None:
        """Wait until only what waits for the next run is there, and nothing of the last one."""

        def is_quiet() -> bool:
            now = self.processes()
            old = now & (before or set())
            return len(now) == WAITING[self.layer] and len(old) <= LASTING[self.layer]

        await_that(is_quiet, self.describe)

    def describe(self) -> str:
        rows = []
        for pid, start in sorted(self.processes()):
            words = Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ")[-60:]
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:2]
            rows.append(f"{pid} started {start} state, parent {state}: {words!r}")
        return f"{len(rows)} processes, not {WAITING[self.layer]}:\n" + "\n".join(rows)


def await_that(holds: Callable[[], bool], describe: Callable[[], str]) -> None:
    """Wait until something is so; fail with a description if it never is."""
    end = time.monotonic() + PATIENCE_S
    while not holds():
        if time.monotonic() > end:
            pytest.fail(describe())
        time.sleep(0.005)


@pytest.fixture(scope="session")
def layer(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    wanted = tuple(WHY_NOT) if name == STRONGEST else (name,)
    reasons = []
    for layer in wanted:
        reason = WHY_NOT[layer]()
        if not reason:
            return layer
        reasons.append(f"the {layer} layer is not possible here: {reason}")
    pytest.skip("; ".join(reasons))


@pytest.fixture(scope="session")
def place_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], Place]]:
    """The place of a layer; tests of the two layers may alternate."""
    places: dict[str, Place] = {}

    def place_in(layer: str) -> Place:
        if layer not in places:
            places[layer] = settle(layer, tmp_path_factory.mktemp(f"world_{layer}"))
        return places[layer]

    yield place_in
    for place in places.values():
        place.runner.close()
        place.world.close()


def settle(layer: str, folder: Path) -> Place:
    """A world, and a Runner that was started in it."""
    world = World(folder)
    settings = Settings(scratch=world.scratch, device="cpu", sandbox=layer, spares=1)
    runner = Runner(settings)
    with pytest.MonkeyPatch.context() as patch:
        for name, value in world.environment().items():
            patch.setenv(name, value)
        runner.prepare()
    return Place(layer, runner, world)


@pytest.fixture
def place(layer: str, place_in: Callable[[str], Place]) -> Place:
    return place_in(layer)


@pytest.fixture
def quiet(place: Place) -> Iterator[Place]:
    """The place before and after an attack: what one leaves is not held against the next."""
    place.await_quiet()
    kept = place.processes()
    yield place
    if len(place.processes()) > 2 * WAITING[place.layer]:
        for pid, _ in place.processes() - kept:
            os.kill(pid, signal.SIGKILL)
    place.world.tidy()
    for name in os.listdir(place.world.scratch):
        if name not in LASTING_FOLDERS:
            subprocess.run(["chmod", "-R", "u+rwx", place.world.scratch / name], check=False)
            subprocess.run(["rm", "-rf", place.world.scratch / name], check=True)


# --- the tests ---

each_layer = pytest.mark.parametrize("layer", list(WHY_NOT), indirect=True)


@each_layer
def test_a_right_answer_passes(place: Place) -> None:
    events = place.run(Job("def double(x):\n    return 2 * x\n", judge=judge()))
    assert [e.ok for e in events if isinstance(e, Judged)] == [True]


@each_layer
def test_a_wrong_answer_fails(place: Place) -> None:
    events = place.run(Job("def double(x):\n    return x\n", judge=judge()))
    assert [e.failed for e in events if isinstance(e, Judged)] == [CHECKS]


@pytest.mark.parametrize(("layer", "name"), pairs(), indirect=["layer"])
def test_an_attack_fails(quiet: Place, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    place, world = quiet, quiet.world
    before, world_before = place.processes(), world.fingerprint()
    scratch = f"hostile.{name}"
    for attack in attacks(name):
        # The attack beside this one may starve it: who listens to a stop gets the time to hear it.
        monkeypatch.setattr(run, "PATIENCE_S", attack.patience_s)
        job = Job(
            attack.source, f"{name}.py", place.told(),
            scratch="hostile.next" if attack.other_lesson else scratch,
            judge=judge() if attack.judged else None,
            limits=Limits(**{**LIMITS, **attack.limits}),
        )  # fmt: skip
        see(place.run(job, attack.stop_at), attack, job, world)

    place.await_quiet(before)
    assert world.fingerprint() == world_before
    assert world.left_behind() == []
    assert world.visited() == []
    assert set(os.listdir(world.scratch)) <= {*LASTING_FOLDERS, scratch, "hostile.next"}
    probe = place.run(Job(PROBE.read_text(), PROBE.name, (world.token,), scratch=scratch))
    assert text_of(probe) == "clean\n", probe


def judge() -> Judge:
    return Judge(EXERCISE.read_text(encoding="utf-8"), "checks/exercise.py", (3, 4), CHECKS)


def see(events: list[Event], attack: Attack, job: Job, world: World) -> None:
    """What the program's header promises about its events is so."""
    finished, text = events[-1], text_of(events)
    assert isinstance(finished, Finished)
    shown = f"{finished}\n{text[-2000:]}"
    assert finished.outcome in attack.outcome, shown
    for words in attack.sentence:
        assert words in finished.sentence, shown
    for words in attack.output:
        assert words in text, shown
    for words in (*attack.absent, world.secret):
        assert words not in text + finished.sentence, shown
    assert len(text) <= job.limits.output_bytes + ROOM
    assert sum(len(str(event_to_json(event))) for event in events) <= (
        6 * job.limits.output_bytes + ROOM
    )
    assert sum(isinstance(event, Finished) for event in events) == 1
    verdicts = [event for event in events if isinstance(event, Judged)]
    assert len(verdicts) == (job.judge is not None)
    assert not any(verdict.ok for verdict in verdicts), shown


def text_of(events: list[Event]) -> str:
    """All that was said, on either stream, by tensortutor too."""
    return "".join(e.text for e in events if isinstance(e, (Output, Raised, Notice)))
