"""Judges lessons/07_modules/06_init.md."""

import math

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("`isinstance(m, nn.Linear)` asks what")

FAN = "fan_in is how many numbers one output sees: in for a Linear, in / groups * kh * kw for a "
FAN += "Conv2d, which is w[0].numel() for both. The std is sqrt(2 / fan_in), and the mean 0."
DEEP = "This layer lies deeper. `model.modules()` goes all the way down, `children()` one level."
OTHERS = "Go over the modules and write only into nn.Linear and nn.Conv2d. A norm layer multiplies "
OTHERS += "by its weight, so a small number in it shrinks the signal."


class Block(nn.Module):
    """Layers of both kinds, nested, beside modules that are none of init_net's business."""

    def __init__(self, channels, width, classes):
        super().__init__()
        self.conv = nn.Sequential(nn.Conv2d(3, channels, 3), nn.BatchNorm2d(channels), nn.ReLU())
        self.table = nn.Embedding(7, width)
        self.mlp = nn.ModuleDict({"in": nn.Linear(channels, width), "norm": nn.LayerNorm(width)})
        self.scale = nn.Parameter(torch.randn(width, width))
        self.head = nn.Linear(width, classes)

    def forward(self, images, ids):
        h = self.conv(images).mean((2, 3))
        h = self.mlp["norm"](self.mlp["in"](h)).relu() @ self.scale + self.table(ids)
        return self.head(h)


def block(rng, device):
    """A Block with random sizes, values in all its norm layers, and its number of classes."""
    classes = rng.randrange(2, 12)
    net = Block(rng.randrange(4, 9), rng.randrange(5, 20), classes).to(device)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn_like(p) + 2)
        net.conv[1].running_mean.fill_(3)
        net.conv[1].num_batches_tracked.fill_(5)
    return net, classes


def deep(*layers):
    """These layers, nested in three containers."""
    return nn.Sequential(nn.ModuleDict({"body": nn.Sequential(*layers)}))


def expect_kaiming(weight, name, hint=FAN):
    """Normal, mean 0, std sqrt(2 / fan_in), for weights with enough elements to tell."""
    fan_in = weight[0].numel()
    wanted = math.sqrt(2 / fan_in)
    w = weight.detach().double().cpu()
    std, mean = w.std().item(), w.mean().item()
    expect_true(
        abs(std / wanted - 1) < 6 / math.sqrt(2 * w.numel()),  # six standard errors
        f"{name}: fan_in is {fan_in}, the std is {std:.4f}, wanted is {wanted:.4f}",
        hint=hint,
    )
    message = f"{name}: the mean is {mean:.4f}, 0 is wanted"
    expect_true(abs(mean) < 0.05 * wanted, message, hint=hint)
    far = (w.abs() > 2 * wanted).double().mean().item()
    expect_true(
        0.03 < far < 0.06,
        f"{name}: {far:.1%} of the weights lie beyond two std, of a normal distribution 4.6% do",
        hint="Draw from the normal distribution, not a uniform or a truncated one.",
    )


@check(
    "Linear weights have variance 2 / fan_in",
    holds=[
        "Write `init_net`, which prepares any relu network",
        "normal with mean 0 and variance 2 / fan_in",
    ],
)
def linear_weights(answer, rng, device):
    a, b = rng.sample([rng.randrange(350, 400), rng.randrange(700, 800)], 2)
    net = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, a), nn.ReLU(), nn.Linear(a, 3))
    net.to(device)
    answer.init_net(net)
    expect_kaiming(net[0].weight, f"the weight of Linear({a}, {b})")
    expect_kaiming(net[2].weight, f"the weight of Linear({b}, {a})")
    inner = nn.Linear(a, b)
    answer.init_net(nn.Sequential(deep(inner), nn.Linear(b, 3)).to(device))
    expect_kaiming(inner.weight, f"the weight of a nested Linear({a}, {b})", hint=DEEP)


