"""Judges lessons/06_autograd_advanced/03_higher_order.md."""

import sys

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "How sharp is the valley that training has found?",
    "Its sharpness comes from nothing but products H @ v.",
    "Ask yourself for both ways in which g can fail to depend on x.",
    "With `materialize_grads=True`, `torch.autograd.grad` returns zeros",
)

READY_MADE = {"hvp", "vhp", "hessian"}
OWN = "x belongs to the caller. Work on a leaf of your own that has x's numbers."


class Largest(TorchDispatchMode):
    """Notes the number of elements of the largest tensor that is made."""

    elements = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, (tuple, list)) else (made,):
            if isinstance(tensor, torch.Tensor):
                self.elements = max(self.elements, tensor.numel())
        return made


def normal(device, *shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).to(device)


RECORD = "The second pass goes through the graph of the first: it must have been recorded."
CONSTANT = (
    "The gradient of a linear function is a constant. It has no graph, so there is nothing to go "
    "back through, and the second derivatives are 0."
)
ELSEWHERE = "g may have a graph that leads to the weights of fn, and not to x. Then H @ v is 0."
TWICE = (
    "This fn multiplies its argument by x, as a constant of its own. Only the argument counts, so "
    "it must be another tensor than x: a leaf that has x's numbers."
)
SHAPES = "x may be a matrix or a single number. v and the result have its shape and dtype."


def ask(answer, fn, x, v, no_graph=RECORD):
    """The answer's product. no_graph: the hint where g turns out to have no graph."""
    with (
        advising(RuntimeError, saying="does not require grad", hint=no_graph),
        advising(RuntimeError, saying="not have been used", hint=ELSEWHERE),
    ):
        got = answer.hvp(fn, x, v)
    expect_true(got is not None, "hvp returned None", hint=ELSEWHERE)
    return got


def compare(answer, fn, x, v, right, hint, no_graph=RECORD):
    got = ask(answer, fn, x, v, no_graph)
    expect_close(
        got, right, name="H @ v", hint=hint, shape_hint=SHAPES, dtype_hint=SHAPES, atol=1e-4
    )


def quadratic(a):
    """fn(t) = t a t, and its Hessian a + a.T."""
    return lambda t: t @ a @ t, a + a.T


def chain(t):
    """The sum of t³ and of the products of neighbours."""
    return (t**3).sum() + (t[1:] * t[:-1]).sum()


def chain_product(x, v):
    """The Hessian of `chain` times v: 6x on the diagonal, 1 beside it."""
    out = 6 * x * v
    out[1:] += v[:-1]
    out[:-1] += v[1:]
    return out


@check(
    "a quadratic form gives (A + A.T) v",
    holds=["Write that product yourself", "The Hessian of fn at x, times v."],
)
def form(answer, rng, device):
    n = rng.randint(2, 6)
    fn, hessian = quadratic(normal(device, n, n))
    x, v = normal(device, n), normal(device, n)
    hint = "A is not symmetric, its Hessian A + A.T is. The second pass starts from g, recorded in "
    hint += "the first."
    compare(answer, fn, x, v, hessian @ v, hint)


@check("the Hessian is the one at x", holds="The Hessian of fn at x, times v.")
def at_x(answer, rng, device):
    n = rng.randint(2, 7)
    x, v = normal(device, n), normal(device, n)
    hint = "This H changes with x: 6x stands on its diagonal. The gradient itself is no part of "
    hint += "the result: .grad would add the two."
    compare(answer, chain, x, v, chain_product(x, v), hint)


@check("a single 1 in v picks a column", holds="The Hessian of fn at x, times v.")
def column(answer, rng, device):
    n = rng.randint(3, 6)
    fn, hessian = quadratic(normal(device, n, n))
    v = torch.zeros(n, device=device)
    place = rng.randrange(n)
    v[place] = 1
    hint = "v weighs the entries of g before the second pass. A sum over g adds all rows of H, and "
    hint += "no multiplication afterwards takes them apart."
    compare(answer, fn, normal(device, n), v, hessian[:, place], hint)


