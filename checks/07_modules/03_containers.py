"""Judges lessons/07_modules/03_containers.md."""

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
    expect_equal,
    expect_raises,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("One trunk, several tasks.")

shows = ["modules/module_anatomy"]

TREE = (
    "The names come from the tree: `blocks` and `heads` are containers that are modules, and hold "
    "the layers themselves. A plain list or dict is not in the tree."
)
NAMES = ["cls", "reg", "depth", "a_b", "edge2"]


def widths_of(rng, count):
    """Heads: names and widths, all different."""
    return dict(zip(rng.sample(NAMES, count), rng.sample(range(1, 9), count), strict=True))


def problem(answer, rng, device, n, count=2):
    d = rng.randrange(2, 8)
    heads = widths_of(rng, count)
    return answer.Stack(d, n, dict(heads)).to(device), d, heads


def wanted_names(d, n, heads):
    """The entries of state_dict() and their shapes."""
    shapes = {}
    for path, width in [(f"blocks.{i}", d) for i in range(n)] + [
        (f"heads.{name}", width) for name, width in heads.items()
    ]:
        shapes[f"{path}.weight"] = [width, d]
        shapes[f"{path}.bias"] = [width]
    return shapes


def expect_tree(net, d, n, heads):
    """All layers are in the tree, by the names that the task gives."""
    got = {name: list(t.shape) for name, t in net.state_dict().items()}
    call = f"Stack({d}, {n}, {heads})"
    name = f"what is in the tree of {call}"
    expect_equal(got, wanted_names(d, n, heads), name=name, hint=TREE)


def run_by_hand(state, n, x, head):
    """What the stack makes of x, from its state_dict."""
    for i in range(n):
        x = x + F.linear(x, state[f"blocks.{i}.weight"], state[f"blocks.{i}.bias"]).clamp(min=0)
    return F.linear(x, state[f"heads.{head}.weight"], state[f"heads.{head}.bias"])


@check(
    "all layers are in the tree, under their names",
    holds=[
        "dict from names to output widths, perhaps empty",
        "n may be 0",
        "So the names in state_dict() are blocks.0.weight, ..., heads.cls.bias.",
    ],
)
def tree(answer, rng, device):
    for n, count in ((3, 2), (1, 1), (0, 2), (2, 0), (4, 5)):
        net, d, heads = problem(answer, rng, device, n, count)
        expect_tree(net, d, n, heads)
    count = sum(p.numel() for p in answer.Stack(4, 3, {"cls": 2, "reg": 1}).parameters())
    hint = "Three blocks of 20 and heads of 10 and 5. A layer in several places counts once."
    name = "the number of parameters of Stack(4, 3, {'cls': 2, 'reg': 1})"
    expect_equal(count, 75, name=name, hint=hint)


@check(
    "each layer has random weights of its own",
    holds=[
        "Each layer, blocks and heads alike, begins with random weights of its own",
        "other ones in each Stack",
    ],
    both_sides=True,
)
def distinct(answer, rng, device):
    net, d, heads = problem(answer, rng, device, 4)
    expect_tree(net, d, 4, heads)
    blocks = list(net.blocks.children())
    others = sorted({type(b).__name__ for b in blocks if not isinstance(b, nn.Linear)})
    hint = "`blocks` holds the layers themselves, nn.Linear(d, d). The relu is part of forward."
    expect_true(not others, f"blocks holds modules of type {', '.join(others)}", hint=hint)
    hint = "[layer] * n is one layer in n places. Call nn.Linear once for each."
    message = f"4 blocks are only {len({id(b) for b in blocks})} different modules"
    expect_true(len({id(b) for b in blocks}) == 4, message, hint=hint)
    weights = [b.weight.detach() for b in blocks]
    alike = any(torch.equal(weights[i], weights[j]) for i in range(4) for j in range(i))
    hint = "Copies begin with equal numbers, and so do constants. Call nn.Linear once for each."
    expect_true(not alike, "two blocks begin with the same weights", hint=hint)
    twins = answer.Stack(d, 1, {"cls": 3, "reg": 3, "depth": 3}).to(device)
    pairs = [("cls", "reg"), ("cls", "depth"), ("reg", "depth")]
    state = twins.state_dict()
    alike = any(
        torch.equal(state[f"heads.{a}.weight"], state[f"heads.{b}.weight"]) for a, b in pairs
    )
    hint = "A head is a layer of its own, also where another one is as wide."
    expect_true(not alike, "two heads begin with the same weights", hint=hint)
    other = answer.Stack(d, 4, {"cls": 2}).to(device)
    shared = {id(p) for p in net.parameters()} & {id(p) for p in other.parameters()}
    expect_true(not shared, "two stacks share a Parameter", hint="Make the layers in __init__.")
    again = answer.Stack(d, 1, {"cls": 3, "reg": 3, "depth": 3}).state_dict()
    alike = any(torch.equal(t, again[name]) for name, t in state.items())
    hint = "Set no seed: whoever wants the same numbers sets it outside."
    expect_true(not alike, "a second Stack begins with the same weights", hint=hint)


