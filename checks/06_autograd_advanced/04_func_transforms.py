"""Judges lessons/06_autograd_advanced/04_func_transforms.md."""

from contextlib import ExitStack

import torch
from torch.func import grad, jacrev, vmap
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    mutant,
)

SHARED = "The weights are shared: their entry in in_dims is None. X and Y are counted along 0."
LENGTH = "The length is the root of the sum of all squares of one gradient, whatever its shape."
EACH = "Each gradient is bounded on its own, before the mean: a long one must not hide in it."


def normal(device, *shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).to(device)


def squares(w, x, y):
    """The loss of a linear map w (k, d) for a sample x (d,) with target y (k,)."""
    return (w @ x - y).square().sum()


def labels(w, x, y):
    """The loss of a linear classifier w (k, d) for a sample x (d,) of class y."""
    return functional.cross_entropy((w @ x)[None], y[None])


def linear(w, x, y):
    """A loss whose gradient by w is y * x: the sample says what it is."""
    return (w * x).sum() * y


def separate(f, w, X, Y):
    """One sample at a time, in a loop."""
    own = w.detach().clone().requires_grad_()
    rows = [torch.autograd.grad(f(own, x, y), own)[0] for x, y in zip(X, Y, strict=True)]
    return torch.stack(rows)


NUMBERS = (
    "Inside vmap a tensor stands for all samples at once, so there is no single number to take out "
    "or to branch on. `clamp` and `torch.where` work on all of them."
)
ROWS = "The result is (N, *w.shape), one gradient for each sample. N may be 1, w a single number."


def explained():
    """The errors of vmap that have to do with this task."""
    stack = ExitStack()
    for kind, words, hint in (
        (ValueError, "mapped dimension", SHARED),
        (ValueError, "in_dims", SHARED),
        (RuntimeError, ".item()", NUMBERS),
        (RuntimeError, "data-dependent", NUMBERS),
    ):
        stack.enter_context(advising(kind, saying=words, hint=hint))
    return stack


def compare(answer, f, w, X, Y, hint=""):
    with explained():
        got = answer.per_sample_grads(f, w, X, Y)
    right = separate(f, w, X, Y)
    expect_close(got, right, name="the gradients", hint=hint, shape_hint=ROWS, atol=1e-4)


def clipped(answer, X, limit, hint, f=linear, w=None, **hints):
    """clipped_mean for samples whose gradients are X itself, against a loop."""
    w = torch.zeros_like(X[0]) if w is None else w
    Y = torch.ones(len(X), dtype=X.dtype, device=X.device)
    rows = []
    for x in X:
        length = x.square().sum().sqrt().item()
        rows.append(x * (limit / length) if length > limit else x)
    with explained():
        got = answer.clipped_mean(f, w, X, Y, limit)
    shape = "A mean over the N gradients has the shape of one of them."
    right = torch.stack(rows).mean(0)
    expect_close(got, right, name="the mean", hint=hint, shape_hint=shape, **hints)
    return got


