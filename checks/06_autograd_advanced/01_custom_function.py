"""Judges lessons/06_autograd_advanced/01_custom_function.md."""

import torch
from torch.autograd import Function

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
    recorded,
)

background("A network that runs in 8-bit integers", "Write both parts.")

COUNT = "Backward answers for every input of forward but ctx, by position, in its "
COUNT += "shape. What has no gradient gets None."
SPREAD = (
    "sum() sends one number to all places, as an expanded tensor. In-place arithmetic refuses it."
)


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


def through(y, leaf, upstream, hint="Is it made by `apply`?"):
    """backward of y; what is wrong with the contract is said in the lesson's words."""
    expect_true(y.requires_grad, "the result has no graph", hint=hint)
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


@check("STE is a torch.autograd.Function", holds="`STE` is a `torch.autograd.Function`.")
def kind(answer, rng, device):
    value = answer.STE
    expect_true(
        isinstance(value, type) and issubclass(value, Function),
        "STE is not a subclass of torch.autograd.Function",
        hint="class STE(Function), with forward and backward as static methods.",
    )


@check(
    "forward rounds first and clips then",
    holds=[
        "It rounds as `torch.round` does, then clips to lo and hi.",
        "Round, then clip",
        "x: tensor of any shape, floating dtype, no NaN; stays as it is",
        "lo, hi: numbers, lo <= hi",
    ],
)
def forward(answer, rng, device):
    for dtype in (torch.float32, torch.float64, torch.bfloat16, torch.float16):
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
    fine = torch.tensor([0.5 - 1e-12, 0.5 + 1e-12, 2.5 + 1e-12], dtype=torch.float64).to(device)
    expect_equal(
        apply(answer, fine, -9, 9),
        fine.round(),
        name="for float64 numbers 1e-12 beside a half, the result",
        hint="They are no halves. Stay in the dtype that came in.",
    )
    got = apply(answer, torch.tensor([0.4, 0.6], device=device), 0.2, 0.7)
    expect_equal(
        got,
        torch.tensor([0.2, 0.7], device=device),
        name="for [0.4, 0.6] and the range 0.2 to 0.7, the result",
        hint="lo and hi need not be whole numbers. 0.4 is rounded to 0, and then clipped to 0.2: "
        "whoever clips first rounds the limit away.",
    )
    inf = float("inf")
    ends = torch.tensor([-inf, inf, 1.4], device=device)
    got = apply(answer, ends, -3, 5)
    right = torch.tensor([-3.0, 5.0, 1.0], device=device)
    expect_equal(got, right, name="for [-inf, inf, 1.4] and the range -3 to 5, the result")
    for lo, hi in ((2, 2), (0.5, 0.5), (-inf, inf)):
        got = apply(answer, halves, lo, hi)
        right = halves.round().clamp(lo, hi)
        expect_equal(got, right, name=f"for the range {lo} to {hi}, the result")
    for shape in ((), (0, 3), (1, 1, 1)):
        x = torch.zeros(shape, device=device)
        expect_equal(apply(answer, x, -1.0, 1.0), x, name="the result")
    wide = torch.randn(2, 3, 4, 5, device=device).transpose(1, 3) * 3
    expect_equal(apply(answer, wide, -2, 2), wide.round().clamp(-2, 2), name="the result")


@check("backward answers for each input of forward")
def answers(answer, rng, device):
    lo, hi = limits(rng)
    x = spread(rng, device, lo, hi)
    sent_back(answer, x, lo, hi, torch.ones(x.shape, device=device))


@check(
    "inside the range the gradient passes, outside it is 0",
    holds=[
        "Backward passes the gradient on where x itself lies from lo to hi, both included.",
        "the gradient passes where x is in range",
    ],
    side="inside",
)
def passes(answer, rng, device):
    lo, hi = limits(rng)
    for shape in (None, (), (0, 2), (1, 1, 1)):
        x = spread(rng, device, lo, hi) if shape is None else torch.zeros(shape, device=device)
        ones = torch.ones(x.shape, device=device)
        expect_close(
            sent_back(answer, x, lo, hi, ones),
            right_gradient(x, lo, hi, ones),
            name="x.grad",
            hint=f"lo is {lo:g} and hi is {hi:g}. Where x itself is below lo or above hi, the "
            "gradient is 0, also if x rounds to lo or hi. Elsewhere it passes as it came.",
        )
    x = torch.tensor([1.0, 2.0, 3.0], device=device)
    got = sent_back(answer, x, 2, 2, torch.ones(3, device=device))
    right = torch.tensor([0.0, 1.0, 0.0], device=device)
    both = "lo and hi are inside: 2 is where it may be, and its gradient passes."
    expect_close(got, right, name="for [1, 2, 3] and the range 2 to 2, x.grad", hint=both)


