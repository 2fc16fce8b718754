"""What the lens tells of a program's lines: shapes, counts, marks."""

import textwrap
from dataclasses import replace

import pytest

from tensortutor.protocol.events import Output, Raised
from tensortutor.protocol.jobs import Look
from tensortutor.protocol.lens import Trace

TRACE = Look(trace=True)


def made(seen):
    """(line, name) -> (words, how, count)."""
    return {
        (line.line, one.name): (one.words, one.how, line.count)
        for line in seen.one(Trace).lines
        for one in line.made
    }


def marks(seen):
    """(line, kind) -> text."""
    return {
        (line.line, mark.kind): mark.text
        for line in seen.one(Trace).lines
        for one in line.made
        for mark in one.marks
    }


def text(seen):
    return "".join(event.text for event in seen if isinstance(event, Output))


def program(source):
    return textwrap.dedent(source).strip()


def test_lines_tell_the_last_value_and_how_often(look):
    source = """
    import torch
    for n in range(50):
        x = torch.ones(n + 1, 2)
        y = x.sum(1)
    z = torch.zeros(3)
    """
    told = made(look(program(source), TRACE))
    assert told[3, "x"] == ("f32[50, 2]", "made", 50)
    assert told[4, "y"] == ("f32[50]", "made", 50)
    assert told[5, "z"] == ("f32[3]", "made", 1)


def test_functions_arguments_and_results(look):
    source = """
    import torch
    def f(a, *, b=None):
        c = a + 1
        return c, a
    for n in range(7):
        p, q = f(torch.ones(n), b=torch.ones(2))
    """
    told = made(look(program(source), TRACE))
    assert told[2, "a"] == ("f32[6]", "argument", 7)
    assert told[2, "b"] == ("f32[2]", "argument", 7)
    assert told[3, "c"] == ("f32[6]", "made", 7)
    assert told[4, "return[0]"] == ("f32[6]", "returned", 7)
    assert told[6, "q"] == ("f32[6]", "made", 7)


def test_a_statement_over_several_lines_counts_once(look):
    source = """
    import torch
    for n in range(3):
        x = torch.full(
            (2,
             3),
            1.0,
        )
        y = [torch.ones(i) for i in range(4)][-1]
    """
    seen = look(program(source), TRACE)
    told = made(seen)
    assert told[3, "x"] == ("f32[2, 3]", "made", 3)
    assert told[8, "y"][0] == "f32[3]"
    assert next(line for line in seen.one(Trace).lines if line.line == 3).end_line == 7


def test_changes_in_place_and_attributes(look):
    source = """
    import torch
    class Box: pass
    box, d = Box(), {}
    x = torch.zeros(3)
    x[0] = 1
    x += 1
    x.mul_(2)
    torch.add(x, x, out=x)
    box.w = torch.ones(4)
    d["k"] = torch.ones(5)
    torch.nn.init.ones_(x)
    """
    told = made(look(program(source), TRACE))
    assert [told[line, "x"][:2] for line in (5, 6, 7, 8, 11)] == [("f32[3]", "changed")] * 5
    assert told[9, "box.w"][0] == "f32[4]"
    assert told[10, 'd["k"]'][0] == "f32[5]"


def test_generators_recursion_threads_and_while(look):
    source = """
    import torch, threading
    def gen(n):
        for i in range(n):
            y = torch.ones(i + 1)
            yield y
    def fall(n):
        t = torch.ones(n)
        if n > 1:
            return fall(n - 1)
        return t
    for g in gen(4):
        pass
    q = fall(5)
    n = 0
    while n < 3:
        n += 1
        w = torch.ones(n)
    thread = threading.Thread(target=fall, args=(2,))
    thread.start(); thread.join()
    """
    told = made(look(program(source), TRACE))
    assert told[4, "y"] == ("f32[4]", "made", 4)
    assert told[11, "g"] == ("f32[4]", "made", 4)
    assert told[7, "t"][2] == 5
    assert told[13, "q"][0] == "f32[1]"
    assert told[17, "w"] == ("f32[3]", "made", 3)


def test_what_a_statement_stores_after_waiting_is_seen(look):
    source = """
    import asyncio, torch
    async def load(n):
        await asyncio.sleep(0)
        return torch.ones(n)
    async def stream(n):
        for i in range(n):
            t = await load(i + 1)
            yield t
    async def main():
        async for x in stream(5):
            y = x + 1
        async with asyncio.Lock() as _:
            z = await load(7)
        return z
    last = asyncio.run(main())
    def echo():
        while True:
            got = yield
            if got is None:
                return
    g = echo()
    next(g)
    for n in range(1, 4):
        g.send(torch.ones(n))
    """
    told = made(look(program(source), TRACE))
    assert told[7, "t"] == ("f32[5]", "made", 5)
    assert told[10, "x"] == ("f32[5]", "made", 5)
    assert told[11, "y"] == ("f32[5]", "made", 5)
    assert told[13, "z"] == ("f32[7]", "made", 1)
    assert told[18, "got"][0] == "f32[3]"


def test_the_parts_of_a_tensor_are_views(look):
    source = """
    import torch
    x = torch.arange(12.0).reshape(2, 6)
    p, q = x.chunk(2, dim=1)
    r, *rest = torch.unbind(x)
    """
    told = marks(look(program(source), TRACE))
    assert (3, "view") in told
    assert (4, "view") in told


