"""Judges lessons/16_debugging/03_dead_gradients.md."""

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    hinted,
    mutant,
)

background(
    "The program trains and stops at an accuracy of 0.10.",
    "Three faults keep the gradient from the parameters.",
    "Mending one or two of them may change nothing, or bring nearly all",
)

equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32 too",
)

equivalent("with torch.no_grad():", "if True:", because="the score is the same, with a graph")
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="the score is the same, with a graph",
)
equivalent('plot(loss, title="loss")', "pass", because="the curve is for the eye")
equivalent('plot(loss, title="loss")', "plot(loss)", because="the curve is for the eye")

LIST = "A module finds layers in a ModuleList or a Sequential, not in a plain list."
DEPTH = "Net(depth) has as many blocks as depth says. Each is a layer of its own, with a bias."
NAMES = "Names of parameters come from attributes: self.first, self.blocks, self.head."
HE = "The faults lie elsewhere: nn.init.kaiming_normal_ on the weight of each block stays."
CUT = "h.data and h.detach() hand on the numbers without the history."
BIAS = "Set each block's bias to 0: one of -3 closes its ReLU for the usual inputs."
ORDER = "first, ReLU, each block in its order and a ReLU after it, head and nothing after it."


def layers_of(net):
    """The linear layers, in the order in which they are applied."""

    def of(module):
        return [m for m in module.modules() if isinstance(m, nn.Linear)]

    return [*of(net.first), *of(net.blocks), *of(net.head)]


@check(
    "every parameter is one of the model's",
    holds=[
        "Every parameter of every layer is one of the model's parameters",
        "its name begins with first., blocks. or head.",
    ],
    both_sides=True,
)
def registered(answer, rng, device):
    for depth in (rng.randint(1, 2), rng.randint(4, 6)):
        counted(answer.Net(depth), depth)


def counted(net, depth):
    got = sum(p.numel() for p in net.parameters())
    outside, block = 64 * 32 + 32 + 32 * 10 + 10, 32 * 32 + 32
    hint = LIST if got == outside else DEPTH
    name = f"the number of parameters with {depth} blocks"
    expect_equal(got, outside + depth * block, name=name, hint=hint)
    names = {name.partition(".")[0] for name, _ in net.named_parameters()}
    expect_equal(
        names, {"first", "blocks", "head"}, name="the names up to the first dot", hint=NAMES
    )


@check(
    "the biases of the blocks begin at 0",
    holds="Their biases begin at 0.",
)
def biases(answer, rng, device):
    for layer in layers_of(answer.Net(rng.randint(1, 5)))[1:-1]:
        expect_close(layer.bias, torch.zeros(32), name="the bias of a block", hint=BIAS)


@check(
    "the blocks' weights have He's spread",
    holds="The weights of the blocks keep their He initialisation, as kaiming_normal_ gives it.",
)
def spread(answer, rng, device):
    weights = torch.stack([layer.weight for layer in layers_of(answer.Net(8))[1:-1]])
    wanted = torch.tensor((2 / 32) ** 0.5)
    expect_close(weights.std(), wanted, name="the spread of the weights", rtol=0.08, hint=HE)
    uniform = weights.abs().max() < 2.5 * wanted
    expect_true(not bool(uniform), "the weights are not from a normal distribution", hint=HE)


@check(
    "the scores are those of the layers",
    holds=[
        "takes images (batch, 64) and returns scores (batch, 10)",
        "It applies first, then depth blocks, then head.",
        "After first and after each block comes a ReLU.",
    ],
    both_sides=True,
)
def scores(answer, rng, device):
    depth = rng.randint(2, 5)
    net = answer.Net(depth).to(device)
    x = torch.randn(rng.randint(1, 9), 64, device=device)
    got = net(x)
    expect_shape(got, (len(x), 10), name="the scores")
    *hidden, head = layers_of(net)
    expect_equal(len(hidden), depth + 1, name="the number of layers before the head", hint=DEPTH)
    with torch.no_grad():
        h = x
        for layer in hidden:
            h = layer(h).relu()
        expect_close(got, head(h), name="the scores", rtol=1e-4, atol=1e-5, hint=ORDER)


@check(
    "the gradient reaches every parameter, and the input",
    holds="The gradient reaches every parameter, and the input too if it asks for one.",
    both_sides=True,
)
def reaches(answer, rng, device):
    net = answer.Net(rng.randint(1, 4)).to(device)
    x = torch.randn(256, 64, device=device, requires_grad=True)
    net(x).square().sum().backward()
    for name, p in net.named_parameters():
        frozen = "Each parameter asks for a gradient: requires_grad stays True."
        expect_true(p.requires_grad, f"{name} does not ask for a gradient", hint=frozen)
        expect_true(p.grad is not None, f"{name} has no gradient", hint=CUT)
        expect_true(bool(p.grad.any()), f"the gradient of {name} is all zeros", hint=BIAS)
    expect_true(x.grad is not None and bool(x.grad.any()), "the input has no gradient", hint=CUT)
    x = torch.randn(3, 64, device=device)
    net(x).sum().backward()
    expect_true(x.grad is None, "an input that asks for none got a gradient")


