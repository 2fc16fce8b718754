"""Judges lessons/12_architectures/03_norms.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("PyTorch's own norms are refused.")
background("In float16 the largest number is 65,504")

LAST = (
    "mean(-1, keepdim=True): each token subtracts the mean of its own features, and divides by "
    "their deviation."
)
BIASED = "Divide by D, not by D - 1: the mean of squares, or var(-1, correction=0)."
EPS = (
    "sqrt(var + eps): eps joins the variance, in front of the root, with the value that was given."
)
FAR = (
    "The mean of squares less the square of the mean cancels where the mean is large: subtract the "
    "mean first, and square then."
)
CENTRE = "Subtract the mean first. Without it this is RMSNorm."
AFFINE = "At the end each feature is multiplied by its own w, and its own b is added."
HALF = "Convert to float32 first: the square of 300 is infinite in float16. Round at the end."
NEAR_HALF = {
    torch.float16: {"rtol": 4e-3, "atol": 4e-3},
    torch.bfloat16: {"rtol": 7e-3, "atol": 7e-3},
}


def plain(device, shape, scale=1.0, mean=0.0):
    """x, and w of ones and b of zeros."""
    x = torch.randn(shape, device=device) * scale + mean
    return x, torch.ones(shape[-1], device=device), torch.zeros(shape[-1], device=device)


def problem(device, shape, dtype=torch.float32, scale=1.0):
    d = shape[-1]
    x = (torch.randn(shape, device=device) * scale + scale).to(dtype)
    w = (torch.randn(d, device=device) + 2).to(dtype)
    b = torch.randn(d, device=device).to(dtype)
    return x, w, b


def wanted(x, w, b, eps=1e-5):
    """In float64."""
    return F.layer_norm(x.double(), x.shape[-1:], w.double(), b.double(), eps)


def compare(answer, x, w, b, hint, *eps, **near):
    right = wanted(x, w, b, *eps)
    got = answer.layer_norm(x, w, b, *eps)
    expect_close(got, right.to(got.device), dtype=x.dtype, hint=hint, **near)


@check(
    "each token by its own features",
    forbid=("torch.layer_norm", "torch.group_norm", "torch.rms_norm"),
    counts_calls=True,
    holds=["Write `layer_norm` over the last dimension", "Normalise over the last dimension"],
)
def tokens(answer, rng, device):
    for shape in ((5, 40), (2, 7, 30), (30, 30)):
        with advising(RuntimeError, saying="must match the size", hint=LAST):
            compare(answer, *plain(device, shape, mean=1.0), LAST, rtol=4e-2, atol=4e-2)
    own = ("layer_norm", "group_norm", "batch_norm", "instance_norm", "rms_norm")
    borrowed = [name for name in answer.calls if name.endswith(own)]
    message = f"the program calls torch's own {''.join(borrowed[:1])}"
    expect_true(not borrowed, message, hint="A mean, a mean of squares and a root are enough.")


@check(
    "the variance is divided by D", holds="Normalise over the last dimension", side="few features"
)
def biased(answer, rng, device):
    for shape in ((4, 2), (3, 3), (2, 2, 5)):  # values so large that eps does not matter
        compare(answer, *plain(device, shape, scale=300.0), BIASED)


@check("the mean is subtracted", holds="Normalise over the last dimension", side="a shift")
def centred(answer, rng, device):
    compare(answer, *plain(device, (3, rng.randint(4, 9)), mean=5.0), CENTRE, atol=1e-4)


@check(
    "a mean far from 0",
    holds="Rows whose mean is a thousand times their standard deviation come out right",
)
def far(answer, rng, device):
    for mean in (1000.0, -1000.0):
        x, w, b = plain(device, (4, rng.randint(16, 40)), mean=mean)
        compare(answer, x, w, b, FAR, rtol=2e-3, atol=2e-3)


@check(
    "w and b belong to the features", holds=["then scale and shift", "w, b: (D,)"], both_sides=True
)
def affine(answer, rng, device):
    for shape in ((4, 4), (3, 4, 6)):
        compare(answer, *problem(device, shape), AFFINE)


@check(
    "eps is inside of the root, as it was given", holds="added to the variance, inside of the root"
)
def epsilon(answer, rng, device):
    for scale in (1e-3, 3e-3):
        compare(answer, *problem(device, (4, 6), scale=scale), EPS)
    compare(answer, *problem(device, (4, 6), scale=0.3), EPS, 0.1)
    constant = torch.full((2, 5), 7.0, device=device)
    _, w, b = problem(device, (2, 5))
    compare(answer, constant, w, b, "A constant has variance 0: eps keeps 0 / 0 away.")


@check(
    "half precision: mean and variance in float32",
    holds=["So mean and variance are taken in float32", "rounded to the dtype of `x` at the end"],
    both_sides=True,
)
def halves(answer, rng, device):
    for dtype in (torch.float16, torch.bfloat16):
        for scale in (1.0, 300.0, 9000.0):
            x, w, b = problem(device, (20, 8), dtype, scale)
            x = x.clamp(-6e4, 6e4)
            got = answer.layer_norm(x, w, b)
            expect_dtype(
                got, dtype, name=f"the result for {dtype}", hint="Round at the end: .to(x.dtype)."
            )
            expect_true(
                got.isfinite().all(),
                f"inputs of {dtype} with size {scale:g} give inf or NaN",
                hint=HALF,
            )
            compare(answer, x, w, b, HALF, **NEAR_HALF[dtype])


@check(
    "float64 keeps its digits",
    holds="A float64 `x` keeps its digits",
)
def wide(answer, rng, device):
    x, w, b = problem(device, (4, 7), torch.float64)
    hint = "float() of a float64 loses half of its digits. Convert the two half dtypes only."
    compare(answer, x, w, b, hint, rtol=1e-10, atol=1e-11)


@check(
    "any leading dimensions, any layout, and x as it was",
    holds=[
        "`x` may have any number of leading dimensions, none at all, and any memory layout",
        "It stays as it is",
    ],
    both_sides=True,
)
def layouts(answer, rng, device):
    cases = [problem(device, shape) for shape in ((6,), (1, 6), (0, 6), (2, 3, 2, 5))]
    x, w, b = problem(device, (6, 4))
    cases.append((x.T, w.new_ones(6), w.new_zeros(6)))
    x, w, b = problem(device, (5, 6))
    cases.append((x[::2], w, b))
    x, w, b = problem(device, (2, 3, 4))
    cases.append((x.transpose(0, 1), w, b))
    for x, w, b in cases:
        with expect_unchanged(x, w, b, hint="`x -= ...` writes into the caller's tensor."):
            compare(answer, x, w, b, "-1 is the last dimension, however many stand before it.")


@check("gradients flow to x, w and b", holds="Gradients flow to `x`, `w` and `b`", both_sides=True)
def gradients(answer, rng, device):
    for dtype in (torch.float64, torch.float16):
        leaves = [t.requires_grad_() for t in problem(device, (3, 5), dtype)]
        others = [t.detach().double().requires_grad_() for t in leaves]
        got, right = answer.layer_norm(*leaves), wanted(*others)
        hint = "Compute with the tensors themselves: no detach(), no .data, no no_grad()."
        expect_true(got.requires_grad, "the result has no graph", hint=hint)
        seed = torch.randn(got.shape, dtype=torch.float64, device=device)
        mine = torch.autograd.grad(got, leaves, seed.to(dtype), allow_unused=True)
        torchs = torch.autograd.grad(right, others, seed.to(dtype).double())
        near = {"rtol": 2e-2, "atol": 2e-2} if dtype == torch.float16 else {}
        for name, g, t in zip("xwb", mine, torchs, strict=True):
            expect_true(g is not None, f"no gradient reaches {name}", hint=hint)
            expect_close(g, t, dtype=dtype, name=f"the gradient of {name}", hint=hint, **near)


def wider(x):
    return x.float() if x.dtype in (torch.float16, torch.bfloat16) else x


@mutant("averages over the batch", caught_by=tokens)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(0)) / (h.var(0, correction=0) + eps).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("takes one mean of all numbers", caught_by=tokens)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean()) / (h.var(correction=0) + eps).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("divides by D - 1", caught_by=biased)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, keepdim=True) + eps).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("subtracts no mean", caught_by=centred)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = h / ((h * h).mean(-1, keepdim=True) + eps).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("takes the mean of squares less the square of the mean", caught_by=far)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    mean = h.mean(-1, keepdim=True)
    var = (h * h).mean(-1, keepdim=True) - mean * mean
    return ((h - mean) / (var + eps).sqrt() * w + b).to(x.dtype)


@mutant("forgets w and b", caught_by=affine)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, correction=0, keepdim=True) + eps).sqrt()
    return h.to(x.dtype)


@mutant("shifts before it scales", caught_by=affine)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, correction=0, keepdim=True) + eps).sqrt()
    return ((h + b) * w).to(x.dtype)


@mutant("adds eps to the root", caught_by=epsilon)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / (h.std(-1, correction=0, keepdim=True) + eps)
    return (h * w + b).to(x.dtype)


@mutant("knows one eps", caught_by=epsilon)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, correction=0, keepdim=True) + 1e-5).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("has no eps", caught_by=epsilon)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(-1, keepdim=True)) / h.var(-1, correction=0, keepdim=True).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("squares in half precision", caught_by=halves)
def layer_norm(x, w, b, eps=1e-5):
    h = x - x.mean(-1, keepdim=True)
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps) * w + b


@mutant("returns float32", caught_by=halves)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = h - h.mean(-1, keepdim=True)
    return h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps) * w + b


@mutant("computes everything in float32", caught_by=wide)
def layer_norm(x, w, b, eps=1e-5):
    h = x.float()
    h = h - h.mean(-1, keepdim=True)
    h = h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps)
    return (h * w.float() + b.float()).to(x.dtype)


@mutant("views rows", caught_by=layouts)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x).view(-1, x.shape[-1])
    h = (h - h.mean(-1, keepdim=True)) / (h.var(-1, correction=0, keepdim=True) + eps).sqrt()
    return (h * w + b).view(x.shape).to(x.dtype)


@mutant("takes the second dimension for the last", caught_by=tokens)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    h = (h - h.mean(1, keepdim=True)) / (h.var(1, correction=0, keepdim=True) + eps).sqrt()
    return (h * w + b).to(x.dtype)


@mutant("takes the mean in half precision", caught_by=halves)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x - x.mean(-1, keepdim=True))
    return (h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps) * w + b).to(x.dtype)


@mutant("works in the caller's tensor", caught_by=layouts)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    with torch.no_grad():
        h -= h.mean(-1, keepdim=True)
    return (h * torch.rsqrt((h * h).mean(-1, keepdim=True) + eps) * w + b).to(x.dtype)


@mutant("treats mean and variance as constants", caught_by=gradients)
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x)
    mean, var = h.detach().mean(-1, keepdim=True), h.detach().var(-1, correction=0, keepdim=True)
    return ((h - mean) * torch.rsqrt(var + eps) * w + b).to(x.dtype)


@mutant("leaves it to torch", caught_by=tokens)
def layer_norm(x, w, b, eps=1e-5):
    return F.layer_norm(x, x.shape[-1:], w, b, eps)


@mutant("leaves it to torch, by another name", caught_by=tokens)
def layer_norm(x, w, b, eps=1e-5):
    return torch.native_layer_norm(x, x.shape[-1:], w, b, eps)[0]


@accepted("a norm of the centred vector, and products with a column of ones")
def layer_norm(x, w, b, eps=1e-5):
    h = wider(x).reshape(-1, x.shape[-1])
    d = h.shape[-1]
    h = h - h @ h.new_full((d, 1), 1 / d)
    var = torch.linalg.vector_norm(h, dim=-1, keepdim=True).square() / d
    return (h * (var + eps) ** -0.5 * w + b).reshape(x.shape).to(x.dtype)


@accepted("var with correction 0, a division, float64 inside")
def layer_norm(x, w, b, eps=1e-5):
    h = x.double()
    var, mean = torch.var_mean(h, dim=-1, correction=0, keepdim=True)
    y = (h - mean) / (var + eps).sqrt()
    return (y * w.double() + b.double()).to(x.dtype)


@accepted("sums and powers, in float64")
def layer_norm(x, w, b, eps=1e-5):
    h = x.to(torch.float64)
    d = x.shape[-1]
    mean = h.sum(-1, keepdim=True) / d
    var = ((h - mean) ** 2).sum(-1, keepdim=True) / d
    return torch.addcmul(b.to(h), (h - mean) * (var + eps) ** -0.5, w.to(h)).to(x.dtype)


@accepted("rows one by one")
def layer_norm(x, w, b, eps=1e-5):
    rows = x.reshape(-1, x.shape[-1])
    done = []
    for row in rows:
        h = row.float() if row.dtype.itemsize == 2 else row
        h = h - h.mean()
        h = h / torch.sqrt(h.dot(h) / len(h) + eps)
        done.append((h * w + b).to(x.dtype))
    return torch.stack(done).reshape(x.shape) if done else torch.zeros_like(x)


@hinted(1, reaches=tokens)
def layer_norm(x, w, b, eps=1e-5):
    y = x - x.mean(-1, keepdim=True)
    return y / y.std(-1, keepdim=True) * w + b