@check(
    "so have the weights of convolutions",
    holds="which for groups counts the inputs of one group",
)
def conv_weights(answer, rng, device):
    a, b = rng.sample([rng.randrange(40, 50), rng.randrange(90, 110)], 2)
    groups = nn.Conv2d(2 * a, 2 * b, 5, groups=2)
    net = nn.Sequential(nn.Conv2d(a, b, (3, 5)), groups, nn.Flatten(), nn.Linear(4, 2)).to(device)
    answer.init_net(net)
    expect_kaiming(net[0].weight, f"the weight of Conv2d({a}, {b}, (3, 5))")
    expect_kaiming(net[1].weight, f"the weight of Conv2d({2 * a}, {2 * b}, 5, groups=2)")
    inner = nn.Conv2d(a, b, 3)
    answer.init_net(nn.Sequential(deep(inner), nn.Linear(4, 2)).to(device))
    expect_kaiming(inner.weight, f"the weight of a nested Conv2d({a}, {b}, 3)", hint=DEEP)


@check(
    "biases are 0, and a layer may have none",
    holds="their biases: 0; a layer made with bias=False has None",
)
def biases(answer, rng, device):
    n = rng.randrange(2, 9)
    net = nn.Sequential(
        nn.Linear(n, 6, bias=False), nn.Linear(6, n), nn.Conv2d(n, 3, 1), nn.Linear(3, 4)
    ).to(device)
    answer.init_net(net)
    hint = "`nn.init.zeros_(m.bias)`, in every layer of the two kinds that has one."
    for place in (1, 2, 3):
        bias = net[place].bias
        expect_equal(bias, torch.zeros_like(bias), name=f"the bias of layer {place}", hint=hint)
    inner = nn.Linear(n, 6)
    answer.init_net(nn.Sequential(deep(inner), nn.Linear(6, n)).to(device))
    wanted = torch.zeros_like(inner.bias)
    expect_equal(inner.bias, wanted, name="the bias of a nested layer", hint=DEEP)
    alone = nn.Sequential(nn.Conv2d(2, 3, 3, bias=False), nn.Linear(n, 5, bias=False)).to(device)
    answer.init_net(alone)
    weight = alone[1].weight
    name = "the weight of a head without a bias"
    hint = "The last nn.Linear is the head, with a bias or without. Its weight is 0."
    expect_equal(weight, torch.zeros_like(weight), name=name, hint=hint)


@check(
    "at first the head says 0 for every class",
    holds=["the head: 0, its weight too", "it is or holds at least one nn.Linear"],
    both_sides=True,
)
def head(answer, rng, device):
    for _ in range(2):
        net, classes = block(rng, device)
        net.eval()
        answer.init_net(net)
        images = torch.randn(5, 3, 6, 5, device=device)
        ids = torch.randint(7, (5,), device=device)
        labels = torch.randint(classes, (5,), device=device)
        hint = "The head is the last nn.Linear. Zeros in its weight and its bias."
        got = net(images, ids)
        expect_equal(got, torch.zeros_like(got), name="what the head says", hint=hint)
        loss = F.cross_entropy(got, labels).item()
        expect_true(
            abs(loss - math.log(classes)) < 1e-5,
            f"the first loss is {loss:.4f}, ln {classes} is wanted",
            hint=hint,
        )
    conv_last = nn.Sequential(nn.Linear(4, 18), nn.Unflatten(1, (2, 3, 3)), nn.Conv2d(2, 3, 3))
    answer.init_net(conv_last.to(device))
    got = conv_last[0].weight
    name = "the weight of the last nn.Linear, with a Conv2d behind it,"
    expect_equal(got, torch.zeros_like(got), name=name, hint=hint)
    single = nn.Linear(rng.randrange(1, 9), 4).to(device)
    answer.init_net(single)
    hint = "`model.modules()` begins with the model itself."
    name = "the bias of a model that is one nn.Linear"
    expect_equal(single.bias, torch.zeros_like(single.bias), name=name, hint=hint)
    got = single.weight
    expect_equal(
        got,
        torch.zeros_like(got),
        name="the weight of a model that is one nn.Linear",
        hint="`model.modules()` begins with the model itself.",
    )


