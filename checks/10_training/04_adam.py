"""Judges lessons/10_training/04_adam.md."""

import contextlib
import copy
import sys

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "Weight decay is for weights that multiply features.",
    "It does a bias no good, and pulls the weight of a norm",
)

shows = ["training/sgd"]

FIRST = "After one step mh is g and vh is g * g. Correct m and v both, by this parameter's t."
AVERAGES = "b1 belongs to the gradients, b2 to their squares. What is kept is m and v, uncorrected."
EPS = "eps is added to the root of vh: vh.sqrt() + eps."
DECAY = "p times 1 - lr * wd, before the step and beside the gradient: it is not divided by the "
DECAY += "root of v, and what the step adds is not decayed."
OPTIONS = "Use lr, betas, eps and wd as they were given, with the defaults of the signature."
NONE = "Where .grad is None there is no decay, and m, v and t wait. t is the parameter's own."
GRAD = "The gradient belongs to the caller. Compute in new tensors."
WALK = "A generator is empty after one walk. Keep list(params)."
AFTER = " If checks above fail too, mend those first."
SHAPES = ((3, 2), (), (1,), (0,), (2, 1, 3), (4,), (4,))


def leaves(rng, device, dtype=torch.float32):
    """Leaves of many shapes, the first one not contiguous."""
    made = [torch.randn(shape, dtype=dtype, device=device) for shape in SHAPES]
    made[0] = torch.randn(2, rng.randint(1, 5), dtype=dtype, device=device).T.clone()
    return [tensor.requires_grad_() for tensor in made]


def twins(params):
    return [p.detach().clone().requires_grad_() for p in params]


def give(params, others, factor=1.0):
    """The same fresh gradient for each pair."""
    for p, q in zip(params, others, strict=True):
        p.grad = torch.randn_like(p) * factor
        q.grad = p.grad.clone()


def compare(params, others, hint, when):
    """In float64 all but the last digits, so that a small decay, or a float32 state, is seen."""
    for i, (p, q) in enumerate(zip(params, others, strict=True)):
        near = (
            {"rtol": 1e-9, "atol": 1e-10, "hint": hint}
            if p.dtype == torch.float64
            else {"hint": hint}
        )
        expect_close(p.detach(), q.detach(), name=f"parameter {i} after {when}", **near)


def both(answer, rng, device, dtype=torch.float32, **options):
    """The learner's optimizer and torch's, each with its own equal parameters."""
    params = leaves(rng, device, dtype)
    others = twins(params)
    mine = answer.AdamW(params, **options)
    if "wd" in options:
        options["weight_decay"] = options.pop("wd")
    return params, others, mine, torch.optim.AdamW(others, **options)


BOTH = (torch.float32, torch.float64)


def agree(answer, rng, device, hint, factors, dtypes=BOTH, **options):
    """Both go the same way, step by step, with gradients of these sizes.

    dtypes: float32 alone sees neither the place of eps nor a state in float32. Checks that come
    later tell these by name.
    """
    for dtype in dtypes:
        params, others, mine, torchs = both(answer, rng, device, dtype, **options)
        for step, factor in enumerate(factors, 1):
            give(params, others, factor)
            mine.step()
            torchs.step()
            compare(params, others, hint, f"step {step}, with gradients of about {factor:g},")


@check(
    "the first step is lr, whatever the size of the gradient",
    holds="with the seven lines of the first step",
)
def first(answer, rng, device):
    for size in (1000.0, 100.0):
        lr = 0.1 + rng.random() / 10
        agree(answer, rng, device, FIRST, (size,), BOTH[:1], lr=lr, wd=0.0)


@check(
    "six steps with shrinking gradients",
    holds="It agrees with torch.optim.AdamW in every step.",
    both_sides=True,
)
def averages(answer, rng, device):
    sizes = [1000.0 / 2**k for k in range(6)]
    agree(answer, rng, device, AVERAGES, sizes, BOTH[:1], lr=0.05, wd=0.0)


