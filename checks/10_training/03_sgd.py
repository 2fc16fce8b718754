"""Judges lessons/10_training/03_sgd.md."""

import copy
from unittest import mock

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("`p.sub_(t)` writes p - t into p.", "A tensor may be the key of a dict")

shows = ["autograd/grad_modes"]

MOVE = "Write into the tensor itself: p.sub_(lr * buf). A new tensor with the name p moves nothing."
SUM = "buf is momentum times itself, plus d, whole. The first time it is d. Each p has its own."
DECAY = "weight_decay * p is a part of d, before momentum and lr."
OWN = "The dict of a group has its own lr. Read it in each step, from that dict."
LINES = "The three lines in their order: d with the decay, buf with d whole, p with its group's lr."
FIRST = " If the check of momentum fails too, mend that first."
NONE = "Where .grad is None, nothing happens: no decay, no step, and the buffer waits."
GRAD = "The gradient belongs to the caller. Compute d in a new tensor."
KEPT = "The caller writes the next gradient into the same tensor. Keep a copy in the buffer."
SHAPES = ((3, 2), (), (1,), (0,), (2, 1, 3), (4,), (4,))


def leaves(rng, device, dtype=torch.float32):
    """Leaves of many shapes, the first one not contiguous."""
    made = [torch.randn(shape, dtype=dtype, device=device) for shape in SHAPES]
    made[0] = torch.randn(2, rng.randint(1, 5), dtype=dtype, device=device).T.clone()
    return [tensor.requires_grad_() for tensor in made]


def twins(params):
    return [p.detach().clone().requires_grad_() for p in params]


def groups_of(params, rates):
    """The parameters dealt out to one group per rate."""
    n = len(rates)
    return [{"params": params[i::n], "lr": rate} for i, rate in enumerate(rates)]


def give(params, others, factor=1.0):
    """The same fresh gradient for each pair."""
    for p, q in zip(params, others, strict=True):
        p.grad = torch.randn_like(p) * factor
        q.grad = p.grad.clone()


def compare(params, others, hint, when, dtype=None):
    for i, (p, q) in enumerate(zip(params, others, strict=True)):
        expect_close(p.detach(), q.detach(), name=f"parameter {i} after {when}", hint=hint)


def both(answer, rng, device, rates, dtype=torch.float32, **options):
    """The learner's optimizer and torch's, each with its own equal parameters."""
    params = leaves(rng, device, dtype)
    others = twins(params)
    mine = answer.SGD(groups_of(params, rates), **options)
    torchs = torch.optim.SGD(groups_of(others, rates), **options)
    return params, others, mine, torchs


def agree(answer, rng, device, hint, rates=(0.1,), steps=4, **options):
    """Both go the same way, step by step."""
    for dtype in (torch.float32, torch.float64):
        params, others, mine, torchs = both(answer, rng, device, rates, dtype, **options)
        for step in range(1, steps + 1):
            give(params, others)
            mine.step()
            torchs.step()
            compare(params, others, hint, f"step {step}")


@check(
    "a step is lr times the gradient, in place",
    holds="with momentum and weight decay or without",
    side="without",
)
def plain(answer, rng, device):
    agree(answer, rng, device, MOVE, rates=(0.1 + rng.random(),))


@check(
    "momentum is a fading sum",
    holds="with momentum and weight decay or without",
    side="with momentum",
)
def momentum(answer, rng, device):
    agree(answer, rng, device, SUM, rates=(0.2,), momentum=0.5 + rng.random() / 2)
    agree(answer, rng, device, SUM, rates=(0.2,), momentum=0.9, steps=7)


@check(
    "weight decay is a part of the gradient",
    holds="with momentum and weight decay or without",
    side="with weight decay",
)
def decay(answer, rng, device):
    agree(answer, rng, device, DECAY, weight_decay=0.2 + rng.random())
    agree(answer, rng, device, LINES, weight_decay=0.3, momentum=0.8)


