"""Judges lessons/14_performance/05_compile.md."""

import contextlib
import itertools
import logging

import torch
import torch._dynamo
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

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


BEHIND = (
    "A compilation is not always a recompile: what stands behind a break is compiled when it is "
    "first reached. Note each call of the backend."
)
LIMIT = "Dynamo gives up after recompile_limit graphs. Leave its settings as they are."
ASCENDING = "All of them, in ascending order."
TUPLE = "An entry of calls is a tuple of arguments: f(*args)."
WHOLE = "fullgraph=True makes an error of a break. Leave it at its default."

LIMITED = "recompile_limit"
if not hasattr(torch._dynamo.config, LIMITED):  # as older versions call it
    LIMITED = "cache_size_limit"

WAVE = "return (x.sin() * k + 1).relu()"
SHIFTED = "return x.cos() + k"
BROKEN = "y = x.sin() + 1; torch._dynamo.graph_break(); return y.cos() * k"
BRANCH = "return x.sin() * k if x.sum() > 0 else x.cos()"
NUMBERS = itertools.count()


def fresh(body):
    """A function of x and k that Dynamo has not seen, under a file name that it has not seen."""
    names = {"torch": torch}
    code = compile(f"def request(x, k=2):\n    {body}\n", f"request_{next(NUMBERS)}.py", "exec")
    exec(code, names)
    return names["request"]


def sizes(rng, count):
    return rng.sample(range(2, 40), count)


def ones(*shape, **options):
    return torch.ones(*shape, **options)


@contextlib.contextmanager
def quiet():
    """Without Dynamo's warning that it gives up."""
    logger = logging.getLogger("torch._dynamo")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(level)


def expect_calls(answer, function, calls, wanted, hint):
    with (
        quiet(),
        advising(AttributeError, saying="tuple", hint=TUPLE),
        advising(torch._dynamo.exc.Unsupported, hint=WHOLE),
    ):
        got = answer.compiling_calls(function, calls)
    if isinstance(got, list) and got != wanted and sorted(got) == wanted:
        hint = ASCENDING
    expect_equal(got, wanted, name="the list", hint=hint)


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
    expect_calls(answer, fresh(rng.choice([WAVE, SHIFTED])), calls, [0], REUSED)


@check("no calls, an empty list", holds="the positions in calls at which something was compiled")
def none(answer, rng, device):
    expect_calls(answer, fresh(WAVE), [], [], REUSED)


@check(
    "lengths: the second makes sizes variable, and what was compiled before does not count",
    holds=[
        "Sizes are treated as torch.compile treats them by default",
        "What was compiled before, and which sizes were seen before, does not count.",
    ],
)
def lengths(answer, rng, device):
    a, b, c = sizes(rng, 3)
    function = fresh(WAVE)
    expect_calls(answer, function, [(ones(n),) for n in (a, b, c, 1)], [0, 1, 3], SIZES)
    expect_calls(answer, function, [(ones(n),) for n in (b, c)], [0, 1], FORGET)


@check(
    "dtypes, gradients, strides and integers",
    holds="the positions in calls at which something was compiled, in ascending order",
)
def kinds(answer, rng, device):
    a, b, c = sizes(rng, 3)
    x = ones(a)
    double, strided, leaf = x.double(), ones(2 * a)[::2], ones(a, requires_grad=True)
    first = [(x, b), (x * 3, b), (double, b), (strided, b), (leaf, b)]
    again = [(x, b), (x, c), (x, a), (double, b)]
    hint = (
        "Positions 2, 3 and 4 are another dtype, another stride and a tensor that requires grad. "
    )
    hint += "Position 6 is another integer. Pass all arguments on as they are."
    expect_calls(answer, fresh(SHIFTED), first + again, [0, 2, 3, 4, 6], hint)


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
    calls = [(ones(a), ones(b)) for a, b in pairs]
    with advising(TypeError, saying="argument", hint=TUPLE):
        answer.compiling_calls(function, calls)
    expect_equal(seen, pairs, name="the sizes of the arguments, call by call", hint=ONCE)


