"""Judges lessons/07_modules/02_parameter_buffer.md."""

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "A layer that subtracts a running mean.",
    "Modules have an attribute `training`",
    "Both calls walk over the tree",
)

KINDS = (
    "scale is what the optimizer moves: a Parameter. mean is state that it must not move, and that "
    "is saved: a buffer."
)
MOVES = (
    "new mean = (1 - mom) * old mean + mom * the mean of the batch over its rows, and the result "
    "is (x - new mean) * scale."
)
CONSTANT = (
    "Update the mean where nothing is recorded. A recorded update ties it to the graph of this "
    "step, and the next step walks into that."
)


def layer_of(answer, rng, device, d=0, **settings):
    """A layer with a scale and a mean of its own."""
    d = d or rng.randrange(2, 7)
    layer = answer.RunningMean(d, **settings).to(device)
    for name in ("scale", "mean"):
        t = getattr(layer, name, None)
        expect_true(isinstance(t, torch.Tensor), f"the layer has no tensor `{name}`", hint=KINDS)
        with torch.no_grad():
            t.copy_(torch.randn(d))
    return layer, d


def batch(rng, device, d, dtype=torch.float32):
    x = torch.randn(d, rng.randrange(2, 8), dtype=dtype).T * 3 + rng.randrange(-9, 9)
    return x.to(device)


@check(
    "scale is a Parameter, mean a buffer that is saved",
    holds=[
        "It learns a scale, as a Parameter, and keeps a mean, which no optimizer may touch.",
        "(d,), a buffer, zeros at first. It is saved",
    ],
)
def kinds(answer, rng, device):
    d = rng.randrange(2, 7)
    layer = answer.RunningMean(d)
    trained = {name: list(p.shape) for name, p in layer.named_parameters()}
    expect_equal(trained, {"scale": [d]}, name="what named_parameters() shows", hint=KINDS)
    expect_equal(
        {name: list(b.shape) for name, b in layer.named_buffers()},
        {"mean": [d]},
        name="what named_buffers() shows",
        hint=KINDS,
    )
    saved = sorted(layer.state_dict())
    expect_equal(saved, ["mean", "scale"], name="the list of names in state_dict()", hint=KINDS)
    expect_close(layer.scale.detach(), torch.ones(d), name="scale at first")
    expect_close(layer.mean, torch.zeros(d), name="mean at first")


@check(
    "in training, the mean goes mom of the way",
    holds=["mom: from 0 to 1", "then the new mean is subtracted", "x keeps its values"],
)
def moves(answer, rng, device):
    for mom in (0.1, 0.25, 0.0, 1.0):
        layer, d = layer_of(answer, rng, device, mom=mom)
        for _ in range(3):
            x, old = batch(rng, device, d), layer.mean.detach().clone()
            with expect_unchanged(x, hint="`x -= mean` writes into x, `x - mean` does not."):
                out = layer(x)
            new = (1 - mom) * old + mom * x.mean(0)
            name = f"mean after a batch, with mom={mom:g},"
            expect_close(layer.mean, new, name=name, atol=1e-4, hint=MOVES)
            expect_close(out, (x - new) * layer.scale, atol=1e-4, hint=MOVES)
    layer, d = layer_of(answer, rng, device)
    one, old = torch.randn(1, d).to(device), layer.mean.detach().clone()
    layer(one)
    wanted = 0.9 * old + 0.1 * one[0]
    expect_close(layer.mean, wanted, name="mean after a batch of one", hint=MOVES)


@check(
    "the mode decides whether the mean moves, not autograd",
    holds="under `torch.no_grad()` as well, and not otherwise",
    both_sides=True,
)
def without_autograd(answer, rng, device):
    layer, d = layer_of(answer, rng, device, mom=0.5)
    hint = "Ask self.training alone. Statistics are often collected under no_grad."
    for context in (torch.no_grad, torch.enable_grad):
        for mode in (True, False):
            layer.train(mode)
            x, old = batch(rng, device, d), layer.mean.detach().clone()
            with context():
                layer(x)
            wanted = (old + x.mean(0)) / 2 if mode else old
            name = f"mean after {'training' if mode else 'eval'} under {context.__name__}"
            expect_close(layer.mean.detach(), wanted, name=name, hint=hint)