@check(
    "each group has its own lr, read in each step",
    holds="Each group has a learning rate of its own, and others may change it between two steps.",
    both_sides=True,
)
def groups(answer, rng, device):
    rates = (0.5, 0.1 * rng.random(), 1.5)
    agree(answer, rng, device, OWN, rates=rates)
    params = leaves(rng, device)
    others = twins(params)
    given = groups_of(params, rates)
    mine = answer.SGD(given, momentum=0.6)
    torchs = torch.optim.SGD(groups_of(others, rates), momentum=0.6)
    for step in range(1, 4):
        for group, other in zip(given, torchs.param_groups, strict=True):
            group["lr"] = other["lr"] = 0.1 + rng.random()
        give(params, others)
        mine.step()
        torchs.step()
        compare(params, others, LINES, f"step {step}, with a lr changed before it")


@check(
    "a parameter without a gradient is skipped",
    holds="A parameter without a gradient is skipped, with its buffer; a gradient of zeros is a",
    both_sides=True,
)
def skipped(answer, rng, device):
    params, others, mine, torchs = both(
        answer, rng, device, (0.2, 0.4), momentum=0.9, weight_decay=0.1
    )
    for missing in ((1, 4), (), (0, 4), (2, 3, 5)):
        give(params, others)
        for i in missing:
            params[i].grad = others[i].grad = None
        mine.step()
        torchs.step()
        for i in missing:
            expect_true(params[i].grad is None, f"parameter {i} has a .grad now", hint=NONE)
        compare(params, others, NONE + FIRST, f"a step with no gradient at {list(missing)}")
    give(params, others)
    for p, q in zip(params, others, strict=True):
        p.grad.zero_()
        q.grad.zero_()
    mine.step()
    torchs.step()
    hint = "A gradient of zeros is a gradient. Only None is skipped." + FIRST
    compare(params, others, hint, "a step with gradients of zeros")


@check("no gradient changes", holds="No .grad changes")
def gradients(answer, rng, device):
    for options in ({}, {"momentum": 0.9}, {"momentum": 0.9, "weight_decay": 0.4}):
        params, others, mine, _ = both(answer, rng, device, (0.2,), **options)
        for step in range(1, 4):
            give(params, others)
            held = [p.grad for p in params]
            mine.step()
            for i, (p, q, old) in enumerate(zip(params, others, held, strict=True)):
                expect_true(p.grad is old, f".grad {i} is another tensor after a step", hint=GRAD)
                expect_equal(old, q.grad, name=f".grad {i} after step {step}", hint=GRAD)


@check(
    "the buffer is no alias of a gradient",
    holds="nothing of what you keep changes when the caller writes into a .grad",
)
def aliases(answer, rng, device):
    params, others, mine, torchs = both(answer, rng, device, (0.2, 0.3), momentum=0.9)
    give(params, others)
    for step in range(1, 5):
        mine.step()
        torchs.step()
        compare(
            params,
            others,
            KEPT + FIRST,
            f"step {step}, each gradient in the tensor of the one before",
        )
        for p, q in zip(params, others, strict=True):
            p.grad.normal_()
            q.grad.copy_(p.grad)


@check(
    "parameters stay leaves, and autograd is on or off as before",
    holds=[
        "The parameters stay leaves that require gradients.",
        "Autograd is on or off afterwards as it was before.",
    ],
    both_sides=True,
)
def graphless(answer, rng, device):
    params, others, mine, _ = both(answer, rng, device, (0.2,), momentum=0.9, weight_decay=0.1)
    for _ in range(2):
        give(params, others)
        mine.step()
        on = torch.is_grad_enabled()
        torch.set_grad_enabled(True)
        hint = "Switch it off for the step alone: @torch.no_grad(), or a with block."
        expect_true(on, "autograd is off after step()", hint=hint)
        hint = "Under no_grad an in-place method leaves it what it is."
        for i, p in enumerate(params):
            sound = p.is_leaf and p.requires_grad
            expect_true(sound, f"parameter {i} is no leaf that requires gradients", hint=hint)
    with torch.no_grad():
        give(params, others)
        mine.step()
        expect_true(
            not torch.is_grad_enabled(),
            "autograd was off before step(), and is on afterwards",
            hint="torch.no_grad() restores what was.",
        )


