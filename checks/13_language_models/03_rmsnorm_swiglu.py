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

BRANCH = "The branch is down(silu(gate n) * (up n)), and n is x over its root mean square."
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
        got = answer.sublayer(*p)
        expect_shape(got, p[0].shape, hint="The result has the shape of x.")
        expect_close(got, (p[0].double() + branch(*p)).float(), rtol=1e-4, atol=1e-4, hint=BRANCH)


@check("x itself is not normalised", holds="x plus the branch", side="x")
def stream(answer, rng, device):
    p = problem(rng, device, 4.0)
    p[4] = torch.zeros_like(p[4])
    expect_close(answer.sublayer(*p), p[0], name="the result with down = 0", hint=STREAM)


@check("eps stands inside the root", holds="eps is added to the mean of squares.")
def inside(answer, rng, device):
    p = problem(rng, device, 1e-3, shape=(4,))
    eps = rng.choice([1e-6, 1e-5])
    got = answer.sublayer(*p, eps=eps) - p[0]
    expect_close(got, branch(*p, eps=eps).float(), name="the branch", atol=1e-4, hint=INSIDE)
    got = answer.sublayer(*p) - p[0]
    expect_close(got, branch(*p).float(), name="the branch with eps=1e-6", atol=1e-4, hint=INSIDE)
    p[0] = torch.zeros_like(p[0])
    expect_close(answer.sublayer(*p), p[0], name="the result for x = 0", hint=INSIDE)


@check(
    "float16 survives a large number",
    holds="In float16 a number of 400 in x must not turn the others to 0",
)
def half(answer, rng, device):
    p = problem(rng, device, 1.0, shape=(4,), dtype=torch.float16)
    p[0][:, 0] = rng.choice([400.0, 2000.0])
    got = answer.sublayer(*p)
    expect_dtype(got, torch.float16, hint=BACK)
    expect_true(bool(got.isfinite().all()), "there is NaN or infinity", hint=WIDE)
    mine = (got.double() - p[0].double())[:, 1:]
    expect_close(mine, branch(*p)[:, 1:], name="the branch", rtol=0.03, atol=0.03, hint=WIDE)


@check(
    "bfloat16 in, bfloat16 out",
    holds="All six tensors have the same dtype, and so has the result.",
    both_sides=True,
)
def brain(answer, rng, device):
    p = problem(rng, device, dtype=torch.bfloat16)
    got = answer.sublayer(*p)
    expect_dtype(got, torch.bfloat16, hint=BACK)
    wanted = p[0].double() + branch(*p)
    expect_close(got.double(), wanted, rtol=0.1, atol=0.2, hint=BRANCH)


@check("inputs stay, and the gradient passes", hint=BRANCH, holds="x plus the branch")
def gradients(answer, rng, device):
    p = problem(rng, device, shape=(3,))
    with expect_unchanged(*p):
        answer.sublayer(*p)
    for t in p:
        t.requires_grad_()
    got = torch.autograd.grad(answer.sublayer(*p).square().sum(), p)
    wanted = torch.autograd.grad((p[0].double() + branch(*p)).square().sum(), p)
    for name, mine, right in zip(("x", "norm", "gate", "up", "down"), got, wanted):
        expect_close(mine, right, name=f"the gradient of {name}", rtol=1e-3, atol=1e-3, hint=BRANCH)


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


@mutant("adds in place", caught_by=gradients)
def sublayer(x, norm, gate, up, down, eps=1e-6):
    n = F.rms_norm(x.float(), x.shape[-1:], norm.float(), eps).to(x.dtype)
    return x.add_((F.silu(n @ gate.T) * (n @ up.T)) @ down.T)


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
