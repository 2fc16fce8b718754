"""Judges lessons/06_autograd_advanced/01_custom_function.md."""

import torch
from torch.autograd import Function

from tensortutor.checking import (
    accepted,
    advising,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    mutant,
    recorded,
)

COUNT = "Backward answers for every input of forward but ctx, by position, in its "
COUNT += "shape. What has no gradient gets None."


def spread(rng, device, lo, hi, dtype=torch.float32):
    """A matrix with numbers below, inside and above the range, half of the time not contiguous."""
    n, m = rng.randrange(2, 6), rng.randrange(3, 7)
    x = torch.randn(n, m, device=device, dtype=dtype) * (hi - lo) / 2 + (hi + lo) / 2
    x[0, 0], x[1, 1], x[0, 2] = lo - 3.3, hi + 2.6, (lo + hi) / 2 + 0.3
    return x.T if rng.random() < 0.5 else x


def limits(rng):
    return float(rng.randrange(-6, -1)), float(rng.randrange(2, 8))


def sent_back(answer, x, lo, hi, upstream):
    """The gradient that arrives at x when `upstream` arrives at the result."""
    leaf = x.detach().clone().requires_grad_()
    return through(apply(answer, leaf, lo, hi), leaf, upstream)


def apply(answer, x, lo, hi):
    return recorded(answer, "STE.apply", answer.STE.apply)(x, lo, hi)


def through(y, leaf, upstream):
    """backward of y; what is wrong with the contract is said in the lesson's words."""
    expect_true(y.requires_grad, "the result has no graph", hint="Is it made by `apply`?")
    with advising(RuntimeError, saying="Backward returned a", hint=COUNT):
        y.backward(upstream)
    expect_true(
        leaf.grad is not None,
        "x.grad is None after backward()",
        hint="Backward said None where x's gradient belongs. The values are matched by position.",
    )
    return leaf.grad


def right_gradient(x, lo, hi, upstream):
    return torch.where((x < lo) | (x > hi), torch.zeros_like(upstream), upstream)


@check("STE is a torch.autograd.Function")
def kind(answer, rng, device):
    value = answer.STE
    expect_true(
        isinstance(value, type) and issubclass(value, Function),
        "STE is not a subclass of torch.autograd.Function",
        hint="class STE(Function), with forward and backward as static methods.",
    )


@check("forward rounds first and clips then")
def forward(answer, rng, device):
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
        lo, hi = limits(rng)
        x = spread(rng, device, lo, hi, dtype)
        with expect_unchanged(x):
            got = apply(answer, x, lo, hi)
        name = f"for the range {lo:g} to {hi:g}, the result"
        hint = "Each x goes to the nearest whole number, and what is then beyond lo or hi goes "
        hint += "there. `.round()` and `.clamp(lo, hi)` do it."
        expect_equal(got, x.round().clamp(lo, hi), name=name, hint=hint)
    halves = torch.tensor([-1.5, -0.5, 0.5, 1.5, 2.5], device=device)
    got = apply(answer, halves, -9, 9)
    name = f"for {halves.tolist()}, the result"
    expect_equal(got, halves.round(), name=name, hint="Halves go to the even neighbour.")
    got = apply(answer, torch.tensor([0.4, 0.6], device=device), 0.2, 0.7)
    expect_equal(
        got,
        torch.tensor([0.2, 0.7], device=device),
        name="for [0.4, 0.6] and the range 0.2 to 0.7, the result",
        hint="lo and hi need not be whole numbers. 0.4 is rounded to 0, and then clipped to 0.2: "
        "whoever clips first rounds the limit away.",
    )
    for shape in ((), (0, 3), (1, 1, 1)):
        x = torch.zeros(shape, device=device)
        expect_equal(apply(answer, x, -1.0, 1.0), x, name="the result")


@check("backward answers for each input of forward")
def answers(answer, rng, device):
    lo, hi = limits(rng)
    x = spread(rng, device, lo, hi)
    sent_back(answer, x, lo, hi, torch.ones(x.shape, device=device))


@check("inside the range the gradient passes, outside it is 0")
def passes(answer, rng, device):
    lo, hi = limits(rng)
    for shape in (None, (), (0, 2), (1, 1, 1)):
        x = spread(rng, device, lo, hi) if shape is None else torch.zeros(shape, device=device)
        ones = torch.ones(x.shape, device=device)
        expect_close(
            sent_back(answer, x, lo, hi, ones),
            right_gradient(x, lo, hi, ones),
            name="x.grad",
            hint=f"lo is {lo:g} and hi is {hi:g}. A clipped input gets 0, any other gets the "
            "gradient as it came, whatever lo and hi are.",
        )


