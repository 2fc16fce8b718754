"""Judges lessons/17_deployment/04_quantize.md."""

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write quantize(w) for a weight", "Write also linear8(x, q, scale, bias)")

ROW = "Each row has a scale of its own: its largest absolute value over 127."
ROUND = "A conversion to int8 drops the fraction. Round first."
TOP = "Divide the largest value by 127: int8 has no code 128."
ZERO = "A row of zeros has the scale 0, and 0 / 0 is NaN: clamp the scale from below."
TINY = "What is added to the scale, or its lower bound, is larger than the scale of this row."
PRODUCT = "Multiply column o of x @ q.T by the scale of row o, then add the bias."
SIZE = "A row may have its largest weight below 0: take w.abs() before the largest."
SAME = "quantize works on values of its own: w.detach().float() may be w itself, so not in place."
INPUT = "x stays float32: only the weight has codes. Do not round it."
FLOAT = "Take w to float32 before anything is divided."


def weight(rng, device, rows=None, columns=None):
    """Rows from 0.01 to 100, of either sign."""
    rows, columns = rows or rng.randint(3, 9), columns or rng.randint(2, 40)
    size = torch.logspace(-2, 2, rows)[torch.randperm(rows)]
    return (torch.randn(rows, columns) * size[:, None]).to(device)


def pair(answer, w):
    before = w.detach().clone()
    out = answer.quantize(w)
    expect_true(torch.equal(w.detach(), before), "quantize has changed w", hint=SAME)
    good = isinstance(out, (tuple, list)) and len(out) == 2
    expect_true(good, "quantize does not return a pair (q, scale)")
    q, scale = out
    expect_true(isinstance(q, torch.Tensor) and isinstance(scale, torch.Tensor), "not tensors")
    expect_equal(q.dtype, torch.int8, name="q's dtype")
    expect_equal(scale.dtype, torch.float32, name="scale's dtype", hint=FLOAT)
    expect_equal(tuple(q.shape), tuple(w.shape), name="q's shape")
    expect_equal(tuple(scale.shape), (len(w), 1), name="scale's shape", hint=ROW)
    return q, scale


def cause(q, scale, w, hint):
    """The hint for what was done to w, if it is one of the usual mistakes."""
    w, s, q = w.detach().double(), scale.detach().double(), q.double()
    some = w.abs().amax(1, keepdim=True) > 1e-4
    if not bool(some.any()):
        return hint

    def like(a, b):
        return torch.allclose(a[some], b[some], rtol=2e-3, atol=0)

    if like(s, w.abs().amax(1, keepdim=True) / 128):
        return TOP
    if not like(s, w.abs().amax(1, keepdim=True) / 127):
        signed = w.amax(1, keepdim=True)
        return SIZE if like(s, signed / 127) or like(s, signed.abs() / 127) else ROW
    if bool((some & ((q - w / s).abs() > 0.51)).any()):
        cut = ((q - (w / s)).abs() < 1.01) | ~some
        return ROUND if bool(cut.all()) else hint
    return hint


def within(q, scale, w, hint):
    error = (q.double() * scale.double() - w.detach().double()).abs()
    steps = (error / scale.double()).max().item()
    text = f"a value is off by {steps:.2f} of its row's scale"
    expect_true(steps <= 0.5001, text, hint=cause(q, scale, w, hint))


def codes(q, scale, w, hint):
    largest = q.to(torch.int32).abs().amax(1).cpu()
    wanted = torch.where(w.detach().float().abs().amax(1).cpu() > 0, 127, 0)
    name = "the largest code of each row"
    expect_equal(largest.tolist(), wanted.tolist(), name=name, hint=cause(q, scale, w, hint))


@check(
    "shapes and dtypes",
    holds=["q is int8 of the same shape, and scale is float32 of shape (out, 1)"],
)
def shapes(answer, rng, device):
    pair(answer, weight(rng, device))
    pair(answer, weight(rng, device, 1, 1))