@check("only the last Linear is 0")
def only_the_head(answer, rng, device):
    net, _ = block(rng, device)
    answer.init_net(net)
    for name, m in (("an inner Linear", net.mlp["in"]), ("a Conv2d", net.conv[0])):
        expect_true(
            m.weight.abs().min().item() > 0,
            f"the weight of {name} has zeros",
            hint="Units that start alike stay alike, and zeros let no gradient through. Only the "
            "last nn.Linear may be 0.",
        )


@check(
    "everything else keeps its values",
    holds="Parameters and buffers of all other modules, nn.Conv1d for one, keep their values.",
)
def others(answer, rng, device):
    net, _ = block(rng, device)
    before = {name: value.clone() for name, value in net.state_dict().items()}
    answer.init_net(net)
    layers = ("conv.0.", "mlp.in.", "head.")
    for name, value in net.state_dict().items():
        if not name.startswith(layers):
            expect_equal(value, before[name], name=name, hint=OTHERS)


@check(
    "a kind of Linear is a Linear, a kind of convolution is not a Conv2d",
    holds="weights of nn.Linear and nn.Conv2d, subclasses included",
)
def kinds(answer, rng, device):
    width = 8 * rng.randrange(30, 34)
    part = nn.TransformerEncoderLayer(width, 4, 2 * width, batch_first=True)
    siblings = nn.ModuleList(
        [nn.Conv1d(3, 4, 3), nn.Conv3d(2, 3, 3), nn.ConvTranspose2d(3, 4, 3), nn.Bilinear(3, 2, 4)]
    )
    model = nn.ModuleList([siblings, part, nn.Linear(4, 2)]).to(device)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.randn_like(p) + 2)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    answer.init_net(model)
    hint = "A subclass is an nn.Linear too: isinstance says so, type(m) does not."
    expect_kaiming(part.self_attn.out_proj.weight, "the weight of a subclass of nn.Linear", hint)
    bias = part.self_attn.out_proj.bias
    expect_equal(bias, torch.zeros_like(bias), name="the bias of a subclass of nn.Linear",
                 hint=hint)  # fmt: skip
    hint = "nn.Linear and nn.Conv2d are named, and no others. Conv1d and Conv3d are no Conv2d."
    for name, p in model.named_parameters():
        if name.startswith("0.") or "in_proj" in name:
            expect_equal(p.detach(), before[name], name=f"{name} of a layer of another kind",
                         hint=hint)  # fmt: skip


@check(
    "the head is found wherever it stands",
    holds="The head is the last `nn.Linear` in the order of `model.modules()`",
)
def nested_head(answer, rng, device):
    n = rng.randrange(3, 9)
    hint = "The last nn.Linear of model.modules(), which walks all the way down."
    for model in (
        nn.Sequential(nn.Sequential(nn.Linear(n, 4), nn.ReLU(), nn.Linear(4, n)), nn.ReLU()),
        nn.Sequential(nn.Linear(n, 6), deep(nn.Linear(6, 5), nn.ReLU(), nn.Linear(5, 2))),
    ):
        answer.init_net(model.to(device))
        *first, last = (m for m in model.modules() if isinstance(m, nn.Linear))
        weight = last.weight
        expect_equal(weight, torch.zeros_like(weight), name="the weight of the last nn.Linear",
                     hint=hint)  # fmt: skip
        for m in first:
            message = "the weight of an nn.Linear that is not the last is 0"
            expect_true(bool((m.weight != 0).any()), message, hint=hint)