@check("in eval, nothing moves", holds="In eval it stays.")
def frozen(answer, rng, device):
    layer, d = layer_of(answer, rng, device)
    layer.eval()
    old, x = layer.mean.detach().clone(), batch(rng, device, d)
    hint = "self.training is False after eval(). Then mean is used and stays as it is."
    for _ in range(2):
        out = layer(x)
        expect_equal(layer.mean.detach(), old, name="mean after eval() and a batch", hint=hint)
        expect_close(out, (x - old) * layer.scale, atol=1e-4, hint=hint)
    layer.train()
    layer(x + 50)
    message = "after train() the mean does not move any more"
    expect_true(not torch.equal(layer.mean, old), message, hint="train() switches training on.")


@check("one step after the other can go back", holds="no graph is kept")
def steps(answer, rng, device):
    layer, d = layer_of(answer, rng, device)
    below = nn.Linear(d, d).to(device)
    for step in range(3):
        out = layer(below(batch(rng, device, d)))
        hint = "The update is apart from autograd, the subtraction and the product are not."
        expect_true(out.requires_grad, "the result has no graph", hint=hint)
        try:
            out.square().sum().backward()
        except RuntimeError as error:
            words = " ".join(str(error).split()[:9])
            fail(f"behind another layer, backward() of step {step}: {words} ...", hint=CONSTANT)
        message = f"after step {step}, mean requires grad"
        expect_true(not layer.mean.requires_grad, message, hint=CONSTANT)
    outs = [layer(below(batch(rng, device, d))) for _ in range(2)]
    try:
        sum(out.square().sum() for out in outs).backward()
    except RuntimeError as error:
        words = " ".join(str(error).split()[:9])
        hint = "What backward still needs must not be overwritten by the next update."
        fail(f"one backward() through two batches: {words} ...", hint=hint)


@check(
    "for autograd the mean is a constant",
    holds="For autograd mean is a constant: the gradient for x is scale",
)
def constant(answer, rng, device):
    layer, d = layer_of(answer, rng, device, mom=0.5)
    for mode in (True, False):
        layer.train(mode).zero_grad()
        x = batch(rng, device, d).requires_grad_()
        out = layer(x)
        out.sum().backward()
        wanted = layer.scale.detach().expand_as(x)
        hint = "The gradient for x goes through the product with scale, and not through the mean."
        expect_true(x.grad is not None, "no gradient arrives at x", hint=hint)
        expect_close(x.grad, wanted, name="the gradient for x", hint=hint)
        wanted = (x - layer.mean).detach().sum(0)
        hint = "The gradient for scale is the sum of x - mean over the rows."
        grad = layer.scale.grad
        expect_true(grad is not None, "no gradient arrives at scale", hint=hint)
        expect_close(grad, wanted, rtol=1e-3, atol=1e-3, name="the gradient for scale", hint=hint)


@check("mean follows the module to another dtype", holds="of the module's dtype")
def follows(answer, rng, device):
    layer, d = layer_of(answer, rng, device)
    layer.double()
    hint = "double() and to() reach parameters and buffers, and what is computed from them."
    x, old = batch(rng, device, d, torch.float64), layer.mean.detach().clone()
    out = layer(x)
    expect_dtype(layer.mean, torch.float64, name="mean after double() and a batch", hint=hint)
    new = 0.9 * old + 0.1 * x.mean(0)
    expect_close(layer.mean, new, rtol=1e-12, name="mean after double() and a batch", hint=hint)
    expect_close(out, (x - new) * layer.scale, rtol=1e-10, atol=1e-10, hint=hint)


@check("a saved layer goes on where it was", holds="It is saved")
def saved(answer, rng, device):
    layer, d = layer_of(answer, rng, device)
    layer(batch(rng, device, d))
    state = {name: t.clone() for name, t in layer.state_dict().items()}
    other = answer.RunningMean(d).to(device)
    other.load_state_dict(state)
    x = batch(rng, device, d)
    hint = "All that forward needs, apart from mom, must come with state_dict()."
    for _ in range(2):
        wanted = layer(x)
        expect_close(other(x), wanted, name="the result of the layer loaded", hint=hint)


@check("layers share nothing")
def apart(answer, rng, device):
    one, d = layer_of(answer, rng, device)
    two = answer.RunningMean(d).to(device)
    one(batch(rng, device, d))
    zeros = torch.zeros(d, device=device)
    hint = "Each layer makes its tensors in __init__."
    expect_equal(two.mean.detach(), zeros, name="mean of a second, unused layer", hint=hint)


class Base(nn.Module):
    """What most of the variants have in common."""

    def __init__(self, d, mom=0.1):
        super().__init__()
        self.mom = mom
        self.scale = nn.Parameter(torch.ones(d))
        self.mean = nn.Buffer(torch.zeros(d))

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.lerp_(x.mean(0), self.mom)
        return (x - self.mean) * self.scale