@check("lo and hi themselves lie inside, and x decides, not its rounded value")
def borders(answer, rng, device):
    lo, hi = limits(rng)
    x = torch.tensor([lo - 0.3, lo, lo + 0.3, hi - 0.3, hi, hi + 0.3], device=device)
    ones = torch.ones(6, device=device)
    expect_close(
        sent_back(answer, x, lo, hi, ones),
        torch.tensor([0.0, 1.0, 1.0, 1.0, 1.0, 0.0], device=device),
        name=f"for {[round(v, 1) for v in x.tolist()]} and the range {lo:g} to {hi:g}, x.grad",
        hint="x equal to lo or hi is not clipped. x a little outside rounds to the border, and is "
        "outside all the same.",
    )


@check("the gradient from above is a factor")
def chained(answer, rng, device):
    lo, hi = limits(rng)
    for dtype in (torch.float32, torch.float64):
        x = spread(rng, device, lo, hi, dtype)
        v = torch.randn(x.shape, device=device, dtype=dtype)
        upstream = v.clone()
        got = sent_back(answer, x, lo, hi, upstream)
        expect_close(
            got,
            right_gradient(x, lo, hi, v),
            name="x.grad",
            hint="Chain rule: what lies between the result and the loss arrives as grad_y. It is "
            "multiplied, with its sign and size.",
        )
        expect_equal(
            upstream,
            v,
            name="the grad_y that came in, after backward,",
            hint="Other nodes may have been given the same tensor. Return a new one: no mul_, no "
            "assignment into grad_y.",
        )


@check("a write into x between forward and backward gives no wrong gradient")
def guarded(answer, rng, device):
    lo, hi = limits(rng)
    leaf = spread(rng, device, lo, hi).clone().requires_grad_()
    x = leaf * 1
    ones = torch.ones(x.shape, device=device)
    wanted = right_gradient(x, lo, hi, ones).detach()
    y = apply(answer, x, lo, hi)
    x.fill_(hi + 5)
    try:
        with advising(RuntimeError, saying="Backward returned a", hint=COUNT):
            y.backward(ones)
    except RuntimeError as error:
        if "modified by an inplace operation" in str(error):
            return  # refused, as it should be
        raise
    expect_close(
        leaf.grad,
        wanted,
        name="x.grad",
        hint="Backward looked at the x of now. Tensors go through ctx.save_for_backward, where "
        "the version counter watches them.",
    )


@check("two calls do not mix up what they saved")
def apart(answer, rng, device):
    x, z = (spread(rng, device, -2.0, 2.0).clone().requires_grad_() for _ in range(2))
    first = apply(answer, x, -2.0, 2.0)
    second = apply(answer, z, -1.0, 0.5)
    hint = "Several calls wait for their backward at once. Each has a ctx of its own to keep "
    hint += "things on; the class is shared."
    for y, leaf, lo, hi in ((first, x, -2.0, 2.0), (second, z, -1.0, 0.5)):
        ones = torch.ones(leaf.shape, device=device)
        with advising(RuntimeError, hint=hint), advising(AttributeError, hint=hint):
            got = through(y, leaf, ones)
        expect_close(got, right_gradient(leaf, lo, hi, ones).detach(), name="x.grad", hint=hint)


@check("fake_quantize puts weights on the grid of a signed integer")
def grid(answer, rng, device):
    for bits in (2, rng.randrange(3, 7), 8):
        top, scale = 2 ** (bits - 1), rng.choice((0.125, 0.25, 0.5))
        steps = torch.arange(-top - 3, top + 3, device=device)
        w = (steps + 0.25) * scale
        with expect_unchanged(w):
            got = answer.fake_quantize(w, scale, bits)
        expect_close(
            got,
            steps.clamp(-top, top - 1) * scale,
            name=f"with {bits} bits and scale {scale}, the result",
            hint=f"{bits} bits hold the whole numbers from {-top} to {top - 1}: there is one "
            "negative more. After the rounding, scale comes back.",
        )
    w = torch.randn(3, rng.randrange(2, 6), device=device, dtype=torch.float64)
    expect_close(answer.fake_quantize(w, 0.3, 8), (w / 0.3).round() * 0.3, name="the result")


@check("fake_quantize sends gradients to the weights within the grid")
def learns(answer, rng, device):
    bits, scale = rng.randrange(2, 6), rng.choice((0.125, 0.5))
    top = 2 ** (bits - 1)
    w = torch.randn(4, 5, device=device) * top * scale
    w[0, :4] = torch.tensor([-top, top - 1, -top - 0.25, top - 0.75], device=device) * scale
    v = torch.randn(w.shape, device=device)
    leaf = w.clone().requires_grad_()
    got = through(answer.fake_quantize(leaf, scale, bits), leaf, v)
    expect_close(
        got,
        right_gradient(w / scale, -top, top - 1, v),
        name="w.grad",
        hint="Torch's round and a cut give 0 everywhere, so the rounding must be your STE. The "
        "division before it and the product after it cancel.",
    )


equivalent(
    "@staticmethod def forward(ctx, x, lo, hi):",
    "def forward(ctx, x, lo, hi):",
    because="torch calls it on the class, where Python hands a plain function out as it is",
)
equivalent(
    "@staticmethod def backward(ctx, grad_y):",
    "def backward(ctx, grad_y):",
    because="torch calls it on the class, where Python hands a plain function out as it is",
)


