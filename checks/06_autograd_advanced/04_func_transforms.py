"""Judges lessons/06_autograd_advanced/04_func_transforms.md."""

from contextlib import ExitStack

import torch
from torch.func import grad, jacrev, vjp, vmap
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "A hospital trains a model.",
    "A single patient may leave",
    "The recipe for it, DP-SGD",
    "Write all but the noise.",
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
DRAWS = "vmap asks whether all samples get the same random numbers. Here each has draws of its own."
FLAT = "w may have any shape, none at all too. Then the gradients are (N,), with no dimension 1. "
FLAT += "`reshape(N, -1)` makes (N, elements) of all of them."
ROWS = "The result is (N, *w.shape), one gradient for each sample. N may be 1, w a single number."


def explained():
    """The errors of vmap that have to do with this task."""
    stack = ExitStack()
    for kind, words, hint in (
        (ValueError, "mapped dimension", SHARED),
        (ValueError, "in_dims", SHARED),
        (RuntimeError, ".item()", NUMBERS),
        (RuntimeError, "data-dependent", NUMBERS),
        (RuntimeError, "called random operation", DRAWS),
        (IndexError, "Dimension out of range", FLAT),
        (RuntimeError, "matrix_norm", FLAT),
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


@check(
    "each sample has its own gradient",
    holds=[
        "`f` is the loss of one sample.",
        "The gradient by w for each sample on its own.",
        "returns: (N, *w.shape), of w's dtype",
    ],
    both_sides=True,
)
def own(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    w, X = normal(device, k, d), normal(device, n, d)
    hint = "Row i is about sample i alone. Equal rows are the gradient of the mean; rows that grow "
    hint += "hold the samples before."
    compare(answer, squares, w, X, normal(device, n, k), hint)
    compare(answer, labels, w, X, torch.randint(k, (n,)).to(device), hint)


@check(
    "the weights are shared, also where N is their first size",
    holds="f(w, x, y) -> 0-d loss of one sample",
)
def shared(answer, rng, device):
    n, d = rng.sample(range(2, 7), 2)
    compare(answer, linear, normal(device, n, d), normal(device, n, d), normal(device, n), SHARED)
    compare(
        answer, squares, normal(device, n, n), normal(device, n, n), normal(device, n, n), SHARED
    )


@check(
    "any shape of weights and samples will do, and a batch of one",
    holds=[
        "w: float32 or float64, any shape, may require grad",
        "X, Y: (N, ...), N samples and their targets, N is 1 or more",
    ],
    both_sides=True,
)
def shapes(answer, rng, device):
    for shape in ((), (1,), (3,), (2, rng.randint(2, 4), 3)):
        for n in (1, rng.randint(2, 5)):
            w, X = normal(device, *shape), normal(device, n, *shape)
            compare(answer, lambda w, x, y: ((w * x).sum() - y) ** 2, w, X, normal(device, n))
    w, X = normal(device, 3, 2).T, normal(device, 3, 4).T
    compare(answer, squares, w, X, normal(device, 2, 4).T)
    w, X = normal(device, 2, 3, dtype=torch.float64), normal(device, 4, 3, dtype=torch.float64)
    compare(answer, squares, w, X, normal(device, 4, 2, dtype=torch.float64))


@check(
    "f is called once, for one sample",
    holds="Each of your functions calls it once, for one sample: no loop over the batch.",
    both_sides=True,
)
def once(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    calls = []

    def f(w, x, y):
        calls.append((tuple(w.shape), tuple(x.shape), tuple(y.shape)))
        return squares(w, x, y)

    w, X, Y = normal(device, k, d), normal(device, n, d), normal(device, n, k)
    for name, rest in (("per_sample_grads", ()), ("clipped_mean", (1.0,))):
        calls.clear()
        hint = "A loop runs f for every sample, and a second call of it asks for the same again. "
        hint += "vmap runs it once, and f sees a single sample."
        function = getattr(answer, name)
        with explained():
            function(f, w, X, Y, *rest)
        expect_true(len(calls) == 1, f"{name} called f {len(calls)} times for {n}", hint=hint)
        one = ((k, d), (d,), (k,))
        expect_true(calls[0] == one, f"{name} called f with {calls[0]}, not with {one}", hint=hint)


@check(
    "the caller's tensors keep their values, their .grad and their flags",
    holds="The caller's tensors keep their values, their `.grad` and their flags.",
)
def untouched(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    X, Y = normal(device, n, d), normal(device, n, k)
    hint = "backward() adds to .grad. grad(f) returns the gradient and writes nowhere."
    own = normal(device).requires_grad_()
    own.grad = torch.full_like(own, 3.0)

    def f(w, x, y):
        return squares(w, x, y) + own * w.square().sum()

    w = normal(device, k, d).requires_grad_()
    with expect_unchanged(w, X, Y, own):
        compare(answer, f, w, X, Y)
        with explained():
            answer.clipped_mean(f, w, X, Y, 1.0)
    expect_true(w.grad is None, "w has a .grad now", hint=hint)
    expect_true(w.requires_grad, "w requires grad no longer", hint="requires_grad_() stays on w.")
    expect_equal(
        own.grad,
        torch.full_like(own, 3.0).detach(),
        name="the .grad of a tensor that f uses",
        hint=hint,
    )
    w.grad = torch.full_like(w, 7.0)
    compare(answer, squares, w, X, Y)
    expect_true(w.grad is not None, "w.grad was full of 7, and is None now", hint=hint)
    expect_equal(
        w.grad, torch.full((k, d), 7.0, device=device), name="w.grad, full of 7,", hint=hint
    )
    w = normal(device, k, d)
    for function, rest in ((answer.per_sample_grads, ()), (answer.clipped_mean, (1.0,))):
        function(squares, w, X, Y, *rest)
        flags = [t.requires_grad for t in (w, X, Y)]
        changed = "w, X or Y requires grad now, it did not before"
        expect_true(not any(flags), changed, hint="Work on w.detach(), or on a copy.")


@check(
    "the results have no history",
    holds=[
        "of w's dtype, without history",
        "of w's shape and dtype, without history",
        "it may use tensors of its own that require grad",
    ],
)
def plain(answer, rng, device):
    k, d, n = rng.sample(range(2, 8), 3)
    X, Y = normal(device, n, d), normal(device, n, k)
    w, scale = normal(device, k, d).requires_grad_(), normal(device).requires_grad_()
    hint = "w requires grad, or a tensor that f uses, so the transforms' own arithmetic is "
    hint += "recorded outside of them. Detach what you return."
    for f in (squares, lambda w, x, y: squares(w.detach(), x, y) + scale * (w * w).sum()):
        for name, rest in (("per_sample_grads", ()), ("clipped_mean", (1.0,))):
            function = getattr(answer, name)
            with explained():
                got = function(f, w, X, Y, *rest)
            expect_shape(got, (k, d) if rest else (n, k, d), name=f"what {name} returns")
            expect_true(not got.requires_grad, f"what {name} returns requires grad", hint=hint)


@check(
    "gradients within the limit stay as they are",
    holds=["A gradient no longer than `limit` stays as it is.", "limit: a positive number"],
    side="shorter",
)
def short(answer, rng, device):
    d, n = rng.sample(range(2, 7), 2)
    X = normal(device, n, d)
    limit = X.square().sum(1).sqrt().max().item() * rng.uniform(1.5, 3)
    hint = "The factor is never above 1: a short gradient is not stretched. And all N count in the "
    hint += "mean."
    clipped(answer, X, limit, hint)
    wide = X.double()
    digits = "float64 goes in, so float64 comes out, with all its digits."
    clipped(answer, wide, limit, digits, dtype_hint=digits, rtol=1e-9, atol=0.0)


@check(
    "a gradient as long as the limit stays as it is",
    holds=["A gradient no longer than `limit` stays as it is.", "none of them longer than limit"],
    side="as long",
)
def exact(answer, rng, device):
    X = torch.tensor([[3.0, 4.0], [-4.0, 3.0], [0.0, 5.0]], device=device)
    scale = 2.0 ** rng.randint(-4, 4)
    hint = "Its length is the limit, which is not too long."
    clipped(answer, X * scale, 5 * scale, hint, atol=0.0)


@check(
    "longer gradients are scaled to the limit",
    holds="A longer one is scaled to the length `limit` and keeps its direction.",
)
def long(answer, rng, device):
    d, n = rng.sample(range(2, 7), 2)
    X = normal(device, n, d)
    X = X / X.square().sum(1, keepdim=True).sqrt() * 10
    hint = "A gradient that is too long keeps its direction. Only its length becomes the limit: "
    hint += f"multiply all of it by limit / length. {LENGTH}"
    clipped(answer, X, rng.uniform(0.5, 5), hint)
    clipped(answer, X[:1], 1, hint)


@check(
    "short lengths and small limits are met as exactly",
    holds=[
        "Four digits must be right, also where a length or the limit is as small as 1e-12.",
        "So nothing may be added to a length",
    ],
    both_sides=True,
)
def small(answer, rng, device):
    d, n = rng.sample(range(2, 7), 2)
    X = normal(device, n, d)
    X = X / X.square().sum(1, keepdim=True).sqrt()
    for size in (1e-2, 1e-6, 1e-12):
        hint = f"These gradients have lengths of about {size:g}. A number added to the length, or "
        hint += "a bound below it, is seen by them."
        clipped(answer, X * size, size / 2, hint, atol=0.0)
        clipped(answer, X * size, size * 2, hint, atol=0.0)
    clipped(answer, X, 1e-12, "The limit is 1e-12 here, and the lengths are 1.", atol=0.0)


@check("every sample is bounded before the mean", holds="The mean of all gradients")
def before_mean(answer, rng, device):
    d = rng.randint(2, 6)
    X = normal(device, 4, d)
    X = X / X.square().sum(1, keepdim=True).sqrt()
    X[3] *= 100
    clipped(answer, X, 2.0, EACH)
    clipped(answer, torch.cat([X[3:], -X[3:] / 50, X[:1] / 2]), 1.0, EACH)


@check(
    "the length of a gradient counts all of its dimensions",
    holds="The length of a gradient is the root of the sum of all its squares, whatever its shape.",
)
def length(answer, rng, device):
    a, b, n = rng.sample(range(2, 6), 3)
    clipped(answer, normal(device, n, a, b), 1.0, LENGTH)
    clipped(answer, normal(device, n, a, 1, b), 1.0, LENGTH)
    clipped(answer, normal(device, n), 0.5, LENGTH)


@check("a gradient of zero stays zero", holds="A gradient of 0 stays 0.")
def zero(answer, rng, device):
    d, n = rng.sample(range(2, 6), 2)
    X = normal(device, n, d)
    X[rng.randrange(n)] = 0
    hint = "A sample that is already right has the length 0, and 0 / 0 is NaN. limit / 0 is inf, "
    hint += "which a clamp turns into 1."
    count = "All N gradients count in the mean, also those of 0."
    clipped(answer, X, 1.0, count, nan_hint=hint)
    clipped(answer, X * 0, 1e-12, "0 is no longer than any limit.", nan_hint=hint)


@check(
    "each sample has random draws of its own",
    holds="It may draw random numbers, as dropout does, and then each sample has draws of its own.",
    both_sides=True,
)
def draws(answer, rng, device):
    n, d = rng.randint(3, 6), 400
    w, X, Y = normal(device, d), torch.ones(n, d).to(device), normal(device, n)
    hint = f'{DRAWS} randomness="same" gives all the same.'
    with explained():
        got = answer.per_sample_grads(
            lambda w, x, y: functional.dropout(w * x, 0.5, training=True).sum(), w, X, Y
        )
    expect_shape(got, (n, d), name="the gradients")
    scale = ((got == 0) | (got == 2)).all()
    expect_true(scale, "the gradients under dropout(0.5) are not 0 and 2")
    for i in range(1, n):
        if torch.equal(got[i], got[0]):
            fail(f"samples 0 and {i} dropped the same entries", hint=hint)
    with explained():
        mean = answer.clipped_mean(lambda w, x, y: (w * torch.randn_like(w)).sum(), w, X, Y, 1e9)
    expect_shape(mean, (d,), name="the mean")
    spread = mean.square().mean().sqrt().item() * n**0.5  # 1 for separate draws, sqrt(n) for shared
    expect_true(
        0.8 < spread < 1.3,
        f"the mean of {n} standard normal draws has a spread of {spread / n**0.5:.2f}, "
        f"not of about {n**-0.5:.2f}",
        hint=hint,
    )


def gradients(f, w, X, Y):
    """A right answer to the first half, for the mutants."""
    each = vmap(grad(f), in_dims=(None, 0, 0), randomness="different")
    return each(w.detach(), X, Y).detach()


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
    return gradients(f, w, X, Y).squeeze()


@mutant("loops over the samples", caught_by=once)
def per_sample_grads(f, w, X, Y):
    return torch.stack([grad(f)(w, x, y) for x, y in zip(X, Y, strict=True)]).detach()


@mutant("fills w.grad", caught_by=untouched)
def per_sample_grads(f, w, X, Y):
    w.requires_grad_()
    losses = vmap(f, in_dims=(None, 0, 0), randomness="different")(w, X, Y)
    rows = []
    for loss in losses:
        w.grad = None
        loss.backward(retain_graph=True)
        rows.append(w.grad)
    return torch.stack(rows)


@mutant("keeps the history of w", caught_by=plain)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0), randomness="different")(w, X, Y)


@mutant("draws once for all samples", caught_by=draws)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0), randomness="same")(w, X, Y).detach()