@check(
    "every Parameter stays the same object, and trains",
    holds="All Parameters stay the same objects.",
)
def same_objects(answer, rng, device):
    net, _ = block(rng, device)
    before = dict(net.named_parameters())
    frozen = net.conv[0].weight.requires_grad_(False)
    answer.init_net(net)
    for name, p in net.named_parameters():
        expect_true(
            p is before[name],
            f"{name} is another Parameter now",
            hint="An optimizer that was made before holds the old one. Write into it.",
        )
        trains = p.requires_grad and p.is_leaf
        expect_true(
            trains or p is frozen,
            f"{name} cannot be trained any more: requires_grad is {p.requires_grad}",
            hint="nn.init's functions write without recording, and leave the Parameter as it is.",
        )
    expect_true(not frozen.requires_grad, "a Parameter that was frozen requires grad now")


@check("the signal survives thirty layers")
def survives(answer, rng, device):
    net = nn.Sequential()
    width = rng.randrange(180, 220)
    for _ in range(30):
        net.extend([nn.Linear(width, width), nn.ReLU()])
    net.append(nn.Linear(width, 2)).to(device)
    answer.init_net(net)
    with torch.no_grad():
        h = net[:-1](torch.randn(32, width, device=device))
    size = h.square().mean().sqrt().item()
    expect_true(
        0.1 < size < 10,
        f"after 30 layers of relu the signal's size is {size:.1e}; it was 1",
        hint="fan_in * Var(w) / 2 is the factor of each layer. What must Var(w) be?",
    )


@check("each draw is a new one", holds="No seed is set: a second call draws other weights.")
def new_draws(answer, rng, device):
    net = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 4), nn.Linear(4, 2)).double().to(device)
    answer.init_net(net)
    first = net[0].weight.detach().clone()
    expect_dtype(first, torch.float64, name="the weight of a float64 layer")
    expect_true(
        not torch.equal(first, net[1].weight), "two layers of one shape got the same weights"
    )
    answer.init_net(net)
    expect_true(
        not torch.equal(first, net[0].weight),
        "a second call draws the same weights",
        hint="Whoever wants to repeat a run sets the seed outside.",
    )
    expect_close(net[2].weight, torch.zeros_like(net[2].weight), name="the head, after two calls")


def layers(model):
    return [m for m in model.modules() if isinstance(m, (nn.Linear, nn.Conv2d))]


def finish(model):
    """Zero biases and a zero head."""
    for m in layers(model):
        if m.bias is not None:
            nn.init.zeros_(m.bias)
    nn.init.zeros_([m for m in layers(model) if isinstance(m, nn.Linear)][-1].weight)


@mutant("the same std for every parameter", caught_by=others)
def init_net(model):
    for p in model.parameters():
        nn.init.normal_(p, std=0.05)
    finish(model)


@mutant("whatever has two dimensions is a weight", caught_by=others)
def init_net(model):
    for p in model.parameters():
        if p.ndim > 1:
            nn.init.kaiming_normal_(p, nonlinearity="relu")
    finish(model)


@mutant("counts the outputs", caught_by=linear_weights)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")
    finish(model)


@mutant("forgets the kernel's size", caught_by=conv_weights)
def init_net(model):
    for m in layers(model):
        nn.init.normal_(m.weight, std=(2 / m.weight.shape[1]) ** 0.5)
    finish(model)


@mutant("leaves relu out of account", caught_by=survives)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="linear")
    finish(model)


@mutant("draws from a uniform distribution", caught_by=linear_weights)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_uniform_(m.weight, nonlinearity="relu")
    finish(model)


@mutant("keeps PyTorch's own biases", caught_by=biases)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    head = [m for m in layers(model) if isinstance(m, nn.Linear)][-1]
    nn.init.zeros_(head.weight)
    nn.init.zeros_(head.bias)


@mutant("expects a bias in every layer", caught_by=biases)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        nn.init.zeros_(m.bias)
    finish(model)


@mutant("forgets the head", caught_by=head)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        if m.bias is not None:
            nn.init.zeros_(m.bias)


