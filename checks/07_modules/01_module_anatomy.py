"""Judges lessons/07_modules/01_module_anatomy.md."""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "Write `MLP` for any widths.",
    "`nn.ModuleList(layers)` is a module",
    "(The lesson on containers",
)

TREE = (
    "parameters() walks over what assignment has registered: modules and parameters. A list or a "
    "dict in an attribute is neither, and what forward builds comes too late."
)
BIASED = "A layer has a weight and a bias. nn.Linear makes both, unless it is told not to."
SHARED = "A layer in several places counts once. Call nn.Linear for each step, also between equals."
CALLED = "Each layer is called once, layer(x): that runs its hooks, and then its forward."


def sizes_of(rng, layers):
    """Widths from d_in to d_out for so many layers, neighbours and all others different."""
    return rng.sample(range(2, 12), layers + 1)


def made(answer, sizes, device):
    """An MLP of these widths with weights of our own, so that no relu hides what it does."""
    model = answer.MLP(sizes[0], list(sizes[1:-1]), sizes[-1]).to(device)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn(p.shape))
    return model


def linears(model):
    return [m for m in model.modules() if isinstance(m, nn.Linear)]


def called(model, x):
    """The result for x, and the Linear layers in the order of their calls."""
    order = []
    handles = [
        layer.register_forward_hook(lambda layer, *_: order.append(layer))
        for layer in linears(model)
    ]
    try:
        return model(x), order
    finally:
        for handle in handles:
            handle.remove()


def in_order(model, x, count):
    """The result for x, and `count` layers in the order in which x goes through them."""
    expect_equal(
        len(linears(model)), count, name="the number of registered nn.Linear layers", hint=TREE
    )
    out, order = called(model, x)
    expect_equal(len(order), count, name="the number of layers whose hooks ran", hint=CALLED)
    return out, order


def chain(layers, x):
    """What the layers make of x, with a relu between them."""
    for layer in layers[:-1]:
        x = F.linear(x, layer.weight, layer.bias).clamp(min=0)
    return F.linear(x, layers[-1].weight, layers[-1].bias)


@check(
    "all parameters are in the tree",
    holds=[
        "`MLP(784, [128], 10)` is the model above, and `MLP(784, [], 10)` is a single layer.",
        "the list must be in the tree",
        "The parameters are those of len(hidden) + 1 layers nn.Linear.",
    ],
)
def registered(answer, rng, device):
    model = answer.MLP(784, [128], 10)
    count = sum(p.numel() for p in model.parameters())
    hint = BIASED if count == 101770 - 138 else TREE
    expect_equal(count, 101770, name="the number of parameters of MLP(784, [128], 10)", hint=hint)
    same = rng.randrange(3, 8)
    for sizes in (sizes_of(rng, 4), [same] * 5, sizes_of(rng, 1)):
        d_in, *hidden, d_out = sizes
        model = answer.MLP(d_in, list(hidden), d_out)
        wanted = sorted(s for n, m in pairwise(sizes) for s in ([m, n], [m]))
        got = sorted(list(p.shape) for p in model.parameters())
        call = f"MLP({d_in}, {hidden}, {d_out})"
        hint = "A weight (out, in) and a bias (out) for each step from one width to the next."
        why = SHARED if len(set(sizes)) == 1 else TREE
        expect_equal(len(got), len(wanted), name=f"the number of Parameters of {call}", hint=why)
        expect_equal(got, wanted, name=f"the shapes of the parameters of {call}", hint=hint)


@check(
    "x goes through the layers in order, and their hooks run",
    holds=["x stays as it is.", "The layers are called, so that their hooks run"],
)
def order(answer, rng, device):
    for layers in (1, 2, 4):
        sizes = sizes_of(rng, layers)
        model = made(answer, sizes, device)
        x = torch.randn(3, sizes[0]).to(device)
        with expect_unchanged(x, hint="An operation with an underscore writes into its tensor."):
            _, through = in_order(model, x, layers)
        widths = [(layer.in_features, layer.out_features) for layer in through]
        name = (
            f"the (in, out) of the layers called, for MLP({sizes[0]}, {sizes[1:-1]}, {sizes[-1]})"
        )
        hint = "From each width to the next: d_in, then those in hidden, then d_out."
        expect_equal(widths, list(pairwise(sizes)), name=name, hint=hint)