@mutant("does not say what random draws mean", caught_by=draws)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y).detach()


@mutant("makes w require grad", caught_by=untouched)
def per_sample_grads(f, w, X, Y):
    w = w.requires_grad_()
    return gradients(f, w, X, Y)


@mutant("goes back through all that f uses", caught_by=untouched)
def per_sample_grads(f, w, X, Y):
    copies = w.detach().expand(len(X), *w.shape).clone().requires_grad_()
    vmap(f, randomness="different")(copies, X, Y).sum().backward()
    return copies.grad


@mutant("works in float32", caught_by=shapes)
def per_sample_grads(f, w, X, Y):
    return gradients(f, w, X, Y).float()


@mutant("draws once for all in the second half", caught_by=draws)
def clipped_mean(f, w, X, Y, limit):
    g = vmap(grad(f), in_dims=(None, 0, 0), randomness="same")(w, X, Y).detach()
    return mean_of(g, limit)


@mutant("leaves out what is as long as the limit", caught_by=exact)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    lengths = g.reshape(len(g), -1).norm(dim=1).reshape(-1, *[1] * w.ndim)
    return torch.where(lengths < limit, g, g * (lengths > limit) * limit / lengths).mean(0)


@mutant("bounds the length from below", caught_by=small)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return vmap(lambda g: g * (limit / g.norm().clamp(min=1e-8)).clamp(max=1))(g).mean(0)