@mutant("takes the last layer of either kind for the head", caught_by=head)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        if m.bias is not None:
            nn.init.zeros_(m.bias)
    nn.init.zeros_(m.weight)


@mutant("asks for the type itself", caught_by=kinds)
def init_net(model):
    for m in model.modules():
        if type(m) in (nn.Linear, nn.Conv2d):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    finish(model)


@mutant("takes every convolution", caught_by=kinds)
def init_net(model):
    for m in model.modules():
        if isinstance(m, (nn.Linear, nn.modules.conv._ConvNd)):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    finish(model)


@mutant("takes the last direct child for the head", caught_by=nested_head)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
        if m.bias is not None:
            nn.init.zeros_(m.bias)
    last = [model, *model.children()][-1]
    if isinstance(last, nn.Linear):
        nn.init.zeros_(last.weight)


@mutant("reckons with a leaky relu", caught_by=linear_weights)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, a=0.2)
    finish(model)


@mutant("all zeros", caught_by=only_the_head)
def init_net(model):
    for m in layers(model):
        nn.init.zeros_(m.weight)
    finish(model)


@mutant("sees the direct children only", caught_by=head)
def init_net(model):
    for m in model.children():
        if isinstance(m, nn.Linear):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            nn.init.zeros_(m.bias)


@mutant("sees the model and its direct children", caught_by=linear_weights)
def init_net(model):
    head = None
    for m in [model, *model.children()]:
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
            if m.bias is not None:
                nn.init.zeros_(m.bias)
        head = m if isinstance(m, nn.Linear) else head
    nn.init.zeros_(head.weight)


@mutant("zeroes the biases of direct children only", caught_by=biases)
def init_net(model):
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    for m in [model, *model.children()]:
        if getattr(m, "bias", None) is not None and m in layers(model):
            nn.init.zeros_(m.bias)
    head = [m for m in layers(model) if isinstance(m, nn.Linear)][-1]
    for p in head.parameters():
        nn.init.zeros_(p)


@mutant("makes new Parameters", caught_by=same_objects)
def init_net(model):
    for m in layers(model):
        m.weight = nn.Parameter(torch.randn_like(m.weight) * (2 / m.weight[0].numel()) ** 0.5)
    finish(model)


@mutant("sets a seed", caught_by=new_draws)
def init_net(model):
    torch.manual_seed(0)
    for m in layers(model):
        nn.init.kaiming_normal_(m.weight, nonlinearity="relu")
    finish(model)


@hinted(1, reaches=conv_weights)
def init_net(model):
    for m in model.modules():
        if isinstance(m, (nn.Linear, nn.Conv2d)):
            nn.init.kaiming_normal_(m.weight, nonlinearity="relu")


@accepted("by the formula, under no_grad")
@torch.no_grad()
def init_net(model):
    *_, last = (m for m in model.modules() if isinstance(m, nn.Linear))
    for m in model.modules():
        if not isinstance(m, (nn.Linear, nn.Conv2d)):
            continue
        m.weight.normal_(0, (2 / m.weight[0].numel()) ** 0.5)
        if m is last:
            m.weight.zero_()
        if m.bias is not None:
            m.bias.zero_()


@accepted("with apply, and copies")
def init_net(model):
    linears = []

    def draw(m):
        if isinstance(m, nn.Conv2d | nn.Linear):
            fan_in, _ = nn.init._calculate_fan_in_and_fan_out(m.weight)
            m.weight.data.copy_(torch.randn_like(m.weight) * math.sqrt(2.0 / fan_in))
            if m.bias is not None:
                m.bias.data.fill_(0)

    for m in model.modules():
        draw(m)
        linears += [m] if isinstance(m, nn.Linear) else []
    torch.nn.init.constant_(linears.pop().weight, 0.0)


equivalent(
    'nn.init.kaiming_normal_(m.weight, nonlinearity="relu")',
    "nn.init.kaiming_normal_(m.weight)",
    because="The default is leaky_relu with slope 0, which is relu.",
)