@check(
    "a linear function gives zeros",
    holds=[
        "The function may be *linear*, in all of x or in some of it",
        "its second derivatives are 0, and 0 is the answer",
        "returns a 0-d tensor that depends on it, if only linearly",
    ],
    both_sides=True,
)
def linear(answer, rng, device):
    n = rng.randint(2, 6)
    factor, x, v = normal(device, n), normal(device, n), normal(device, n)
    zeros = torch.zeros_like(x)
    compare(answer, lambda t: (factor * t).sum(), x, v, zeros, CONSTANT, CONSTANT)
    double, kind = normal(device, 2, n, dtype=torch.float64), "The zeros have x's shape and dtype."
    expect_equal(
        ask(answer, lambda t: (t * 3).sum(), double, double, CONSTANT),
        torch.zeros_like(double),
        name="H @ v of a linear function in float64",
        hint=CONSTANT,
        shape_hint=kind,
        dtype_hint=kind,
    )
    right = torch.zeros_like(x)
    right[0] = 2 * v[0]
    hint = "The square of one element has a second derivative, 2. All others have none."
    compare(answer, lambda t: (factor * t).sum() + t[0] ** 2, x, v, right, hint)


@check(
    "a linear function of trained weights gives zeros",
    holds=["The function may be *linear*, in all of x", "`fn` may use a model's weights."],
    side="in all of x, with weights",
)
def linear_weights(answer, rng, device):
    n = rng.randint(2, 6)
    weight = normal(device, n).requires_grad_()
    x, v = normal(device, n), normal(device, n)
    compare(answer, lambda t: (weight * t).sum(), x, v, torch.zeros_like(x), ELSEWHERE)


@check(
    "x stays as it is",
    holds=[
        "Leave no trace, in x or in them.",
        "Whatever else fn uses, be it x itself, is a constant",
    ],
    side="in x",
)
def untouched(answer, rng, device):
    n = rng.randint(3, 6)
    v = normal(device, n)
    for x in (normal(device, n), normal(device, n, 3)[:, 1]):
        with expect_unchanged(x, v):
            compare(answer, chain, x, v, chain_product(x, v), "")
        compare(answer, lambda t, x=x: (t * t * x).sum(), x, v, 2 * x * v, TWICE)
        expect_true(not x.requires_grad, "x requires grad now, it did not before", hint=OWN)
        expect_true(x.grad is None, "x has a .grad now", hint=OWN)
    x = normal(device, n).requires_grad_()
    x.grad = torch.full_like(x, 7.0)
    compare(answer, chain, x, v, chain_product(x.detach(), v), "")
    compare(answer, lambda t: (t * t * x).sum(), x, v, (2 * x * v).detach(), TWICE)
    expect_true(x.grad is not None, "x.grad was full of 7, and is None now", hint=OWN)
    seven = torch.full((n,), 7.0, device=device)
    expect_equal(x.grad, seven, name="x.grad, which was full of 7,", hint=OWN)
    expect_true(x.requires_grad, "x requires grad no longer", hint=OWN)


@check(
    "x may be part of the caller's graph",
    holds=["may be part of a graph", "Leave no trace, in x or in them."],
    side="in the graph of x",
)
def inside(answer, rng, device):
    n = rng.randint(2, 6)
    leaf = normal(device, n).requires_grad_()
    x, v = leaf.exp(), normal(device, n)
    compare(answer, chain, x, v, chain_product(x.detach(), v), "")
    expect_true(x.grad_fn is not None, "x has lost its history", hint=OWN)
    expect_true(leaf.grad is None, "the leaf that x came from has a .grad now", hint=OWN)
    compare(answer, lambda t: (t * t * x).sum(), x, v, (2 * x * v).detach(), TWICE)
    expect_true(leaf.grad is None, "the leaf that x came from has a .grad now", hint=OWN)
    hint = "Both passes end at a leaf of your own, and leave the caller's graph alone."
    with advising(RuntimeError, saying="second time", hint=hint):
        x.sum().backward()


