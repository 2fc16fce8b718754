"""`sys.monitoring` and `sys.settrace` see the same: one program, every event compared.

Below Python 3.12 there is settrace alone.
"""

import sys
import textwrap

import pytest

from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Broadcasts, Trace
from tensortutor.worker.lens import line_tracing
from tensortutor.worker.lens.lens import Lens
from tensortutor.worker.lens.settrace import SettraceEngine

# Without a comprehension: from 3.12 on it runs in the frame around it, and settrace, which is not
# used there, tells its line once more for each round.
PROGRAM = textwrap.dedent("""
    import torch
    torch.manual_seed(0)
    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = torch.nn.Linear(4, 3)
        def forward(self, x):
            h = self.fc(x)
            return h.relu()
    def batches(n):
        for i in range(n):
            x = torch.ones(i + 1, 4)
            yield x, x.sum(1, keepdim=True)
    def train(net, n):
        opt = torch.optim.SGD(net.parameters(), lr=0.1)
        for xb, yb in batches(n):
            loss = (net(xb) - yb).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            if loss.item() < 0:
                never = loss
        return loss
    net = Net()
    last = train(net, 90)
    p, y = torch.ones(4, 1), torch.ones(4)
    error = p - y
    view = error.t()
    copy = view.reshape(16)
    half = copy.half()
    bad = 1 / torch.zeros(2)
    worse = bad - bad
    try:
        wrong = p @ torch.ones(3)
    except RuntimeError:
        kept = torch.ones(2)
    while p.numel() > 1:
        p = p[1:]
    z = last @ torch.ones(2, 2)
""").lstrip()


def told(monkeypatch, engine, *, everything=True):
    """The events of the program, under the engine that is to be used."""
    monkeypatch.setattr(line_tracing, "engine", engine)
    lens = Lens(Look(trace=True, everything=everything), PROGRAM, "lesson.py")
    with pytest.raises(RuntimeError) as raised:
        lens.run(compile(PROGRAM, "lesson.py", "exec"), {"__name__": "__main__"})
    trace, broadcasts = lens.report({}, raised.value)
    assert isinstance(trace, Trace)
    assert isinstance(broadcasts, Broadcasts)
    assert not trace.note
    return trace, broadcasts


@pytest.mark.skipif(sys.version_info < (3, 12), reason="sys.monitoring came with Python 3.12")
@pytest.mark.parametrize("everything", [True, False])
def test_both_engines_tell_the_same_events(monkeypatch, everything):
    new = told(monkeypatch, line_tracing.engine, everything=everything)
    old = told(monkeypatch, SettraceEngine, everything=everything)
    assert new[0].lines == old[0].lines
    assert new == old


def test_the_engine_of_this_python_sees_the_program(monkeypatch):
    trace, broadcasts = told(monkeypatch, line_tracing.engine)
    made = {(line.line, one.name): (one.words, line.count) for line in trace.lines
            for one in line.made}  # fmt: skip
    assert made[line_of("def forward"), "x"] == ("f32[90, 4]", 90)
    assert made[line_of("x = torch.ones(i"), "x"] == ("f32[90, 4]", 90)
    assert made[line_of("loss = ("), "loss"] == ("f32[]", 90)
    marks = {(line.line, mark.kind) for line in trace.lines for one in line.made
             for mark in one.marks}  # fmt: skip
    for text, kind in (
        ("error = p - y", "broadcast"), ("view =", "view"), ("copy =", "copy"),
        ("half =", "dtype"), ("bad =", "inf"), ("worse =", "nan"),
    ):  # fmt: skip
        assert (line_of(text), kind) in marks, text
    here = line_of("error = p - y")
    assert [one.result for one in broadcasts.expressions if one.line == here] == [(4, 4)]


def line_of(text):
    """Where this stands in the program."""
    return 1 + next(n for n, line in enumerate(PROGRAM.splitlines()) if text in line)
