"""Judges lessons/06_autograd_advanced/06_nan_gradients.md."""

import warnings

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("A contrastive loss takes the lengths of differences")

BRANCH = "The result was chosen after the root was taken, so backward still goes through the root "
BRANCH += "of 0, and 0 * inf is NaN. What does the root get to see?"


def vectors(rng, device, dtype=torch.float32, *lead):
    """Vectors (*lead, D), half of the time not contiguous."""
    lead = lead or (rng.randrange(2, 7),)
    d = rng.randrange(2, 6)
    x = torch.randn(d, *lead, device=device, dtype=dtype).movedim(0, -1)
    return x if rng.random() < 0.5 else x.contiguous()


def length(x):
    """The lengths in float64."""
    return x.detach().double().square().sum(-1).sqrt()


def sent_back(answer, x, upstream=None):
    """The result and the gradient that arrives at x."""
    leaf = x.detach().clone().requires_grad_()
    out = answer.safe_norm(leaf)
    expect_true(
        isinstance(out, torch.Tensor) and out.requires_grad,
        "the result has no graph",
        hint="Compute with torch's operations on x, and detach nothing.",
    )
    out.backward(torch.ones_like(out) if upstream is None else upstream)
    expect_true(leaf.grad is not None, "no gradient arrives at x", hint="Detach nothing.")
    return out, leaf.grad


@check(
    "each vector gets its length",
    holds=[
        "Write the length yourself.",
        "Functions of torch that compute a norm or a distance are off limits",
        "Euclidean length of each vector.",
        "x: (..., D)",
        "D is 1 or more",
    ],
    both_sides=True,
    forbid=(
        "torch.norm",
        "torch.linalg.norm",
        "torch.linalg.vector_norm",
        "torch.linalg.matrix_norm",
        "torch.cdist",
        "torch.dist",
        "torch._foreach_norm",
        "torch.frobenius_norm",
        "torch.norm_except_dim",
        "torch.native_norm",
        "torch.linalg.svdvals",
        "torch.hypot",
        "torch.renorm",
        "torch.nn.functional.normalize",
        "torch.nn.functional.pairwise_distance",
    ),
)
def values(answer, rng, device):
    shapes = ((3, 4), (1,), (5,), (2, 1, 3), (0,))
    last = "The vectors lie along the last dimension, whatever stands before it."
    hint = f"The length is the root of the sum of the squares. {last}"
    for shape in shapes:
        x = vectors(rng, device, torch.float32, *shape)
        expect_close(answer.safe_norm(x), length(x), dtype=x.dtype, hint=hint, shape_hint=last)
    one = torch.tensor([3.0, -4.0], device=device)
    expect_close(answer.safe_norm(one), torch.tensor(5.0, device=device), name="the length")
    column = torch.randn(4, 1, device=device)
    expect_close(answer.safe_norm(column), column.abs()[:, 0], name="the lengths for D = 1")


@check(
    "the length of a zero vector is exactly 0",
    holds=["A length of 0 would not be 0, and a short one would be wrong.", "0 for a zero vector"],
    side="zero",
)
def zero_value(answer, rng, device):
    dtype = rng.choice((torch.float32, torch.float64))
    x = vectors(rng, device, dtype)
    x[-1] = 0
    own = "x belongs to the caller: put the harmless number into a tensor of your own."
    with expect_unchanged(x, hint=own):
        got = answer.safe_norm(x)
    expect_close(
        got[-1],
        torch.zeros((), device=device, dtype=dtype),
        name="the length of a zero vector",
        rtol=0,
        atol=0,
        hint="Nothing may be added under the root, and what it gets in the place of a 0 must not "
        "come out.",
        nan_hint="0 is a number that sqrt can take. Where does the NaN come from?",
    )