def test_a_module_of_the_learners_is_followed_in_its_first_passes(look):
    source = """
    import torch
    from torch import nn
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)
        def forward(self, x):
            h = self.fc(x)
            return h.relu()
    net = Net()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(300):
        x = torch.ones(5, 4)
        loss = net(x).mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    """
    told = made(look(program(source), TRACE))
    assert told[7, "x"] == ("f32[5, 4]", "argument", 64)
    assert told[8, "h"] == ("f32[5, 3]", "made", 64)
    assert told[9, "return"] == ("f32[5, 3]", "returned", 64)
    assert told[14, "loss"] == ("f32[]", "made", 64)
    told = made(look(program(source), replace(TRACE, everything=True)))
    assert told[9, "return"] == ("f32[5, 3]", "returned", 300)


def test_copies_views_dtypes_and_detached_tensors_are_marked(look):
    source = """
    import torch
    x = torch.arange(6).reshape(2, 3)
    v = x.t()
    c = v.reshape(6)
    f = x.float()
    w = torch.ones(3, requires_grad=True)
    d = w.detach()
    x = x + 0.5
    """
    told = marks(look(program(source), TRACE))
    assert (3, "view") in told
    assert (4, "copy") in told
    assert told[5, "dtype"] == told[8, "dtype"] == "i64 → f32"
    assert "w" in told[7, "detached"]


def test_a_dtype_is_marked_where_operands_were_promoted_and_not_where_a_module_gives_another(look):
    source = """
    import torch
    m = torch.nn.Embedding(5, 3)
    x = torch.arange(4)
    y = x * 0.5
    z = m(x)
    x = m(x)
    """
    told = marks(look(program(source), TRACE))
    assert [key for key in told if key[1] == "dtype"] == [(4, "dtype")]


def test_the_line_where_nan_appeared_first_is_marked_and_no_other(look):
    source = """
    import torch
    x = torch.ones(3)
    for step in range(20):
        y = x - 1
        if step == 12:
            y = y / y
        z = y * 2
    """
    seen = look(program(source), TRACE)
    nan = {key: text for key, text in marks(seen).items() if key[1] == "nan"}
    assert list(nan) == [(6, "nan")]


def test_infinity_is_marked_where_it_appeared_first_apart_from_nan(look):
    source = """
    import torch
    x = torch.zeros(3)
    big = torch.full((4,), 3e38)
    y = 1 / x
    z = y - y
    w = z + y
    """
    told = marks(look(program(source), TRACE))
    assert {key for key in told if key[1] in ("nan", "inf")} == {(4, "inf"), (5, "nan")}


def test_a_stretched_dimension_is_marked(look):
    source = "import torch\np = torch.ones(4, 1)\ny = torch.ones(4)\ne = p - y\n"
    assert marks(look(source, TRACE))[4, "broadcast"] == "y stretched from [4] to [4, 4]"


def test_the_statement_that_raised_made_nothing(look):
    source = "import torch\nx = torch.ones(2)\nx = x @ torch.ones(3)\n"
    seen = look(source, TRACE)
    assert isinstance(seen.one(Raised), Raised)
    assert set(made(seen)) == {(2, "x")}


def test_a_program_that_traces_itself_is_left_alone(look):
    source = """
    import sys, torch
    lines = []
    def trace(frame, event, arg):
        lines.append(event)
        return trace
    def f():
        x = torch.ones(2)
        return x
    print(sys.gettrace())
    sys.settrace(trace); f(); sys.settrace(None)
    print(lines)
    """
    seen = look(program(source), TRACE)
    assert text(seen) == "None\n['call', 'line', 'line', 'return']\n"
    assert "tracing itself" in seen.one(Trace).note


BEHAVIOUR = """
import gc, torch, warnings, weakref, random
torch.manual_seed(0); random.seed(0)
class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(3, 3)
    def forward(self, x):
        warnings.warn("once")
        return self.fc(x)
net = Net()
def train():
    x = torch.randn(4, 3)
    for _ in range(40):
        y = net(x)
        ref = weakref.ref(y)
        loss = y.pow(2).mean()
        loss.backward()
    del y, loss
    gc.collect()
    print(ref() is None, x._version, net.fc.weight._version)
train()
x = torch.ones(2, requires_grad=True)
y = x * 2
y.sum().backward()
try:
    y.sum().backward()
    torch.autograd.grad(y.sum(), x)
except RuntimeError as error:
    print(type(error).__name__, str(error)[:40])
print(torch.rand(2), random.random(), torch.is_grad_enabled())
def deep(n):
    return n if n == 0 else 1 + deep(n - 1)
print(deep(900))
with torch.autograd.graph.saved_tensors_hooks(lambda t: (print("pack"), t)[1],
                                              lambda t: (print("unpack"), t)[1]):
    z = x * x
with torch.profiler.profile() as prof:
    z = torch.ones(3) + 1
print(sorted(e.key for e in prof.key_averages() if e.key.startswith("aten")))
print(len(torch.overrides._get_current_function_mode_stack()))
"""


NOISE = ("USDT", "gpuGetDeviceCount")
"""What the profiler of torch writes, with the time of day; the last in a build for GPUs."""


def said(seen):
    """Standard output, and the warnings (torch's profiler writes the time to standard error)."""
    out = [e.text for e in seen if isinstance(e, Output) and e.stream == "stdout"]
    err = "".join(e.text for e in seen if isinstance(e, Output) and e.stream == "stderr")
    return "".join(out), [
        line for line in err.splitlines() if not any(word in line for word in NOISE)
    ]


@pytest.mark.parametrize("names", [False, True])
def test_output_is_the_same_with_and_without_the_lens(look, names):
    plain = said(look(BEHAVIOUR, Look()))
    assert said(look(BEHAVIOUR, Look(trace=True, names=names))) == plain
    assert any("once" in line for line in plain[1])


def test_hooks_of_saved_tensors_are_not_called_by_the_lens(look):
    source = """
    import torch
    x = torch.ones(2, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: (print("unpack"), t)[1]):
        y = x * x
    """
    seen = look(program(source))
    assert text(seen) == ""