@mutant("lets torch clip, which adds 1e-6", caught_by=small)
def clipped_mean(f, w, X, Y, limit):
    rows = list(gradients(f, w, X, Y))
    for i, row in enumerate(rows):
        p = torch.nn.Parameter(row.clone())
        p.grad = row.clone()
        torch.nn.utils.clip_grad_norm_([p], limit)
        rows[i] = p.grad
    return torch.stack(rows).mean(0)


@mutant("leaves gradients of 0 out of the mean", caught_by=zero)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    some = (g.reshape(len(g), -1) != 0).any(1).sum()
    return mean_of(g, limit) * len(g) / some


@mutant("takes the largest entry for the length", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return vmap(lambda g: g * (limit / g.abs().max()).clamp(max=1))(g).mean(0)


@mutant("clips in float32", caught_by=short)
def clipped_mean(f, w, X, Y, limit):
    return mean_of(gradients(f, w, X, Y).float(), limit)


@mutant("asks f for the losses as well", caught_by=once)
def clipped_mean(f, w, X, Y, limit):
    vmap(f, in_dims=(None, 0, 0), randomness="different")(w, X, Y)
    return mean_of(gradients(f, w, X, Y), limit)


@mutant("lets renorm clip, which adds 1e-7", caught_by=small)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return torch.renorm(g.reshape(len(g), -1), 2, 0, limit).mean(0).reshape(w.shape)


@mutant("bounds the mean", caught_by=before_mean)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y).mean(0)
    return g * (limit / g.norm()).clamp(max=1)


