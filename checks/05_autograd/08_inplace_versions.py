"""Judges lessons/05_autograd/08_inplace_versions.md."""

import torch
from torch.nn import functional
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Attention normalises scores.",
    "This variant lets a row say",
    "A colleague has saved every byte",
    "Mend it.",
    "So one write in place is still wanted",
    "`x.amax(1, keepdim=True)` is the largest",
)

SAVED = "Some node saved a tensor, and a later line wrote into it. Which operation saved what, and "
SAVED += "which call ends in an underscore, or which operator in `=`?"


def scores(rng, device, dtype=torch.float32, *, n=0, d=0):
    """Scores of an odd shape, half of the time not contiguous."""
    n, d = n or rng.randrange(2, 7), d or rng.randrange(2, 7)
    if rng.random() < 0.5:
        return torch.randn(d, n, device=device, dtype=dtype).T
    return torch.randn(n, d, device=device, dtype=dtype)


def wanted(x):
    """The formula in float64, as a softmax over the row and one more score of 0."""
    none = torch.zeros(len(x), 1, dtype=torch.float64, device=x.device)
    return torch.cat([x.double(), none], 1).softmax(1)[:, :-1]


def gradients(answer, x, upstream):
    """What the learner's function sends back for x, as a leaf's grad. x is given as a non-leaf."""
    leaf = x.detach().clone().requires_grad_()
    with advising(RuntimeError, saying="modified by an inplace operation", hint=SAVED):
        out = answer.norm_exp(leaf * 1)
        expect_shape(out, x.shape)
        expect_true(out.requires_grad, "the result has no graph", hint="Cut nothing on the way.")
        out.backward(upstream)
    return leaf.grad


class Made(TorchDispatchMode):
    """Counts the storages of at least `size` elements that are made inside."""

    def __init__(self, x):
        super().__init__()
        self.size = x.numel()
        self.known = {x.untyped_storage().data_ptr()}
        self.count = 0
        self.kept = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor) and t.numel() >= self.size:
                storage = t.untyped_storage().data_ptr()
                self.count += storage not in self.known
                self.known.add(storage)
                self.kept.append(t)  # or its address would be given out again
        return out


@check(
    "each row is exp over 1 plus the sum of exp",
    holds="exp(x) / (1 + the row's sum of exp(x))",
)
def values(answer, rng, device):
    for x in (scores(rng, device), 3 * scores(rng, device, d=1), scores(rng, device, n=1)):
        got = answer.norm_exp(x.clone())
        expect_close(
            got,
            wanted(x),
            dtype=x.dtype,
            hint="The sum goes along the row, and the 1 of the formula becomes exp(-m).",
        )
    square = scores(rng, device, n=4, d=4)
    expect_close(answer.norm_exp(square.clone()), wanted(square), dtype=square.dtype)


@check("the caller's x is not written into", holds="The caller's x stays untouched")
def untouched(answer, rng, device):
    hint = "The first write must go into a tensor that you made yourself."
    x = scores(rng, device)
    version = x._version
    with expect_unchanged(x, hint=hint):
        got = answer.norm_exp(x)
    expect_true(x._version == version, "x was written into", hint=hint)
    expect_shape(got, x.shape)


@check("x may be a leaf that requires grad", holds="it may be a leaf that requires grad")
def leaves(answer, rng, device):
    x = scores(rng, device).requires_grad_()
    hint = "Writing into a leaf is refused at once. Write into your own tensor."
    with advising(RuntimeError, saying="leaf", hint=hint):
        got = answer.norm_exp(x)
    expect_shape(got, x.shape)


@check("backward finds what was saved", holds="with the right gradients for x")
def goes_back(answer, rng, device):
    x = scores(rng, device)
    gradients(answer, x, torch.ones(x.shape, device=device))


@check("the gradients are those of the formula", holds="with the right gradients for x")
def right_gradients(answer, rng, device):
    tall = scores(rng, device, torch.float64, n=5, d=3)
    low = scores(rng, device, torch.float64) - 4
    for x in (tall, low, tall.T, 2 * tall[:1] + 3, tall[:, :1]):
        upstream = torch.randn(x.shape, device=device, dtype=x.dtype)
        leaf = x.detach().clone().requires_grad_()
        wanted(leaf).backward(upstream)
        expect_close(
            gradients(answer, x, upstream),
            leaf.grad,
            name="x.grad",
            hint="x acts through the numerator and through the sum. A sum that is cut off counts "
            "as a constant, and a write through `.data` changes what a node saved uncounted.",
            rtol=1e-7,
            atol=1e-9,
        )


@check(
    "large scores do not overflow",
    holds=[
        "`exp` of a float32 overflows above 88.73.",
        "which changes nothing but the 1",
        "without overflow",
    ],
)
def large(answer, rng, device):
    x = scores(rng, device, n=4, d=4).clone()
    x[0, 1] = 900
    x[1] -= 900
    x[2, 0], x[2, 2] = 500, -500
    x[3] += 95
    hint = "exp(900) is infinite in any float. Subtract the row's m first."
    clipped = "Subtracting the row's m changes nothing but the 1. Clipping the scores, or taking "
    clipped += "an m from other rows, does."
    expect_close(answer.norm_exp(x.clone()), wanted(x), dtype=x.dtype, hint=clipped, nan_hint=hint)
    got = gradients(answer, x, torch.ones(4, 4, device=device))
    finite = "The formula's m is at least 0: with a lower one, exp(-m) can be infinite, too."
    expect_true(got.isfinite().all(), "x.grad is not finite", hint=finite)


