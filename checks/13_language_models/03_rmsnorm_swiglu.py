"""Judges lessons/13_language_models/03_rmsnorm_swiglu.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
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

background("A call that may help")

BRANCH = (
    "The branch is down(silu(gate n) * (up n)), and n is x over its root mean square, times norm."
)
ALONE = "The caller still needs x: add to it with `x + ...`, which makes a new tensor."
GRADIENTS = "Gradients reach all five: what goes through detach() or a new Parameter has none."
STREAM = "The branch reads the norm, the stream does not: add the branch to x."
INSIDE = "eps is added to the mean of squares, before the root."
WIDE = "400 * 400 is infinite in float16, and x / inf is 0: take the mean of squares in float32."
BACK = "Go back to the dtype of x before the products."


def problem(rng, device, scale=1.0, shape=None, dtype=torch.float32):
    width, hidden = rng.choice([6, 8, 10]), rng.choice([12, 16])
    shape = shape if shape is not None else rng.choice([(), (5,), (2, 7), (3, 1, 2)])
    x = (torch.randn(*shape, width) + 0.5) * scale
    weights = [
        torch.rand(width) + 0.5,
        torch.randn(hidden, width) / 2,
        torch.randn(hidden, width) / 2,
        torch.randn(width, hidden) / 2,
    ]
    return [t.to(device=device, dtype=dtype) for t in (x, *weights)]


def branch(x, norm, gate, up, down, eps=1e-6):
    """What is to be added to x, in float64."""
    x, norm, gate, up, down = (t.double() for t in (x, norm, gate, up, down))
    n = x / (x.square().mean(-1, keepdim=True) + eps).sqrt() * norm
    a = n @ gate.T
    return (a * a.sigmoid() * (n @ up.T)) @ down.T


def swiglu(n, gate, up, down):
    return (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


def slips(x, norm, gate, up, down):
    """Usual mistakes with the result that each gives, in float64."""
    x, norm, gate, up, down = (t.double() for t in (x, norm, gate, up, down))
    bare = F.rms_norm(x, x.shape[-1:], None, 1e-6)
    n = bare * norm
    centred = F.layer_norm(x, x.shape[-1:], norm, eps=1e-6)
    length = F.normalize(x, dim=-1) * norm
    a = n @ gate.T
    return {
        "silu goes over the product with gate, not over the one with up.": x
        + swiglu(n, up, gate, down),
        "silu(z) is z * sigmoid(z). You gate by the sigmoid alone.": x
        + (a.sigmoid() * (n @ up.T)) @ down.T,
        "SwiGLU takes silu. You take GELU.": x + (F.gelu(a) * (n @ up.T)) @ down.T,
        "RMSNorm takes no mean off: x over the root of its mean square.": x
        + swiglu(centred, gate, up, down),
        "The normalised x is scaled by norm.": x + swiglu(bare, gate, up, down),
        "norm is the scale itself, not what is added to 1.": x
        + swiglu(bare * (1 + norm), gate, up, down),
        "Divide by the root of the mean of squares. You divide by the root of their sum.": x
        + swiglu(length, gate, up, down),
        "Both products read n: up reads the normalised x too.": x
        + (F.silu(a) * (x @ up.T)) @ down.T,
        "Add the branch to x. You add it to the normalised x.": n + swiglu(n, gate, up, down),
        "Add the branch to x. You return the branch alone.": swiglu(n, gate, up, down),
    }


def advice(got, p):
    """What to say of a result that is wrong."""
    if isinstance(got, torch.Tensor) and got.shape == p[0].shape:
        for hint, slip in slips(*p).items():
            if torch.allclose(got.detach().double(), slip, rtol=1e-4, atol=1e-4):
                return hint
    return BRANCH


def called(answer, p, **settings):
    """The answer gets copies: what it writes into them is told by the check of the arguments."""
    return answer.sublayer(*[t.clone() for t in p], **settings)


@check(
    "the values in float32",
    holds=[
        "x plus the branch",
        "The branch normalises x over its last dimension, scales it by norm, and applies SwiGLU",
        "A weight is stored as nn.Linear stores it, (out, in).",
        "x has any leading dimensions.",
        "x: (..., C); norm: (C,)",
    ],
    both_sides=True,
)
def values(answer, rng, device):
    for _ in range(3):
        p = problem(rng, device)
        got = called(answer, p)
        expect_shape(got, p[0].shape, hint="The result has the shape of x.")
        wanted = (p[0].double() + branch(*p)).float()
        expect_close(got, wanted, rtol=1e-4, atol=1e-4, hint=advice(got, p))


@check("x itself is not normalised", holds="x plus the branch", side="x")
def stream(answer, rng, device):
    p = problem(rng, device, 4.0)
    p[4] = torch.zeros_like(p[4])
    expect_close(called(answer, p), p[0], name="the result with down = 0", hint=STREAM)


@check("eps stands inside the root", holds="eps is added to the mean of squares.")
def inside(answer, rng, device):
    p = problem(rng, device, 1e-3, shape=(4,))
    eps = rng.choice([1e-6, 1e-5])
    got = called(answer, p, eps=eps) - p[0]
    expect_close(got, branch(*p, eps=eps).float(), name="the branch", atol=1e-4, hint=INSIDE)
    got = called(answer, p) - p[0]
    expect_close(got, branch(*p).float(), name="the branch with eps=1e-6", atol=1e-4, hint=INSIDE)
    p[0] = torch.zeros_like(p[0])
    expect_close(called(answer, p), p[0], name="the result for x = 0", hint=INSIDE)


@check(
    "float16 survives a large number",
    holds="In float16 a number of 400 in x must not turn the others to 0",
)
def half(answer, rng, device):
    p = problem(rng, device, 1.0, shape=(4,), dtype=torch.float16)
    p[0][:, 0] = rng.choice([400.0, 2000.0])
    got = called(answer, p)
    expect_dtype(got, torch.float16, hint=BACK)
    expect_true(bool(got.isfinite().all()), "there is NaN or infinity", hint=WIDE)
    mine = (got.double() - p[0].double())[:, 1:]
    expect_close(mine, branch(*p)[:, 1:], name="the branch", rtol=0.03, atol=0.03, hint=WIDE)


@check(
    "bfloat16 in, bfloat16 out",
    holds=[
        "All five tensors have the same dtype, and so has the result.",
        "float32, float16 or bfloat16",
    ],
    both_sides=True,
)
def brain(answer, rng, device):
    p = problem(rng, device, dtype=torch.bfloat16)
    got = called(answer, p)
    expect_dtype(got, torch.bfloat16, hint=BACK)
    wanted = p[0].double() + branch(*p)
    expect_close(got.double(), wanted, rtol=0.1, atol=0.2, hint=BRANCH)


@check("the tensors stay as they were", holds="The tensors stay as they were")
def untouched(answer, rng, device):
    for dtype in (torch.float32, torch.float16):
        p = problem(rng, device, shape=(3,), dtype=dtype)
        with expect_unchanged(*p, hint=ALONE):
            answer.sublayer(*p)


@check(
    "gradients reach all five", holds="gradients reach all five", both_sides=True, hint=GRADIENTS
)
def gradients(answer, rng, device):
    p = problem(rng, device, shape=(3,))
    for t in p:
        t.requires_grad_()
    got = torch.autograd.grad(answer.sublayer(*p).square().sum(), p)
    wanted = torch.autograd.grad((p[0].double() + branch(*p)).square().sum(), p)
    for name, mine, right in zip(("x", "norm", "gate", "up", "down"), got, wanted):
        near = {"rtol": 1e-3, "atol": 1e-3}
        expect_close(mine, right, name=f"the gradient of {name}", hint=GRADIENTS, **near)


@mutant("takes off the mean, as LayerNorm does", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.layer_norm(x, x.shape[-1:], norm, eps=eps)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("puts silu on up", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x + (n @ gate.T * F.silu(n @ up.T)) @ down.T


@mutant("gates by a sigmoid", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x + ((n @ gate.T).sigmoid() * (n @ up.T)) @ down.T


@mutant("normalises over the whole tensor", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = x * torch.rsqrt(x.float().square().mean() + eps).to(x.dtype) * norm
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("forgets the scale of the norm", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], None, eps).to(x.dtype)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("adds the branch to the norm", caught_by=stream)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return n + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("returns the branch alone", caught_by=stream)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("adds eps to the root", caught_by=inside)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    f = x.float()
    n = (f / (f.square().mean(-1, keepdim=True).sqrt() + eps)).to(x.dtype) * norm
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("ignores eps", caught_by=inside)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), 1e-6).to(x.dtype)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("squares in the dtype of x", caught_by=half)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * norm
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("stays in float32", caught_by=half)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    x, norm, gate, up, down = (t.float() for t in (x, norm, gate, up, down))
    n = F.rms_norm(x, x.shape[-1:], norm, eps)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("adds in place", caught_by=untouched)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x.add_((F.silu(n @ gate.T) * (n @ up.T)) @ down.T)


@mutant("gates by GELU", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x + (F.gelu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("lets up read x", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x + (F.silu(n @ gate.T) * (x @ up.T)) @ down.T


@mutant("divides by the root of the sum", caught_by=values)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    f = x.float()
    n = (f * torch.rsqrt(f.square().sum(-1, keepdim=True) + eps)).to(x.dtype) * norm
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("another default of eps", caught_by=inside)
def sublayer(x, norm, gate, up, down, eps=1e-5):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("loads norm into a module of its own", caught_by=gradients)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    module = torch.nn.RMSNorm(x.shape[-1], eps=eps, dtype=x.dtype, device=x.device)
    module.weight = torch.nn.Parameter(norm.detach())
    n = module(x)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@mutant("takes the mean of squares as a constant", caught_by=gradients)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    f = x.float()
    scale = torch.rsqrt(f.detach().square().mean(-1, keepdim=True) + eps)
    n = (f * scale).to(x.dtype) * norm
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@accepted("all of it in float32, and back at the end")
def sublayer(x, norm, gate, up, down, eps=1e-6):
    f, w, g, u, d = (t.float() for t in (x, norm, gate, up, down))
    n = f * (f.square().mean(-1, keepdim=True) + eps).rsqrt() * w
    return (f + (F.silu(n @ g.T) * (n @ u.T)) @ d.T).to(x.dtype)


@hinted(1, reaches=stream)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x, x.shape[-1:], norm, eps)
    return x + (F.silu(n @ gate.T) * (n @ up.T)) @ down.T


@accepted("F.rms_norm on a float32 copy, and one fused product")
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).type_as(x)
    g, u = F.linear(n, torch.cat([gate, up])).chunk(2, -1)
    return x + F.linear(F.silu(g) * u, down)


@accepted("a vector norm with a dtype, and silu written out")
def sublayer(x, norm, gate, up, down, eps=1e-6):
    length = torch.linalg.vector_norm(x, dim=-1, keepdim=True, dtype=torch.float32)
    rms = (length.square() / x.shape[-1] + eps).sqrt()
    n = (x / rms).to(x.dtype) * norm
    a = F.linear(n, gate)
    return F.linear(a * torch.sigmoid(a) * F.linear(n, up), down).add(x)
