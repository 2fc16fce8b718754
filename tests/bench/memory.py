"""What a learner takes: the app beside a Jupyter kernel, for one learner and for eight.

    python -m tests.bench.memory [LEARNERS ...]

PSS of all processes: the memory of a process, shared pages divided among those that share them, so
that the figures add up. The apps run in pseudo-terminals of 80 by 24 as learners start them: idle
on the first screen with PyTorch loaded; after runs of a lesson's first program; after PyTorch has
been let go. Two processes wait, or one as where memory is short. Kernels have imported torch, and
run the same program; Jupyter's server and the browser are not counted. Other programs that have
loaded the same PyTorch share in it: none should run, and it is said how many do.
Needs the bench extra. `idle_app` is part of what tests.bench.latency reports.
"""

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tensortutor.worker.processes import children
from tests.bench.terminal import Terminal

LEARNERS = (1, 8)
SIZE = (24, 80)
RUNS = 3
WANTED = {"idle": 225.0, "let go": 45.0}
"""MiB of one learner's app."""
ACTIVE_RATIO, IDLE_RATIO = 1.35, 0.3
"""Wanted of app / kernel: after runs, and when it has been let go."""
SETTLED_S = 6.0
"""By then the processes wait; after a run, those that were forked anew."""
PATIENCE_S = 120.0
SANDBOX = os.path.realpath(shutil.which("bwrap") or "")
ENTER, F5, F8 = "\r", "\x1b[15~", "\x1b[19~"
HOME = b"Tensors: values, types, shapes"
LESSON, STEP = "tensors/tensor_birth", 1
LIBRARY = "/libtorch_cpu."
APP = """
import functools, sys
import tensortutor.runner as runner
idle_s, short = float(sys.argv.pop(1)), sys.argv.pop(1) == "short"
runner.Settings = functools.partial(
    runner.Settings, idle_s=idle_s, idle_short_s=idle_s, memory_is_short=lambda: short
)
from tensortutor.cli import main
main()
"""
"""The app, with another time after which PyTorch is let go, and told how much memory there is."""


def pss_mib(pid: int) -> float:
    """The memory of a process. Raises OSError if there is none of this number."""
    text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    (kib,) = (line.split()[1] for line in text.splitlines() if line.startswith("Pss:"))
    return int(kib) / 1024


def below(pid: int) -> list[int]:
    """All processes below one, parents first."""
    found = children(str(pid))
    for child in found:  # grows while it is walked
        found += children(child)
    return [int(child) for child in found]


def tree_mib(pid: int) -> float:
    """The memory of a process and all below it."""
    return sum(map(pss_mib, (pid, *below(pid))))


def roles(app: int) -> dict[str, list[int]]:
    """Which process is what. Raises RuntimeError if the app has no zygote."""
    under = below(app)
    forked = [pid for pid in under if os.readlink(f"/proc/{pid}/exe") != SANDBOX]
    if not forked:
        raise RuntimeError("the app has not started PyTorch")
    zygote, *rest = forked
    waiting = [pid for pid in rest if not children(str(pid))]  # each below its keepers
    return {
        "UI": [app],
        "zygote": [zygote],
        "spare": waiting,
        "keepers": [pid for pid in rest if pid not in waiting],
        "bubblewrap": [pid for pid in under if pid not in forked],
    }


def sharing() -> int:
    """How many processes have a library of PyTorch in their memory."""
    found = 0
    for maps in Path("/proc").glob("[0-9]*/maps"):
        try:
            found += LIBRARY in maps.read_text()
        except OSError:
            continue  # it has ended, or is another user's
    return found


# The app


@contextmanager
def app(idle_s: float, memory: str = "plenty") -> Iterator[Terminal]:
    """An app at its first screen. When this is left, its processes are gone."""
    with ExitStack() as stack:
        home = stack.enter_context(tempfile.TemporaryDirectory())
        arguments = ("-c", APP, str(idle_s), memory, "--device", "cpu")
        environment = {"TENSORTUTOR_HOME": home}
        terminal = Terminal(arguments, environment, SIZE)
        try:
            terminal.read_until(HOME, plain=True)
            yield terminal
        finally:
            under = below(terminal.pid)
            terminal.close()
            while any(os.path.exists(f"/proc/{pid}") for pid in under):
                time.sleep(0.01)


