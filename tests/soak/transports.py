"""kill -9, again and again, of both sides of a run in another place.

    nice -n 5 python -m tests.soak.transports [ROUNDS]
    .ci/slurm nice -n 5 python -m tests.soak.transports [ROUNDS]

Over a pipe, and over srun where Slurm is, in each layer that there is. In each round one process is
killed at a random moment of a run, in a third of the rounds while the place is being reached, for
half of those with nothing there from an earlier time: the near end, srun, the far end, the zygote,
bubblewrap, a keeper or the program. Afterwards a run under way must have ended within PATIENCE_S
with one Finished, the next run must work, and no process may be left on either side, nor a
temporary folder there, nor, after a session, a job in Slurm's queue.
"""

import contextlib
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from tensortutor.options import Place
from tensortutor.runner import Runner, Settings
from tensortutor.worker.confine import FOLDER_PREFIX
from tests.bench.transport import has_slurm
from tests.soak.faults import ROUNDS, Failure, await_gone, is_possible, runner_round

PATIENCE_S = 10.0
"""A far end gives what it started CLEAN_UP_S to end."""
SESSION_ROUNDS = 3
LATEST_S = 3.0
EARLY_S = 0.4
"""Soon after a start: Slurm may have given a job that has had no step yet."""


class Elsewhere:
    """A place with folders of its own. All processes of it have the path of one of them."""

    def __init__(self, folder: Path, launch: tuple[str, ...], layer: str) -> None:
        self._cache, self._temporary = folder / "cache", folder / "tmp"
        self._temporary.mkdir(parents=True)
        self._scratch = folder / "scratch"
        self._scratch.mkdir()
        self._is_slurm = launch[:1] == ("srun",)
        variables = (f"XDG_CACHE_HOME={self._cache}", f"TMPDIR={self._temporary}")
        place = Place("the place", (*launch, "env", *variables), python=sys.executable)
        self._settings = Settings(scratch=self._scratch, device="cpu", sandbox=layer, place=place)

    def session(self, rng: random.Random, rounds: int) -> Iterator[str]:
        """Reach the place, kill something meanwhile or later, so many times. What was killed."""
        with Runner(self._settings) as runner:
            for number in range(rounds):
                if is_cold := number == 0:
                    if rng.random() < 0.5:
                        shutil.rmtree(self._cache, ignore_errors=True)
                else:
                    runner.prepare()
                done = runner_round(
                    runner, rng, processes=lambda _: self.processes(), patience_s=PATIENCE_S,
                    latest_s=rng.choice((EARLY_S, LATEST_S)) if is_cold else 0.5,
                )  # fmt: skip
                self._see_folders(done)
                yield ("at the start: " if is_cold else "") + done
        self._see_nothing_left()

    def end(self) -> None:
        """One session more, in which nothing is killed: it removes what the last one has left.

        Raises Failure.
        """
        with Runner(self._settings) as runner:
            runner.prepare()
        self._see_nothing_left()
        if folders := list(self._run_folders()):
            raise Failure(f"folders of killed runs were left: {folders}")

    def _see_nothing_left(self) -> None:
        await_gone(self.processes(), "the end of a session", patience_s=PATIENCE_S)
        end = time.monotonic() + PATIENCE_S
        while jobs := queue() if self._is_slurm else "":
            if time.monotonic() > end:
                raise Failure(f"jobs left in Slurm's queue after the end of a session:\n{jobs}")
            time.sleep(0.2)
        self._see_folders("the end of a session")

    def processes(self) -> list[int]:
        """All of them, on both sides."""
        mark = os.fsencode(self._cache)
        found = []
        for name in os.listdir("/proc"):
            with contextlib.suppress(OSError):
                if name.isdigit() and any(
                    mark in Path(f"/proc/{name}/{part}").read_bytes()
                    for part in ("cmdline", "environ")
                ):
                    found.append(int(name))
        return sorted(found)

    def _see_folders(self, after: str) -> None:
        """Raises Failure if a temporary folder is left, but for those of runs."""
        end = time.monotonic() + PATIENCE_S
        while stray := self._strays():
            if time.monotonic() > end:
                raise Failure(f"folders left after {after}: {stray}")
            time.sleep(0.05)

    def _strays(self) -> list[str]:
        kept = (self._cache / "tensortutor").iterdir()
        others = (*self._temporary.iterdir(), *self._scratch.iterdir())
        return [p.name for p in (*kept, *others) if not p.name.startswith("sent-")]

    def _run_folders(self) -> Iterator[Path]:
        """The folders of runs in the landlock layer; their library leads into the cache."""
        for path in Path(tempfile.gettempdir()).glob(f"{FOLDER_PREFIX}*"):
            with contextlib.suppress(OSError):
                target = os.readlink(path / "library" / "tensortutor" / "lab")
                if target.startswith(str(self._cache)):
                    yield path


def queue() -> str:
    """All jobs that Slurm has, one a line."""
    return subprocess.run(["squeue", "-h"], capture_output=True, text=True, check=True).stdout


def main(rounds: int) -> None:
    """Soak, and report. Exits with 1 if something was found; goes on with a new session then."""
    seed = random.randrange(10**6)
    launches = {"pipe": (), **({"srun": ("srun",)} if has_slurm() else {})}
    layers = [name for name in ("full", "landlock") if is_possible(name)]
    print(f"seed {seed}, {rounds} rounds over {', '.join(launches)} in {layers}", flush=True)
    rng = random.Random(seed)
    seen: Counter[str] = Counter()
    failures = []
    kinds = [(name, layer) for name in launches for layer in layers]
    with tempfile.TemporaryDirectory() as folder:
        elsewhere = {
            (name, layer): Elsewhere(Path(folder) / name / layer, launches[name], layer)
            for name, layer in kinds
        }
        number = 0
        while number < rounds:
            name, layer = kinds[number // SESSION_ROUNDS % len(kinds)]
            most = min(SESSION_ROUNDS, rounds - number)
            try:
                for done in elsewhere[name, layer].session(rng, most):
                    seen[f"{name}: {done}"] += 1
                    number += 1
                    print(f"\r{number} {name} {layer} {done}".ljust(79)[:79], end="", flush=True)
            except Failure as failure:
                number += 1
                failures.append(f"round {number}, {name}, {layer}: {failure}")
                print(f"\n{failures[-1]}", flush=True)
        for place in elsewhere.values():
            place.end()
    print()
    for what, count in sorted(seen.items()):
        print(f"{count:4} {what}")
    if "srun" in launches:
        print(f"jobs left in Slurm's queue: {len(queue().splitlines())}")
    else:
        print("srun: no Slurm answers here")
    if failures:
        sys.exit("\n".join([f"{len(failures)} failures:", *failures]))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