@check(
    "float64 parameters have their state in float64",
    holds="m and v have the dtype of their parameter.",
)
def in_float64(answer, rng, device):
    for size in (1e6, 1e5):
        params, others, mine, torchs = both(answer, rng, device, torch.float64, lr=0.1, wd=0.0)
        for step in range(1, 4):
            give(params, others, size)
            mine.step()
            torchs.step()
            hint = "m and v have the dtype of their parameter: torch.zeros_like(p), or a plain 0."
            compare(params, others, hint, f"step {step} in float64")


@check("eps stands outside of the root")
def epsilon(answer, rng, device):
    for size in (1e-6, 1e-8):
        agree(answer, rng, device, EPS, (size,) * 2, BOTH[:1], lr=0.1, wd=0.0)
    agree(answer, rng, device, EPS, (1.0, 0.1, 2.0), BOTH[:1], lr=0.1, wd=0.0, eps=0.3)
    params, others, mine, torchs = both(answer, rng, device, lr=0.1, wd=0.0)
    give(params, others, 0.0)
    mine.step()
    torchs.step()
    compare(params, others, EPS, "a step with gradients of zeros and no decay")


@check("the decay is beside the gradient")
def decay(answer, rng, device):
    wd = 0.1 + rng.random()
    agree(answer, rng, device, DECAY, (0.0, 0.0), lr=0.1, wd=wd)
    agree(answer, rng, device, DECAY, (1000.0, 100.0, 300.0), lr=0.1, wd=wd)


@check(
    "lr, betas, eps and wd are those of the call",
    holds="lr, eps, wd: numbers; betas: b1 and b2",
)
def options(answer, rng, device):
    sizes = (100.0, 300.0, 200.0)
    agree(answer, rng, device, OPTIONS, sizes)
    agree(answer, rng, device, OPTIONS, sizes, lr=0.3)
    agree(answer, rng, device, OPTIONS, sizes, betas=(0.3 + rng.random() / 2, 0.6))
    agree(answer, rng, device, OPTIONS, sizes, lr=0.1, betas=(0.0, 0.9), wd=0.2)
    agree(answer, rng, device, OPTIONS, sizes, lr=0.1, betas=(0.9, 0.0))


@check(
    "a parameter without a gradient is skipped",
    holds=[
        "A parameter without a gradient is skipped: no decay, and its m, v and t stay.",
        "t is a parameter's own: it counts the steps in which this parameter took part.",
    ],
)
def skipped(answer, rng, device):
    params, others, mine, torchs = both(answer, rng, device, lr=0.1, wd=0.5)
    for missing in ((1, 4), (), (0, 4), (2, 3, 5), ()):
        give(params, others)
        for i in missing:
            params[i].grad = others[i].grad = None
        mine.step()
        torchs.step()
        for i in missing:
            expect_true(params[i].grad is None, f"parameter {i} has a .grad now", hint=NONE)
        compare(params, others, NONE + AFTER, f"a step with no gradient at {list(missing)}")