@check("the program learns", holds="Mend all three, and leave data and training as they are.")
def learns(answer, rng, device):
    hint = "Keep the training as it is."
    expect_equal(len(answer.rows), 64, name="the size of a batch", hint=hint)
    expect_equal(answer.opt.param_groups[0]["lr"], 3e-3, name="the learning rate", hint=hint)
    expect_equal(answer.step, 299, name="the last step", hint=hint)
    expect_equal(answer.y.dtype, torch.int64, name="the dtype of y", hint=hint)
    expect_equal(type(answer.score), float, name="the type of score", hint=hint)
    expect_true(0.9 < answer.score <= 1.0, f"the accuracy is {answer.score:.2f}", hint=hint)
    expect_equal(answer.x.max().item(), 1.0, name="the largest value of x", hint="Keep the data.")
    expect_true(answer.loss.item() < 0.35, f"the last loss is {answer.loss.item():.2f}")
    expect_equal(
        sum(isinstance(m, nn.Linear) for m in answer.model.modules()), 5, name="the layers"
    )


class Base(nn.Module):
    """A right model, from which wrong ones differ in a method."""

    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.blocks = self.stack(depth)
        self.head = nn.Linear(32, 10)
        for layer in self.blocks:
            self.initialise(layer)

    def stack(self, depth):
        return nn.ModuleList(nn.Linear(32, 32) for _ in range(depth))

    def initialise(self, layer):
        nn.init.kaiming_normal_(layer.weight)
        nn.init.zeros_(layer.bias)

    def forward(self, x):
        h = self.first(x).relu()
        for layer in self.blocks:
            h = self.block(layer, h)
        return self.head(h)

    def block(self, layer, h):
        return layer(h).relu()


@mutant("leaves the plain list", caught_by=registered)
class Net(Base):
    def stack(self, depth):
        return list(super().stack(depth))


@mutant("names the blocks one by one", caught_by=registered)
class Net(Base):
    def __init__(self, depth):
        super().__init__(depth)
        for at, layer in enumerate(self.blocks):
            self.add_module(f"block{at}", layer)
        del self.blocks

    def forward(self, x):
        h = self.first(x).relu()
        for name, layer in self.named_children():
            h = self.block(layer, h) if name.startswith("block") else h
        return self.head(h)


@mutant("leaves the last block out", caught_by=scores)
class Net(Base):
    def forward(self, x):
        h = self.first(x).relu()
        for layer in self.blocks[:-1]:
            h = self.block(layer, h)
        return self.head(h)


@mutant("keeps the cut between the blocks", caught_by=reaches)
class Net(Base):
    def block(self, layer, h):
        return layer(h.detach()).relu()


@mutant("has three blocks, whatever depth says", caught_by=registered)
class Net(Base):
    def stack(self, depth):
        return super().stack(3)


@mutant("applies the blocks from the last to the first", caught_by=scores)
class Net(Base):
    def forward(self, x):
        h = self.first(x).relu()
        for layer in reversed(self.blocks):
            h = self.block(layer, h)
        return self.head(h)


@mutant("takes the biases away from training", caught_by=reaches)
class Net(Base):
    def initialise(self, layer):
        super().initialise(layer)
        layer.bias.requires_grad_(False)


@mutant("keeps the bias that closes the ReLUs", caught_by=biases)
class Net(Base):
    def initialise(self, layer):
        nn.init.kaiming_normal_(layer.weight)
        nn.init.constant_(layer.bias, -3.0)


@mutant("lets the ReLU out so that nothing can die", caught_by=scores)
class Net(Base):
    def block(self, layer, h):
        return nn.functional.leaky_relu(layer(h), 0.2)


@mutant("drops the initialisation", caught_by=spread)
class Net(Base):
    def initialise(self, layer):
        nn.init.zeros_(layer.bias)


@mutant("copies the input, which cuts it off", caught_by=reaches)
class Net(Base):
    def forward(self, x):
        return super().forward(x.detach().clone())


@mutant("adds the input to each block", caught_by=scores)
class Net(Base):
    def block(self, layer, h):
        return h + layer(h).relu()


@hinted(1, reaches=registered)
class Net(Base):
    def initialise(self, layer):
        nn.init.kaiming_normal_(layer.weight)
        nn.init.constant_(layer.bias, -3.0)

    def block(self, layer, h):
        return layer(h.data).relu()


@accepted("a ModuleDict, and ReLUs in place")
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Sequential(nn.Linear(64, 32), nn.ReLU())
        self.blocks = nn.ModuleDict({f"b{at}": nn.Linear(32, 32) for at in range(depth)})
        self.head = nn.Linear(32, 10)
        for layer in self.blocks.values():
            nn.init.kaiming_normal_(layer.weight)
            nn.init.zeros_(layer.bias)

    def forward(self, x):
        h = self.first(x)
        for layer in self.blocks.values():
            h = layer(h).relu_()
        return self.head(h)


@accepted("a Sequential with its ReLUs inside")
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(64, 32)
        layers = []
        for _ in range(depth):
            layer = nn.Linear(32, 32)
            nn.init.kaiming_normal_(layer.weight)
            layer.bias.data.zero_()
            layers += [layer, nn.ReLU()]
        self.blocks = nn.Sequential(*layers)
        self.head = nn.Linear(32, 10)

    def forward(self, x):
        return self.head(self.blocks(torch.relu(self.first(x))))


@accepted("appends to a ModuleList, with the default fan given in words")
class Net(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.first = nn.Linear(64, 32)
        self.head = nn.Linear(32, 10)
        self.blocks = nn.ModuleList()
        for _ in range(depth):
            self.blocks.append(nn.Linear(32, 32))
            nn.init.kaiming_normal_(self.blocks[-1].weight, mode="fan_in", nonlinearity="relu")
            nn.init.constant_(self.blocks[-1].bias, 0.0)

    def forward(self, x):
        h = self.first(x).clamp(min=0)
        for block in self.blocks:
            h = block(h).clamp(min=0)
        return self.head(h)