@check(
    "each block adds to what comes in",
    holds="Write `Stack`: blocks that add to what comes in, then a head",
)
def residual(answer, rng, device):
    for n in (0, 1, 3):
        net, d, heads = problem(answer, rng, device, n)
        expect_tree(net, d, n, heads)
        state = {name: t.clone() for name, t in net.state_dict().items()}
        for lead in ((5,), (1,), (0,), (), (2, 3)):
            x = torch.randn(d, *lead).to(device).movedim(0, -1) * 2
            for head in heads:
                hint = "Block after block, from the first to the last: what comes in, plus relu of "
                hint += "what the layer makes of it. Then the chosen head, and nothing else."
                shape = "The dimensions in front of the last one go through as they are."
                wanted = run_by_hand(state, n, x, head)
                out = net(x.clone(), head)
                expect_close(out, wanted, atol=1e-4, hint=hint, shape_hint=shape)


@check("an unknown head is a KeyError", holds="KeyError if there is no such head.")
def unknown(answer, rng, device):
    for count in (2, 0):
        net, d, _ = problem(answer, rng, device, 1, count)
        x = torch.randn(2, d).to(device)
        hint = "A name that is not there must not pass for another one."
        message = "a head that does not exist raises no KeyError"
        with expect_raises(KeyError, message, hint=hint):
            try:
                net(x, "zzz")
            except AttributeError as error:
                words = f"a head that does not exist raises an AttributeError: {error}"
                fail(words, hint="Look the head up by its key, as in a dict.")


@check(
    "the caller's x and dict stay as they are",
    holds=["it stays as it is", "x stays as it is"],
)
def untouched(answer, rng, device):
    d, given = rng.randrange(2, 8), widths_of(rng, 3)
    before = dict(given)
    net = answer.Stack(d, 3, given).to(device)
    hint = "The dict is the caller's. Its values are widths and stay widths."
    expect_equal(given, before, name="the dict of heads after Stack(...)", hint=hint)
    x = torch.randn(4, d).to(device)
    with expect_unchanged(x, hint="`x += ...` writes into the tensor that the caller passed."):
        net(x, next(iter(given)))


@check(
    "every layer on the way is trained",
    holds="blocks that add to what comes in",
    hint="backward() needs what forward made at each block. `x += ...` writes over it.",
)
def trained(answer, rng, device):
    n = 3
    net, d, heads = problem(answer, rng, device, n)
    expect_tree(net, d, n, heads)
    used, unused = list(heads)
    hint = "x goes through all blocks and through the chosen head, and nothing is detached."
    out = net(torch.randn(6, d).to(device), used)
    expect_true(out.requires_grad, "the result has no graph", hint=hint)
    try:
        out.square().sum().backward()
    except RuntimeError as error:
        words = str(error).partition(":")[0]
        kept = "A layer keeps its input for backward. `x += ...` writes over it, and "
        kept += "`x = x + ...` makes a new tensor."
        fail(f"backward() stops with: {words}", hint=kept)
    without = [
        name
        for name, p in net.named_parameters()
        if p.grad is None and not name.startswith(f"heads.{unused}.")
    ]
    message = f"no gradient reaches {', '.join(without)}"
    expect_true(not without, message, hint=hint)


@check("a loaded stack gives the same results, in another dtype too")
def loaded(answer, rng, device):
    n = 2
    net, d, heads = problem(answer, rng, device, n)
    other = answer.Stack(d, n, dict(heads)).to(device)
    other.load_state_dict(copy.deepcopy(net.state_dict()))
    x, head = torch.randn(4, d).to(device), next(iter(heads))
    wanted = net(x.clone(), head)
    hint = "What is not in the tree is neither saved nor loaded."
    expect_close(other(x.clone(), head), wanted, name="the result of the loaded stack", hint=hint)
    hint = "What is not in the tree does not change its dtype."
    out = other.double()(x.double(), head)
    expect_dtype(out, torch.float64, name="the result after double()", hint=hint)


class Base(nn.Module):
    """What most of the variants have in common."""

    def __init__(self, d, n, heads):
        super().__init__()
        self.blocks = nn.ModuleList(nn.Linear(d, d) for _ in range(n))
        self.heads = nn.ModuleDict({k: nn.Linear(d, width) for k, width in heads.items()})

    def forward(self, x, head):
        for layer in self.blocks:
            x = x + torch.relu(layer(x))
        return self.heads[head](x)