@check("the numbers change where they are", holds="Move each parameter in place", both_sides=True)
def in_place(answer, rng, device):
    params, others, mine, _ = both(answer, rng, device, (0.2,), momentum=0.9)
    aliases = [p.detach() for p in params]
    for _ in range(2):
        give(params, others)
        mine.step()
    hint = "Another tensor, such as one of a state_dict, may look at the same numbers. p.sub_(t) "
    hint += "writes to them; p.data = ... puts other numbers behind p."
    compare(aliases, params, hint, "two steps, seen through p.detach() from before,")


def kept_by(value, seen):
    """The tensors that can be reached from an object: its attributes, dicts and lists."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        for part in (*value.keys(), *value.values()):
            yield from kept_by(part, seen)
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from kept_by(part, seen)
    elif type(value).__module__ not in ("builtins", "torch") and hasattr(value, "__dict__"):
        yield from kept_by(vars(value), seen)


@check("no graph is kept", holds="What you keep has no graph.")
def no_graph(answer, rng, device):
    params, others, mine, _ = both(answer, rng, device, (0.2,), momentum=0.9, weight_decay=0.1)
    for _ in range(2):
        give(params, others)
        mine.step()
    graphs = sum(t.grad_fn is not None for t in kept_by(mine, set()))
    hint = "weight_decay * p records a graph unless no_grad is on, and each buffer would hold that "
    hint += "of all steps before. Compute the buffers under no_grad too."
    expect_true(graphs == 0, f"{graphs} of the tensors that SGD keeps have a graph", hint=hint)


@check(
    "a network goes the way that it goes with torch.optim.SGD",
    holds=["without torch.optim", "It agrees with torch.optim.SGD in every step"],
    both_sides=True,
)
def trains(answer, rng, device):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    other = copy.deepcopy(model)
    batches = [torch.randn(6, 4, device=device) for _ in range(5)]
    torchs = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.8, weight_decay=0.01)
    used = []
    made = torch.optim.Optimizer.__init__

    def noted(self, *args, **kwargs):
        used.append(self)
        made(self, *args, **kwargs)

    with mock.patch.object(torch.optim.Optimizer, "__init__", noted):
        group = {"params": list(model.parameters()), "lr": 0.1}
        mine = answer.SGD([group], momentum=0.8, weight_decay=0.01)
        for net, opt in ((other, torchs), (model, mine)):
            for batch in batches:
                net.zero_grad()
                (net(batch[:, :3]) - batch[:, 3:]).square().mean().backward()
                opt.step()
    expect_true(not used, "it leaves the work to torch.optim", hint="Write the three lines.")
    hint = "The three lines for each parameter, in their order, with its own buffer."
    compare(model.parameters(), other.parameters(), hint, "5 steps")


@hinted(1, reaches=plain)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.sub_(group["lr"] * p.grad)


@mutant("has one buffer for each shape", caught_by=momentum)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad + self.weight_decay * p
                old = self.buffers.get(p.shape)
                buf = d if old is None else self.momentum * old + d
                self.buffers[p.shape] = buf
                p.sub_(group["lr"] * buf)


@mutant("puts other numbers behind the parameter", caught_by=in_place)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad + self.weight_decay * p
                old = self.buffers.get(p)
                buf = d if old is None else self.momentum * old + d
                self.buffers[p] = buf
                p.data = p.data - group["lr"] * buf


@mutant("keeps the graph of the decay", caught_by=no_graph)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                d = p.grad + self.weight_decay * p
                old = self.buffers.get(p)
                buf = d if old is None else self.momentum * old + d
                self.buffers[p] = buf
                p.data.sub_(group["lr"] * buf)


@mutant("averages the gradients", caught_by=momentum)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                old = self.buffers.get(p, torch.zeros_like(p))
                buf = self.momentum * old + (1 - self.momentum) * buf
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("averages from the second gradient on", caught_by=momentum)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf = self.momentum * self.buffers[p] + (1 - self.momentum) * buf
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("gives a new tensor the name p", caught_by=plain)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p = p - group["lr"] * buf


@mutant("stops at a parameter without a gradient", caught_by=skipped)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    return
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("takes None for zeros", caught_by=skipped)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                grad = torch.zeros_like(p) if p.grad is None else p.grad
                buf = grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("takes zeros for None", caught_by=skipped)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None or not p.grad.any():
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("keeps the gradient as the buffer", caught_by=aliases)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p if self.weight_decay else p.grad
                if p in self.buffers:
                    buf = buf + self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("adds the decay to the gradient", caught_by=gradients)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad.add_(p, alpha=self.weight_decay).clone()
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("adds the buffer to the gradient", caught_by=gradients)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                p.grad = p.grad + self.weight_decay * p
                buf = p.grad.clone()
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("takes the lr of the first group", caught_by=groups)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(self.groups[0]["lr"] * buf)


@mutant("remembers the first lr", caught_by=groups)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = [dict(group) for group in groups]
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("puts lr into the buffer", caught_by=groups)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = group["lr"] * (p.grad + self.weight_decay * p)
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(buf)


@mutant("decays after the momentum", caught_by=decay)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad.clone()
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * (buf + self.weight_decay * p))


@mutant("decays without the lr", caught_by=decay)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad.clone()
                p.mul_(1 - self.weight_decay)
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant(
    "switches autograd off for good",
    caught_by=graphless,
    misconception="autograd/grad_modes",
    like="leaves recording off",
)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    def step(self):
        torch.set_grad_enabled(False)
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)


@mutant("switches autograd on", caught_by=graphless)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    def step(self):
        torch.set_grad_enabled(False)
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.sub_(group["lr"] * buf)
        torch.set_grad_enabled(True)


@mutant("marks no parameter as trainable", caught_by=graphless)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = {}

    @torch.no_grad()
    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is None:
                    continue
                buf = p.grad + self.weight_decay * p
                if p in self.buffers:
                    buf += self.momentum * self.buffers[p]
                self.buffers[p] = buf
                p.requires_grad_(False).sub_(group["lr"] * buf)


@mutant("leaves it to torch", caught_by=trains)
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.opt = torch.optim.SGD(groups, lr=0.1, momentum=momentum, weight_decay=weight_decay)
        self.groups = groups

    def step(self):
        for group, own in zip(self.groups, self.opt.param_groups, strict=True):
            own["lr"] = group["lr"]
        self.opt.step()


@accepted("writes to .data, and starts each buffer at zero")
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups, self.mu, self.decay = groups, momentum, weight_decay
        self.memory = {p: torch.zeros_like(p) for g in groups for p in g["params"]}

    def step(self):
        for group in self.groups:
            for p in group["params"]:
                if p.grad is not None:
                    d = p.grad.detach().add(p.data, alpha=self.decay)
                    self.memory[p].data.mul_(self.mu).add_(d)
                    p.data -= self.memory[p].data * group["lr"]


@accepted("a list of buffers, a with block, copy_")
class SGD:
    def __init__(self, groups, momentum=0.0, weight_decay=0.0):
        self.groups = groups
        self.momentum = momentum
        self.weight_decay = weight_decay
        self.buffers = [[None] * len(group["params"]) for group in groups]

    def step(self):
        with torch.no_grad():
            for group, buffers in zip(self.groups, self.buffers, strict=True):
                for i, p in enumerate(group["params"]):
                    if p.grad is None:
                        continue
                    d = p.grad.clone()
                    if self.weight_decay:
                        d = d + self.weight_decay * p
                    if self.momentum:
                        if buffers[i] is None:
                            buffers[i] = d.clone()
                        else:
                            buffers[i] = self.momentum * buffers[i] + d
                        d = buffers[i]
                    p.copy_(p - group["lr"] * d)
