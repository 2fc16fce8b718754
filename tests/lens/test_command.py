"""`tensortutor run --lens` and `--profile`."""

import json

from tests.test_cli import tensortutor

PROGRAM = """import torch
from torch import nn
model = nn.Linear(2, 1)
x = torch.ones(4, 2)
y = torch.ones(4)
loss = ((model(x) - y) ** 2).mean()
loss.backward()
print("end")
view = x[1:]
wrong = x + torch.ones(3)
"""


def run(tmp_path, *options):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    return tensortutor("run", *options, str(file), course=None)


def test_the_lens_is_shown_after_the_programs_output(tmp_path):
    done = run(tmp_path, "--lens")
    assert done.returncode == 1
    assert "RuntimeError: The size of tensor a (2) must match" in done.stderr
    out = done.stdout
    heads = ["end\n", "Lines\n", "Line 10: these do not fit", "Tensors\n", "Modules\n", "Graph of"]
    assert [out.find(head) for head in heads] == sorted(out.find(head) for head in heads)
    assert out.startswith("end\n")
    for part in (
        " 6  loss = ((model(x) - y) ** 2).mean()", "loss: f32[] ⇔",
        "line 6: y stretched from [4] to [4, 4]", "A: x, view share 32 B.",
        "Dimension -1: 2 and 3 differ, and neither is 1.", "weight: f32[1, 2]",
        "MeanBackward0  loss: f32[]  grad 1",
    ):  # fmt: skip
        assert part in out, part


def test_the_profile_alone(tmp_path):
    out = run(tmp_path, "--profile").stdout
    assert "Time: " in out
    assert "aten::addmm" in out
    assert "tensors on the CPU, peak" in out
    assert "Tensors\n" not in out


def test_as_json_the_events_are_lines(tmp_path):
    done = run(tmp_path, "--lens", "--profile", "--json")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    kinds = [event["event"] for event in events]
    wanted = ["trace", "broadcasts", "tensors", "modules", "optimizers", "graph", "profile"]
    assert [kind for kind in kinds if kind in wanted] == wanted
    assert kinds[-1] == "finished"


def test_without_asking_nothing_is_shown(tmp_path):
    assert run(tmp_path).stdout == "end\n"