@check(
    "the weights that fn uses keep their .grad and their graph",
    holds=["`fn` may use a model's weights.", "Leave no trace, in x or in them."],
    side="in the weights",
)
def weights(answer, rng, device):
    n = rng.randint(2, 6)
    weight, other = normal(device, n).requires_grad_(), normal(device, n).requires_grad_()
    weight.grad = torch.full_like(weight, 5.0)
    x, v = normal(device, n), normal(device, n)
    hint = "backward() adds to the .grad of every leaf that it reaches. Which call returns "
    hint += "gradients instead?"
    right = 2 * weight.detach() * v
    compare(answer, lambda t: (weight * t**2 + other * t).sum(), x, v, right, "")
    five = torch.full((n,), 5.0, device=device)
    expect_equal(weight.grad, five, name="the .grad of a weight, full of 5,", hint=hint)
    expect_true(other.grad is None, "a weight that had no .grad has one now", hint=hint)
    made = weight.exp()
    compare(answer, lambda t: (made * t**2).sum(), x, v, 2 * made.detach() * v, "")
    hint = "The graph of the weights belongs to the caller, who still needs it. Go back to x alone."
    with advising(RuntimeError, saying="second time", hint=hint):
        made.sum().backward()
    model = nn.Sequential(nn.Linear(n, 3), nn.Tanh(), nn.Linear(3, 1)).to(device)
    model[0].weight.requires_grad_(False)
    hint = "Only x is asked for. The flags of a model's weights stay as they are."
    flags = [p.requires_grad for p in model.parameters()]
    ask(answer, lambda t: model(t).sum(), x, v)
    now = [p.requires_grad for p in model.parameters()]
    expect_equal(now, flags, name="requires_grad of the weights", hint=hint)
    expect_true(
        all(p.grad is None for p in model.parameters()), "a weight of a model has a .grad now",
        hint=hint,
    )  # fmt: skip


@check("the result has no history", holds=["without history", "may require grad"])
def plain(answer, rng, device):
    n = rng.randint(2, 6)
    weight, v = normal(device, n).requires_grad_(), normal(device, n).requires_grad_()
    for fn in (lambda t: (weight * t**3).sum(), lambda t: t.sum()):
        got = ask(answer, fn, normal(device, n), v, CONSTANT)
        hint = "Only the first pass must be recorded. What is recorded holds memory."
        expect_true(not got.requires_grad, "H @ v requires grad", hint=hint)


@check(
    "any shape will do, and the dtype stays",
    holds=[
        "takes a tensor of x's shape",
        "x: floating point, any shape",
        "v: of x's shape, dtype and device",
        "returns: of x's shape and dtype",
    ],
)
def shapes(answer, rng, device):
    hint = "H has a row and a column for each element of x, in whatever shape they stand."
    for dtype in (torch.float64, torch.float32):
        for shape in ((), (1,), (3, 1), (2, rng.randint(2, 4), 3)):
            x, v = normal(device, *shape, dtype=dtype), normal(device, *shape, dtype=dtype)
            fn = lambda t: (t**3).sum() + t.sum() ** 2  # noqa: E731
            compare(answer, fn, x, v, 6 * x * v + 2 * v.sum(), hint)
    x, v = normal(device, 3, 4).T, normal(device, 3, 4).T
    compare(answer, lambda t: (t**3).sum(), x, v, 6 * x * v, hint)
    x, v = normal(device, 2, 3, 4, 2).transpose(0, 2), normal(device, 3, 1, 1).expand(4, 3, 2, 2)
    compare(answer, lambda t: (t**3).sum(), x, v, 6 * x * v, hint)
    for dtype in (torch.float16, torch.bfloat16):
        x, v = normal(device, 3, 2, dtype=dtype), normal(device, 3, 2, dtype=dtype)
        compare(answer, lambda t: (t * t).sum(), x, v, 2 * v, hint)
        compare(answer, lambda t: t.sum(), x, v, torch.zeros_like(x), CONSTANT, CONSTANT)


@check("fn is called once", holds="fn is called once.")
def once(answer, rng, device):
    n = rng.randint(3, 6)
    calls = 0

    def fn(t):
        nonlocal calls
        calls += 1
        return chain(t)

    ask(answer, fn, normal(device, n), normal(device, n))
    hint = "fn may be a whole model over a data set. One run of it makes one graph, and both "
    hint += "passes go through that."
    expect_true(calls == 1, f"fn was called {calls} times", hint=hint)