@check(
    "a relu stands between the layers, and nowhere else",
    holds="Linear layers with a relu between them.",
)
def between(answer, rng, device):
    for layers in (2, 3, 4):
        sizes = sizes_of(rng, layers)
        model = made(answer, sizes, device)
        x = torch.randn(rng.randrange(2, 7), sizes[0]).to(device)
        out, through = in_order(model, x, layers)
        hint = "Without something nonlinear in between, the layers collapse into one. But the "
        hint += "relu stands between layers alone: x comes in as it is, the logits go out as "
        hint += "they are."
        expect_close(out, chain(through, x), rtol=1e-3, atol=1e-3, hint=hint)


@check("the logits may be any numbers", holds="Linear layers with a relu between them.")
def logits(answer, rng, device):
    for layers in (1, 3):
        sizes = sizes_of(rng, layers)
        model = made(answer, sizes, device)
        x = torch.randn(4, sizes[0]).to(device)
        _, through = in_order(model, x, layers)
        for bias in (-900.0, 900.0):
            with torch.no_grad():
                through[-1].bias.fill_(bias)
            hint = "What the last layer gives is the result: no relu, no softmax. The loss takes "
            hint += "the logits as they are."
            name = f"the logits, where the last bias is {bias:g},"
            wanted = chain(through, x)
            expect_close(model(x), wanted, rtol=1e-3, atol=1e-3, name=name, hint=hint)


@check("every parameter gets a gradient", holds="the list must be in the tree")
def gradients(answer, rng, device):
    sizes = sizes_of(rng, 3)
    model = made(answer, sizes, device)
    model(torch.randn(5, sizes[0]).to(device)).sum().backward()
    without = [name for name, p in model.named_parameters() if p.grad is None]
    message = f"no gradient reaches {', '.join(without)}"
    hint = "Each layer has a part in the result, and nothing on the way is detached."
    expect_true(bool(list(model.parameters())), "the model has no parameters", hint=TREE)
    expect_true(not without, message, hint=hint)


@check("x gets a gradient", holds="If it requires grad, it gets a gradient.")
def back(answer, rng, device):
    for layers in (1, 3):
        sizes = sizes_of(rng, layers)
        model = made(answer, sizes, device)
        x = torch.randn(5, sizes[0]).to(device).requires_grad_()
        out = model(x)
        hint = "The layer in front of the MLP learns through it. Nothing is detached."
        expect_true(out.requires_grad, "the result has no graph", hint=hint)
        out.sum().backward()
        expect_true(x.grad is not None, "x requires grad and gets none", hint=hint)


@check(
    "only the last dimension of x counts",
    holds="x (..., d_in) -> logits (..., d_out). x stays as it is.",
)
def dimensions(answer, rng, device):
    sizes = sizes_of(rng, 3)
    model = made(answer, sizes, device)
    d = sizes[0]
    hint = "A Linear works on the last dimension and leaves the others alone. So can the MLP."
    for lead in ((), (1,), (0,), (2, 3), (3, 1, 2)):
        x = torch.randn(d, *lead).to(device).movedim(0, -1)
        rows = model(x.reshape(-1, d))
        with expect_unchanged(x):
            out = model(x)
        name = f"the result for x {list(x.shape)}"
        expect_shape(out, (*lead, sizes[-1]), name=name, hint=hint)
        wanted = rows.reshape(*lead, sizes[-1])
        expect_close(out, wanted, rtol=1e-3, atol=1e-3, name=name, hint=hint)


@check("the whole model changes its dtype", holds="the list must be in the tree")
def dtypes(answer, rng, device):
    sizes = sizes_of(rng, 3)
    model = made(answer, sizes, device)
    x = torch.randn(4, sizes[0]).to(device)
    before = model(x)
    hint = "The model was converted with double(), and what is not in the tree was not."
    try:
        after = model.double()(x.double())
    except RuntimeError as error:
        words = str(error).partition("\n")[0]
        fail(f"model.double()(x.double()) stops with: {words}", hint=hint)
    name = "the result of model.double()"
    expect_close(after, before, dtype=torch.float64, rtol=1e-3, atol=1e-3, name=name, hint=hint)


@check("models share nothing, and hidden stays as it is", holds="it stays as it is")
def apart(answer, rng, device):
    d_in, *hidden, d_out = sizes_of(rng, 3)
    given = list(hidden)
    one, two = answer.MLP(d_in, given, d_out), answer.MLP(d_in, given, d_out)
    hint = "The caller's list is the caller's: make a list of your own."
    expect_equal(given, hidden, name="the list `hidden` after MLP(...)", hint=hint)
    both = [id(p) for model in (one, two) for p in model.parameters()]
    message = "two models hold the same Parameter"
    expect_true(len(set(both)) == len(both), message, hint="Make the layers in __init__.")


