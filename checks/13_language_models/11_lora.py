"""Judges lessons/13_language_models/11_lora.md."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_copy,
    expect_dtype,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("Names of parameters are free", "A call that may help", "Write the class", "It wraps")

FACTORS = (
    "One factor has r * in numbers, the other r * out: both are trained, and nothing beside them."
)
FROZEN = "The base is frozen, its bias too."
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
        if bias and torch.allclose(layer(x), base(x) - base.bias, rtol=1e-4, atol=1e-5):
            hint = "The bias of the base is missing."
        expect_close(layer(x), base(x).detach(), hint=hint)


@check(
    "the two small factors are trained, and nothing else",
    holds=[
        "Its parameters are those of `base`, which it freezes, and two factors",
        "one with `r * in` and one with `r * out` numbers",
        "It trains the factors, and nothing else.",
    ],
)
def small(answer, rng, device):
    i, o = rng.choice([(9, 12), (12, 9)])
    base, layer = make(answer, rng, device, (i, o), r=2)
    learning = [name for name, p in base.named_parameters() if p.requires_grad]
    expect_true(not learning, f"the base still trains: {', '.join(learning)}", hint=FROZEN)
    sizes = sorted(p.numel() for p in trained(layer))
    told = f"parameters of {sizes} numbers are trained, not of {sorted((2 * i, 2 * o))}"
    expect_true(sizes == sorted((2 * i, 2 * o)), told, hint=FACTORS)
    held = {id(p) for p in layer.parameters()}
    expect_true(
        all(id(p) in held for p in base.parameters()),
        "the base's parameters are not among layer.parameters()",
        hint="Assign the base to an attribute: layer.to() and layer.state_dict() reach it then.",
    )


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


@check("the product is scaled by alpha / r", holds="is scaled by `alpha / r` and added")
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
    "gradients reach the input on both paths", holds=["Their gradient comes through", "(..., in)"]
)
def inputs(answer, rng, device):
    base, layer = make(answer, rng, device, (6, 5), r=2, alpha=4.0)
    fill(layer)
    x = torch.randn(2, 3, 6, device=device)
    with torch.no_grad():
        full = (layer(torch.eye(6, device=device)) - layer(torch.zeros(1, 6, device=device))).T
    leaf = x.clone().requires_grad_()
    with advising(RuntimeError, hint="Inputs may have more dimensions: (..., in)."):
        out = layer(leaf)
    expect_true(out.requires_grad, "the output has no graph")
    (got,) = torch.autograd.grad(out.sum(), leaf, allow_unused=True)
    got = torch.zeros_like(x) if got is None else got
    right, by_base = (w.sum(0).expand_as(x) for w in (full, base.weight.detach()))
    hint = "The layers before this one learn from the sum of two gradients."
    if torch.allclose(got, by_base, rtol=1e-3, atol=1e-3):
        hint = "The factors get x without its history: do not detach it."
    elif torch.allclose(got, right - by_base, rtol=1e-3, atol=1e-3):
        hint = "Freezing is requires_grad_(False): under no_grad the way to x is cut as well."
    expect_close(got, right, name="the gradient of x", hint=hint, rtol=1e-3, atol=1e-3)


@check(
    "merged gives the same, in one Linear",
    holds=["`merged()` returns a new `nn.Linear`", "It has a bias if the base has one"],
)
def merge(answer, rng, device):
    for shape, bias in (((7, 7), True), ((5, 9), False), ((9, 5), True)):
        base, layer = make(answer, rng, device, shape, bias, r=3, alpha=8.0)
        fill(layer)
        x = torch.randn(3, 4, shape[0], device=device)
        right = layer(x).detach()
        one = layer.merged()
        expect_true(type(one) is nn.Linear, f"merged() gave a {type(one).__name__}")
        expect_true(one is not base, "merged() gave the base itself", hint="Make a new Linear.")
        names = sorted(name for name, _ in one.named_parameters())
        wanted = ["bias", "weight"] if bias else ["weight"]
        hint = "It has a bias if the base has one."
        expect_equal(names, wanted, name="the names of its parameters", hint=hint)
        hint = "merged() has changed the layer: the base, or a factor."
        expect_close(layer(x).detach(), right, name="the layer", hint=hint, rtol=1e-4, atol=1e-4)
        if bias:
            hint = "A new Linear has a random bias: copy that of the base."
            expect_close(one.bias, base.bias, name="the merged bias", hint=hint)
        expect_close(one(x), right, name="the merged output", hint=ONE, rtol=1e-3, atol=1e-3)


@check(
    "the merged layer has parameters of its own",
    holds=["with parameters of its own", "as the layer does at that time"],
)
def apart(answer, rng, device):
    base, layer = make(answer, rng, device)
    fill(layer)
    one = layer.merged()
    hint = "Who trains or writes into the merged layer would change the base: copy_ the numbers."
    for name, p in one.named_parameters():
        for other in layer.parameters():
            expect_copy(p, other, name=name, hint=hint)
    fill(layer)  # trained on
    x = torch.randn(4, base.in_features, device=device)
    hint = "The factors have changed since the first call: merge anew."
    two, right = layer.merged()(x), layer(x).detach()
    expect_close(two, right, name="merged again", hint=hint, rtol=1e-3, atol=1e-3)


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
        for name, p in layer.merged().named_parameters():
            expect_dtype(p, dtype, name=f"the merged {name}")


@check("training reaches rank r", holds="by a matrix of rank r")
def rank(answer, rng, device):
    r = rng.choice([2, 3])
    base = nn.Linear(8, 7).to(device).double()
    layer = answer.LoRA(base, r, 2.0)
    x = torch.randn(40, 8, device=device, dtype=torch.float64)
    with torch.no_grad():
        y = base(x) + x @ torch.randn(8, 7, device=device, dtype=torch.float64)
    opt = torch.optim.SGD(trained(layer), lr=0.02)
    for _ in range(20):
        opt.zero_grad()
        F.mse_loss(layer(x), y).backward()
        opt.step()
    with torch.no_grad():
        eye = torch.eye(8, device=device, dtype=torch.float64)
        zero = torch.zeros(1, 8, device=device, dtype=torch.float64)
        change = layer(eye) - layer(zero) - base.weight.T
    got = int(torch.linalg.matrix_rank(change, rtol=1e-8))
    expect_true(
        got == r,
        f"with r = {r} the difference has rank {got} after 20 steps",
        hint="Rows of a factor that begin equal get equal gradients, and stay equal: random ones.",
    )


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


@mutant("the scale is trained too", caught_by=small)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        self.scale = nn.Parameter(base.weight.new_tensor(alpha / r))


@mutant("rank 1, whatever r is", caught_by=small)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, 1, alpha / r)


@mutant("one factor is a buffer", caught_by=small)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        self.A.requires_grad_(False)


@mutant("the base is no part of the module", caught_by=small)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        del self.base
        self.__dict__["base"] = base


@mutant("the rows of a factor begin equal", caught_by=rank)
class LoRA(Right):
    def __init__(self, base, r, alpha):
        super().__init__(base, r, alpha)
        nn.init.ones_(self.A)


@mutant("the base runs under no_grad", caught_by=inputs)
class LoRA(Right):
    def forward(self, x):
        with torch.no_grad():
            y = self.base(x)
        return y + x @ self.A.T @ self.B.T * self.scale


@mutant("the factors see x detached", caught_by=inputs)
class LoRA(Right):
    def forward(self, x):
        return self.base(x) + x.detach() @ self.A.T @ self.B.T * self.scale


@mutant("inputs of two dimensions alone", caught_by=inputs)
class LoRA(Right):
    def forward(self, x):
        return self.base(x) + x.mm(self.A.T).mm(self.B.T) * self.scale


@mutant("a new Linear keeps its random bias", caught_by=merge)
class LoRA(Right):
    def merged(self):
        base = self.base
        out = nn.Linear(base.in_features, base.out_features, base.bias is not None).to(base.weight)
        out.weight.data = base.weight.data + self.update()
        return out


@mutant("the merged layer has the bias of the base", caught_by=apart)
class LoRA(Right):
    def merged(self):
        out = super().merged()
        out.bias = self.base.bias
        return out


@mutant("merges once and keeps the result", caught_by=apart)
class LoRA(Right):
    def merged(self):
        if "done" not in self.__dict__:
            self.__dict__["done"] = super().merged()
        return copy.deepcopy(self.__dict__["done"])


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