@check(
    "no gradient changes, and none is kept",
    holds="No .grad changes, and nothing of what you keep changes when the caller writes",
)
def gradients(answer, rng, device):
    params, others, mine, torchs = both(answer, rng, device, lr=0.1, betas=(0.0, 0.5), wd=0.3)
    give(params, others)
    held = [p.grad for p in params]
    for step in range(1, 5):
        mine.step()
        for i, (p, q, old) in enumerate(zip(params, others, held, strict=True)):
            expect_true(p.grad is old, f".grad {i} is another tensor after a step", hint=GRAD)
            expect_equal(old, q.grad, name=f".grad {i} after step {step}", hint=GRAD)
        torchs.step()
        compare(
            params,
            others,
            GRAD + AFTER,
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
    params, others, mine, _ = both(answer, rng, device, lr=0.1)
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
        on = torch.is_grad_enabled()
    hint = "Afterwards it is as it was before, off here. A with block remembers, True does not."
    expect_true(not on, "autograd is on after a step() that was taken under no_grad", hint=hint)


@check("the numbers change where they are", holds="Move each parameter in place", both_sides=True)
def in_place(answer, rng, device):
    params, others, mine, _ = both(answer, rng, device, lr=0.1)
    aliases = [p.detach() for p in params]
    for _ in range(2):
        give(params, others)
        mine.step()
    hint = "Another tensor, such as one of a state_dict, may look at the same numbers. p.sub_(t) "
    hint += "writes to them; p.data = ... puts other numbers behind p."
    compare(aliases, params, hint, "two steps, seen through p.detach() from before,")


@check(
    "a generator will do",
    holds="It takes parameters or groups",
    side="parameters",
)
def generator(answer, rng, device):
    params = leaves(rng, device)
    others = twins(params)
    mine = answer.AdamW((p for p in params), lr=0.1)
    torchs = torch.optim.AdamW(others, lr=0.1)
    for step in range(1, 4):
        give(params, others)
        mine.step()
        torchs.step()
        compare(params, others, WALK + AFTER, f"step {step}, the parameters from a generator,")


@contextlib.contextmanager
def functions_run(folder):
    """A set of the names of the functions from files in this folder that are called inside."""
    names, before = set(), sys.getprofile()

    def note(frame, event, _):
        if event == "call" and folder in frame.f_code.co_filename:
            names.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(before)


@check(
    "it is built without torch.optim",
    holds="and without torch.optim",
)
def own(answer, rng, device):
    params, others, mine, _ = both(answer, rng, device, lr=0.1)
    give(params, others)
    with functions_run("/torch/optim/") as used:
        mine.step()
    names = ", ".join(sorted(used))
    expect_true(not used, f"torch.optim runs in step(): {names}", hint="Write the seven lines.")


GROUP = (
    "A group's own wd counts for its parameters, and the wd of the call for a group without one."
)
SORT = (
    "Two dimensions or more: decay. Fewer, as biases and the parameters of norms: none. Leave out "
)
SORT += "what does not require a gradient. model.parameters() names a shared weight once."


@check(
    "groups have a decay of their own, or that of the call",
    holds="It takes parameters or groups; a group without a decay of its own has that of the call.",
    side="groups",
)
def grouped(answer, rng, device):
    params = leaves(rng, device)
    others = twins(params)
    wd = 0.2 + rng.random()
    settings = ((params, "wd"), (others, "weight_decay"))
    mine, theirs = (
        [{"params": iter(p[:2]), name: wd}, {"params": p[2:4], name: 0.0}, {"params": p[4:]}]
        for p, name in settings
    )
    opt = answer.AdamW(mine, lr=0.1, wd=0.5)
    torchs = torch.optim.AdamW(
        [{**group, "params": list(group["params"])} for group in theirs], lr=0.1, weight_decay=0.5
    )
    for step in range(1, 4):
        give(params, others)
        opt.step()
        torchs.step()
        compare(params, others, GROUP, f"step {step} in groups with wd {wd:.2f}, 0.0 and none,")
    one = leaves(rng, device)[:1]
    other = twins(one)
    opt = answer.AdamW([{"params": one, "wd": wd}], lr=0.1)
    torchs = torch.optim.AdamW(other, lr=0.1, weight_decay=wd)
    give(one, other)
    opt.step()
    torchs.step()
    compare(one, other, GROUP, "a step in a single group with a single parameter")


def net(device):
    """Layers of many kinds, a shared weight, a frozen one, and a parameter that is one number."""
    model = nn.ModuleDict(
        {
            "table": nn.Embedding(7, 4),
            "conv": nn.Sequential(nn.Conv1d(4, 4, 3), nn.BatchNorm1d(4)),
            "norm": nn.LayerNorm(4),
            "scale": nn.Linear(4, 1, bias=False),
            "head": nn.Linear(4, 7),
        }
    )
    model["head"].weight = model["table"].weight
    model["norm"].register_parameter("heat", nn.Parameter(torch.tensor(2.0)))
    model["conv"][0].bias.requires_grad_(False)
    model["scale"].weight.requires_grad_(False)
    return model.to(device)


@check(
    "groups: matrices are decayed; biases and norms are not",
    holds=[
        "first those of two dimensions or more, then the others",
        "Matrices, kernels and tables of embeddings are in the first",
        "the bias of a layer, both of a norm over one dimension, "
        "and single numbers are in the second",
        "A weight that a model has under two names is one parameter.",
        "What does not require a gradient is in neither.",
        "both in the order of model.parameters()",
    ],
    both_sides=True,
)
def sorts(answer, rng, device):
    model, wd = net(device), rng.random()
    got = answer.groups(model, wd)
    names = {id(p): name for name, p in model.named_parameters()}
    own = [p for p in model.parameters() if p.requires_grad]
    expect_equal(len(got), 2, name="the number of groups", hint=SORT)
    for n, (group, right, decay) in enumerate(
        zip(got, ([p for p in own if p.ndim >= 2], [p for p in own if p.ndim < 2]), (wd, 0.0),
            strict=True)
    ):  # fmt: skip
        params = [names.get(id(p), "a tensor of its own") for p in group["params"]]
        wanted = [names[id(p)] for p in right]
        expect_equal(params, wanted, name=f"the list of names in group {n}", hint=SORT)
        expect_equal(group["wd"], decay, name=f"the wd of group {n}", hint=SORT)
    got = answer.groups(nn.LayerNorm(3).to(device), wd)
    count = [len(group["params"]) for group in got]
    expect_equal(count, [0, 2], name="the numbers of parameters for a LayerNorm", hint=SORT)


@check("a model with norms is trained as by torch with the same groups")
def norms(answer, rng, device):
    model = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    other = copy.deepcopy(model)
    mine = answer.AdamW(answer.groups(model, 0.5), lr=0.05)
    matrices = [p for p in other.parameters() if p.ndim >= 2]
    rest = [p for p in other.parameters() if p.ndim < 2]
    torchs = torch.optim.AdamW(
        [{"params": matrices, "weight_decay": 0.5}, {"params": rest, "weight_decay": 0.0}], lr=0.05
    )
    batches = [torch.randn(6, 4, device=device) for _ in range(4)]
    for m, opt in ((model, mine), (other, torchs)):
        for batch in batches:
            m.zero_grad()
            (m(batch[:, :3]) - batch[:, 3:]).square().mean().backward()
            opt.step()
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        expect_close(p.detach(), q.detach(), name=f"{name} after 4 steps", hint=GROUP,
                     rtol=1e-3, atol=1e-4)  # fmt: skip


@check("a network goes the way that it goes with torch.optim.AdamW")
def trains(answer, rng, device):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    other = copy.deepcopy(model)
    batches = [torch.randn(6, 4, device=device) for _ in range(5)]
    torchs = torch.optim.AdamW(other.parameters(), lr=0.01, weight_decay=0.1)
    mine = answer.AdamW(list(model.parameters()), lr=0.01, wd=0.1)
    for net, opt in ((other, torchs), (model, mine)):
        for batch in batches:
            net.zero_grad()
            (net(batch[:, :3]) - batch[:, 3:]).square().mean().backward()
            opt.step()
    hint = "The seven lines for each parameter, with m, v and t of its own."
    for i, (p, q) in enumerate(zip(model.parameters(), other.parameters(), strict=True)):
        expect_close(p.detach(), q.detach(), name=f"parameter {i} after 5 steps", hint=hint,
                     rtol=1e-3, atol=1e-4)  # fmt: skip


@hinted(1, reaches=options)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.memory = {p: (torch.zeros_like(p), torch.zeros_like(p), 0) for p in self.params}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            g = p.grad
            m, v, t = self.memory[p]
            t = t + 1
            p *= 1 - self.lr * self.wd
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p -= self.lr * mh / (vh.sqrt() + self.eps)
            self.memory[p] = m, v, t


@mutant("adds the decay to the gradient, as Adam does", caught_by=decay)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad + self.wd * p
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("puts other numbers behind the parameter", caught_by=in_place)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p.data = p * (1 - self.lr * self.wd) - self.lr * mh / (vh.sqrt() + self.eps)


@mutant("has one state for each shape", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p.shape, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p.shape] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("decays without the lr", caught_by=decay)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("decays the parameter after its step", caught_by=decay)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p -= self.lr * mh / (vh.sqrt() + self.eps)
            p *= 1 - self.lr * self.wd


@mutant("corrects nothing", caught_by=first)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m
            vh = v
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("corrects m alone", caught_by=first)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("corrects as if each step were the first", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1)
            vh = v / (1 - b2)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("keeps what is corrected", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            self.state[p] = mh, vh, t
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("adds eps under the root", caught_by=epsilon)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh + self.eps).sqrt()


@mutant("adds eps before the correction", caught_by=epsilon)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = (v.sqrt() + self.eps) / (1 - b2**t) ** 0.5
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / vh


@mutant("has no eps", caught_by=epsilon)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / vh.sqrt()


@mutant("divides by v, not by its root", caught_by=first)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh + self.eps)