class Base(nn.Module):
    """What most of the variants have in common."""

    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        sizes = [d_in, *hidden, d_out]
        self.layers = nn.ModuleList(nn.Linear(n, m) for n, m in pairwise(sizes))

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        return self.layers[-1](x)


@mutant("keeps the layers in a list", caught_by=registered)
class MLP(Base):
    def __init__(self, d_in, hidden, d_out):
        nn.Module.__init__(self)
        sizes = [d_in, *hidden, d_out]
        self.layers = [nn.Linear(n, m) for n, m in pairwise(sizes)]


@mutant("keeps the hidden layers in a list, and registers the last", caught_by=registered)
class MLP(nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        sizes = [d_in, *hidden]
        self.layers = [nn.Linear(n, m) for n, m in pairwise(sizes)]
        self.out = nn.Linear(sizes[-1], d_out)

    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return self.out(x)


@mutant("builds the layers in forward", caught_by=registered)
class MLP(nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        self.sizes = [d_in, *hidden, d_out]

    def forward(self, x):
        for n, m in zip(self.sizes, self.sizes[1:]):
            x = nn.Linear(n, m).to(x)(torch.relu(x))
        return x


@mutant("makes one layer for equal widths", caught_by=registered)
class MLP(Base):
    def __init__(self, d_in, hidden, d_out):
        nn.Module.__init__(self)
        sizes = [d_in, *hidden, d_out]
        steps = list(pairwise(sizes))
        kinds = {step: nn.Linear(*step) for step in steps}
        self.layers = nn.ModuleList(kinds[step] for step in steps)


@mutant("a relu after the last layer", caught_by=logits)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@mutant("a softmax at the end", caught_by=logits)
class MLP(Base):
    def forward(self, x):
        return torch.softmax(super().forward(x), -1)


@mutant("no activation", caught_by=between)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


@mutant("a relu before each layer, the first too", caught_by=between)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers:
            x = layer(torch.relu(x))
        return x


@mutant("calls the layers' forward", caught_by=order)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer.forward(x))
        return self.layers[-1].forward(x)


@mutant("flattens what it gets", caught_by=dimensions)
class MLP(Base):
    def forward(self, x):
        return super().forward(x.reshape(-1, x.shape[-1]))


@mutant("appends to the caller's list", caught_by=apart)
class MLP(Base):
    def __init__(self, d_in, hidden, d_out):
        hidden.append(d_out)
        super().__init__(d_in, hidden[:-1], d_out)


@mutant("detaches between the layers", caught_by=gradients)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x)).detach()
        return self.layers[-1](x)


@mutant("detaches what comes in", caught_by=back)
class MLP(Base):
    def forward(self, x):
        return super().forward(x.detach())


@mutant("writes its relu into x", caught_by=order)
class MLP(Base):
    def forward(self, x):
        out = super().forward(x)
        x.relu_()
        return out


@mutant("leaves the biases out", caught_by=registered)
class MLP(Base):
    def __init__(self, d_in, hidden, d_out):
        super().__init__(d_in, hidden, d_out)
        for layer in self.layers:
            layer.bias = None


@hinted(1, reaches=order)
class MLP(Base):
    def forward(self, x):
        for layer in self.layers:
            x = torch.relu(layer(x))
        return x


@accepted("registers by name, the last layer first")
class MLP(nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        self.out = nn.Linear([d_in, *hidden][-1], d_out)
        for i, width in enumerate(hidden):
            setattr(self, f"layer{i}", nn.Linear(d_in, width))
            d_in = width
        self.depth = len(hidden)

    def forward(self, x):
        for i in range(self.depth):
            x = getattr(self, f"layer{i}")(x).clamp(min=0)
        return self.out(x)


@accepted("is a Sequential itself")
class MLP(nn.Sequential):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        for width in hidden:
            self.extend([nn.Linear(d_in, width), nn.ReLU()])
            d_in = width
        self.append(nn.Linear(d_in, d_out))


@accepted("a Sequential with relu modules in it")
class MLP(nn.Module):
    def __init__(self, d_in, hidden, d_out):
        super().__init__()
        parts = []
        for width in hidden:
            parts += [nn.Linear(d_in, width), nn.ReLU()]
            d_in = width
        self.net = nn.Sequential(*parts, nn.Linear(d_in, d_out))

    def forward(self, x):
        return self.net(x)