@check(
    "a call of several graphs stands once",
    holds="A position stands in the list once, however many graphs its call leaves.",
)
def several(answer, rng, device):
    n = rng.randint(2, 9)
    expect_calls(answer, fresh(BROKEN), [(ones(n),), (ones(n),)], [0], REPEATED)


@check(
    "a branch that is first taken later",
    holds="What stands behind a graph break counts when it is compiled.",
)
def later(answer, rng, device):
    x = ones(rng.randint(2, 9))
    wait = rng.randint(1, 3)
    calls = [(x,)] * wait + [(-x,), (x,), (-x,)]
    expect_calls(answer, fresh(BRANCH), calls, [0, wait], BEHIND)


class Head(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = nn.Linear(width, 2)
        self.calls = 0

    def forward(self, x):
        return self.linear(x)


class Counting(Head):
    def forward(self, x):
        self.calls += 1
        return self.linear(x)


@check("Dynamo gives up at its limit", holds="its limit of recompiles holds")
def limit(answer, rng, device):
    most = 2
    x = torch.randn(2, rng.randint(2, 6))
    with torch._dynamo.config.patch(**{LIMITED: most}):
        calls = [(x,)] * (most + 2)
        expect_calls(answer, Counting(x.shape[1]), calls, list(range(most)), LIMIT)
        same = getattr(torch._dynamo.config, LIMITED) == most
    expect_true(same, "recompile_limit has changed", hint=LIMIT)


@check("modules", holds="function may be a module.", both_sides=True)
def modules(answer, rng, device):
    width, n = rng.randint(2, 6), rng.randint(2, 9)
    calls = [(torch.randn(n, width),) for _ in range(2)]
    expect_calls(answer, Head(width), calls, [0], REUSED)


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


@mutant("takes a recompile for the one kind of compilation", caught_by=later)
def compiling_calls(function, calls):
    torch._dynamo.reset()
    f = torch.compile(function, backend="eager")
    result = []
    for i, args in enumerate(calls):
        try:
            with torch._dynamo.config.patch(error_on_recompile=i > 0):
                f(*args)
            if i == 0:
                result.append(i)
        except torch._dynamo.exc.RecompileError:
            result.append(i)
            f(*args)
    return result


@mutant("raises the limit", caught_by=limit)
def compiling_calls(function, calls):
    with torch._dynamo.config.patch(**{LIMITED: 64}):
        return sorted(set(noted(function, calls)))


@mutant("detaches the arguments", caught_by=kinds)
def compiling_calls(function, calls):
    calls = [[a.detach() if isinstance(a, torch.Tensor) else a for a in args] for args in calls]
    return sorted(set(noted(function, calls)))


@mutant("makes the arguments contiguous", caught_by=kinds)
def compiling_calls(function, calls):
    calls = [[a.contiguous() if isinstance(a, torch.Tensor) else a for a in args] for args in calls]
    return sorted(set(noted(function, calls)))


@mutant("lists the latest first", caught_by=lengths)
def compiling_calls(function, calls):
    return sorted(set(noted(function, calls)), reverse=True)


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


@accepted("compiles anew for each call, with one backend")
def compiling_calls(function, calls):
    torch._dynamo.reset()
    made, result = [], set()

    def backend(graph, inputs):
        result.add(len(made))
        return graph

    for args in calls:
        torch.compile(function, backend=backend)(*args)
        made.append(args)
    return sorted(result)


@accepted("compiles a module in place")
def compiling_calls(function, calls):
    if not isinstance(function, nn.Module):
        return sorted(set(noted(function, calls)))
    torch._dynamo.reset()
    made, result = [], set()

    def backend(graph, inputs):
        result.add(len(made))
        return graph

    function.compile(backend=backend)
    for args in calls:
        function(*args)
        made.append(args)
    return sorted(result)
