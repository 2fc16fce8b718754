"""Judges lessons/13_language_models/04_rope.md."""

import torch

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

equivalent(
    "angle = pos[..., None].float() * theta",
    "angle = pos[..., None] * theta",
    because="int64 times float32 is float32 already",
)
equivalent(
    "a, b = x.float()[..., :half], x.float()[..., half:]",
    "a, b = x[..., :half], x.float()[..., half:]",
    because="half precision times the cosine in float32 is float32",
)
equivalent(
    "a, b = x.float()[..., :half], x.float()[..., half:]",
    "a, b = x.float()[..., :half], x[..., half:]",
    because="half precision times the cosine in float32 is float32",
)

PAIRS = "The pairs are (i, i + D/2), turned by +pos * base ** (-2i / D)."
BACK = "Compute in float32 if you like, and go back to the dtype of x at the end."
ROWS = "pos of shape (B, T): row b turns by pos[b], in all of its heads."
NEAR = {"rtol": 1e-4, "atol": 1e-4}


def turned(x, pos, base, first, second):
    """In float64, on the CPU; first, second: the numbers of each pair."""
    x, pos = x.detach().cpu().double(), pos.cpu()
    theta = base ** (-2 * torch.arange(len(first)).double() / x.shape[-1])
    angle = pos[..., None].double() * theta
    angle = angle[:, None] if pos.dim() == 2 else angle
    out = torch.empty_like(x)
    a, b = x[..., first], x[..., second]
    out[..., first] = a * angle.cos() - b * angle.sin()
    out[..., second] = b * angle.cos() + a * angle.sin()
    return out