@check(
    "no tensor has n * n elements, and no pass is made per row",
    holds="no tensor gets n * n, and the number of passes does not grow with n",
)
def cheap(answer, rng, device):
    n = rng.randint(60, 90)
    x, v = normal(device, n), normal(device, n)
    passes = 0

    def count(grad):
        nonlocal passes
        passes += 1

    def fn(t):
        if t.requires_grad:
            t.register_hook(count)
        return chain(t)

    with Largest() as largest:
        got = ask(answer, fn, x, v)
    expect_close(got, chain_product(x, v), name="H @ v", atol=1e-4)
    hint = "The Hessian is never needed as a whole: v goes in before the second pass."
    most = largest.elements
    expect_true(most < n * n, f"for n = {n}, a tensor of {most} elements was made", hint=hint)
    expect_true(passes < 10, f"for n = {n}, {passes} passes reached x", hint=hint)


@check("the two passes are your own", holds="torch's ready-made ones are off limits")
def own_passes(answer, rng, device):
    called = set()

    def fn(t):
        frame = sys._getframe(1)
        while frame is not None:
            home, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
            if home.startswith("torch.") and name in READY_MADE:
                called.add(name)
            frame = frame.f_back
        return chain(t)

    ask(answer, fn, normal(device, 4), normal(device, 4))
    hint = "torch has functions that do this whole task. Here you build one of them from "
    hint += "torch.autograd.grad."
    expect_true(not called, f"the product comes ready-made from torch: {called}", hint=hint)


@check("x may have no elements", holds="x: floating point, any shape")
def nothing(answer, rng, device):
    empty = normal(device, 0, rng.randint(1, 4))
    hint = "Without elements H has no rows, and H @ v has x's shape all the same."
    compare(answer, lambda t: (t**3).sum(), empty, empty, empty, hint)
    compare(answer, lambda t: t.sum(), empty, empty, empty, hint, CONSTANT)


@check(
    "an error of torch goes through",
    holds="If torch refuses to differentiate `fn` twice, its error goes through.",
)
def refused(answer, rng, device):
    n = rng.randint(3, 6)
    x, v = normal(device, n, 2), normal(device, n, 2)
    with expect_raises(
        Exception,
        "torch cannot differentiate this fn twice, and hvp returned something",
        hint="An `except` that returns zeros hides this error too. Ask whether g has a graph, and "
        "let materialize_grads deal with a graph that does not lead to x.",
    ):
        answer.hvp(lambda t: nn.functional.pdist(t).sum(), x, v)


def zeros_or(g, own, v):
    """The second pass, for the mutants."""
    if not g.requires_grad:
        return torch.zeros_like(g)
    return torch.autograd.grad(g, own, v, materialize_grads=True)[0]


@hinted(1, reaches=column)
def hvp(fn, x, v):
    own = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return torch.autograd.grad((g * v).sum(), own)[0]


@mutant("does not record the first pass", caught_by=form)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own)
    return torch.autograd.grad((g * v).sum(), own)[0]


@mutant("takes every gradient for a constant", caught_by=form)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own)
    return zeros_or(g, own, v)


@mutant("multiplies by v afterwards", caught_by=column)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return zeros_or(g, own, torch.ones_like(g)) * v


@mutant("lets both passes add to .grad", caught_by=at_x)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    fn(own).backward(create_graph=True, inputs=[own])
    (own.grad * v).sum().backward(inputs=[own])
    return own.grad.detach()


@mutant("forgets linear functions", caught_by=linear)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return torch.autograd.grad(g, own, v, materialize_grads=True)[0]


@mutant("returns None where the gradient leads elsewhere", caught_by=linear_weights)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(g)
    return torch.autograd.grad(g, own, v, allow_unused=True)[0]


@mutant("takes any error for a constant", caught_by=refused)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    try:
        return torch.autograd.grad(g, own, v)[0]
    except RuntimeError:
        return torch.zeros_like(own, requires_grad=False)


@mutant("clones x with its history", caught_by=untouched)
def hvp(fn, x, v):
    own = x.clone().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return zeros_or(g, x if x.requires_grad else own, v)


@mutant("forgets gradients that lead elsewhere", caught_by=linear_weights)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(g)
    return torch.autograd.grad(g, own, v)[0]


@mutant("switches x on", caught_by=untouched)
def hvp(fn, x, v):
    x.requires_grad_()
    (g,) = torch.autograd.grad(fn(x), x, create_graph=True)
    return zeros_or(g, x, v)


