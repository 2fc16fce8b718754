"""Judges lessons/14_performance/05_compile.md."""

import torch
from torch import nn

from tensortutor.checking import accepted, background, check, expect_equal, hinted, mutant

background(
    "A service answers in a millisecond",
    "Which requests are those?",
    "calls is a list of tuples",
)

REUSED = (
    "Only a call whose guards fail compiles. Note it in the backend: it is called once a graph."
)
SIZES = "From the second length on, a size is a variable. Leave `dynamic` as it is."
ONCE = "Call the compiled function once for each entry of calls, with its arguments."
FORGET = "torch._dynamo.reset() forgets graphs, and the sizes that were seen."
REPEATED = "A call that breaks into several graphs calls the backend several times."


def wave(x, k=2):
    return (x.sin() * k + 1).relu()


def shifted(x, k=2):
    return x.cos() + k


def sizes(rng, count):
    return rng.sample(range(2, 40), count)


def ones(*shape, **options):
    return torch.ones(*shape, **options)


def expect_calls(answer, function, calls, wanted, hint):
    expect_equal(answer.compiling_calls(function, calls), wanted, name="the list", hint=hint)


@check(
    "a graph is used again",
    holds=[
        "the positions in calls at which something was compiled",
        "-> a list of int, the positions in calls from 0 on.",
    ],
)
def reused(answer, rng, device):
    n = rng.randint(2, 9)
    calls = [(torch.randn(n),) for _ in range(rng.randint(3, 6))]
    expect_calls(answer, rng.choice([wave, shifted]), calls, [0], REUSED)


@check("no calls, an empty list", holds="the positions in calls at which something was compiled")
def none(answer, rng, device):
    expect_calls(answer, wave, [], [], REUSED)


@check(
    "lengths: the second makes sizes variable, and what was compiled before does not count",
    holds=[
        "Sizes are treated as torch.compile treats them by default.",
        "What was compiled before, and which sizes were seen before, does not count.",
    ],
)
def lengths(answer, rng, device):
    a, b, c = sizes(rng, 3)
    expect_calls(answer, wave, [(ones(n),) for n in (a, b, c, 1)], [0, 1, 3], SIZES)
    expect_calls(answer, wave, [(ones(n),) for n in (b, c)], [0, 1], FORGET)


@check(
    "dtypes, gradients, strides and integers",
    holds="the positions in calls at which something was compiled, in ascending order",
)
def kinds(answer, rng, device):
    a, b, c = sizes(rng, 3)
    x = ones(a)
    other = rng.choice([x.double(), ones(2 * a)[::2], ones(a, requires_grad=True)])
    calls = [(x, b), (x * 3, b), (other, b), (x, b), (x, c), (x, a), (other, b)]
    expect_calls(answer, shifted, calls, [0, 2, 4], REUSED)


@check(
    "calls are made in order, each once",
    holds=["They are made in order, each once.", "the arguments of one call each"],
    both_sides=True,
)
def in_order(answer, rng, device):
    seen = []

    @torch.compiler.disable
    def function(x, y):
        seen.append((x.numel(), y.numel()))

    pairs = list(zip(sizes(rng, 3), sizes(rng, 3)))
    answer.compiling_calls(function, [(ones(a), ones(b)) for a, b in pairs])
    expect_equal(seen, pairs, name="the sizes of the arguments, call by call", hint=ONCE)


@check(
    "a call of several graphs stands once",
    holds="A position stands in the list once, however many graphs its call leaves.",
)
def several(answer, rng, device):
    def function(x):
        y = x.sin() + 1
        torch._dynamo.graph_break()
        return y.cos() * 2

    n = rng.randint(2, 9)
    expect_calls(answer, function, [(ones(n),), (ones(n),)], [0], REPEATED)


@check("modules", holds="function may be a module.", both_sides=True)
def modules(answer, rng, device):
    width, n = rng.randint(2, 6), rng.randint(2, 9)
    calls = [(torch.randn(n, width),) for _ in range(2)]
    expect_calls(answer, nn.Linear(width, 2), calls, [0], REUSED)


def noted(function, calls, reset=True, **options):
    """Positions, one for each graph."""
    if reset:
        torch._dynamo.reset()
    compiled, made = [], []

    def backend(graph, inputs):
        compiled.append(len(made))
        return graph.forward

    f = torch.compile(function, backend=backend, **options)
    for args in calls:
        f(*args)
        made.append(args)
    return compiled


@mutant("lists every call", caught_by=reused)
def compiling_calls(function, calls):
    torch._dynamo.reset()
    f = torch.compile(function, backend="eager")
    for args in calls:
        f(*args)
    return list(range(len(calls)))


@mutant("counts from 1", caught_by=reused)
def compiling_calls(function, calls):
    return sorted({i + 1 for i in noted(function, calls)})


@mutant("forgets between the calls", caught_by=reused)
def compiling_calls(function, calls):
    result = []
    for i, args in enumerate(calls):
        if noted(function, [args]):
            result.append(i)
    return result


@mutant("lists the first call of each shape", caught_by=lengths)
def compiling_calls(function, calls):
    noted(function, calls)
    shapes, result = [], []
    for i, args in enumerate(calls):
        shape = [a.shape for a in args if isinstance(a, torch.Tensor)]
        if shape not in shapes:
            shapes.append(shape)
            result.append(i)
    return result


@mutant("sizes are variables from the first call on", caught_by=lengths)
def compiling_calls(function, calls):
    return sorted(set(noted(function, calls, dynamic=True)))


@mutant("each size has its own graph", caught_by=lengths)
def compiling_calls(function, calls):
    return sorted(set(noted(function, calls, dynamic=False)))


@mutant("remembers sizes", caught_by=lengths)
def compiling_calls(function, calls):
    return sorted(set(noted(function, calls, reset=False)))


@mutant("lists a position for each graph", caught_by=several)
def compiling_calls(function, calls):
    return noted(function, calls)


@mutant("demands one graph", caught_by=several)
def compiling_calls(function, calls):
    return sorted(set(noted(function, calls, fullgraph=True)))


@mutant("makes every call twice", caught_by=in_order)
def compiling_calls(function, calls):
    doubled = [args for args in calls for _ in range(2)]
    return sorted({i // 2 for i in noted(function, doubled)})


@mutant("goes backwards", caught_by=in_order)
def compiling_calls(function, calls):
    last = len(calls) - 1
    return sorted({last - i for i in noted(function, calls[::-1])})


@hinted(1, reaches=in_order)
def compiling_calls(function, calls):
    torch._dynamo.reset()
    compiled, made = [], []

    def backend(graph, inputs):
        compiled.append(len(made))
        return graph.forward

    f = torch.compile(function, backend=backend)
    for args in calls:
        f(*args)
        made.append(args)
    return compiled


@accepted("reads Dynamo's counters")
def compiling_calls(function, calls):
    from torch._dynamo.utils import counters

    torch._dynamo.reset()
    counters.clear()
    f = torch.compile(function, backend="eager")
    result = []
    for i, args in enumerate(calls):
        before = counters["stats"]["unique_graphs"]
        f(*args)
        if counters["stats"]["unique_graphs"] > before:
            result.append(i)
    return result


@accepted("compares the number of graphs")
def compiling_calls(function, calls):
    from torch._dynamo.testing import CompileCounter

    torch.compiler.reset()
    counter = CompileCounter()
    f = torch.compile(function, backend=counter)
    result, before = [], 0
    for i, args in enumerate(calls):
        f(*args)
        if counter.frame_count > before:
            result.append(i)
        before = counter.frame_count
    return result
