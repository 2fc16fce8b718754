"""What a program that prints a million lines costs the app: its longest stall, and memory.

    python -m tests.bench.flood [ROUNDS]

The whole app, headless, at the lesson screen, with the real runner. A heartbeat in its event loop
wants to come every 5 ms: the longest gap is the longest time in which no key would be seen. A
busy machine has gaps of its own, so two more figures stand beside it: the most processor time that
the app's thread used between two beats, and the longest gap while a program computes as long and
prints nothing.
"""

import asyncio
import gc
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tensortutor.course.model import Lesson
from tensortutor.learner.paths import Paths
from tensortutor.learner.progress import Progress
from tensortutor.learner.workspace import Workspace
from tensortutor.runner import Runner, Settings
from tensortutor.ui.app import TutorApp
from tensortutor.ui.garbage_collection import only_when_told
from tensortutor.ui.screens.lesson import LessonScreen
from tests.ui.courses import accumulation, course

ROUNDS = 3
STEP = 1
BEAT_S = 0.005
WANTED_STALL_MS, WANTED_MIB = 50.0, 40.0
FLOOD = "for i in range(1_000_000):\n    print(i)\n"
QUIET = "import time\nend = time.time() + {seconds:.2f}\nwhile time.time() < end:\n    pass\n"
PATIENCE_S = 120.0


class Heart:
    """Beats in the event loop and remembers the longest gap."""

    def __init__(self) -> None:
        self.longest = 0.0
        self.busiest = 0.0
        self._task = asyncio.get_running_loop().create_task(self._beat())

    async def _beat(self) -> None:
        last, worked = time.perf_counter(), time.thread_time()
        while True:
            await asyncio.sleep(BEAT_S)
            now, work = time.perf_counter(), time.thread_time()
            self.longest = max(self.longest, now - last - BEAT_S)
            self.busiest = max(self.busiest, work - worked)
            last, worked = now, work

    def stop(self) -> tuple[float, float]:
        """In milliseconds: the longest gap beyond the time between two beats, the most work."""
        self._task.cancel()
        return self.longest * 1000, self.busiest * 1000


def memory_mib() -> float:
    """What this process has in memory."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


async def until(condition: Callable[[], object]) -> None:
    """Wait, without the pilot: it would wait for the app to be idle."""
    end = time.monotonic() + PATIENCE_S
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        await asyncio.sleep(0.02)


async def run_program(screen: LessonScreen, source: str) -> tuple[float, float, float]:
    """Run a program in the app; its longest stall and most work in ms, how long it took in s."""
    screen.editor.load_text(source)
    await asyncio.sleep(0.5)
    heart, begun = Heart(), time.monotonic()
    screen.action_run()
    await until(lambda: not screen.results.is_running)
    seconds = time.monotonic() - begun
    await asyncio.sleep(0.2)
    return *heart.stop(), seconds


async def measure(rounds: int, report: Callable[..., None]) -> None:
    """Run everything in one app and print a line for each round."""
    lesson = accumulation()
    with tempfile.TemporaryDirectory() as folder:
        paths = Paths(Path(folder))
        progress = passed(paths, lesson)
        with Runner(Settings(scratch=paths.scratch, device="cpu")) as runner:
            runner.prepare()
            app = TutorApp(course(), progress, Workspace(paths), runner, lesson=lesson)
            async with app.run_test(size=(160, 50), tooltips=False):
                await until(lambda: isinstance(app.screen, LessonScreen))
                await until(lambda: app.screen.query("#page"))
                screen = app.screen
                assert isinstance(screen, LessonScreen)
                await run_program(screen, "print(1)")
                for number in range(rounds):
                    await one_round(screen, number, report)


async def one_round(screen: LessonScreen, number: int, report: Callable[..., None]) -> None:
    """A flood and a quiet program of the same length."""
    gc.collect()
    before = memory_mib()
    stall, work, seconds = await run_program(screen, FLOOD)
    grown = memory_mib() - before
    transcript = screen.query_one("#transcript")
    kept = len(transcript.lines)  # type: ignore[attr-defined]
    quiet, _, _ = await run_program(screen, QUIET.format(seconds=seconds))
    report(number + 1, stall, work, quiet, grown, seconds, kept)


def passed(paths: Paths, lesson: Lesson) -> Progress:
    """A record in which the lesson is open and its step with code is next."""
    progress = Progress.open(paths)
    for id in lesson.requires:
        progress.mark_passed(id)
    progress.set_place(lesson.id, STEP)
    return progress


def main(rounds: int) -> None:
    """Measure and print."""
    heads = ("round", "stall", "of it work", "no output", "memory", "took", "kept")
    print("".join(f"{head:>13}" for head in heads))

    def line(
        number: int, stall: float, work: float, quiet: float, grown: float, seconds: float,
        kept: int,
    ) -> None:  # fmt: skip
        figures = (
            f"{stall:.1f} ms", f"{work:.1f} ms", f"{quiet:.1f} ms", f"{grown:.1f} MiB",
            f"{seconds:.1f} s", f"{kept:,} lines",
        )  # fmt: skip
        print(f"{number:>13}" + "".join(f"{figure:>13}" for figure in figures))

    only_when_told()  # as the app's own start does
    asyncio.run(measure(rounds, line))
    print(f"wanted: stall < {WANTED_STALL_MS:g} ms, memory < {WANTED_MIB:g} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS)