@mutant("makes every gradient as long as the limit", caught_by=short)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return vmap(lambda g: g * limit / g.norm().clamp(min=1e-12))(g).mean(0)


@mutant("takes the sum", caught_by=short)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return mean_of(g, limit) * len(X)


@mutant("bounds each number", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return g.clamp(-limit, limit).mean(0)


@mutant("adds a small number to the length", caught_by=small)
def clipped_mean(f, w, X, Y, limit):
    each = gradients(f, w, X, Y)
    return vmap(lambda g: g * (limit / (g.norm() + 1e-6)).clamp(max=1))(each).mean(0)


@mutant("leaves long gradients out", caught_by=long)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return vmap(lambda g: torch.where(g.norm() > limit, 0 * g, g))(g).mean(0)


@mutant("measures rows", caught_by=length)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    if w.ndim == 0:
        return mean_of(g, limit)
    return (g * (limit / g.norm(dim=-1, keepdim=True)).clamp(max=1)).mean(0)


@mutant("measures all gradients together", caught_by=before_mean)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return (g * (limit / g.norm()).clamp(max=1)).mean(0)


@mutant("divides by a length of zero", caught_by=zero)
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    return vmap(lambda g: g / g.norm() * g.norm().clamp(max=limit))(g).mean(0)


@hinted(1, reaches=once)
def per_sample_grads(f, w, X, Y):
    return vmap(grad(f), in_dims=(None, 0, 0))(w, X, Y)


@accepted("closes over the weights")
def per_sample_grads(f, w, X, Y):
    fixed = w.detach()

    def one(x, y):
        return grad(f, argnums=0)(fixed, x, y)

    with torch.no_grad():
        return vmap(one, randomness="different")(X, Y)


@accepted("gives each sample a copy of the weights and goes back once")
def per_sample_grads(f, w, X, Y):
    copies = w.detach().expand(len(X), *w.shape).clone().requires_grad_()
    total = vmap(f, randomness="different")(copies, X, Y).sum()
    return torch.autograd.grad(total, copies)[0]


@accepted("takes the Jacobian of all losses")
def per_sample_grads(f, w, X, Y):
    losses = vmap(f, in_dims=(None, 0, 0), randomness="different")
    return jacrev(lambda w: losses(w, X, Y))(w.detach()).detach()


@accepted("sends one row of the identity back for each loss")
def per_sample_grads(f, w, X, Y):
    losses, back = vjp(
        lambda w: vmap(f, in_dims=(None, 0, 0), randomness="different")(w, X, Y), w.detach()
    )
    eye = torch.eye(len(X), dtype=losses.dtype, device=losses.device)
    return vmap(lambda v: back(v)[0])(eye).detach()


@accepted("lets a factor meet the gradients")
def clipped_mean(f, w, X, Y, limit):
    g = gradients(f, w, X, Y)
    lengths = g.reshape(len(X), -1).square().sum(1).sqrt()
    factors = torch.where(lengths > limit, limit / lengths.clamp(min=1e-12), 1.0)
    return (g * factors.reshape(-1, *[1] * w.ndim)).sum(0) / len(X)


@accepted("clips within one function of a sample")
def clipped_mean(f, w, X, Y, limit):
    fixed = w.detach()

    def one(x, y):
        g = grad(f)(fixed, x, y)
        return g * limit / torch.linalg.vector_norm(g).clamp(min=limit)

    return vmap(one, randomness="different")(X, Y).mean(dim=0).detach()


@accepted("takes 64 samples at a time and zips the factors in")
def clipped_mean(f, w, X, Y, limit):
    each = vmap(grad(f), in_dims=(None, 0, 0), randomness="different", chunk_size=64)
    g = each(w, X, Y).detach()
    lengths = torch.linalg.vector_norm(g.flatten(1) if g.ndim > 1 else g[:, None], dim=1)
    return sum(a * min(1.0, limit / n) if n else a for a, n in zip(g, lengths.tolist())) / len(g)