@mutant("swaps the betas", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b2, b1 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("sums the gradients as SGD does", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + g
            v = b2 * v + g * g
            self.state[p] = m, v, t
            mh = m * (1 - b1) / (1 - b1**t)
            vh = v
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("knows one pair of betas", caught_by=options)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = 0.9, 0.999
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("knows one eps", caught_by=epsilon)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + 1e-8)


@mutant("counts one t for all parameters", caught_by=averages)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        self.t = getattr(self, "t", 0)
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            self.t += 1
            t = self.t
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("counts the calls of step, not those of a parameter", caught_by=skipped)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        self.t = getattr(self, "t", 0) + 1
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t = self.t
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant(
    "takes None for zeros",
    caught_by=skipped,
    misconception="training/sgd",
    like="takes None for zeros",
)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            g = torch.zeros_like(p) if p.grad is None else p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("decays before it looks for a gradient", caught_by=skipped)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            p *= 1 - self.lr * self.wd
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("writes the squares into the gradient", caught_by=gradients)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g.square_()
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("marks no parameter as trainable", caught_by=graphless)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p.requires_grad_(False)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("keeps the generator", caught_by=generator)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = params
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            mh = m / (1 - b1**t)
            vh = v / (1 - b2**t)
            p *= 1 - self.lr * self.wd
            p -= self.lr * mh / (vh.sqrt() + self.eps)


@mutant("leaves it to torch", caught_by=own)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.opt = torch.optim.AdamW(params, lr=lr, betas=betas, eps=eps, weight_decay=wd)

    def step(self):
        self.opt.step()


@mutant("leaves it to torch's function", caught_by=own)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.rows = [
            (p, torch.zeros_like(p), torch.zeros_like(p), torch.tensor(0.0)) for p in params
        ]
        self.settings = {"lr": lr, "beta1": betas[0], "beta2": betas[1], "eps": eps}
        self.settings["weight_decay"] = wd

    @torch.no_grad()
    def step(self):
        rows = [row for row in self.rows if row[0].grad is not None]
        if rows:
            params, m, v, t = (list(column) for column in zip(*rows, strict=True))
            grads = [p.grad for p in params]
            torch.optim.adamw.adamw(
                params, grads, m, v, [], t, amsgrad=False, maximize=False, foreach=False,
                **self.settings,
            )  # fmt: skip


@mutant("switches autograd on at the end", caught_by=graphless)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    def step(self):
        torch.set_grad_enabled(False)
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * p.grad
            v = b2 * v + (1 - b2) * p.grad * p.grad
            self.state[p] = m, v, t
            p *= 1 - self.lr * self.wd
            p -= self.lr * m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + self.eps)
        torch.set_grad_enabled(True)