@check("the largest weight has the code 127", holds="has the code 127 or -127", both_sides=True)
def top(answer, rng, device):
    for _ in range(3):
        w = weight(rng, device)
        q, scale = pair(answer, w)
        expect_true(int(q.min()) > -128, "a code is -128", hint=cause(q, scale, w, TOP))
        codes(q, scale, w, ROW)
        place = w.abs().argmax(1, keepdim=True)
        signs = q.gather(1, place).sign().flatten().tolist()
        wanted = w.gather(1, place).sign().to(torch.int8).flatten().tolist()
        expect_equal(signs, wanted, name="the sign of each row's largest code", hint=TOP)


@check(
    "a row of tiny weights uses all codes",
    holds="in a row whose largest weight is 1e-6 too",
)
def tiny(answer, rng, device):
    w = weight(rng, device)
    row = rng.randrange(len(w))
    w[row] *= 1e-6 / w[row].abs().max()
    q, scale = pair(answer, w)
    codes(q, scale, w, TINY)
    within(q, scale, w, TINY)


@check(
    "no value is off by more than half a step",
    holds="no value of q * scale is further from w than half its row's scale",
)
def half(answer, rng, device):
    for _ in range(3):
        w = weight(rng, device, columns=64)
        within(*pair(answer, w), w, ROUND)
        within(*pair(answer, w.T.contiguous().T), w, ROUND)


@check("a row of zeros", holds="A row of zeros has codes 0 and a scale above 0.")
def zeros(answer, rng, device):
    w = weight(rng, device)
    w[rng.randrange(len(w))] = 0
    q, scale = pair(answer, w)
    good = bool((scale > 0).all() and scale.isfinite().all())
    expect_true(good, "a scale is not a number above 0", hint=ZERO)
    codes(q, scale, w, ZERO)
    within(q, scale, w, ZERO)
    q, scale = pair(answer, torch.zeros(2, 3, device=device))
    expect_equal(int(q.abs().max()), 0, name="the largest code of a weight of zeros", hint=ZERO)


@check(
    "bfloat16, and a parameter",
    holds=[
        "w is float32 or bfloat16, and may be a parameter; the scale does not require grad.",
        "Neither function changes what it is given.",
    ],
    both_sides=True,
)
def kinds(answer, rng, device):
    w = weight(rng, device, columns=200).to(torch.bfloat16)
    q, scale = pair(answer, w)
    within(q, scale, w, FLOAT)
    codes(q, scale, w, FLOAT)
    parameter = nn.Parameter(weight(rng, device))
    before = parameter.detach().clone()
    q, scale = pair(answer, parameter)
    text = "scale requires grad"
    expect_true(not scale.requires_grad, text, hint="Take the values alone: w.detach().")
    expect_close(parameter.detach(), before, name="w after quantize")
    within(q, scale, parameter, ROUND)


@check(
    "the product of the codes",
    holds=[
        "what a linear layer with that weight gives for x of shape (rows, in)",
        "Neither function changes what it is given.",
    ],
    side="linear8",
)
def product(answer, rng, device):
    for rows in (1, rng.randint(2, 6)):
        out, columns = rng.randint(2, 6), rng.randint(2, 30)
        q = torch.randint(-127, 128, (out, columns), device=device).to(torch.int8)
        scale = torch.rand(out, 1, device=device) + 0.01
        bias = torch.randn(out, device=device)
        x = torch.randn(rows, columns, device=device)
        with expect_unchanged(x, q, scale, bias):
            got = answer.linear8(x, q, scale, bias)
        weights = q.double() * scale.double()
        hint = PRODUCT
        for bent in (x.round(), x.trunc(), x.floor()):
            other = nn.functional.linear(bent.double(), weights, bias.double())
            if got.shape == other.shape and torch.allclose(got.double(), other, 1e-4, 1e-3):
                hint = INPUT
        right = nn.functional.linear(x.double(), weights, bias.double())
        expect_close(got, right.float(), name="linear8", rtol=1e-4, atol=1e-3, hint=hint)


def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).round().to(torch.int8), scale


def linear8(x, q, scale, bias):
    return x @ q.float().T * scale.T + bias


@mutant("bounds the scale far above those of tiny rows", caught_by=tiny)
def quantize(w):
    w = w.detach().float()
    scale = (w.abs().amax(1, keepdim=True) / 127).clamp(min=1e-5)
    return (w / scale).round().to(torch.int8), scale


@mutant("adds a small number to the scale", caught_by=tiny)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True) / 127 + 1e-8
    return (w / scale).round().to(torch.int8), scale