@check(
    "the dtype is kept, and x too",
    holds=[
        "float32 or float64, D is 1 or more; stays as it is, without hooks of yours",
        "of x's dtype",
    ],
    both_sides=True,
)
def dtype_kept(answer, rng, device):
    x = vectors(rng, device, torch.float64)
    x[0] = 0
    hint = "float64 goes in, so float64 comes out, with all its digits."
    with expect_unchanged(x):
        got = answer.safe_norm(x)
    single = vectors(rng, device)
    kept = "float32 goes in, so float32 comes out."
    expect_dtype(answer.safe_norm(single), torch.float32, hint=kept)
    leaf = single.clone().requires_grad_()
    answer.safe_norm(leaf)
    hooks = len(leaf._backward_hooks or {})
    own = "A hook of yours stays on the caller's tensor, and runs in backwards that are not yours."
    expect_equal(hooks, 0, name="the number of hooks left on the caller's x", hint=own)
    expect_true(leaf.requires_grad, "x requires grad no longer")
    expect_dtype(got, torch.float64, hint=hint)
    value = "Nothing is added under the root, not even where one vector of the batch is zero."
    expect_close(got, length(x), rtol=1e-13, atol=0, hint=value, dtype_hint=hint)


@check("other vectors get their direction, times what comes back", holds="gradient: x / length")
def direction(answer, rng, device):
    for shape in ((4,), (2, 3)):
        x = vectors(rng, device, torch.float32, *shape)
        x[0].mul_(0)
        upstream = torch.randn(shape, device=device)
        _, grad = sent_back(answer, x, upstream)
        wanted = upstream.double()[..., None] * x.double() / length(x)[..., None]
        wanted = wanted[1:]  # the first are zero vectors
        expect_close(
            grad[1:],
            wanted,
            dtype=x.dtype,
            name="the gradient",
            rtol=1e-3,
            hint="The slope of a length is x / length.",
        )


@check(
    "a short vector has its own length, and so has a long one",
    holds=[
        "A small number under the root is no way out.",
        "A length of 0 would not be 0, and a short one would be wrong.",
        "from 1e-15 to 1e15",
    ],
    side="short",
)
def short(answer, rng, device):
    for size in (1e-4, 1e-7, 1e-11, 1e-15, 1e7, 1e15):
        x = torch.tensor([[0.0, size, 0.0], [0.6 * size, 0.0, -0.8 * size]], device=device)
        out, grad = sent_back(answer, x)
        hint = "A small number under the root, or a lower bound, is seen by short vectors."
        if size > 1:
            hint = "A vector may be long. Its gradient is a direction all the same."
        expect_close(out, length(x), dtype=x.dtype, atol=0, name="the length", hint=hint)
        wanted = torch.tensor([[0.0, 1.0, 0.0], [0.6, 0.0, -0.8]], device=device)
        over = "Something on the way is too large for float32: the third power of 1 / length, for "
        over += "example. The slope of the root of a sum needs none."
        slope = f"The slope of a length is x / length, also for a length of {size:g}."
        expect_close(grad, wanted, name="the gradient", rtol=1e-3, hint=slope, nan_hint=over)