@check(
    "at most two tensors of x's size are made",
    holds="make **at most two** new tensors of its size",
    both_sides=True,
)
def thrifty(answer, rng, device):
    x = scores(rng, device, n=rng.randrange(3, 7), d=rng.randrange(5, 9)).requires_grad_()
    given = x * 1
    with Made(given) as made:
        got = answer.norm_exp(given)
    expect_shape(got, x.shape)
    expect_true(
        made.count <= 2,
        f"{made.count} tensors of x's size were made",
        hint="clone() makes a tensor of x's size too, and so does each `-`, `/` or exp() of one. "
        "Which of your own tensors did no node save? That one may be overwritten.",
    )


@check("float64 stays float64", holds="float32 or float64", both_sides=True)
def dtypes(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        x = scores(rng, device, dtype)
        expect_dtype(answer.norm_exp(x.clone()), dtype)
    x = 50 * scores(rng, device, torch.float64)
    hint = "A detour over float32 loses digits, and every number below 1e-45."
    got = answer.norm_exp(x.clone())
    expect_close(got, wanted(x), rtol=1e-12, atol=1e-300, hint=hint, dtype_hint=hint)


@check("no rows in, no rows out", holds="N is 0 or more and D 1 or more", both_sides=True)
def no_rows(answer, rng, device):
    none = torch.empty(0, rng.randrange(1, 5), device=device)
    hint = "Each row has an m of its own, so there need not be a row at all."
    with advising(RuntimeError, saying="numel() == 0", hint=hint):
        got = answer.norm_exp(none)
    expect_shape(got, none.shape, name="the result for no rows", hint=hint)


def largest(x):
    return x.amax(1, keepdim=True).relu()


@mutant("divides in place", caught_by=goes_back)
def norm_exp(x):
    m = largest(x)
    e = (x - m).exp()
    e /= e.sum(1, keepdim=True) + (-m).exp()
    return e


@mutant("cuts off at 0 in place", caught_by=goes_back)
def norm_exp(x):
    m = x.amax(1, keepdim=True).relu_()
    e = (x - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("works in the caller's memory", caught_by=untouched)
def norm_exp(x):
    m = largest(x)
    x = x.sub_(m).exp_()
    return x / (x.sum(1, keepdim=True) + (-m).exp())


@mutant("subtracts in place from a leaf", caught_by=leaves)
def norm_exp(x):
    m = largest(x)
    x -= m
    e = x.exp()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("writes through .data to be left in peace", caught_by=right_gradients)
def norm_exp(x):
    m = largest(x)
    e = (x - m).exp_()
    e.data /= e.data.sum(1, keepdim=True) + (-m).exp()
    return e


@mutant("cuts the sum off", caught_by=right_gradients)
def norm_exp(x):
    m = largest(x)
    e = (x - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp()).detach()


@mutant("cuts the largest score off in one place only", caught_by=right_gradients)
def norm_exp(x):
    m = largest(x)
    e = (x - m.detach()).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("clones in fear", caught_by=thrifty)
def norm_exp(x):
    m = largest(x)
    e = (x.clone() - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("does everything out of place", caught_by=thrifty)
def norm_exp(x):
    m = largest(x)
    e = (x - m).exp()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("takes exp as it is", caught_by=large)
def norm_exp(x):
    e = x.exp()
    return e / (e.sum(1, keepdim=True) + 1)


@mutant("keeps the 1", caught_by=values)
def norm_exp(x):
    e = (x - largest(x)).exp_()
    return e / (e.sum(1, keepdim=True) + 1)


@mutant("subtracts the largest score of all rows", caught_by=large)
def norm_exp(x):
    m = x.amax().relu() if len(x) else x.new_zeros(())
    e = (x - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("takes the maximum of a tensor that may be empty", caught_by=no_rows)
def norm_exp(x):
    top = x.max()
    m = largest(x) + 0 * top
    e = (x - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("forgets that m may not be below 0", caught_by=large)
def norm_exp(x):
    m = x.amax(1, keepdim=True)
    e = (x - m).exp_()
    return e / (e.sum(1, keepdim=True) + (-m).exp())


@mutant("is the ordinary softmax", caught_by=values)
def norm_exp(x):
    return x.softmax(1)


@mutant("sums down the columns", caught_by=values)
def norm_exp(x):
    m = largest(x)
    e = (x - m).exp_()
    return e / (e.sum(0, keepdim=True) + (-m).exp())


@mutant("works in float32", caught_by=dtypes)
def norm_exp(x):
    y = x.float()
    m = largest(y)
    e = (y - m).exp_()
    return (e / (e.sum(1, keepdim=True) + (-m).exp())).to(x.dtype)


@hinted(1, reaches=leaves)
def norm_exp(x):
    m = x.amax(1, keepdim=True).relu_()
    x = x - m
    x.exp_()
    return x / (x.sum(1, keepdim=True) + (-m).exp())


@accepted("a softmax over one score more")
def norm_exp(x):
    return functional.pad(x, (0, 1)).softmax(1)[:, :-1]


@accepted("divides in the exponent")
def norm_exp(x):
    total = x.logsumexp(1, keepdim=True)
    return (x - torch.logaddexp(total, torch.zeros_like(total))).exp_()


@accepted("in place wherever it is allowed")
def norm_exp(x):
    m = x.detach().amax(1, keepdim=True).relu_()
    e = x.sub(m).exp_()
    return e.div(e.sum(1, keepdim=True).add_(m.neg_().exp_()))
