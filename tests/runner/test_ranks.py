"""A program as several ranks: their environment, their output, their checks, their deaths."""

from tensortutor.protocol.events import Judged, Output, Raised, Started, Verdict
from tensortutor.protocol.jobs import Job, Judge, Limits

SUM = """
import os, torch
import torch.distributed as dist
dist.init_process_group("gloo")

def total(x):
    dist.all_reduce(x)
    return x

print(dist.get_rank(), "of", dist.get_world_size(), total(torch.ones(1)).item())
"""
CHECKS = """
import os, torch
from tensortutor.checking import check, expect_close

@check("every rank has the sum")
def sums(answer, rng, device):
    mine = torch.full((2,), float(os.environ["RANK"]))
    expect_close(answer.total(mine), torch.full((2,), 1.0))
"""


def run(runner, source, ranks=2, **more):
    return list(runner.start(Job(source, ranks=ranks, **more)))


def lines(events):
    text = "".join(e.text for e in events if isinstance(e, Output) and e.stream == "stdout")
    return sorted(text.splitlines())


def test_ranks_talk_over_gloo_and_their_output_is_labelled(runner):
    events = run(runner, SUM)
    assert lines(events) == ["[rank 0] 0 of 2 2.0", "[rank 1] 1 of 2 2.0"]
    assert (events[-1].outcome, events[-1].code) == ("done", 0)


def test_the_environment_is_torchruns(runner):
    names = [
        "RANK", "LOCAL_RANK", "WORLD_SIZE", "LOCAL_WORLD_SIZE", "MASTER_ADDR", "OMP_NUM_THREADS"
    ]  # fmt: skip
    events = run(runner, f"import os; print(*(os.environ[n] for n in {names}))", ranks=3)
    assert lines(events) == [f"[rank {r}] {r} {r} 3 3 127.0.0.1 1" for r in range(3)]


def test_open_tcp_is_said(runner):
    (started,) = (e for e in run(runner, "pass") if isinstance(e, Started))
    assert started.layer in ("full", "landlock+tcp")


def test_a_check_passes_when_it_passes_on_every_rank(runner):
    judge = Judge(CHECKS, "checks/sum.py", (1,), ("every rank has the sum",))
    right = run(runner, SUM, judge=judge)
    assert next(e for e in right if isinstance(e, Judged)).ok
    only_rank_0 = SUM.replace("    return x", "    return x if dist.get_rank() == 0 else 2 * x")
    wrong = run(runner, only_rank_0, judge=judge)
    (verdict,) = (e for e in wrong if isinstance(e, Verdict))
    assert not verdict.passed
    assert verdict.message.startswith("rank 1: ")


def test_an_exception_on_one_rank_ends_all_with_its_name(runner):
    source = "import os, time\nif os.environ['RANK'] == '1':\n    1 / 0\ntime.sleep(60)\n"
    events = run(runner, source, ranks=3)
    (raised,) = (e for e in events if isinstance(e, Raised))
    assert raised.type == "ZeroDivisionError"
    assert events[-1].outcome == "raised"
    assert events[-1].sentence.startswith("Rank 1 raised ZeroDivisionError in line 3")


def test_a_killed_rank_ends_all_with_its_name(runner):
    source = (
        "import os, time\nif os.environ['RANK'] == '0': os.kill(os.getpid(), 9)\ntime.sleep(60)\n"
    )
    events = run(runner, source)
    assert events[-1].code == 137
    assert events[-1].sentence.startswith("Rank 0 was killed by signal 9")


def test_time_runs_out_for_all(runner):
    events = run(runner, "while True: pass", limits=Limits(wall_s=0.5))
    assert events[-1].outcome == "time"