@check(
    "lo and hi themselves lie inside, and x decides, not its rounded value",
    holds="where x itself lies from lo to hi, both included",
    side="at lo and at hi",
)
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
    x = torch.tensor([0.1, 0.4, 0.6, 0.9], device=device)
    expect_close(
        sent_back(answer, x, 0.3, 0.7, torch.ones(4, device=device)),
        torch.tensor([0.0, 1.0, 1.0, 0.0], device=device),
        name="for [0.1, 0.4, 0.6, 0.9] and the range 0.3 to 0.7, x.grad",
        hint="All of these round to 0 or 1, which lie outside. x itself is what counts.",
    )
    ends = torch.tensor([lo, lo, hi, hi], device=device)
    beyond = torch.tensor([lo - 9, hi, lo, hi + 9], device=device)
    expect_close(
        sent_back(answer, torch.nextafter(ends, beyond), lo, hi, torch.ones(4, device=device)),
        torch.tensor([0.0, 1.0, 1.0, 0.0], device=device),
        name="for the neighbours of lo and hi among float32 numbers, x.grad",
        hint="The border has no width: the next number below lo is outside, the next above inside.",
    )


@check(
    "the gradient from above is a factor, and keeps its values",
    holds=["Backward passes the gradient on", "`grad_y` keeps its values."],
    side="any gradient",
)
def chained(answer, rng, device):
    lo, hi = limits(rng)
    for dtype in (torch.float32, torch.float64, torch.bfloat16):
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
    leaf = torch.ones(3, device=device, requires_grad=True)
    with advising(RuntimeError, saying="single memory location", hint=SPREAD):
        got = through(apply(answer, leaf, lo, hi).sum(), leaf, None)
    expect_close(got, torch.ones(3, device=device), name="behind sum(), x.grad", hint=SPREAD)


@check(
    "outside the range the gradient is 0, whatever arrives",
    holds="Outside it gives 0, whatever arrives: inf and NaN too.",
)
def nothing_passes(answer, rng, device):
    lo, hi = limits(rng)
    x = torch.tensor([lo - 1, lo, hi, hi + 1], device=device)
    for value in (float("inf"), -float("inf"), float("nan")):
        v = torch.full((4,), value, device=device)
        right = torch.tensor([0.0, value, value, 0.0], device=device)
        hint = "0 * inf and 0 * nan are NaN, so a product with a mask does not stop them. Choose: "
        hint += "torch.where or masked_fill."
        got = sent_back(answer, x, lo, hi, v)
        name = f"where {value} arrives, and x is below, at lo, at hi and above, x.grad"
        expect_close(got, right, name=name, hint=hint, nan_hint=hint)


def holds_tensor(value):
    if isinstance(value, dict):
        value = list(value.values())
    if isinstance(value, (tuple, list)):
        return any(map(holds_tensor, value))
    return isinstance(value, torch.Tensor)


@check(
    "no tensor is put on ctx by name",
    holds="No tensor is put on `ctx` by name.",
)
def nothing_on_ctx(answer, rng, device):
    lo, hi = limits(rng)
    leaf = spread(rng, device, lo, hi).clone().requires_grad_()
    y = apply(answer, leaf, lo, hi)
    expect_true(y.requires_grad, "the result has no graph", hint="Is it made by `apply`?")
    for when in ("after forward", "after backward"):
        for name, value in vars(y.grad_fn).items():
            expect_true(
                not holds_tensor(value),
                f"{when}, a tensor stands on ctx as `{name}`",
                hint="Clause 3: ctx.save_for_backward takes tensors, and frees them after use. "
                "Clause 4 is for numbers and flags.",
            )
        if when == "after forward":
            through(y, leaf, torch.ones(y.shape, device=device))


@check(
    "a write into x between forward and backward gives no wrong gradient",
    holds="A write into x after forward gives no wrong gradient.",
)
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


@check(
    "two calls do not mix up what they saved",
    holds="Calls that wait for their backward do not disturb one another.",
)
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


@check(
    "fake_quantize puts weights on the grid of a signed integer",
    holds=[
        "`fake_quantize` puts weights on the grid of a signed integer of so many bits, and back",
        "a weight becomes the nearest whole number from `-2 ** (bits - 1)` to "
        "`2 ** (bits - 1) - 1`",
        "For 8 bits, -128 to 127.",
        "w on the grid of a signed integer, times scale again.",
        "w: tensor of any shape, floating dtype; stays as it is",
        "scale: float above 0, the distance of neighbours on the grid",
        "bits: int, 2 or more",
        "returns: tensor of w's shape and dtype",
    ],
    both_sides=True,
)
def grid(answer, rng, device):
    w = torch.randn(3, rng.randrange(2, 6), device=device, dtype=torch.float64)
    near = "Divide by scale, let your STE round, and multiply by scale again: each w goes to the "
    near += "nearest number on the grid, below or above. Neighbours are scale apart."
    right = (w / 0.3).round() * 0.3
    with expect_unchanged(w):
        got = answer.fake_quantize(w, 0.3, 8)
    expect_close(got, right, name="with 8 bits and scale 0.3, the result", hint=near)
    for bits in (2, rng.randrange(3, 7), 8):
        top, scale = 2 ** (bits - 1), rng.choice((0.125, 0.25, 0.5))
        steps = torch.arange(-top - 3, top + 3, device=device)
        w = (steps + 0.25) * scale
        w[::2] = (steps[::2] - 0.25) * scale
        with expect_unchanged(w):
            got = answer.fake_quantize(w, scale, bits)
        expect_close(
            got,
            steps.clamp(-top, top - 1) * scale,
            name=f"with {bits} bits and scale {scale}, the result",
            hint=f"{bits} bits hold the whole numbers from {-top} to {top - 1}: there is one "
            "negative more. After the rounding, scale comes back.",
        )
    for dtype in (torch.float16, torch.bfloat16):
        w = torch.randn(2, 3, 4, device=device, dtype=dtype).mT
        right = (w / 0.25).round().clamp(-8, 7) * 0.25
        expect_close(answer.fake_quantize(w, 0.25, 4), right, name=f"for {dtype}, the result")
    for shape in ((), (0, 3)):
        w = torch.full(shape, 9.0, device=device)
        right = torch.full(shape, 3.5, device=device)
        expect_close(answer.fake_quantize(w, 0.5, 4), right, name="the result")


