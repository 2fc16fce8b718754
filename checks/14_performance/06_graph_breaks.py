"""Judges lessons/14_performance/06_graph_breaks.md."""

import inspect
from types import FunctionType

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "A layer divides its activations",
    "Written with if it breaks",
)

VALUES = "x / max|x| if max|x| > limit, else x."
GRAPH = "Python may not ask for a value: no `if` on a tensor, no .item(), no float(...)."
THROUGH = "The largest value depends on x: do not detach it."
ZERO = "x / 0 is computed and not chosen, and its gradient is 0 · inf. Choose the divisor first."
ROWS = "One largest value of all of x, whatever its shape: x.abs().max() without a dim."
ADDED = "Nothing is added to the divisor. Choose it: the largest value, or 1."
OWN = "The result is a tensor of its own. The caller still needs x."
ALIAS = "A branch of cond may not return an operand itself. Return x.clone()."
ROUNDED = "A 0-d tensor of another dtype changes 0-d results, and the divisor is rounded to it."
DTYPE = "A number from Python changes no dtype, a tensor of another dtype does."


def plain(x, limit):
    largest = x.abs().max()
    return x / largest if largest > limit else x


def values(rng, *shape):
    return torch.randn(shape or (rng.randint(2, 9),), dtype=torch.float64).float() * 3


def limits(x, rng):
    """A limit below the largest absolute value of x, and one above."""
    top = x.abs().max().item()
    return top * rng.uniform(0.2, 0.9), top * rng.uniform(1.1, 3.0)


@check(
    "large and small values",
    holds=[
        "if the largest absolute value of x is above limit, x divided by it",
        "-> the same shape and dtype.",
    ],
    both_sides=True,
)
def both(answer, rng, device):
    x = values(rng)
    for sign in (1, -1):
        for limit in limits(x, rng):
            with advising(Exception, saying="alias", hint=ALIAS):
                got = answer.soft_limit(sign * x, limit)
            expect_close(got, plain(sign * x, limit), hint=VALUES)
    table = values(rng, rng.randint(2, 4), rng.randint(2, 4))
    for limit in limits(table, rng):
        got = answer.soft_limit(table.clone(), limit)
        expect_close(got, plain(table, limit), hint=ROWS, shape_hint=ROWS)
    tiny = x * 1e-9
    expect_close(answer.soft_limit(tiny.clone(), 0), plain(tiny, 0), hint=ADDED)


@check("x keeps its values", holds="x keeps its values.")
def untouched(answer, rng, device):
    x = values(rng)
    for limit in limits(x, rng):
        with expect_unchanged(x, hint=OWN):
            answer.soft_limit(x, limit)


@check("at the limit x stays", holds="is above limit", side="at the limit")
def border(answer, rng, device):
    x = values(rng).clamp(-5, 5)
    x[0] = rng.choice([-8.0, 8.0])
    expect_close(answer.soft_limit(x, 8.0), x, hint=VALUES)
    expect_close(answer.soft_limit(x * 0, 0), x * 0, hint=VALUES)


def compiled(answer, graphs):
    torch._dynamo.reset()

    def backend(graph, inputs):
        graphs.append(graph)
        return graph.forward

    # Without the recording of calls around it, and with names of its own: Dynamo adds some to the
    # module in which a function was defined, and that of an accepted answer is this file.
    own = inspect.unwrap(answer.soft_limit)
    if isinstance(own, FunctionType):
        names = dict(own.__globals__)
        keywords = own.__kwdefaults__
        own = FunctionType(own.__code__, names, None, own.__defaults__, own.__closure__)
        own.__kwdefaults__ = keywords
    return torch.compile(own, backend=backend)


@check(
    "one graph for both cases",
    holds="The function leaves one graph, and both cases run in it.",
    both_sides=True,
    hint=GRAPH,
)
def one_graph(answer, rng, device):
    graphs = []
    f = compiled(answer, graphs)
    x = values(rng)
    limit, _ = limits(x, rng)
    for scale in (1.0, 0.01, 1.0):
        expect_close(f(x * scale, limit), plain(x * scale, limit), hint=VALUES)
    expect_equal(len(graphs), 1, name="the number of graphs", hint=GRAPH)


def gradient(f, x, limit, weight):
    leaf = x.clone().requires_grad_()
    (f(leaf, limit) * weight).sum().backward()
    return leaf.grad


@check(
    "gradients",
    holds=[
        "Gradients are those of the function with if: they flow through the largest value too.",
    ],
    hint=THROUGH,
)
def gradients(answer, rng, device):
    x = values(rng, 3, rng.randint(2, 5))
    weight = torch.randn_like(x)
    for limit in limits(x, rng):
        got = gradient(answer.soft_limit, x, limit, weight)
        expect_close(got, gradient(plain, x, limit, weight), name="the gradient", hint=THROUGH)