@mutant("keeps the mean in a plain attribute", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        del self.mean
        self.mean = torch.zeros(d)


@mutant("makes the mean a Parameter", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        self.mean = nn.Parameter(torch.zeros(d))


@mutant("makes the mean a Parameter that is frozen", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        self.mean = nn.Parameter(torch.zeros(d), requires_grad=False)


@mutant("leaves the mean out of the file", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        self.register_buffer("mean", torch.zeros(d), persistent=False)


@mutant("makes the scale a buffer", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        del self.scale
        self.scale = nn.Buffer(torch.ones(d))


@mutant("loses the Parameter in a product", caught_by=kinds)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        del self.scale
        self.scale = nn.Parameter(torch.ones(d)) * 1.0


@mutant("updates in eval, too", caught_by=frozen)
class RunningMean(Base):
    def forward(self, x):
        with torch.no_grad():
            self.mean.lerp_(x.mean(0), self.mom)
        return (x - self.mean) * self.scale


@mutant("records the update", caught_by=steps)
class RunningMean(Base):
    def forward(self, x):
        if self.training:
            self.mean = (1 - self.mom) * self.mean + self.mom * x.mean(0)
        return (x - self.mean) * self.scale


@mutant("detaches the mean after it was used", caught_by=constant)
class RunningMean(Base):
    def forward(self, x):
        if not self.training:
            return (x - self.mean) * self.scale
        new = (1 - self.mom) * self.mean + self.mom * x.mean(0)
        self.mean = new.detach()
        return (x - new) * self.scale


@mutant("puts all of forward under no_grad", caught_by=constant)
class RunningMean(Base):
    def forward(self, x):
        with torch.no_grad():
            return super().forward(x)


@mutant("takes mom for the part that stays", caught_by=moves)
class RunningMean(Base):
    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.mul_(self.mom).add_((1 - self.mom) * x.mean(0))
        return (x - self.mean) * self.scale


@mutant("subtracts the old mean", caught_by=moves)
class RunningMean(Base):
    def forward(self, x):
        out = (x - self.mean.clone()) * self.scale
        super().forward(x)
        return out


@mutant("subtracts the batch's own mean", caught_by=moves)
class RunningMean(Base):
    def forward(self, x):
        super().forward(x)
        mean = x.detach().mean(0) if self.training else self.mean
        return (x - mean) * self.scale


@mutant("makes a float32 mean in each update", caught_by=follows)
class RunningMean(Base):
    def forward(self, x):
        if self.training:
            new = (1 - self.mom) * self.mean + self.mom * x.mean(0)
            self.mean = new.detach().float()
        return (x - self.mean) * self.scale


@mutant("subtracts in place where nothing is recorded", caught_by=moves)
class RunningMean(Base):
    def forward(self, x):
        super().forward(x.detach())
        if x.requires_grad:
            return (x - self.mean) * self.scale
        x -= self.mean
        return x * self.scale


@mutant("goes all the way with the first batch", caught_by=moves)
class RunningMean(Base):
    def __init__(self, d, mom=0.1):
        super().__init__(d, mom)
        self.begun = False

    def forward(self, x):
        if self.training and not self.begun:
            self.mean.copy_(x.detach().mean(0))
            self.begun = True
            return (x - self.mean) * self.scale
        return super().forward(x)


@hinted(1, reaches=kinds)
class RunningMean(Base):
    def forward(self, x):
        self.mean = (1 - self.mom) * self.mean + self.mom * x.mean(0)
        return (x - self.mean) * self.scale


@accepted("assigns a detached tensor to the buffer's name")
class RunningMean(nn.Module):
    def __init__(self, d, mom=0.1):
        super().__init__()
        self.register_buffer("mean", torch.zeros(d))
        self.register_parameter("scale", nn.Parameter(torch.ones(d)))
        self.keep = 1 - mom

    def forward(self, x):
        if self.training:
            self.mean = self.keep * self.mean + (1 - self.keep) * x.detach().mean(0)
        return self.scale * x - self.scale * self.mean


@accepted("copies into the buffer")
class RunningMean(Base):
    @torch.no_grad()
    def update(self, x):
        self.mean.copy_(self.mean + self.mom * (x.mean(dim=0) - self.mean))

    def forward(self, x):
        if self.training:
            self.update(x)
        return torch.mul(x - self.mean, self.scale)