class Right(Function):
    """A right STE, from which the wrong ones below differ in one thing."""

    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.limits = lo, hi
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return grad_y * ((x >= lo) & (x <= hi)), None, None


@mutant("passes the gradient everywhere", caught_by=passes)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y, None, None


@mutant("passes it where x is clipped", caught_by=passes)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return grad_y * ((x < lo) | (x > hi)), None, None


@mutant("returns one value", caught_by=answers)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        return Right.backward(ctx, grad_y)[0]


@mutant("returns the gradient in the last place", caught_by=answers)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        return None, None, Right.backward(ctx, grad_y)[0]


@mutant("returns the mask", caught_by=chained)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        return Right.backward(ctx, torch.ones_like(grad_y))


@mutant("keeps the sign of the gradient only", caught_by=chained)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        return Right.backward(ctx, grad_y.sign())


@mutant("writes into the gradient that came in", caught_by=chained)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return grad_y.mul_((x >= lo) & (x <= hi)), None, None


@mutant("leaves lo and hi out of the range", caught_by=borders)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return grad_y * ((x > lo) & (x < hi)), None, None


@mutant("asks the rounded value", caught_by=borders)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return grad_y * ((x.round() >= lo) & (x.round() <= hi)), None, None


@mutant("asks whether clipping changed anything", caught_by=borders)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        y = x.round().clamp(lo, hi)
        ctx.save_for_backward(y == x.round())
        return y

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y * ctx.saved_tensors[0], None, None


@mutant("puts x on ctx", caught_by=guarded)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.x, ctx.lo, ctx.hi = x, lo, hi
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y * ((ctx.x >= ctx.lo) & (ctx.x <= ctx.hi)), None, None


@mutant("keeps the mask on the class", caught_by=apart)
class STE(Function):
    mask = None

    @staticmethod
    def forward(ctx, x, lo, hi):
        Kept.mask = (x >= lo) & (x <= hi)
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        if Kept.mask.shape != grad_y.shape:
            return grad_y, None, None
        return grad_y * Kept.mask, None, None


class Kept:
    """Where the mutant above keeps its mask."""

    mask = None


@mutant("clips first and rounds then", caught_by=forward)
class STE(Right):
    @staticmethod
    def forward(ctx, x, lo, hi):
        Right.forward(ctx, x, lo, hi)
        return x.clamp(lo, hi).round()


@mutant("cuts the fraction off", caught_by=forward)
class STE(Right):
    @staticmethod
    def forward(ctx, x, lo, hi):
        Right.forward(ctx, x, lo, hi)
        return x.trunc().clamp(lo, hi)


@mutant("rounds halves up", caught_by=forward)
class STE(Right):
    @staticmethod
    def forward(ctx, x, lo, hi):
        Right.forward(ctx, x, lo, hi)
        return (x + 0.5).floor().clamp(lo, hi)


@mutant("is a plain class", caught_by=kind)
class STE:
    @staticmethod
    def apply(x, lo, hi):
        clipped = x.clamp(lo, hi)
        return clipped + (x.round().clamp(lo, hi) - clipped).detach()


@mutant("takes torch's own round", caught_by=learns)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1)
    return (w / scale).round().clamp(-top, top - 1) * scale


@mutant("forgets the clipping", caught_by=grid)
def fake_quantize(w, scale, bits):
    return Right.apply(w / scale, -float("inf"), float("inf")) * scale


@mutant("uses a range with as many negatives as positives", caught_by=grid)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1) - 1
    return Right.apply(w / scale, -top, top) * scale


@mutant("counts from 0 as an unsigned integer does", caught_by=grid)
def fake_quantize(w, scale, bits):
    return Right.apply(w / scale, 0, 2**bits - 1) * scale


@mutant("leaves the weights as whole numbers", caught_by=grid)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1)
    return Right.apply(w / scale, -top, top - 1)


@mutant("clips the weights, not the steps", caught_by=grid)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1)
    return Right.apply(w.clamp(-top, top - 1) / scale, -4 * top, 4 * top) * scale


@accepted("saves x, and the limits on ctx")
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return torch.clamp(torch.round(x), min=lo, max=hi)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        outside = (x < ctx.lo) | (x > ctx.hi)
        return grad_y.masked_fill(outside, 0), None, None


@accepted("asks whether clipping changes x")
class STE(Function):
    @staticmethod
    def forward(x, lo, hi):
        return x.round().clamp(lo, hi)

    @staticmethod
    def setup_context(ctx, inputs, output):
        x, lo, hi = inputs
        ctx.save_for_backward(x == x.clamp(lo, hi))

    @staticmethod
    def backward(ctx, grad_y):
        return torch.where(ctx.saved_tensors[0], grad_y, torch.zeros_like(grad_y)), None, None


@accepted("multiplies by the steps per unit")
def fake_quantize(w, scale, bits):
    low, high = -(2**bits) // 2, 2**bits // 2 - 1
    return scale * Right.apply(w.div(scale), low, high)