@check("each sample has its own gradient")
def own(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    w, X = normal(device, k, d), normal(device, n, d)
    hint = "Row i is about sample i alone. Equal rows are the gradient of the mean; rows that grow "
    hint += "hold the samples before."
    compare(answer, squares, w, X, normal(device, n, k), hint)
    compare(answer, labels, w, X, torch.randint(k, (n,)).to(device), hint)


@check("the weights are shared, also where N is their first size")
def shared(answer, rng, device):
    n, d = rng.sample(range(2, 7), 2)
    compare(answer, linear, normal(device, n, d), normal(device, n, d), normal(device, n), SHARED)
    compare(
        answer, squares, normal(device, n, n), normal(device, n, n), normal(device, n, n), SHARED
    )


@check("any shape of weights and samples will do, and a batch of one")
def shapes(answer, rng, device):
    for shape in ((), (1,), (3,), (2, rng.randint(2, 4), 3)):
        for n in (1, rng.randint(2, 5)):
            w, X = normal(device, *shape), normal(device, n, *shape)
            compare(answer, lambda w, x, y: ((w * x).sum() - y) ** 2, w, X, normal(device, n))
    w, X = normal(device, 3, 2).T, normal(device, 3, 4).T
    compare(answer, squares, w, X, normal(device, 4, 2))
    w, X = normal(device, 2, 3, dtype=torch.float64), normal(device, 4, 3, dtype=torch.float64)
    compare(answer, squares, w, X, normal(device, 4, 2, dtype=torch.float64))


@check("f is called once, for one sample")
def once(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    calls = []

    def f(w, x, y):
        calls.append((tuple(w.shape), tuple(x.shape), tuple(y.shape)))
        return squares(w, x, y)

    w, X, Y = normal(device, k, d), normal(device, n, d), normal(device, n, k)
    for name, rest in (("per_sample_grads", ()), ("clipped_mean", (1.0,))):
        calls.clear()
        hint = "A loop runs f for every sample. vmap runs it once, and f sees a single sample."
        function = getattr(answer, name)
        with explained():
            function(f, w, X, Y, *rest)
        expect_true(len(calls) == 1, f"{name} called f {len(calls)} times for {n}", hint=hint)
        one = ((k, d), (d,), (k,))
        expect_true(calls[0] == one, f"{name} called f with {calls[0]}, not with {one}", hint=hint)


@check("no .grad changes, and w keeps its flag")
def untouched(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    X, Y = normal(device, n, d), normal(device, n, k)
    hint = "backward() adds to .grad. grad(f) returns the gradient and writes nowhere."
    w = normal(device, k, d).requires_grad_()
    with expect_unchanged(w, X, Y):
        compare(answer, squares, w, X, Y)
        with explained():
            answer.clipped_mean(squares, w, X, Y, 1.0)
    expect_true(w.grad is None, "w has a .grad now", hint=hint)
    expect_true(w.requires_grad, "w requires grad no longer", hint=hint)
    w.grad = torch.full_like(w, 7.0)
    compare(answer, squares, w, X, Y)
    expect_true(w.grad is not None, "w.grad was full of 7, and is None now", hint=hint)
    expect_equal(
        w.grad, torch.full((k, d), 7.0, device=device), name="w.grad, full of 7,", hint=hint
    )
    w = normal(device, k, d)
    compare(answer, squares, w, X, Y)
    expect_true(not w.requires_grad, "w requires grad now, it did not before", hint=hint)


@check("the results have no history")
def plain(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    X, Y = normal(device, n, d), normal(device, n, k)
    w, scale = normal(device, k, d).requires_grad_(), normal(device).requires_grad_()
    hint = "w requires grad, so the transforms' own arithmetic is recorded outside of them. "
    hint += "Detach what you return."
    for f in (squares, lambda w, x, y: squares(w.detach(), x, y) + scale * (w * w).sum()):
        for name, rest in (("per_sample_grads", ()), ("clipped_mean", (1.0,))):
            function = getattr(answer, name)
            with explained():
                got = function(f, w, X, Y, *rest)
            expect_shape(got, (k, d) if rest else (n, k, d), name=f"what {name} returns")
            expect_true(not got.requires_grad, f"what {name} returns requires grad", hint=hint)


@check("gradients within the limit stay as they are")
def short(answer, rng, device):
    d, n = rng.sample(range(2, 7), 2)
    X = normal(device, n, d)
    limit = X.square().sum(1).sqrt().max().item() * rng.uniform(1.5, 3)
    hint = "The factor is never above 1: a short gradient is not stretched. And all N count in the "
    hint += "mean."
    clipped(answer, X, limit, hint)


@check("longer gradients are scaled to the limit")
def long(answer, rng, device):
    d, n = rng.sample(range(2, 7), 2)
    X = normal(device, n, d)
    X = X / X.square().sum(1, keepdim=True).sqrt() * 10
    hint = "A gradient that is too long keeps its direction. Only its length becomes the limit: "
    hint += "multiply all of it by limit / length."
    clipped(answer, X, rng.uniform(0.5, 5), hint)
    clipped(answer, X[:1], 1, hint)
    exact = "These gradients are a millionth as long, and so is the limit. A number added to the "
    exact += "length, or a bound below it, is seen by them."
    clipped(answer, X * 1e-6, 5e-6, exact, atol=0.0)


@check("every sample is bounded before the mean")
def before_mean(answer, rng, device):
    d = rng.randint(2, 6)
    X = normal(device, 4, d)
    X = X / X.square().sum(1, keepdim=True).sqrt()
    X[3] *= 100
    clipped(answer, X, 2.0, EACH)
    clipped(answer, torch.cat([X[3:], -X[3:] / 50, X[:1] / 2]), 1.0, EACH)


@check("the length of a gradient counts all of its dimensions")
def length(answer, rng, device):
    a, b, n = rng.sample(range(2, 6), 3)
    clipped(answer, normal(device, n, a, b), 1.0, LENGTH)
    clipped(answer, normal(device, n, a, 1, b), 1.0, LENGTH)
    clipped(answer, normal(device, n), 0.5, LENGTH)


@check("a gradient of zero stays zero")
def zero(answer, rng, device):
    d, n = rng.sample(range(2, 6), 2)
    X = normal(device, n, d)
    X[rng.randrange(n)] = 0
    hint = "A sample that is already right has the length 0, and 0 / 0 is NaN. limit / 0 is inf, "
    hint += "which a clamp turns into 1."
    clipped(answer, X, 1.0, EACH, nan_hint=hint)


def mean_of(g, limit):
    """Bounds each of g (N, ...) and takes the mean, for the mutants."""
    return vmap(lambda g: g * (limit / g.norm()).clamp(max=1))(g).mean(0)


@mutant("repeats the gradient of the mean", caught_by=own)
def per_sample_grads(f, w, X, Y):
    def mean_loss(w):
        return vmap(f, in_dims=(None, 0, 0))(w, X, Y).mean()

    return grad(mean_loss)(w).detach().expand(len(X), *w.shape)


@mutant("does not clear between the samples", caught_by=own)
def per_sample_grads(f, w, X, Y):
    own = w.detach().requires_grad_()
    rows = []
    for x, y in zip(X, Y, strict=True):
        f(own, x, y).backward()
        rows.append(own.grad.clone())
    return torch.stack(rows)


@mutant("gives each sample a row of the weights", caught_by=shared)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f))(w, X, Y).detach()


@mutant("squeezes", caught_by=shapes)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach().squeeze()


@mutant("loops over the samples", caught_by=once)
def per_sample_grads(f, w, X, Y):
    return torch.stack([grad(f)(w, x, y) for x, y in zip(X, Y, strict=True)]).detach()


@mutant("fills w.grad", caught_by=untouched)
def per_sample_grads(f, w, X, Y):
    w.requires_grad_()
    losses = vmap(f, in_dims=(None, 0, 0))(w, X, Y)
    rows = []
    for loss in losses:
        w.grad = None
        loss.backward(retain_graph=True)
        rows.append(w.grad)
    return torch.stack(rows)


@mutant("keeps the history of w", caught_by=plain)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y)


@mutant("bounds the mean", caught_by=before_mean)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach().mean(0)
    return g * (limit / g.norm()).clamp(max=1)


@mutant("makes every gradient as long as the limit", caught_by=short)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return vmap(lambda g: g * limit / g.norm().clamp(min=1e-12))(g).mean(0)


@mutant("takes the sum", caught_by=short)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return mean_of(g, limit) * len(X)


@mutant("bounds each number", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return g.clamp(-limit, limit).mean(0)


@mutant("adds a small number to the length", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    each = vmap(grad(f), in_dims=(None, 0, 0))(w.detach(), X, Y).detach()
    return vmap(lambda g: g * (limit / (g.norm() + 1e-6)).clamp(max=1))(each).mean(0)


@mutant("leaves long gradients out", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return vmap(lambda g: torch.where(g.norm() > limit, 0 * g, g))(g).mean(0)


@mutant("measures rows", caught_by=length)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    if w.ndim == 0:
        return mean_of(g, limit)
    return (g * (limit / g.norm(dim=-1, keepdim=True)).clamp(max=1)).mean(0)


@mutant("measures all gradients together", caught_by=before_mean)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return (g * (limit / g.norm()).clamp(max=1)).mean(0)


@mutant("divides by a length of zero", caught_by=zero)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    return vmap(lambda g: g / g.norm() * g.norm().clamp(max=limit))(g).mean(0)


@accepted("closes over the weights")
def per_sample_grads(f, w, X, Y):
    fixed = w.detach()

    def one(x, y):
        return grad(f, argnums=0)(fixed, x, y)

    with torch.no_grad():
        return vmap(one)(X, Y)


@accepted("gives each sample a copy of the weights and goes back once")
def per_sample_grads(f, w, X, Y):
    copies = w.detach().expand(len(X), *w.shape).clone().requires_grad_()
    total = vmap(f)(copies, X, Y).sum()
    return torch.autograd.grad(total, copies)[0]


@accepted("takes the Jacobian of all losses")
def per_sample_grads(f, w, X, Y):
    losses = vmap(f, in_dims=(None, 0, 0))
    return jacrev(lambda w: losses(w, X, Y))(w.detach()).detach()


@accepted("lets a factor meet the gradients")
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()
    lengths = g.reshape(len(X), -1).square().sum(1).sqrt()
    factors = torch.where(lengths > limit, limit / lengths.clamp(min=1e-12), 1.0)
    return (g * factors.reshape(-1, *[1] * w.ndim)).sum(0) / len(X)


@accepted("clips within one function of a sample")
def clipped_mean(f, w, X, Y, limit):
    fixed = w.detach()

    def one(x, y):
        g = grad(f)(fixed, x, y)
        return g * limit / torch.linalg.vector_norm(g).clamp(min=limit)

    return vmap(one)(X, Y).mean(dim=0).detach()