@mutant(
    "keeps the blocks in a list",
    caught_by=tree,
    misconception="modules/module_anatomy",
    like="keeps the layers in a list",
)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        del self.blocks
        self.blocks = [nn.Linear(d, d) for _ in range(n)]


@mutant("keeps the heads in a dict", caught_by=tree)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        del self.heads
        self.heads = {name: nn.Linear(d, width) for name, width in heads.items()}


@mutant("puts one layer into n places", caught_by=distinct)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        self.blocks = nn.ModuleList([nn.Linear(d, d)] * n)


@mutant("copies the first block", caught_by=distinct)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        layer = nn.Linear(d, d)
        self.blocks = nn.ModuleList(copy.deepcopy(layer) for _ in range(n))


@mutant("makes one layer for heads of equal width", caught_by=distinct)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        by_width = {width: nn.Linear(d, width) for width in heads.values()}
        self.heads = nn.ModuleDict({k: by_width[width] for k, width in heads.items()})


@mutant("sets a seed", caught_by=distinct)
class Stack(Base):
    def __init__(self, d, n, heads):
        torch.manual_seed(0)
        super().__init__(d, n, heads)


@mutant("asks for a head as an attribute", caught_by=unknown)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = x + torch.relu(layer(x))
        return getattr(self.heads, head)(x)


@mutant("forgets to add the input", caught_by=residual)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = torch.relu(layer(x))
        return self.heads[head](x)


@mutant("takes the relu of the sum", caught_by=residual)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = torch.relu(x + layer(x))
        return self.heads[head](x)


@mutant("leaves out the relu", caught_by=residual)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = x + layer(x)
        return self.heads[head](x)


@mutant("writes into x", caught_by=untouched)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x += torch.relu(layer(x))
        return self.heads[head](x)


@mutant("writes the layers into the caller's dict", caught_by=untouched)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        for name in heads:
            heads[name] = self.heads[name]


@mutant("takes the first head for an unknown one", caught_by=unknown)
class Stack(Base):
    def forward(self, x, head):
        if head not in self.heads:
            head = next(iter(self.heads), "none")
        return super().forward(x, head)


@mutant("asks for the head with getattr", caught_by=unknown)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = x + torch.relu(layer(x))
        return getattr(self.heads, head)(x)


@mutant("writes into a copy of x", caught_by=trained)
class Stack(Base):
    def forward(self, x, head):
        x = x.clone()
        for layer in self.blocks:
            x += torch.relu(layer(x))
        return self.heads[head](x)


@mutant("makes each block a Sequential", caught_by=distinct)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(d, d), nn.ReLU()) for _ in range(n))

    def forward(self, x, head):
        for block in self.blocks:
            x = x + block(x)
        return self.heads[head](x)


@mutant("a Sequential of Linear and ReLU", caught_by=tree)
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        self.blocks = nn.Sequential()
        for _ in range(n):
            self.blocks.append(nn.Linear(d, d)).append(nn.ReLU())

    def forward(self, x, head):
        for layer, relu in zip(self.blocks[::2], self.blocks[1::2], strict=True):
            x = x + relu(layer(x))
        return self.heads[head](x)


@mutant("detaches the trunk", caught_by=trained)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x = x + torch.relu(layer(x))
        return self.heads[head](x.detach())


@hinted(1, reaches=unknown)
class Stack(Base):
    def forward(self, x, head):
        for layer in self.blocks:
            x += torch.relu(layer(x))
        return self.heads[head](x)


@accepted("appends, and sets by key")
class Stack(nn.Module):
    def __init__(self, d, n, heads):
        super().__init__()
        self.heads = nn.ModuleDict()
        for name in heads:
            self.heads[name] = nn.Linear(d, heads[name])
        self.blocks = nn.ModuleList()
        while len(self.blocks) < n:
            self.blocks.append(nn.Linear(d, d))

    def forward(self, x, head):
        last = self.heads[head]
        for i in range(len(self.blocks)):
            x = self.blocks[i](x).relu() + x
        return last(x)


@accepted("a Sequential as a list, and a loop of its own")
class Stack(Base):
    def __init__(self, d, n, heads):
        super().__init__(d, n, heads)
        self.blocks = nn.Sequential(*[nn.Linear(d, d) for _ in range(n)])

    def forward(self, x, head):
        if head not in self.heads:
            raise KeyError(f"no head {head!r}, only {sorted(self.heads)}")
        return super().forward(x, head)