@check(
    "fake_quantize sends gradients to the weights within the grid",
    holds="its gradient passes unchanged where w is within the grid, and is 0 elsewhere",
)
def learns(answer, rng, device):
    bits, scale = rng.randrange(2, 6), rng.choice((0.125, 0.5))
    top = 2 ** (bits - 1)
    w = torch.randn(4, 5, device=device) * top * scale
    w[0, :4] = torch.tensor([-top, top - 1, -top - 0.25, top - 0.75], device=device) * scale
    v = torch.randn(w.shape, device=device)
    leaf = w.clone().requires_grad_()
    cut = "detach(), item() and integer dtypes end a graph. From w to the result, STE is called on "
    cut += "floats."
    got = through(answer.fake_quantize(leaf, scale, bits), leaf, v, cut)
    expect_close(
        got,
        right_gradient(w / scale, -top, top - 1, v),
        name="w.grad",
        hint="Torch's round gives 0 everywhere, so the rounding must be your STE. The division "
        "before it and the product after it cancel.",
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
        return torch.where((x >= lo) & (x <= hi), grad_y, 0.0), None, None


@hinted(1, reaches=chained)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward(x)
        ctx.lo, ctx.hi = lo, hi
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        return grad_y * ((x >= ctx.lo) & (x <= ctx.hi)), None, None


@mutant("multiplies by the mask", caught_by=nothing_passes)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward((x >= lo) & (x <= hi))
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        (inside,) = ctx.saved_tensors
        return grad_y * inside, None, None


@mutant("cleans the gradient instead of choosing", caught_by=nothing_passes)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.save_for_backward((x >= lo) & (x <= hi))
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        (inside,) = ctx.saved_tensors
        return grad_y.nan_to_num() * inside, None, None


@mutant("keeps the mask on ctx", caught_by=nothing_on_ctx)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.inside = (x >= lo) & (x <= hi)
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        return grad_y.masked_fill(~ctx.inside, 0), None, None


@mutant("keeps x in a dict on ctx", caught_by=nothing_on_ctx)
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        ctx.kept = {"x": x.clone(), "range": (lo, hi)}
        return x.round().clamp(lo, hi)

    @staticmethod
    def backward(ctx, grad_y):
        x, (lo, hi) = ctx.kept.values()
        return torch.where((x >= lo) & (x <= hi), grad_y, 0.0), None, None


@mutant("gives the range a margin", caught_by=borders)
class STE(Right):
    @staticmethod
    def backward(ctx, grad_y):
        (x,) = ctx.saved_tensors
        lo, hi = ctx.limits
        return torch.where((x > lo - 1e-4) & (x < hi + 1e-4), grad_y, 0.0), None, None


@mutant("rounds in float32", caught_by=forward)
class STE(Right):
    @staticmethod
    def forward(ctx, x, lo, hi):
        Right.forward(ctx, x, lo, hi)
        return x.float().round().clamp(lo, hi).to(x.dtype)


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


@mutant("goes to the neighbour below", caught_by=grid)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1)
    return Right.apply((w / scale).floor(), -top, top - 1) * scale


@mutant("goes through int8", caught_by=learns)
def fake_quantize(w, scale, bits):
    top = 2 ** (bits - 1)
    return Right.apply(w / scale, -top, top - 1).to(torch.int8).to(w.dtype) * scale


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


@accepted("writes into a copy of the gradient, and saves only if asked for one")
class STE(Function):
    @staticmethod
    def forward(ctx, x, lo, hi):
        if ctx.needs_input_grad[0]:
            ctx.save_for_backward(x.lt(lo).logical_or(x.gt(hi)))
        return x.round().clamp(min=lo).clamp(max=hi)

    @staticmethod
    def backward(ctx, grad_y):
        (outside,) = ctx.saved_tensors
        grad_x = grad_y.clone()
        grad_x[outside] = 0
        return grad_x, None, None


@accepted("does it with detach")
def fake_quantize(w, scale, bits):
    u = (w / scale).clamp(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    return (u + (u.round() - u).detach()) * scale