@check(
    "a zero vector gets gradient 0",
    holds=["For a zero vector the gradient shall be 0", "x / length; 0 for a zero vector"],
)
def zero_gradient(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        x = vectors(rng, device, dtype)
        x[0] = 0
        _, grad = sent_back(answer, x)
        name = "the gradient of the zero vector"
        expect_close(grad[0], torch.zeros_like(x[0]), name=name, nan_hint=BRANCH)
    x = torch.zeros(3, 2, device=device)
    expect_close(sent_back(answer, x)[1], x, name="the gradient, all vectors 0", nan_hint=BRANCH)


@check(
    "anomaly mode finds nothing",
    holds=[
        "anomaly mode finds nothing, whatever finite gradient comes back from later, 0 included",
    ],
)
def silent(answer, rng, device):
    x = vectors(rng, device)
    x[0] = 0
    n = len(x)
    upstreams = {
        "ones": torch.ones(n, device=device),
        "zeros": torch.zeros(n, device=device),
        "twice the length, as under a square": 2 * length(x).to(x.dtype),
        "random numbers": torch.randn(n, device=device),
        "1e20": torch.full((n,), 1e20, device=device),
    }
    hint = (
        "The root still sees a 0. What arrives from later may be a 0 as well, as under a square, "
    )
    hint += (
        "and 0 / 0 is NaN, even if a hook or a mask drops it later. Give the root a number that "
    )
    hint += "it can take, wherever its result is thrown away."
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with (
            advising(RuntimeError, saying="returned nan values", hint=hint),
            torch.autograd.detect_anomaly(),
        ):
            for told, upstream in upstreams.items():
                _, grad = sent_back(answer, x, upstream)
                expect_true(
                    grad.isfinite().all(),
                    f"the gradient is not finite where {told} come back",
                    hint=hint,
                )
                expect_close(grad[0], torch.zeros_like(x[0]), name="the gradient of the 0 vector")


@check(
    "NaN in a vector shows in its length",
    holds=[
        "Nor is replacing NaN by 0: it also hides the NaN of a broken sample",
        "NaN where a vector holds NaN",
    ],
)
def nan_in(answer, rng, device):
    x = vectors(rng, device)
    x[0], x[1, -1] = 0, torch.nan
    out, grad = sent_back(answer, x)
    hint = "NaN > 0 is False, and so is NaN == 0. On which side of your condition does NaN fall?"
    expect_true(out[1].isnan(), "the length of a vector with NaN is a number", hint=hint)
    lost = "x / length is NaN there. Nothing on the way back may make a number of it."
    expect_true(grad[1].isnan().all(), "its gradient has lost the NaN", hint=lost)
    rest = torch.arange(len(x), device=device) != 1
    expect_true(out[rest].isfinite().all(), "NaN has spread to another vector's length")
    expect_true(grad[rest].isfinite().all(), "NaN has spread to another vector's gradient")


@check(
    "NaN from later in the graph passes on",
    holds="A NaN that comes from later in the graph passes on to vectors that are not 0.",
)
def nan_back(answer, rng, device):
    x = vectors(rng, device)
    upstream = torch.ones(len(x), device=device)
    upstream[-1] = torch.nan
    _, grad = sent_back(answer, x, upstream)
    expect_true(
        grad[-1].isnan().all(),
        "a NaN that came back for a vector that is not 0 was replaced",
        hint="A fault elsewhere must stay visible. Do not repair gradients: let no NaN arise here.",
    )


@mutant("the plain root", caught_by=zero_gradient)
def safe_norm(x):
    return (x * x).sum(-1).sqrt()


@mutant("a single where", caught_by=zero_gradient)
def safe_norm(x):
    s = (x * x).sum(-1)
    return torch.where(s == 0, 0.0, s.sqrt())


@mutant("adds a small number under the root", caught_by=short)
def safe_norm(x):
    return ((x * x).sum(-1) + 1e-8).sqrt()


@mutant("bounds the sum from below", caught_by=zero_value)
def safe_norm(x):
    return (x * x).sum(-1).clamp(min=1e-12).sqrt()


@mutant("multiplies by one over the root", caught_by=short)
def safe_norm(x):
    s = (x * x).sum(-1)
    return s * torch.where(s == 0, 1.0, s).rsqrt()


@mutant("takes short vectors for zero", caught_by=short)
def safe_norm(x):
    s = (x * x).sum(-1)
    zero = s < 1e-12
    return torch.where(zero, 0.0, torch.where(zero, 1.0, s).sqrt())


@mutant("mends the result", caught_by=zero_gradient)
def safe_norm(x):
    return (x * x).sum(-1).sqrt().nan_to_num()


@mutant("forgets the second where", caught_by=zero_value)
def safe_norm(x):
    s = (x * x).sum(-1)
    return torch.where(s == 0, 1.0, s).sqrt()


@mutant("gives the root a 0 again", caught_by=silent)
def safe_norm(x):
    s = (x * x).sum(-1)
    zero = s <= 0
    return torch.where(zero, 0.0, torch.where(zero, 0.0, s).sqrt())


@mutant("asks for what is above 0", caught_by=nan_in)
def safe_norm(x):
    s = (x * x).sum(-1)
    ok = s > 0
    return torch.where(ok, torch.where(ok, s, 1.0).sqrt(), 0.0)


@mutant("repairs the gradient with a hook", caught_by=nan_back)
def safe_norm(x):
    y = x * 1
    if y.requires_grad:
        y.register_hook(lambda g: g.nan_to_num())
    return (y * y).sum(-1).sqrt()


@mutant("masks the gradient behind the root with a hook", caught_by=silent)
def safe_norm(x):
    s = (x * x).sum(-1)
    zero = s.detach() == 0
    if s.requires_grad:
        s.register_hook(lambda g: g.masked_fill(zero, 0))
    return s.sqrt()


@mutant("leaves it to torch", caught_by=values)
def safe_norm(x):
    return torch.linalg.vector_norm(x, dim=-1)


@mutant("works in float32", caught_by=dtype_kept)
def safe_norm(x):
    s = (x * x).sum(-1).float()
    zero = s == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, s).sqrt()).to(x.dtype)


