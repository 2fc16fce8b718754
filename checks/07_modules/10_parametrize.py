"""Judges lessons/07_modules/10_parametrize.md."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import is_parametrized, register_parametrization

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Its inverse is log(e^y - 1).",
    "`torch.expm1(y)` is e^y - 1",
    "But e^y - 1 is also",
)

BACK = "softplus(right_inverse(v)) must be v. Then the weight begins as it was, and what is "
BACK += "assigned arrives."
LOG = "The log of a negative number is NaN, of 0 it is -inf. Is the weight |old weight| + 0.001 "
LOG += "already when the module is registered?"
LARGE = "Try your way back at y = 0.001 and at y = 1000. e^100 is inf in float32 already, and "
LARGE += "the log of 0 is -inf."
ORIGINAL = "register_parametrization turns the Parameter that is there into `original`. Write the "
ORIGINAL += "first values into it, instead of making another one."
NAME = "parametrizations.weight.original"


def layers(rng, device):
    """Layers of several kinds, shapes and dtypes, with signs of both kinds in their weights."""
    n, m = rng.randrange(2, 6), rng.randrange(2, 6)
    found = [
        nn.Linear(n, m),
        nn.Linear(n, m, bias=False),
        nn.Linear(1, 1),
        nn.Conv1d(n, m, 3),
        nn.Embedding(n, m),
        nn.LayerNorm(n),
        nn.Linear(n, m).double(),
    ]
    for layer in found:
        with torch.no_grad():
            layer.weight.copy_(torch.randn_like(layer.weight) * 2)
    return [layer.to(device) for layer in found]


def positive(answer, layer):
    """What make_positive returns, which must be the layer, parametrised."""
    got = answer.make_positive(layer)
    expect_true(got is layer, "make_positive does not return the layer", hint="`return layer`.")
    names = [name for name, _ in layer.named_parameters()]
    expect_true(
        NAME in names,
        f"the layer's parameters are {names}; {NAME} is not among them",
        hint="A weight that is positive once is not positive after a step. Register a module that "
        "computes it.",
    )
    return got


@check(
    "the weight begins as |old weight| + 0.001",
    holds=[
        "Write `make_positive` for layers that exist, trained ones among them.",
        "at first: |old weight| + 0.001",
    ],
)
def begins(answer, rng, device):
    for layer in layers(rng, device):
        wanted = layer.weight.detach().double().abs() + 1e-3
        got = positive(answer, layer).weight
        name = f"the weight of the {type(layer).__name__.removeprefix('Parametrized')}"
        expect_close(got, wanted, name=name, dtype=layer.weight.dtype, hint=BACK, nan_hint=LOG)


@check(
    "from 0 to 1000, every value is kept",
    holds=["For y = 100 it is inf in float32.", "float32 or float64, |values| from 0 to 1000"],
    both_sides=True,
)
def extremes(answer, rng, device):
    for dtype, rtol in ((torch.float32, 1e-4), (torch.float64, 1e-9)):
        layer = nn.Linear(8, 1).to(device, dtype)
        values = torch.tensor([0, -0.0, 1e-4, -0.5, 15, -60, 200, -1000], dtype=dtype)
        with torch.no_grad():
            layer.weight.copy_(values)
        wanted = values.to(device).abs()[None] + 1e-3
        got = positive(answer, layer).weight
        some, right = got[:, [3, 4]], wanted[:, [3, 4]]  # of usual size
        expect_close(some, right, rtol=1e-3, name="the weight", hint=BACK, nan_hint=LOG)
        expect_close(got, wanted, rtol=rtol, atol=1e-9, name="the weight", hint=LARGE)


@check(
    "the weight is softplus of original",
    holds="P is softplus: `F.softplus(x)` is log(1 + e^x), positive for every x",
    both_sides=True,
)
def is_softplus(answer, rng, device):
    for layer in layers(rng, device):
        positive(answer, layer)
        original = layer.get_parameter(NAME)
        with torch.no_grad():
            original.copy_(torch.randn_like(original) * 30)
        wanted = F.softplus(original.detach().double())
        expect_close(
            layer.weight,
            wanted,
            dtype=original.dtype,
            atol=1e-12,
            name="the weight, after original was changed,",
            hint="The forward of the registered module is `F.softplus(x)`, and nothing else.",
        )


@check(
    "original is the object that was the weight", holds="which is the object that was the weight"
)
def same_object(answer, rng, device):
    for layer in layers(rng, device):
        before = dict(layer.named_parameters())
        positive(answer, layer)
        after = dict(layer.named_parameters())
        expect_true(
            after[NAME] is before["weight"],
            "original is another Parameter than the weight was",
            hint=ORIGINAL + " An optimizer that was made before holds the old object.",
        )
        expect_true(after[NAME].requires_grad, "original does not require grad", hint=ORIGINAL)
        expect_equal(
            sorted(after),
            sorted([NAME, *(before.keys() - {"weight"})]),
            name="the list of parameter names",
            hint="One Parameter takes the weight's place, and the others stay.",
        )


@check("the bias stays as it is", holds="Other parameters stay as they are.")
def bias(answer, rng, device):
    layer = nn.Linear(rng.randrange(2, 6), 3).to(device)
    before = layer.bias.detach().clone()
    positive(answer, layer)
    expect_equal(layer.bias, before, name="the bias", hint="Only the weight is to be positive.")
    hint = "requires_grad_(False) on the layer reaches the bias as well."
    expect_true(layer.bias.requires_grad, "the bias does not require grad any more", hint=hint)


@check(
    "large steps leave the weight positive, and move it",
    holds="its weights must be positive, or more evidence could lower the sum",
    both_sides=True,
)
def trains(answer, rng, device):
    n, m = rng.randrange(2, 6), rng.randrange(2, 6)
    layer = nn.Linear(n, m).to(device)
    opt = torch.optim.SGD(layer.parameters(), lr=5.0)
    positive(answer, layer)
    first = layer.weight.detach().clone()
    x = torch.ones(2, n, device=device)
    for step in range(20):
        opt.zero_grad()
        layer(x).sum().backward()
        opt.step()
        low = layer.weight.min().item()
        expect_true(low == low, f"after step {step + 1} a weight is NaN", hint=LOG)
        expect_true(
            low > 0,
            f"after step {step + 1} the smallest weight is {low:.3g}",
            hint="The optimizer subtracts what it likes. The weight must be computed from what it "
            "changes.",
        )
    expect_true(
        (layer.weight < first).all(),
        "twenty steps down have not made the weight smaller",
        hint="The gradient must pass through softplus to original, which the optimizer holds.",
    )


@check("the layer works with its positive weight")
def works(answer, rng, device):
    n, m = rng.randrange(2, 6), rng.randrange(2, 6)
    layer = nn.Linear(n, m).to(device)
    weight = layer.weight.detach().abs() + 1e-3
    positive(answer, layer)
    x = torch.randn(3, n, device=device)
    wanted = F.linear(x, weight, layer.bias)
    expect_close(layer(x), wanted, name="the layer's output", hint=BACK, nan_hint=LOG)


@check("positive values can be assigned", holds="layer.weight = v, later on, gives it the values v")
def assigned(answer, rng, device):
    layer = positive(answer, nn.Linear(4, 3).to(device))
    for scale in (1, 300, 1e-6):
        v = (torch.rand(3, 4, device=device) + 1) * scale
        try:
            layer.weight = v
        except (RuntimeError, NotImplementedError) as error:
            fail(f"layer.weight = v stops with: {str(error)[:80]}", hint=BACK)
        name = "the weight, after `layer.weight = v`,"
        expect_close(layer.weight, v, rtol=1e-3, atol=0, name=name, hint=BACK)


@check("a second layer takes over the state")
def state(answer, rng, device):
    n = rng.randrange(2, 6)
    one, two = (positive(answer, nn.Linear(n, 3).to(device)) for _ in range(2))
    two.load_state_dict(one.state_dict())
    expect_equal(two.weight, one.weight, name="the weight, after load_state_dict,")
    before = two.weight.detach().clone()
    with torch.no_grad():
        one.get_parameter(NAME).sub_(1)
    hint = "It changed with the original of another layer. Each has an original of its own."
    expect_equal(two.weight, before, name="the weight of a second layer", hint=hint)


class Softplus(nn.Module):
    """What the variants below register."""

    def forward(self, x):
        return F.softplus(x)

    def right_inverse(self, y):
        return y + torch.log(-torch.expm1(-y))


def shift(layer):
    with torch.no_grad():
        layer.weight.copy_(layer.weight.abs() + 1e-3)


@mutant("makes it positive once", caught_by=trains)
def make_positive(layer):
    shift(layer)
    return layer


@mutant("forgets the way back", caught_by=begins)
class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)


@mutant("takes the weight itself for the way back", caught_by=begins)
class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)

    def right_inverse(self, y):
        return y


@mutant("an inverse that overflows", caught_by=extremes)
class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)

    def right_inverse(self, y):
        return torch.log(torch.expm1(y))


@mutant("an inverse that loses small values", caught_by=assigned)
class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)

    def right_inverse(self, y):
        return y + torch.log(1 - torch.exp(-y))


@mutant("a softplus that overflows", caught_by=extremes)
class Positive(Softplus):
    def forward(self, x):
        return torch.log(1 + torch.exp(x))


@mutant("clamps", caught_by=is_softplus)
class Positive(nn.Module):
    def forward(self, x):
        return x.clamp(min=1e-3)

    def right_inverse(self, y):
        return y


@mutant("takes exp", caught_by=is_softplus)
class Positive(nn.Module):
    def forward(self, x):
        return x.exp()

    def right_inverse(self, y):
        return y.log()


@mutant("adds the 0.001 in the way back", caught_by=assigned)
def make_positive(layer):
    class Shifted(Softplus):
        def right_inverse(self, y):
            return super().right_inverse(y.abs() + 1e-3)

    register_parametrization(layer, "weight", Shifted())
    return layer


@mutant("adds the 0.001 in forward", caught_by=is_softplus)
def make_positive(layer):
    class Shifted(Softplus):
        def forward(self, x):
            return super().forward(x) + 1e-3

        def right_inverse(self, y):
            return super().right_inverse(y - 1e-3)

    with torch.no_grad():
        layer.weight.copy_(layer.weight.abs() + 2e-3)
    register_parametrization(layer, "weight", Shifted())
    return layer


@mutant("keeps the signs, so that the log of a negative number is taken", caught_by=begins)
def make_positive(layer):
    register_parametrization(layer, "weight", Softplus())
    return layer


@mutant("forgets the 0.001", caught_by=extremes)
def make_positive(layer):
    with torch.no_grad():
        layer.weight.copy_(layer.weight.abs())
    register_parametrization(layer, "weight", Softplus())
    return layer


@mutant("makes a new Parameter", caught_by=same_object)
def make_positive(layer):
    layer.weight = nn.Parameter(layer.weight.detach().abs() + 1e-3)
    register_parametrization(layer, "weight", Softplus())
    return layer


@mutant("writes after registering", caught_by=begins)
def make_positive(layer):
    wanted = layer.weight.detach().abs() + 1e-3
    register_parametrization(layer, "weight", Softplus())
    with torch.no_grad():
        layer.weight.copy_(wanted)
    return layer


@mutant("cuts the gradient", caught_by=trains)
class Positive(Softplus):
    def forward(self, x):
        return F.softplus(x.detach()) + 0 * x


@mutant("freezes the bias", caught_by=bias)
def make_positive(layer):
    shift(layer)
    register_parametrization(layer.requires_grad_(False), "weight", Softplus())
    layer.parametrizations.weight.original.requires_grad_(True)
    return layer


@mutant("makes every parameter positive", caught_by=bias)
def make_positive(layer):
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(p.abs() + 1e-3)
    register_parametrization(layer, "weight", Softplus())
    return layer


@mutant("returns nothing", caught_by=begins)
def make_positive(layer):
    shift(layer)
    register_parametrization(layer, "weight", Softplus())


@mutant("works on a copy", caught_by=same_object)
def make_positive(layer):
    import copy

    layer = copy.deepcopy(layer)
    shift(layer)
    register_parametrization(layer, "weight", Softplus())
    return layer


@hinted(1, reaches=begins)
class Positive(nn.Module):
    def forward(self, x):
        return F.softplus(x)

    def right_inverse(self, y):
        return torch.log(torch.expm1(y))


@accepted("registers first, then assigns")
def make_positive(layer):
    wanted = layer.weight.detach().abs() + 1e-3
    layer.weight.data = wanted
    if not is_parametrized(layer, "weight"):
        register_parametrization(layer, "weight", Softplus())
    layer.weight = wanted
    return layer


@accepted("a choice of formulas, and logaddexp")
class Positive(nn.Module):
    def forward(self, x):
        return torch.logaddexp(x, torch.zeros_like(x))

    def right_inverse(self, y):
        small = y.clamp(max=20)
        return torch.where(y > 20, y, small.expm1().log())