@check(
    "the gradient at 0",
    holds=[
        "If all of x is 0, the gradient is 1 everywhere.",
        "limit is a number of at least 0.",
    ],
    both_sides=True,
)
def at_zero(answer, rng, device):
    x = torch.zeros(rng.randint(1, 4), rng.randint(1, 4))
    for limit in (0, rng.uniform(0.1, 3.0)):
        got = gradient(answer.soft_limit, x, limit, torch.ones_like(x))
        expect_close(got, torch.ones_like(x), name="the gradient", hint=ZERO, nan_hint=ZERO)


@check(
    "shapes and dtypes",
    holds="x may have any shape and any floating dtype, which the result keeps.",
    both_sides=True,
)
def kinds(answer, rng, device):
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        rtol = max(2 * torch.finfo(dtype).eps, 1e-12)
        x = values(rng, rng.randint(1, 3), rng.randint(2, 4), 2).to(dtype).mT
        for limit in limits(x, rng):
            wanted = plain(x, limit)
            got = answer.soft_limit(x, limit)
            hint = ROUNDED if dtype == torch.float64 else VALUES
            expect_close(got, wanted, hint=hint, dtype_hint=DTYPE, rtol=rtol, atol=0)
        x = torch.tensor(rng.choice([-3.0, 3.0]), dtype=dtype)
        for limit in (1, 4):
            got, wanted = answer.soft_limit(x, limit), plain(x, limit)
            expect_close(got, wanted, hint=VALUES, dtype_hint=ROUNDED)


@mutant("asks with if", caught_by=one_graph)
def soft_limit(x, limit):
    largest = x.abs().max()
    return x / largest if largest > limit else x


@mutant("takes the number out", caught_by=one_graph)
def soft_limit(x, limit):
    largest = x.abs().max().item()
    return x / largest if largest > limit else x


@mutant("asks for a boolean", caught_by=one_graph)
def soft_limit(x, limit):
    largest = x.abs().max()
    return x / (largest if bool(largest > limit) else 1.0)


@mutant("always divides", caught_by=both)
def soft_limit(x, limit):
    return x / x.abs().max()


@mutant("looks at each element", caught_by=both)
def soft_limit(x, limit):
    return torch.where(x.abs() > limit, x / x.abs().max(), x)


@mutant("forgets negative values", caught_by=both)
def soft_limit(x, limit):
    return x / torch.where(x.max() > limit, x.max(), 1.0)


@mutant("divides at the limit", caught_by=border)
def soft_limit(x, limit):
    largest = x.abs().max()
    return x / torch.where((largest >= limit) & (largest > 0), largest, 1.0)


@mutant("clamps", caught_by=both)
def soft_limit(x, limit):
    return x.clamp(-limit, limit)


@mutant("takes the largest value of each row", caught_by=both)
def soft_limit(x, limit):
    largest = x.abs().amax(-1, keepdim=True) if x.dim() else x.abs()
    return x / torch.where(largest > limit, largest, 1.0)


@mutant("adds an epsilon", caught_by=both)
def soft_limit(x, limit):
    largest = x.abs().max()
    return torch.where(largest > limit, x / (largest + 1e-8), x)


@mutant("divides in place", caught_by=untouched)
def soft_limit(x, limit):
    largest = x.abs().max()
    return x.div_(torch.where(largest > limit, largest, 1.0))


@mutant("looks for the largest value in float32", caught_by=kinds)
def soft_limit(x, limit):
    largest = x.float().abs().max()
    return x / torch.where(largest > limit, largest, 1.0)


@mutant("returns the operand of cond", caught_by=both)
def soft_limit(x, limit):
    largest = x.abs().max()
    return torch.cond(largest > limit, lambda x, m: x / m, lambda x, m: x, (x, largest))


@mutant("detaches the largest value", caught_by=gradients)
def soft_limit(x, limit):
    largest = x.abs().max().detach()
    return x / torch.where(largest > limit, largest, 1.0)


@mutant("chooses the result", caught_by=at_zero)
def soft_limit(x, limit):
    largest = x.abs().max()
    return torch.where(largest > limit, x / largest, x)


@mutant("returns float32", caught_by=kinds)
def soft_limit(x, limit):
    largest = x.abs().max()
    return (x / torch.where(largest > limit, largest, 1.0)).float()


@hinted(1, reaches=gradients)
def soft_limit(x, limit):
    largest = x.abs().max()
    return torch.where(largest > limit, x / largest, x)


@accepted("two branches")
def soft_limit(x, limit):
    largest = x.abs().max()

    def scaled(x, largest):
        return x / largest

    def same(x, largest):
        return x.clone()

    return torch.cond(largest > limit, scaled, same, (x, largest))


@accepted("fills the divisor")
def soft_limit(x, limit):
    largest = x.abs().amax()
    return x.div(largest.masked_fill(largest <= limit, 1))


@accepted("multiplies by the inverse")
def soft_limit(x, limit):
    largest = x.abs().max()
    return x * torch.where(largest > limit, largest, torch.ones_like(largest)).reciprocal()


@accepted("takes the norm of the largest value, and switches by a factor")
def soft_limit(x, limit):
    largest = torch.linalg.vector_norm(x, float("inf"))
    on = (largest > limit).to(x.dtype)
    return x / (on * largest + (1 - on))