def wanted(x, pos, base=10000.0):
    half = torch.arange(x.shape[-1] // 2)
    return turned(x, pos, base, half, half + len(half)).to(x.device)


def neighbours(x, pos, base=10000.0):
    even = torch.arange(0, x.shape[-1], 2)
    return turned(x, pos, base, even, even + 1).to(x)


def slips(x, pos):
    """Usual mistakes with the result that each gives, in float64."""
    half = torch.arange(x.shape[-1] // 2)
    last = half + len(half)
    swapped = torch.cat([x[..., ::2], x[..., 1::2]], -1)
    turned_first = wanted(x, pos)[..., half]
    angle = pos.cpu()[:, None].double() * 10000.0 ** (-half.double() / len(half))
    late = x.cpu().double()[..., last] * angle.cos() + turned_first.cpu() * angle.sin()
    overwritten = torch.cat([turned_first.cpu(), late], -1).to(x.device)
    return {
        "You paired neighbours, 2i and 2i + 1. Here number i belongs with number i + D/2.": (
            neighbours(x, pos)
        ),
        "You read neighbours and write halves. Here number i belongs with number i + D/2.": (
            wanted(swapped, pos)
        ),
        "You turn backwards: (a, b) becomes (a cos - b sin, b cos + a sin).": wanted(x, -pos),
        "The exponent is -2 * i / D. You take half of it.": wanted(x, pos, 10000.0**0.5),
        "The default base is 10000.": wanted(x, pos, 500000.0),
        "The second half reads the new first half. Keep the old one until both are done.": (
            overwritten
        ),
    }


def advice(got, x, pos):
    """What to say of a result that is wrong."""
    if isinstance(got, torch.Tensor) and got.shape == x.shape:
        for hint, slip in slips(x, pos).items():
            if torch.allclose(got.detach().double(), slip.double(), atol=1e-3):
                return hint
    return PAIRS


def compare(answer, x, pos, hint, *base):
    right = wanted(x, pos, *base)  # before the answer can write into x
    got = answer.rope(x, pos, *base)
    expect_close(got, right, dtype=x.dtype, hint=hint, dtype_hint=BACK, **NEAR)


def noise(rng, device, b=2, h=3, t=None, d=None):
    t, d = t or rng.randint(3, 7), d or rng.choice((4, 6, 8))
    return torch.randn(b, h, t, d, device=device)


@check(
    "the pairs are i and i + D/2, turned forwards",
    holds=[
        "which turns the vectors of `x` by their positions",
        "number i belongs with number i + D/2",
        "turns forwards",
    ],
)
def values(answer, rng, device):
    x = noise(rng, device)
    pos = torch.arange(x.shape[2], device=device)
    got = answer.rope(x.clone(), pos)
    expect_close(got, wanted(x, pos), dtype=x.dtype, hint=advice(got, x, pos), **NEAR)


@check("pair i turns by base ** (-2i / D)", holds="by `p * base ** (-2 * i / D)`")
def bases(answer, rng, device):
    x = noise(rng, device, b=1, h=1, t=5, d=8)
    pos = torch.arange(5, device=device)
    compare(answer, x, pos, "theta_i = base ** (-2i / D), with the base that is given.", 500000.0)
    compare(answer, noise(rng, device, t=5, d=2), pos, PAIRS, 100.0)


@check("positions that do not begin at 0", holds="and need not begin at 0")
def positions(answer, rng, device):
    start = rng.randint(1, 50)
    for t in (3, 1):
        pos = torch.arange(start, start + t, device=device)
        hint = f"The first token is at {start}. With a cache of earlier tokens that is usual."
        compare(answer, noise(rng, device, b=1, t=t), pos, hint)
    pos = torch.tensor([9, 2, 2], device=device)
    compare(answer, noise(rng, device, t=3), pos, "Any order of positions may be given.")


@check("positions of (T,) are shared by all rows", holds="all rows share it")
def shared(answer, rng, device):
    x = noise(rng, device, b=4, h=4, t=4)
    compare(answer, x, torch.arange(5, 9, device=device), PAIRS)


@check("each row has positions of its own", holds="row b of the batch has positions `pos[b]`")
def rows(answer, rng, device):
    for b, h, t in ((3, 3, 4), (4, 4, 4), (1, 2, 5), (2, 3, 1)):
        pos = torch.stack([torch.randperm(20, device=device)[:t] for _ in range(b)])
        compare(answer, noise(rng, device, b, h, t), pos, ROWS)


@check("half precision: angles in float32", holds="Angles are computed in float32")
def brain(answer, rng, device):
    for dtype, limit in ((torch.bfloat16, 0.05), (torch.float16, 0.01)):
        x = noise(rng, device, b=1, h=1, t=4, d=8).to(dtype)
        start = rng.randint(1500, 3000) * 2 + 1
        pos = torch.arange(start, start + 4, device=device)
        rounded = int(torch.tensor(start).to(dtype))
        hint = (
            f"{dtype} turns the position {start} into {rounded}."
            " Positions, theta and angles stay in float32."
        )
        right = wanted(x, pos)
        got = answer.rope(x, pos)
        near = {"rtol": limit, "atol": limit}
        expect_close(got, right, dtype=dtype, hint=hint, dtype_hint=BACK, **near)


@check("the dtype of x", holds="the result has the dtype of `x`")
def dtypes(answer, rng, device):
    for dtype in (torch.bfloat16, torch.float16, torch.float64):
        x = noise(rng, device).to(dtype)
        pos = torch.arange(x.shape[2], device=device)
        expect_dtype(answer.rope(x, pos), dtype, name=f"the result for {dtype}", hint=BACK)


@check("x stays, and gets gradients", holds=["The input stays as it was", "gradients reach it"])
def untouched(answer, rng, device):
    x = noise(rng, device).transpose(1, 2).contiguous().transpose(1, 2)
    pos = torch.arange(x.shape[2], device=device) + 3
    with expect_unchanged(x, pos):
        compare(answer, x, pos, PAIRS)
    x = noise(rng, device).requires_grad_()
    pos = torch.arange(x.shape[2], device=device) + 3
    out = answer.rope(x, pos)
    expect_true(out.requires_grad, "the result has no graph", hint="Compute with x itself.")
    seed = torch.randn_like(x)
    (grad,) = torch.autograd.grad(out, x, seed)
    expect_close(grad, wanted(seed, -pos).float(), name="the gradient of x", hint=PAIRS, **NEAR)


def halves(x, pos, theta, heads=True):
    angle = pos[..., None].float() * theta
    if pos.dim() == 2 and heads:
        angle = angle[:, None]
    a, b = x.float().chunk(2, -1)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def thetas(x, base):
    half = x.shape[-1] // 2
    return base ** (-torch.arange(half, device=x.device) / half)


@mutant("pairs of neighbours", caught_by=values)
def rope(x, pos, base=10000.0):
    return neighbours(x, pos, base)


@mutant("reads neighbours and writes halves", caught_by=values)
def rope(x, pos, base=10000.0):
    return halves(torch.cat([x[..., ::2], x[..., 1::2]], -1), pos, thetas(x, base)).to(x.dtype)


@mutant("the second half reads the new first half", caught_by=values)
def rope(x, pos, base=10000.0):
    angle = pos[..., None].float() * thetas(x, base)
    angle = angle[:, None] if pos.dim() == 2 else angle
    a, b = x.float().chunk(2, -1)
    a = a * angle.cos() - b * angle.sin()
    b = b * angle.cos() + a * angle.sin()
    return torch.cat([a, b], -1).to(x.dtype)


@mutant("cosine and sine in half precision for float32", caught_by=values)
def rope(x, pos, base=10000.0):
    angle = pos[..., None].float() * thetas(x, base)
    angle = angle[:, None] if pos.dim() == 2 else angle
    cos, sin = angle.cos().bfloat16().float(), angle.sin().bfloat16().float()
    a, b = x.float().chunk(2, -1)
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1).to(x.dtype)


@mutant("theta in the dtype of x", caught_by=brain)
def rope(x, pos, base=10000.0):
    return halves(x, pos, thetas(x, base).to(x.dtype).float()).to(x.dtype)


@mutant("counts from the first position of the call", caught_by=positions)
def rope(x, pos, base=10000.0):
    return halves(x, pos - pos[..., :1], thetas(x, base)).to(x.dtype)


@mutant("turns backwards", caught_by=values)
def rope(x, pos, base=10000.0):
    return halves(x, -pos, thetas(x, base)).to(x.dtype)


@mutant("halves, with cos and sin repeated for neighbours", caught_by=values)
def rope(x, pos, base=10000.0):
    angle = (pos[..., None].float() * thetas(x, base)).repeat_interleave(2, -1)
    angle = angle[:, None] if pos.dim() == 2 else angle
    a, b = x.chunk(2, -1)
    return (x * angle.cos() + torch.cat([-b, a], -1) * angle.sin()).to(x.dtype)


@mutant("another default base", caught_by=values)
def rope(x, pos, base=100.0):
    return halves(x, pos, thetas(x, base)).to(x.dtype)


@mutant("i / D in place of 2i / D", caught_by=bases)
def rope(x, pos, base=10000.0):
    return halves(x, pos, thetas(x, base**0.5)).to(x.dtype)


@mutant("ignores the base", caught_by=bases)
def rope(x, pos, base=10000.0):
    return halves(x, pos, thetas(x, 10000.0)).to(x.dtype)


@mutant("counts from 0", caught_by=positions)
def rope(x, pos, base=10000.0):
    pos = torch.arange(x.shape[-2], device=x.device)
    return halves(x, pos, thetas(x, base)).to(x.dtype)


@mutant("counts on from the first position", caught_by=positions)
def rope(x, pos, base=10000.0):
    pos = pos[..., :1] + torch.arange(x.shape[-2], device=x.device)
    return halves(x, pos, thetas(x, base)).to(x.dtype)


@mutant("the positions of a row are taken for those of a head", caught_by=rows)
def rope(x, pos, base=10000.0):
    return halves(x, pos, thetas(x, base), heads=False).to(x.dtype)


@mutant("all rows have the positions of the first", caught_by=rows)
def rope(x, pos, base=10000.0):
    pos = pos[0] if pos.dim() == 2 else pos
    return halves(x, pos, thetas(x, base)).to(x.dtype)


@mutant("positions in the dtype of x", caught_by=brain)
def rope(x, pos, base=10000.0):
    return halves(x, pos.to(x.dtype), thetas(x, base)).to(x.dtype)


@mutant("stays in float32", caught_by=dtypes)
def rope(x, pos, base=10000.0):
    return halves(x, pos, thetas(x, base))


@mutant("writes into x", caught_by=untouched)
def rope(x, pos, base=10000.0):
    return x.copy_(halves(x, pos, thetas(x, base)))


@mutant("cuts the graph", caught_by=untouched)
def rope(x, pos, base=10000.0):
    return halves(x.detach(), pos, thetas(x, base)).to(x.dtype)


@accepted("a matrix of 2 by 2 for each pair")
def rope(x, pos, base=10000.0):
    B, H, T, D = x.shape
    angle = pos.reshape(-1, T, 1) * base ** (-2 * torch.arange(D // 2, device=x.device) / D)
    cos, sin = angle.cos(), angle.sin()
    turn = torch.stack([torch.stack([cos, -sin], -1), torch.stack([sin, cos], -1)], -2)
    pairs = x.float().reshape(B, H, T, 2, D // 2)
    turn = turn.expand(B, T, D // 2, 2, 2)
    return torch.einsum("btijk,bhtki->bhtji", turn, pairs).reshape(B, H, T, D).to(x.dtype)


@accepted("cosine and sine rounded to the dtype of x, angles in float32")
def rope(x, pos, base=10000.0):
    D = x.shape[-1]
    angle = pos[..., None] * base ** (-torch.arange(0, D, 2, device=x.device).float() / D)
    angle = torch.cat([angle, angle], -1)
    angle = angle[:, None] if pos.dim() == 2 else angle
    other = torch.cat([-x[..., D // 2 :], x[..., : D // 2]], -1)
    return x * angle.cos().to(x.dtype) + other * angle.sin().to(x.dtype)


@accepted("complex numbers of the two halves")
def rope(x, pos, base=10000.0):
    D = x.shape[-1]
    theta = 1.0 / base ** (torch.arange(0, D, 2, device=x.device) / D)
    angle = pos.unsqueeze(-1) * theta
    if angle.dim() == 3:
        angle = angle.unsqueeze(1)
    z = torch.complex(*x.float().chunk(2, -1)) * torch.polar(torch.ones_like(angle), angle)
    return torch.cat([z.real, z.imag], -1).to(x.dtype)


@accepted("x cos + rotate_half(x) sin, angles in float64")
def rope(x, pos, base=10000.0):
    D = x.shape[-1]
    inv = base ** -(torch.arange(0, D, 2, device=x.device).double() / D)
    angle = torch.einsum("...t,d->...td", pos.double(), inv).repeat((1,) * pos.dim() + (2,))
    if pos.ndim == 2:
        angle = angle.unsqueeze(1)
    sign = torch.where(torch.arange(D, device=x.device) < D // 2, -1.0, 1.0)
    return (x * angle.cos() + x.roll(D // 2, -1) * sign * angle.sin()).to(x.dtype)


@hinted(1, reaches=positions)
def rope(x, pos, base=10000.0):
    D = x.shape[-1]
    a, b = x[..., : D // 2], x[..., D // 2 :]
    i = torch.arange(D // 2, device=x.device)
    angle = pos[:, None] * base ** (-2 * i / D)
    cos, sin = angle.cos(), angle.sin()
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)
