"""Time and memory: operators, the parts of a training step, peaks."""

import textwrap

import pytest

from tensortutor.lens.tables import profile_table, share_table
from tensortutor.protocol.events import Output
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Profile, Tensors

PROFILE = Look(profile=True)
TRAIN = """
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
data = DataLoader(TensorDataset(torch.ones(60, 8), torch.ones(60, 1)), batch_size=10)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 1))
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in data:
    opt.zero_grad()
    loss = ((model(x) - y) ** 2).mean()
    loss.backward()
    opt.step()
print("end")
"""


@pytest.fixture(scope="module")
def training(runner_on_cpu):
    from tensortutor.protocol.jobs import Job

    return list(runner_on_cpu.start(Job(TRAIN, look=PROFILE)))


def profile_of(events):
    (profile,) = (event for event in events if isinstance(event, Profile))
    return profile


def test_operators_are_told_by_self_time(training):
    profile = profile_of(training)
    rows = {row.name: row for row in profile.rows}
    assert rows["aten::addmm"].calls == 12  # two layers, six batches
    linear = rows["aten::linear"]
    assert linear.total_ms > linear.self_ms
    assert rows["aten::addmm"].self_bytes > 0
    times = [row.self_ms for row in profile.rows]
    assert times == sorted(times, reverse=True)
    assert profile_table(profile).rows[0][0] == profile.rows[0].name


def test_the_shares_of_a_training_step_make_a_whole(training):
    profile = profile_of(training)
    assert profile.steps == 6
    shares = {share.part: share for share in profile.shares}
    assert list(shares) == ["data", "forward", "backward", "optimizer", "other"]
    assert all(share.ms > 0 for share in shares.values())
    assert abs(sum(share.fraction for share in profile.shares) - 1) < 0.01
    assert len(share_table(profile).rows) == 5


def test_peaks_say_what_they_are(look):
    source = "import torch\nx = torch.ones(1_000_000)\ndel x\ny = torch.ones(10)\n"
    profile = profile_of(look(source, PROFILE))
    peaks = {peak.name: peak for peak in profile.peaks}
    assert 4_000_000 <= peaks["tensors on the CPU"].bytes < 4_100_000
    assert peaks["resident memory"].bytes >= 0
    assert all(peak.what.endswith(".") for peak in profile.peaks)
    assert profile.allocators == ()


def test_nothing_of_the_profiler_is_seen_by_the_program(training):
    text = [(e.stream, e.text) for e in training if isinstance(e, Output)]
    assert text == [("stdout", "end\n")]


def test_a_program_that_profiles_itself_does_so(look):
    source = """
    import torch
    with torch.profiler.profile() as prof:
        torch.ones(3).add(1)
    print(any(e.key == "aten::add" for e in prof.key_averages()))
    """
    seen = look(textwrap.dedent(source), PROFILE)
    assert any(isinstance(e, Output) and e.text == "True\n" for e in seen)
    assert "profiles itself" in profile_of(seen).note


def test_long_training_is_profiled_in_part_and_says_so(look):
    profile = profile_of(look(TRAIN.replace("for x, y in data:", "for x, y in list(data) * 10:"),
                              PROFILE))  # fmt: skip
    assert profile.steps == 60
    assert "first 40 training steps" in profile.note
    assert next(row for row in profile.rows if row.name == "aten::addmm").calls == 80


def test_a_program_that_raises_is_profiled_up_to_there(look):
    seen = look("import torch\nx = torch.ones(3) * 2\n1 / 0\n", PROFILE)
    assert any(row.name == "aten::mul" for row in profile_of(seen).rows)
    assert seen.none(Tensors)