@mutant("takes the decay of the call for every group", caught_by=grouped)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        params = list(params)
        if params and isinstance(params[0], dict):
            params = [p for group in params for p in group["params"]]
        self.params = params
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * p.grad
            v = b2 * v + (1 - b2) * p.grad * p.grad
            self.state[p] = m, v, t
            p *= 1 - self.lr * self.wd
            p -= self.lr * m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + self.eps)


@mutant("spares biases by their name, and pulls norms", caught_by=sorts)
def groups(model, wd):
    named = [(n, p) for n, p in model.named_parameters() if p.requires_grad]
    return [
        {"params": [p for n, p in named if not n.endswith("bias")], "wd": wd},
        {"params": [p for n, p in named if n.endswith("bias")], "wd": 0.0},
    ]


@mutant("takes frozen parameters along", caught_by=sorts)
def groups(model, wd):
    own = list(model.parameters())
    return [
        {"params": [p for p in own if p.ndim >= 2], "wd": wd},
        {"params": [p for p in own if p.ndim < 2], "wd": 0.0},
    ]


@mutant("takes a shared weight twice", caught_by=sorts)
def groups(model, wd):
    own = [p for m in model.modules() for p in m.parameters(recurse=False) if p.requires_grad]
    return [
        {"params": [p for p in own if p.ndim >= 2], "wd": wd},
        {"params": [p for p in own if p.ndim < 2], "wd": 0.0},
    ]


