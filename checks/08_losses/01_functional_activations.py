"""Judges lessons/08_losses/01_functional_activations.md."""

import torch
from torch import nn
from torch.nn import functional as F

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

background(
    "Build the activation of a transformer's feed-forward part",
    "First the function",
)

FORMULA = (
    "x * (1 + erf(x / √2)) / 2: half of what lies between x and x * erf(...), which is 0 at 0."
)
EXACT = "float64 went in. Every constant has to keep its digits on the way: √2 in float32 does not."
MODE = "A function knows no mode, and a module made in forward is born in training mode."


def exact(x):
    """gelu in float64, by the tail of the normal distribution."""
    x = x.detach().double()
    return x * torch.erfc(-x / 2**0.5) / 2


def numbers(rng, device, *shape, dtype=torch.float32):
    """Around 0, half of the time not contiguous."""
    x = 2 * torch.randn(shape)
    if rng.random() < 0.5:
        x = 2 * torch.randn(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    return x.to(device, dtype)


@check(
    "gelu: x times the share below x",
    holds=[
        "torch's own gelu is off limits.",
        "Exact means exact",
        "x times the share of a normal distribution below x.",
    ],
    both_sides=True,
    forbid=("torch.nn.functional.gelu",),
)
def values(answer, rng, device):
    x = numbers(rng, device, rng.randrange(50, 70))
    expect_close(answer.gelu(x), exact(x), dtype=x.dtype, name="gelu(x)", hint=FORMULA)


@check("gelu: far out it is 0, or x")
def tails(answer, rng, device):
    far = rng.uniform(15, 25)
    x = torch.tensor([-far, -9.0, 0.0, 9.0, far, 300.0], device=device)
    expect_close(
        answer.gelu(x),
        exact(x),
        dtype=x.dtype,
        name="gelu(x)",
        hint="The share below x is 0 on the far left and 1 on the far right.",
    )


@check(
    "gelu: any shape and layout, and x stays as it is",
    holds=["float32 or float64", "any shape, empty too", "finite; stays as it is"],
    side="float32",
)
def shapes(answer, rng, device):
    for shape in ((3, 5), (4, 1, 2), (1,), (), (0, 3)):
        x = numbers(rng, device, *shape)
        with expect_unchanged(x):
            got = answer.gelu(x)
        expect_close(got, exact(x), dtype=x.dtype, name="gelu(x)", hint="Element by element.")


@check(
    "gelu: float64 keeps all its digits",
    holds=["float32 or float64", "the shape and dtype of x, with all its digits"],
    side="float64",
)
def digits(answer, rng, device):
    x = numbers(rng, device, rng.randrange(50, 70), dtype=torch.float64)
    got = answer.gelu(x)
    expect_close(got, exact(x), rtol=1e-9, atol=1e-12, name="gelu(x)", hint=EXACT)


@check("gelu: the gradient is that of the formula", holds="the gradient is that of the formula")
def gradient(answer, rng, device):
    x = numbers(rng, device, rng.randrange(5, 9), dtype=torch.float64).requires_grad_()
    out = answer.gelu(x)
    expect_true(out.requires_grad, "gelu(x) has no graph", hint="Detach nothing.")
    (got,) = torch.autograd.grad(out.sum(), x)
    at = x.detach()
    bell = (-at * at / 2).exp() / (2 * torch.pi) ** 0.5
    wanted = torch.erfc(-at / 2**0.5) / 2 + at * bell
    hint = "Both factors depend on x, so both have a share in the slope."
    expect_close(got, wanted, name="the gradient", hint=hint)


def rate(rng):
    return rng.choice((0.2, 0.3, 0.6, 0.7))


@check(
    "GeluDropout: in evaluation it is gelu",
    holds=["In evaluation it is gelu.", "It follows `train()` and `eval()` of the model around it"],
    both_sides=True,
)
def evaluation(answer, rng, device):
    x = numbers(rng, device, 6, 40)
    model = nn.Sequential(answer.GeluDropout(rate(rng))).to(device).eval()
    expect_close(model(x), exact(x), dtype=x.dtype, name="in eval(), the result", hint=MODE)
    model.train().eval()
    expect_close(model(x), exact(x), dtype=x.dtype, name="after train().eval(), it", hint=MODE)
    x = numbers(rng, device, 6, 40).double() / 3
    hint = "float64 went in: gelu keeps its digits, and so does the module."
    name = "in eval(), the result for float64"
    expect_close(model(x), exact(x), dtype=x.dtype, rtol=1e-12, atol=1e-14, name=name, hint=hint)


@check(
    "GeluDropout: in training each element is 0 or divided by 1 - p",
    holds=[
        "Then `GeluDropout`: gelu, and then dropout on its result.",
        "each element is set to 0 with the probability `p`, and what is left is divided by 1 - p",
    ],
    both_sides=True,
)
def training(answer, rng, device):
    p = rate(rng)
    x = numbers(rng, device, 100, 40) + 0.01
    out = nn.Sequential(answer.GeluDropout(p)).to(device).eval().train()(x)
    share = (out == 0).double().mean().item()
    hint = "F.dropout takes the input, the probability of a 0, and the mode, in this order."
    message = f"with p = {p}, a share of {share:.2f} of the elements is 0"
    expect_true(abs(share - p) < 0.06, message, hint=hint)
    for dim, which in ((0, "columns"), (1, "rows")):
        zeros = (out == 0).double().mean(dim)
        alike = ((zeros == 0) | (zeros == 1)).double().mean().item()
        message = f"{alike:.0%} of the {which} are kept or dropped as a whole"
        expect_true(alike < 0.1, message, hint="Each element has a draw of its own.")
    scaled = exact(x) / (1 - p)
    wanted = torch.where(out == 0, 0.0, scaled)
    hint = "First gelu, then dropout on its result: what is kept is gelu(x) / (1 - p)."
    expect_close(out, wanted, dtype=x.dtype, name="what was kept", hint=hint)


@check(
    "GeluDropout: each call in training draws again",
    holds="Each call draws anew.",
    both_sides=True,
)
def fresh(answer, rng, device):
    x = numbers(rng, device, 200) + 0.01
    block = answer.GeluDropout(0.5).to(device).train()
    same = torch.equal(block(x) == 0, block(x) == 0)
    message = "two calls in training drop the same elements"
    expect_true(not same, message, hint="Draw in forward.")


@check(
    "GeluDropout: p = 0 drops nothing, and nothing becomes a parameter",
    holds=["0 <= p < 1", "It has no parameters and no buffers."],
)
def bare(answer, rng, device):
    x = numbers(rng, device, 3, 5)
    block = answer.GeluDropout(0.0).to(device)
    expect_close(block(x), exact(x), dtype=x.dtype, name="with p = 0, the result")
    expect_equal(len(block.state_dict()), 0, name="the number of parameters and buffers")


@mutant("drops whole rows", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        y = x * (1 + torch.erf(x / 2**0.5)) / 2
        if not self.training:
            return y
        keep = torch.rand(x.shape[:1] + (1,) * (x.dim() - 1), device=x.device) >= self.p
        return y * keep / (1 - self.p)


@mutant("computes in float32 in evaluation", caught_by=evaluation)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, x):
        y = x.float()
        return self.drop((y * (1 + torch.erf(y / 2**0.5)) / 2).to(x.dtype))


@mutant("takes x * sigmoid(1.702 x)", caught_by=values)
def gelu(x):
    return x * torch.sigmoid(1.702 * x)


@mutant("takes the tanh formula", caught_by=values)
def gelu(x):
    return x * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (x + 0.044715 * x**3))) / 2


