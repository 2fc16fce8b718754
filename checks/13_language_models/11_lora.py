"""Judges lessons/13_language_models/11_lora.md."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_true,
    hinted,
    mutant,
)

background("Names of parameters are free", "A call that may help", "Write the class")

ONE = "W + alpha / r * B A, of shape (out, in): one matrix does what the two paths did."


def make(answer, rng, device, shape=None, bias=True, r=None, alpha=None):
    i, o = shape or rng.choice([(6, 9), (9, 6), (7, 7)])
    base = nn.Linear(i, o, bias=bias).to(device)
    r = r or rng.randint(2, 4)
    return base, answer.LoRA(base, r, alpha or rng.choice([1.0, 8.0, 16.0]))


def trained(layer):
    return [p for p in layer.parameters() if p.requires_grad]


def fill(layer):
    """Noise into both factors."""
    with torch.no_grad():
        for p in trained(layer):
            p.copy_(torch.randn_like(p))


@check("at first nothing has changed", holds="At first the layer gives what `base` gives")
def start(answer, rng, device):
    for bias in (True, False):
        base, layer = make(answer, rng, device, bias=bias)
        x = torch.randn(5, base.in_features, device=device)
        hint = "A new adapter adds 0: one of the two factors starts at zero."
        expect_close(layer(x), base(x).detach(), hint=hint)


@check(
    "the two small factors are trained, and nothing else",
    holds=[
        "whose parameters it freezes",
        "It trains two factors, one with `r * in` and one with `r * out` numbers",
    ],
)
def small(answer, rng, device):
    i, o = rng.choice([(9, 12), (12, 9)])
    base, layer = make(answer, rng, device, (i, o), r=2)
    count = sum(p.numel() for p in trained(layer))
    expect_true(
        count == 2 * (i + o),
        f"{count} numbers are trained; r * (in + out) is {2 * (i + o)}",
        hint="The base is frozen, its bias too.",
    )
    sizes = sorted(p.numel() for p in trained(layer))
    expect_true(sizes == sorted((2 * i, 2 * o)), f"the factors have {sizes} numbers")
    frozen = not any(p.requires_grad for p in base.parameters())
    expect_true(frozen, "the base is not frozen", hint="Its parameters get no gradient.")


@check("it can learn", holds="training moves it from there")
def learns(answer, rng, device):
    base, layer = make(answer, rng, device, alpha=2.0, r=2)
    x = torch.randn(30, base.in_features, device=device)
    y = torch.randn(30, base.out_features, device=device)
    opt = torch.optim.SGD(trained(layer), lr=0.02)
    losses = []
    for _ in range(15):
        loss = F.mse_loss(layer(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.item())
    hint = "Two factors of zero give each other a gradient of zero, for ever."
    expect_true(losses[-1] < losses[0] - 1e-5, "the loss has not moved in 15 steps", hint=hint)


@check("the product is scaled by alpha / r", holds="The product of the factors is scaled")
def scale(answer, rng, device):
    for r, alpha in ((3, 6.0), (4, 2.0)):
        base, layer = make(answer, rng, device, (5, 8), r=r, alpha=alpha)
        fill(layer)
        down = next(p for p in trained(layer) if p.numel() == r * 5).detach()
        up = next(p for p in trained(layer) if p.numel() == r * 8).detach()
        down = down if down.shape[0] == r else down.T
        up = up if up.shape[1] == r else up.T
        x = torch.randn(4, 5, device=device)
        right = base(x).detach() + x @ down.T @ up.T * (alpha / r)
        hint = f"With alpha = {alpha} and r = {r} the product counts {alpha / r} times."
        expect_close(layer(x), right, hint=hint, rtol=1e-4, atol=1e-4)


@check(
    "merged gives the same, in one Linear",
    holds=["`merged()` returns a new `nn.Linear`", "It has a bias if the base has one"],
)
def merge(answer, rng, device):
    for shape, bias in (((7, 7), True), ((5, 9), False), ((9, 5), True)):
        base, layer = make(answer, rng, device, shape, bias, r=3, alpha=8.0)
        fill(layer)
        x = torch.randn(3, 4, shape[0], device=device)
        one = layer.merged()
        expect_true(type(one) is nn.Linear, f"merged() gave a {type(one).__name__}")
        expect_true(one is not base, "merged() gave the base itself", hint="Make a new Linear.")
        expect_true((one.bias is None) == (not bias), "the bias is not as in the base")
        expect_close(one(x), layer(x).detach(), hint=ONE, rtol=1e-3, atol=1e-3)


@check(
    "the layer stays, and can be merged again",
    holds="The layer stays as it was: a second call gives the same weight",
)
def intact(answer, rng, device):
    base, layer = make(answer, rng, device)
    fill(layer)
    kept = base.weight.detach().clone()
    one = layer.merged().weight.detach().clone()
    hint = "merged() has written into the base: another call would add to the sum."
    expect_close(base.weight, kept, name="base.weight", hint=hint, rtol=0, atol=0)
    expect_close(layer.merged().weight, one, name="the second", hint=hint, rtol=0, atol=0)


@check(
    "the dtype of the base",
    holds=["The factors have dtype and device", "and the dtype of the base"],
)
def dtypes(answer, rng, device):
    for dtype in (torch.bfloat16, torch.float64):
        layer = answer.LoRA(nn.Linear(6, 4).to(device, dtype), 2, 4.0)
        for p in trained(layer):
            expect_dtype(p, dtype, name="a factor")
        out = layer(torch.randn(3, 6, device=device, dtype=dtype))
        expect_dtype(out, dtype, name="the output")
        expect_dtype(layer.merged().weight, dtype, name="the merged weight")


class Right(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base, w = base.requires_grad_(False), base.weight
        self.A = nn.Parameter(torch.randn(r, w.shape[1]).to(w) / r**0.5)
        self.B = nn.Parameter(w.new_zeros(w.shape[0], r))
        self.scale = alpha / r

    def update(self):
        return self.scale * (self.B @ self.A).detach()

    def forward(self, x):
        return self.base(x) + x @ self.A.T @ self.B.T * self.scale

    def merged(self):
        out = copy.deepcopy(self.base)
        out.weight.data = out.weight.data + self.update()
        return out


@mutant("both factors random", caught_by=start)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        nn.init.normal_(self.B)


@mutant("the bias still learns", caught_by=small)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        if base.bias is not None:
            base.bias.requires_grad_(True)


@mutant("both factors zero", caught_by=learns)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        nn.init.zeros_(self.A)


@mutant("scales by alpha", caught_by=scale)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        self.scale = alpha


@mutant("merges without the scale", caught_by=merge)
class LoRA(Right):
    def update(self):
        return (self.B @ self.A).detach()


@mutant("merges the transposed product where it fits", caught_by=merge)
class LoRA(Right):
    def update(self):
        d = super().update()
        return d.T if d.shape[0] == d.shape[1] else d


@mutant("merges in place", caught_by=intact)
class LoRA(Right):
    def merged(self):
        self.base.weight.data += self.update()
        return copy.deepcopy(self.base)


@mutant("factors in float32", caught_by=dtypes)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        self.A, self.B = nn.Parameter(self.A.float()), nn.Parameter(self.B.float())


@accepted("two Linears")
class LoRA(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / r
        self.down = nn.Linear(base.in_features, r, bias=False).to(base.weight)
        self.up = nn.Linear(r, base.out_features, bias=False).to(base.weight)
        nn.init.zeros_(self.up.weight)

    def forward(self, x):
        return self.base(x) + self.scale * self.up(self.down(x))

    def merged(self):
        out = copy.deepcopy(self.base)
        out.weight.data = out.weight.data + self.scale * (self.up.weight @ self.down.weight).data
        return out


@accepted("adds to the weight in forward, the other factor zero")
class LoRA(nn.Module):
    def __init__(self, base, r, alpha):
        super().__init__()
        self.base, self.scale = base.requires_grad_(False), alpha / r
        self.a = nn.Parameter(base.weight.new_zeros(base.in_features, r))
        self.b = nn.Parameter(base.weight.new_empty(r, base.out_features).normal_())

    def weight(self):
        return self.base.weight + self.scale * (self.a @ self.b).T

    def forward(self, x):
        return F.linear(x, self.weight(), self.base.bias)

    def merged(self):
        out = copy.deepcopy(self.base)
        out.weight.data = self.weight().detach()
        return out


@hinted(1, reaches=scale)
class LoRA(Right):
    def merged(self):
        return self.base