@mutant("swaps the groups", caught_by=sorts)
def groups(model, wd):
    own = [p for p in model.parameters() if p.requires_grad]
    return [
        {"params": [p for p in own if p.ndim < 2], "wd": wd},
        {"params": [p for p in own if p.ndim >= 2], "wd": 0.0},
    ]


@accepted("goes over the names and fills two lists")
def groups(model, wd):
    decayed, plain = [], []
    for _, p in model.named_parameters():
        if p.requires_grad:
            (plain if p.dim() <= 1 else decayed).append(p)
    return [{"params": decayed, "wd": wd}, {"params": plain, "wd": 0.0}]


@mutant("keeps its state in float32", caught_by=in_float64)
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.params = list(params)
        self.lr, self.betas, self.eps, self.wd = lr, betas, eps, wd
        self.state = {}

    @torch.no_grad()
    def step(self):
        b1, b2 = self.betas
        for p in self.params:
            if p.grad is None:
                continue
            g = p.grad.float()
            m, v, t = self.state.get(p, (0, 0, 0))
            t += 1
            m = b1 * m + (1 - b1) * g
            v = b2 * v + (1 - b2) * g * g
            self.state[p] = m, v, t
            p *= 1 - self.lr * self.wd
            p -= self.lr * m / (1 - b1**t) / ((v / (1 - b2**t)).sqrt() + self.eps)


@accepted("lists of state, all in place")
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        self.rows = []
        for item in params:
            own = item if isinstance(item, dict) else {"params": [item]}
            for p in own["params"]:
                zeros = torch.zeros_like(p), torch.zeros_like(p)
                self.rows.append([p, *zeros, 0, own.get("wd", wd)])
        self.lr, self.betas, self.eps = lr, betas, eps

    def step(self):
        b1, b2 = self.betas
        with torch.no_grad():
            for row in self.rows:
                p, m, v, _, wd = row
                if p.grad is None:
                    continue
                row[3] += 1
                p.mul_(1 - self.lr * wd)
                m.lerp_(p.grad, 1 - b1)
                v.mul_(b2).addcmul_(p.grad, p.grad, value=1 - b2)
                root = (v / (1 - b2 ** row[3])).sqrt_().add_(self.eps)
                p.addcdiv_(m, root, value=-self.lr / (1 - b1 ** row[3]))


@accepted("writes to .data, with the corrections as scalars")
class AdamW:
    def __init__(self, params, lr=0.001, betas=(0.9, 0.999), eps=1e-8, wd=0.01):
        groups = list(params)
        if not (groups and isinstance(groups[0], dict)):
            groups = [{"params": groups, "wd": wd}]
        rows = [(p, g.get("wd", wd)) for g in groups for p in g["params"]]
        self.params, self.wds = [p for p, _ in rows], [own for _, own in rows]
        self.m = [torch.zeros_like(p.data) for p in self.params]
        self.v = [torch.zeros_like(p.data) for p in self.params]
        self.t = [0 for p in self.params]
        self.lr, (self.b1, self.b2), self.eps = lr, betas, eps

    def step(self):
        for i, p in enumerate(self.params):
            if p.grad is not None:
                g = p.grad.data
                self.t[i] += 1
                self.m[i] = self.b1 * self.m[i] + (1 - self.b1) * g
                self.v[i] = self.b2 * self.v[i] + (1 - self.b2) * g**2
                c1 = 1 - self.b1 ** self.t[i]
                c2 = 1 - self.b2 ** self.t[i]
                step = self.m[i] / c1 / ((self.v[i] / c2) ** 0.5 + self.eps)
                p.data.mul_(1 - self.lr * self.wds[i]).sub_(self.lr * step)


equivalent(
    "if not params or not isinstance(params[0], dict):",
    "if not params or not isinstance(params[-1], dict):",
    because="A list holds tensors or groups, not both.",
)