def rest(terminals: list[Terminal], seconds: float) -> None:
    """Leave them alone; what they draw is read."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        for terminal in terminals:
            terminal.read(0.05)


def wait(terminals: list[Terminal], holds: Callable[[int], bool]) -> None:
    """Until it holds of each app's process. Raises TimeoutError."""
    until = time.monotonic() + PATIENCE_S
    while not all(holds(terminal.pid) for terminal in terminals):
        if time.monotonic() > until:
            raise TimeoutError("an app did not load PyTorch, or did not let go of it")
        rest(terminals, 0.2)


def has_spare(pid: int) -> bool:
    """A process waits for a program: below the zygote and two keepers."""
    try:
        return bool(below(pid)) and bool(roles(pid)["keepers"])
    except (OSError, RuntimeError):
        return False  # it has just been started, or ended


def is_let_go(pid: int) -> bool:
    """Nothing is left but the screen."""
    return not below(pid)


def idle_app() -> dict[str, list[float]]:
    """MiB of each process of an app that has been left alone on its first screen, by role."""
    with app(600.0) as terminal:
        wait([terminal], has_spare)
        rest([terminal], SETTLED_S)
        return {role: [pss_mib(pid) for pid in pids] for role, pids in roles(terminal.pid).items()}


def apps_mib(learners: int, memory: str) -> dict[str, float]:
    """MiB of one learner of so many: idle, after runs, after PyTorch has been let go.

    memory: "plenty" or "short".
    """
    found = {}
    with ExitStack() as stack:
        idle_s = 60.0 + 15.0 * learners  # longer than what comes before takes
        apps = [stack.enter_context(app(idle_s, memory)) for _ in range(learners)]

        def take(state: str) -> None:
            found[state] = sum(tree_mib(one.pid) for one in apps) / learners

        wait(apps, has_spare)
        rest(apps, SETTLED_S)
        take("idle")
        for key in (ENTER, *[F8] * STEP, *[F5] * RUNS):
            for one in apps:
                one.write(key)
            rest(apps, SETTLED_S)
        take("after runs")
        wait(apps, is_let_go)
        take("let go")
    return found


# Jupyter


def kernels_mib(learners: int) -> dict[str, float]:
    """MiB of one kernel of so many: with torch imported, and after the same runs."""
    from tensortutor.course.catalog import find_course, find_lesson, load_course
    from tests.bench.latency import Jupyter

    pane = find_lesson(load_course(find_course()), LESSON).steps[STEP].pane
    assert pane is not None
    kernels = []
    try:
        for _ in range(learners):
            kernels.append(Jupyter())
        time.sleep(SETTLED_S)
        idle = sum(map(tree_mib, (kernel.pid for kernel in kernels))) / learners
        for kernel in kernels:
            for _ in range(RUNS):
                kernel.run(f"device = 'cpu'\n{pane.source}")
        time.sleep(SETTLED_S)
        after = sum(map(tree_mib, (kernel.pid for kernel in kernels))) / learners
        return {"idle": idle, "after runs": after, "let go": idle}  # a kernel stays as it is
    finally:
        for kernel in kernels:
            kernel.close()


# What is printed


def report(memory: dict[str, list[float]]) -> str:
    """One line."""
    total = sum(map(sum, memory.values()))
    parts = (f"{role} {' + '.join(f'{x:.0f}' for x in mib)}" for role, mib in memory.items() if mib)
    return f"idle app, PSS in MiB: {', '.join(parts)}; together {total:.0f}"


def table(title: str, apps: dict[str, float], kernels: dict[str, float]) -> str:
    """A row for each state, with the ratio."""
    lines = [f"{title:<34}{'app':>8}{'kernel':>8}{'ratio':>8}"]
    for state, mib in apps.items():
        ratio = mib / kernels[state]
        wanted = [f"{WANTED[state]:g} MiB"] if state in WANTED else []
        if state != "idle":
            wanted.append(f"{ACTIVE_RATIO if state == 'after runs' else IDLE_RATIO}")
        says = f"   wanted {', '.join(wanted)}"
        lines.append(f"{state:<34}{mib:>8.0f}{kernels[state]:>8.0f}{ratio:>8.2f}{says}")
    return "\n".join(lines)


def main(counts: tuple[int, ...]) -> None:
    """Measure and print."""
    print(f"{sharing()} other processes have loaded a PyTorch, and may share in ours")
    print(report(idle_app()))
    for learners in counts:
        kernels = kernels_mib(learners)
        for memory, waiting in (("plenty", "two"), ("short", "one")):
            title = f"{learners} x, {waiting} waiting, MiB each"
            print(table(title, apps_mib(learners, memory), kernels), flush=True)


if __name__ == "__main__":
    main(tuple(map(int, sys.argv[1:])) or LEARNERS)