@mutant("takes relu", caught_by=values)
def gelu(x):
    return x.relu()


@mutant("multiplies by erf alone", caught_by=values)
def gelu(x):
    return x * torch.erf(x / 2**0.5)


@mutant("forgets the root of 2", caught_by=values)
def gelu(x):
    return x * (1 + torch.erf(x)) / 2


@mutant("forgets the half", caught_by=tails)
def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5))


@mutant("takes the root in float32", caught_by=digits)
def gelu(x):
    return x * (1 + torch.erf(x / torch.sqrt(torch.tensor(2.0)).item())) / 2


@mutant("writes the root with five digits", caught_by=digits)
def gelu(x):
    return x * (1 + torch.erf(x / 1.41421)) / 2


@mutant("treats the share as a constant", caught_by=gradient)
def gelu(x):
    return x * ((1 + torch.erf(x / 2**0.5)) / 2).detach()


@mutant("writes into x", caught_by=shapes)
def gelu(x):
    share = (1 + torch.erf(x / 2**0.5)) / 2
    return x.mul_(share) if not x.requires_grad else x * share


@mutant("leaves it to torch", caught_by=values)
def gelu(x):
    return F.gelu(x)


def right(x):
    """What the wrong modules build on."""
    return x * (1 + torch.erf(x / 2**0.5)) / 2


@mutant("never tells the function the mode", caught_by=evaluation)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(right(x), self.p)


@mutant("makes a new nn.Dropout in each call", caught_by=evaluation)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return nn.Dropout(self.p)(right(x))


@mutant("reads the mode when it is made", caught_by=evaluation)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p, self.on = p, self.training

    def forward(self, x):
        return F.dropout(right(x), self.p, self.on)


@mutant("passes the mode as the probability", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(right(x), float(self.training))


@mutant("takes the default probability", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return F.dropout(right(x), training=self.training)


@mutant("drops before the activation", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        return right(F.dropout(x, self.p, self.training))


@mutant("never drops", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()

    def forward(self, x):
        return right(x)


@mutant("does not divide by 1 - p", caught_by=training)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        keep = torch.rand_like(x) >= self.p if self.training else 1
        return right(x) * keep


@mutant("draws once and keeps the mask", caught_by=fresh)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p, self.mask = p, None

    def forward(self, x):
        if not self.training:
            return right(x)
        if self.mask is None:
            self.mask = F.dropout(torch.ones_like(x), self.p)
        return right(x) * self.mask


@mutant("keeps p as a parameter", caught_by=bare)
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = nn.Parameter(torch.tensor(float(p)))

    def forward(self, x):
        return F.dropout(right(x), self.p.item(), self.training)


@hinted(1, reaches=gradient)
def gelu(x):
    return x * (1 + torch.erf(x / 2**0.5)) / 2


@accepted("writes the tail of the distribution")
def gelu(x):
    return 0.5 * x * torch.special.erfc(-x * 0.5**0.5)


@accepted("asks for the share itself")
def gelu(x):
    return x * torch.special.ndtr(x)


@accepted("keeps an nn.Dropout")
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.drop = nn.Dropout(p)

    def forward(self, x):
        return self.drop(right(x))


@accepted("drops by hand")
class GeluDropout(nn.Module):
    def __init__(self, p):
        super().__init__()
        self.p = p

    def forward(self, x):
        out = right(x)
        if self.training:
            out = out * (torch.rand_like(x) >= self.p) / (1 - self.p)
        return out