@mutant("one scale for all rows", caught_by=top)
def quantize(w):
    w = w.detach().float()
    scale = (w.abs().max().clamp(min=1e-12) / 127).expand(len(w), 1)
    return (w / scale).round().to(torch.int8), scale


@mutant("one scale for each column", caught_by=shapes)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(0, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).round().to(torch.int8), scale


@mutant("drops the fraction", caught_by=half)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).to(torch.int8), scale


@mutant("rounds down", caught_by=half)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale + 1e-4).floor().clamp(-127, 127).to(torch.int8), scale


@mutant("divides by 128", caught_by=top)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 128
    return (w / scale).round().to(torch.int32).to(torch.int8), scale


@mutant("takes the largest value, not the largest size", caught_by=half)
def quantize(w):
    w = w.detach().float()
    scale = w.amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).round().clamp(-127, 127).to(torch.int8), scale


@mutant("divides 0 by 0", caught_by=zeros)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True) / 127
    return (w / scale).round().to(torch.int8), scale


@mutant("adds a constant to each scale", caught_by=top)
def quantize(w):
    w = w.detach().float()
    scale = w.abs().amax(1, keepdim=True) / 127 + 1e-3
    return (w / scale).round().to(torch.int8), scale


@mutant("computes in bfloat16", caught_by=kinds)
def quantize(w):
    w = w.detach()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).round().to(torch.int8), scale.float()


@mutant("keeps the graph", caught_by=kinds)
def quantize(w):
    w = w.float()
    scale = w.abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return (w / scale).round().to(torch.int8), scale


@mutant("uses eight bits without a sign", caught_by=shapes)
def quantize(w):
    w = w.detach().float()
    low = w.amin(1, keepdim=True)
    scale = (w.amax(1, keepdim=True) - low).clamp(min=1e-12) / 255
    return ((w - low) / scale).round().to(torch.uint8), scale


@mutant("forgets the scale", caught_by=product)
def linear8(x, q, scale, bias):
    return x @ q.float().T + bias


@mutant("scales the bias, too", caught_by=product)
def linear8(x, q, scale, bias):
    return (x @ q.float().T + bias) * scale.T


@mutant("forgets the bias", caught_by=product)
def linear8(x, q, scale, bias):
    return x @ (q * scale).T


@mutant("takes the mean of the scales", caught_by=product)
def linear8(x, q, scale, bias):
    return x @ q.float().T * scale.mean() + bias


@mutant("adds the bias in place", caught_by=product)
def linear8(x, q, scale, bias):
    with torch.no_grad():
        bias += 0.5
    return x @ q.float().T * scale.T + bias


@mutant("rounds the input, too", caught_by=product)
def linear8(x, q, scale, bias):
    return x.round() @ q.float().T * scale.T + bias


@mutant("quantizes each row of the input", caught_by=product)
def linear8(x, q, scale, bias):
    step = x.abs().amax(1, keepdim=True) / 127
    return ((x / step).round() * step) @ q.float().T * scale.T + bias


@mutant("divides the weight itself", caught_by=shapes)
@torch.no_grad()
def quantize(w):
    scale = w.float().abs().amax(1, keepdim=True).clamp(min=1e-12) / 127
    return w.div_(scale).round().to(torch.int8), scale


@mutant("takes the size of the largest value", caught_by=half)
def quantize(w):
    w = w.detach().float()
    scale = w.amax(1, keepdim=True).abs().clamp(min=1e-12) / 127
    return (w / scale).round().clamp(-127, 127).to(torch.int8), scale


@hinted(1, reaches=half)
def quantize(w):
    scale = torch.stack([row.detach().abs().max() / 127 for row in w]).view(-1, 1)
    return (w / scale).round().to(torch.int8), scale


@accepted("a finite scale of another kind for zero rows, and clamped codes")
def quantize(w):
    with torch.no_grad():
        w = w.to(torch.float32)
        largest = torch.linalg.vector_norm(w, float("inf"), dim=1, keepdim=True)
        scale = torch.where(largest == 0, 1.0, largest / 127)
        return torch.round(w / scale).clamp_(-127, 127).char(), scale


@accepted("multiplies the weight out first")
def linear8(x, q, scale, bias):
    return nn.functional.linear(x, q * scale, bias)
