"""What waits while nobody runs anything: which parts of torch, how many processes, how long."""

from dataclasses import replace

import pytest

from tensortutor.protocol.events import Judged, Output
from tensortutor.protocol.jobs import Job, Judge, Look
from tensortutor.protocol.lens import Broadcasts
from tensortutor.protocol.setup import SLOW_MODULES
from tensortutor.runner import Runner, Settings
from tensortutor.runner.memory import is_short

IMPORTED = f"import sys\nprint(*(name in sys.modules for name in {SLOW_MODULES}))\n"
BROADCAST = "import torch\nrow = torch.ones(3)\ncolumn = torch.ones(2, 1)\nboth = row + column\n"
OPTIMIZER = "import torch\ntorch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)\n"


COMPILED = """
def plus_both(x):
    return x + both
def add(x):
    return torch.compile(plus_both, backend="eager")(x)
"""
COMPILES = """
import torch
from tensortutor.checking import *
@check("compiles")
def compiles(answer, rng, device):
    torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
    expect_close(answer.add(torch.ones(3)), 1 + answer.both)
    expect_equal(torch._dynamo.utils.counters["stats"]["unique_graphs"], 1)
"""


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    """One that no program has needed anything of: these tests come in this order."""
    with Runner(Settings(scratch=tmp_path_factory.mktemp("scratch"), device="cpu")) as runner:
        yield runner


def imported(runner: Runner) -> list[str]:
    """What a program finds imported: the first, and the one after all that waited before it."""
    outputs = []
    for _ in range(3):
        events = runner.start(Job(IMPORTED))
        outputs.append("".join(e.text for e in events if isinstance(e, Output)).strip())
    return [outputs[0], outputs[-1]]


def test_programs_wait_without_the_slow_parts_of_torch(runner):
    assert imported(runner) == ["False False False"] * 2


def test_the_lens_computes_shapes_without_the_compiler_and_leaves_it_as_it_is(runner):
    judge = Judge(COMPILES, "check.py", checks=("compiles",))
    job = Job(BROADCAST + COMPILED, look=Look(trace=True, names=True), judge=judge)
    assert imported(runner) == ["False False False"] * 2
    events = list(runner.start(replace(job, source=BROADCAST, judge=None)))
    (shapes,) = (event for event in events if isinstance(event, Broadcasts))
    assert [one.result for one in shapes.expressions] == [(2, 3)]
    assert imported(runner)[-1] == "True True False"
    events = list(runner.start(job))
    assert [e.passed for e in events if isinstance(e, Judged)] == [("compiles",)], events


def test_after_an_optimizer_the_compiler_is_there(runner):
    assert list(runner.start(Job(OPTIMIZER)))[-1].outcome == "done"
    assert imported(runner)[-1] == "True True True"


def test_one_process_waits_where_memory_is_short(tmp_path):
    short = True
    settings = Settings(scratch=tmp_path, device="cpu", memory_is_short=lambda: short)
    with Runner(settings) as runner:
        for waiting in (1, 1, 2):
            short = waiting == 1
            assert list(runner.start(Job("print(1)")))[-1].outcome == "done"
            zygote = runner._zygote
            assert len(zygote._spares) + len(zygote._asked) == waiting


def test_it_is_let_go_early_once_memory_is_short_and_nobody_uses_it(tmp_path):
    looks = []

    def short() -> bool:
        looks.append(runner.status.state)
        if len(looks) == 5:
            runner.warm()  # a key
        return len(looks) >= 5

    runner = Runner(
        Settings(scratch=tmp_path, device="cpu", idle_short_s=0.1, memory_is_short=short)
    )
    with runner:
        runner.prepare()
        while runner.status.state == "ready":
            runner._idle.join()
        assert len(looks) == 6


def meminfo(folder, available: int) -> None:
    (folder / "self").mkdir(parents=True)
    (folder / "meminfo").write_text(
        f"MemTotal: 1000 kB\nMemFree: 1 kB\nMemAvailable: {available} kB\n"
    )
    (folder / "self/cgroup").write_text("0::/user/me\n3:cpu,memory:/user/me\n")


@pytest.mark.parametrize(("available", "short"), [(249, True), (250, False)])
def test_less_than_a_quarter_of_memory_is_short(tmp_path, available, short):
    meminfo(tmp_path, available)
    assert is_short(tmp_path, tmp_path / "none") is short


@pytest.mark.parametrize(
    ("folder", "limit", "used", "cache"),
    [
        ("user/me", "memory.max", "memory.current", "inactive_file"),
        ("user", "memory.max", "memory.current", "inactive_file"),
        ("memory/user", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
        ("memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
    ],
)
@pytest.mark.parametrize(("taken", "short"), [("860", True), ("840", False)])
def test_a_limit_that_we_are_under_counts_too(tmp_path, folder, limit, used, cache, taken, short):
    """Its own, or one further up; what the page cache takes can be had."""
    meminfo(tmp_path / "proc", 900)
    cgroup = tmp_path / "cgroup" / folder
    cgroup.mkdir(parents=True)
    (cgroup / limit).write_text("1000\n")
    (cgroup / used).write_text(f"{taken}\n")
    (cgroup / "memory.stat").write_text(f"anon 5\n{cache} 100\n")
    assert is_short(tmp_path / "proc", tmp_path / "cgroup") is short


def test_no_limit_and_nothing_to_read_is_enough(tmp_path):
    assert not is_short(tmp_path, tmp_path)
    meminfo(tmp_path, 900)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("7\n")
    assert not is_short(tmp_path, tmp_path)