@mutant("sums down the columns", caught_by=values)
def safe_norm(x):
    s = (x * x).sum(0)
    zero = s == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, s).sqrt())


@mutant("divides by a length without history", caught_by=direction)
def safe_norm(x):
    s = (x * x).sum(-1)
    zero = s == 0
    return s / torch.where(zero, 1.0, s).sqrt().detach()


@mutant("masks the gradient of x with a hook", caught_by=dtype_kept)
def safe_norm(x):
    s = (x * x).sum(-1)
    if x.requires_grad:
        x.register_hook(lambda g: g.masked_fill((s == 0)[..., None], 0))
    return s.sqrt()


@mutant("squeezes", caught_by=values)
def safe_norm(x):
    s = (x * x).sum(-1, keepdim=True)
    zero = s == 0
    return torch.where(zero, 0.0, torch.where(zero, 1.0, s).sqrt()).squeeze()


@mutant("adds a small number and takes its root off again", caught_by=short)
def safe_norm(x):
    return ((x * x).sum(-1) + 1e-30).sqrt() - 1e-15


@mutant("asks aten for the norm", caught_by=values)
def safe_norm(x):
    return torch.ops.aten.linalg_vector_norm(x, 2, [-1])


@mutant("repairs the gradient of a copy with a hook", caught_by=silent)
def safe_norm(x):
    y = x.clone()
    if y.requires_grad:
        zero = (y.detach() == 0).all(-1, keepdim=True)
        y.register_hook(lambda g: torch.where(zero, 0.0, g))
    return (y * y).sum(-1).sqrt()


class Repaired(torch.autograd.Function):
    """A backward that turns NaN into 0."""

    @staticmethod
    def forward(ctx, x):
        out = (x * x).sum(-1).sqrt()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        return (grad[..., None] * x / out[..., None]).nan_to_num()


@mutant("has a backward that hides NaN", caught_by=nan_in)
def safe_norm(x):
    return Repaired.apply(x)


@hinted(1, reaches=silent)
def safe_norm(x):
    s = (x * x).sum(-1)
    ok = s > 0
    return torch.where(ok, torch.where(ok, s, 1.0).sqrt(), 0.0)


@accepted("fills, takes the root, fills again")
def safe_norm(x):
    s = torch.einsum("...d,...d->...", x, x)
    none = s.eq(0)
    return s.masked_fill(none, 1).pow(0.5).masked_fill(none, 0)


@accepted("takes the roots of what is not 0 only")
def safe_norm(x):
    s = x.square().sum(dim=-1)
    some = s != 0
    out = torch.zeros_like(s)
    out[some] = s[some].sqrt()
    return out


class Length(torch.autograd.Function):
    """sqrt of the sum of squares, with a gradient of its own."""

    @staticmethod
    def forward(ctx, x):
        out = (x * x).sum(-1).sqrt()
        ctx.save_for_backward(x, out)
        return out

    @staticmethod
    def backward(ctx, grad):
        x, out = ctx.saved_tensors
        return grad[..., None] * x / torch.where(out == 0, 1.0, out)[..., None]


@accepted("has a backward of its own")
def safe_norm(x):
    return Length.apply(x)


@accepted("multiplies by a direction without history")
def safe_norm(x):
    with torch.no_grad():
        size = (x * x).sum(-1, keepdim=True).sqrt()
        unit = x / torch.where(size == 0, 1.0, size)
    return (unit * x).sum(-1)


@accepted("multiplies by the mask after a root of 1")
def safe_norm(x):
    s = (x * x).sum(-1)
    zero = s == 0
    return (s + zero).sqrt() * ~zero


@accepted("adds 1 to what is 0, and takes it off again")
def safe_norm(x):
    s = (x**2).sum(-1)
    extra = (s == 0).to(s.dtype)
    return (s + extra).sqrt() - extra


equivalent(
    "root = torch.where(zero, 1.0, s).sqrt()",
    "root = torch.where(zero, 2.0, s).sqrt()",
    because="The root of any number above 0 will do where the result is thrown away.",
)