@mutant("switches x on for a moment", caught_by=untouched)
def hvp(fn, x, v):
    flag = x.requires_grad
    if x.is_leaf:
        x.requires_grad_()
    (g,) = torch.autograd.grad(fn(x), x, create_graph=True)
    hv = zeros_or(g, x, v).detach()
    if x.is_leaf:
        x.requires_grad_(flag)
    return hv


@mutant("makes zeros of the default dtype", caught_by=linear)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros(x.shape, device=x.device)
    return zeros_or(g, own, v)


@mutant("cuts x off from its history", caught_by=inside)
def hvp(fn, x, v):
    own = x.detach_().requires_grad_() if x.grad_fn else x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return zeros_or(g, own, v)


@mutant("fills the weights' .grad", caught_by=weights)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    fn(own).backward(create_graph=True)
    g, own.grad = own.grad, None
    return zeros_or(g, own, v)


@mutant("records the second pass too", caught_by=plain)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(g)
    return torch.autograd.grad(g, own, v, create_graph=True, materialize_grads=True)[0]


@mutant("takes x for a vector", caught_by=shapes)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return zeros_or(g, own, v).flatten()


@mutant("measures how the gradient changes", caught_by=once)
def hvp(fn, x, v):
    def gradient(t):
        own = t.detach().requires_grad_()
        return torch.autograd.grad(fn(own), own)[0]

    h = 1e-3
    return (gradient(x + h * v) - gradient(x - h * v)) / (2 * h)


@mutant("builds the Hessian row by row", caught_by=cheap)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(g)
    total = torch.zeros_like(g)
    for part, weight in zip(g.reshape(-1), v.detach().reshape(-1), strict=True):
        row = torch.autograd.grad(part, own, retain_graph=True, materialize_grads=True)[0]
        total += weight * row
    return total


@mutant("builds the Hessian at once", caught_by=cheap)
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    if not g.requires_grad:
        return torch.zeros_like(g)
    eye = torch.eye(g.numel(), dtype=g.dtype, device=g.device).reshape(-1, *g.shape)
    rows = torch.autograd.grad(g, own, eye, is_grads_batched=True, materialize_grads=True)[0]
    return (rows.reshape(g.numel(), -1).T @ v.detach().reshape(-1)).reshape(g.shape)


@mutant("asks torch for the product", caught_by=own_passes)
def hvp(fn, x, v):
    return torch.autograd.functional.hvp(fn, x.detach(), v.detach())[1]


@mutant("asks torch for the Hessian", caught_by=own_passes)
def hvp(fn, x, v):
    n = x.numel()
    matrix = torch.autograd.functional.hessian(fn, x.detach()).reshape(n, n)
    return (matrix @ v.detach().reshape(-1)).reshape(x.shape)


@accepted("goes back from the product of gradient and v")
def hvp(fn, x, v):
    own = x.detach().clone().requires_grad_(True)
    y = fn(own)
    gradient = torch.autograd.grad(y, [own], create_graph=True)[0]
    slope = (gradient * v.detach()).sum()
    if slope.grad_fn is None:
        return torch.zeros_like(own, requires_grad=False)
    (result,) = torch.autograd.grad(slope, [own], allow_unused=True)
    return torch.zeros_like(x.detach()) if result is None else result


@accepted("makes the gradient hang on x in any case")
def hvp(fn, x, v):
    own = x.detach().requires_grad_()
    (g,) = torch.autograd.grad(fn(own), own, create_graph=True)
    return torch.autograd.grad(g + 0 * own, own, v)[0]


@accepted("pushes v forward through the gradient")
def hvp(fn, x, v):
    _, result = torch.func.jvp(torch.func.grad(fn), (x.detach(),), (v.detach(),))
    return result.detach()


@accepted("pulls v back through the gradient")
def hvp(fn, x, v):
    _, pull = torch.func.vjp(torch.func.grad(fn), x.detach())
    return pull(v.detach())[0].detach()


@accepted("adds a zero that is quadratic, and goes back by backward()")
def hvp(fn, x, v):
    own = x.detach().clone().requires_grad_()
    y = fn(own) + 0 * own.square().sum()
    y.backward(create_graph=True, inputs=[own])
    g, own.grad = own.grad, None
    return torch.autograd.grad(g, own, grad_outputs=v)[0]
