"""Judges lessons/14_performance/07_memory_arithmetic.md."""

import copy

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "You want to know whether a model fits before you ask for the machine.",
    "They are the parameters, their gradients, the state of the optimizer and the buffers.",
)

STATE = {"sgd": 0, "momentum": 1, "adam": 2}
COUNT = (
    "A trained parameter is held 2 times with plain SGD, 3 times with momentum, 4 times with Adam: "
    "itself, its gradient, its state."
)
FROZEN = "A parameter whose requires_grad is False is held once: no gradient, no state."
BUFFERS = "Buffers are held too, once each. model.buffers() goes through them."
DTYPES = "Ask every tensor for its own element_size(). Gradient and state follow the parameter."
ONCE = "One tensor under two names is one tensor in memory."
REST = "Read sizes alone. Run nothing, allocate nothing, change nothing."


def compare(answer, model, right, hint):
    for opt in right:
        got = answer.train_bytes(model, opt)
        whole = isinstance(got, int) and not isinstance(got, bool)
        expect_true(whole, "train_bytes does not return an int", hint="Bytes are whole numbers.")
        expect_equal(got, right[opt], name=f'the bytes with "{opt}"', hint=hint)


def measured(model, opt):
    """The bytes of the tensors that a real step leaves, with one backward in place of a loss."""
    model = copy.deepcopy(model)
    params = [p for p in model.parameters() if p.requires_grad]
    make = {
        "sgd": lambda: torch.optim.SGD(params, lr=0.1),
        "momentum": lambda: torch.optim.SGD(params, lr=0.1, momentum=0.9),
        "adam": lambda: torch.optim.Adam(params),
    }
    optimizer = make[opt]()
    sum((p * p).sum().float() for p in params).backward()
    optimizer.step()
    state = [
        t
        for s in optimizer.state.values()
        for name, t in s.items()
        if isinstance(t, torch.Tensor) and name != "step"
    ]
    grads = [p.grad for p in model.parameters() if p.grad is not None]
    return sum(t.nbytes for t in (*model.parameters(), *grads, *state, *model.buffers()))


def wanted(model):
    return {opt: measured(model, opt) for opt in STATE}


@check(
    "a model that is trained as a whole",
    holds=[
        "the bytes that are held after backward() and the first step, without activations",
        'opt is "sgd", "momentum" or "adam".',
        "The optimizer's counters of steps do not count.",
    ],
    both_sides=True,
)
def whole(answer, rng, device):
    a, b, c = rng.sample(range(3, 40), 3)
    model = nn.Sequential(nn.Linear(a, b), nn.ReLU(), nn.Linear(b, c)).to(device)
    compare(answer, model, wanted(model), COUNT)


@check("frozen parameters", holds="A frozen parameter has no gradient and no state.")
def frozen(answer, rng, device):
    a, b, c = rng.sample(range(3, 40), 3)
    model = nn.Sequential(nn.Linear(a, b), nn.Linear(b, c)).to(device)
    model[rng.randint(0, 1)].requires_grad_(False)
    compare(answer, model, wanted(model), FROZEN)
    model.requires_grad_(False)
    bytes_held = sum(p.nbytes for p in model.parameters())
    compare(answer, model, dict.fromkeys(STATE, bytes_held), FROZEN)


@check("buffers", holds="the parameters, their gradients, the state of the optimizer and the buf")
def buffers(answer, rng, device):
    n = rng.randint(3, 40)
    model = nn.Sequential(nn.Linear(5, n), nn.BatchNorm1d(n)).to(device)
    model.register_buffer("table", torch.zeros(n, 3, dtype=torch.int16), persistent=False)
    model.to(device)
    compare(answer, model, wanted(model), BUFFERS)


@check(
    "mixed dtypes",
    holds="Dtypes may be mixed, and gradient and state have the parameter's.",
)
def dtypes(answer, rng, device):
    n = rng.randint(3, 20)
    small, large = rng.sample([torch.bfloat16, torch.float32, torch.float64], 2)
    model = nn.Sequential(nn.Linear(n, 7, dtype=small), nn.Linear(7, n + 1, dtype=large))
    model = model.to(device)
    compare(answer, model, wanted(model), DTYPES)
    model = nn.Linear(n, 3).to(device)
    model.weight = nn.Parameter(torch.zeros(n, 3, device=device).T)
    compare(answer, model, wanted(model), COUNT)


@check(
    "a shared tensor counts once", holds="A tensor that the model uses in two places counts once."
)
def shared(answer, rng, device):
    n = rng.randint(5, 30)
    model = nn.Sequential(nn.Embedding(n, 6), nn.Linear(6, n, bias=False)).to(device)
    model[1].weight = model[0].weight
    compare(answer, model, wanted(model), ONCE)


@check(
    "a large model on the meta device, and nothing changes",
    hint=REST,
    holds=[
        "It may be built on the meta device",
        "Nothing is run or allocated, and the model stays as it is.",
        "model: nn.Module on any device",
    ],
    both_sides=True,
)
def meta(answer, rng, device):
    n = rng.randint(100_000, 200_000)
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(n, n, bias=False), nn.BatchNorm1d(n))
    trained, held = 4 * n * n + 8 * n, 8 * n + 8
    right = {opt: trained * (2 + STATE[opt]) + held for opt in STATE}
    compare(answer, model, right, REST)
    model = nn.Linear(n // 1000, 3).to(device)
    model.weight.requires_grad_(False)
    before = {name: p.clone() for name, p in model.state_dict().items()}
    answer.train_bytes(model, "adam")
    for name, p in model.state_dict().items():
        expect_equal(p, before[name], name=name, hint=REST)
    for name, p in model.named_parameters():
        expect_true(p.grad is None, f"{name} has a gradient now", hint=REST)
    expect_true(not model.weight.requires_grad, "a frozen parameter is trained now", hint=REST)


@mutant("takes every parameter for trained", caught_by=frozen)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.numel() * p.element_size() * copies for p in model.parameters())
    return total + sum(b.numel() * b.element_size() for b in model.buffers())


@mutant("counts the weights alone", caught_by=whole)
def train_bytes(model, opt):
    return sum(p.numel() * p.element_size() for p in model.parameters())


@mutant("forgets the gradients", caught_by=whole)
def train_bytes(model, opt):
    copies = {"sgd": 1, "momentum": 2, "adam": 3}[opt]
    total = sum(
        p.numel() * p.element_size() * (copies if p.requires_grad else 1)
        for p in model.parameters()
    )
    return total + sum(b.numel() * b.element_size() for b in model.buffers())


@mutant("forgets the buffers", caught_by=buffers)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    return sum(
        p.numel() * p.element_size() * (copies if p.requires_grad else 1)
        for p in model.parameters()
    )


@mutant("counts what is saved in a checkpoint", caught_by=buffers)
def train_bytes(model, opt):
    copies = {"sgd": 1, "momentum": 2, "adam": 3}[opt]
    total = sum(t.nbytes for t in model.state_dict().values())
    return total + sum(p.nbytes * copies for p in model.parameters() if p.requires_grad)


@mutant("leaves frozen weights out", caught_by=frozen)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.nbytes * copies for p in model.parameters() if p.requires_grad)
    return total + sum(b.nbytes for b in model.buffers())


@mutant("takes everything for float32", caught_by=dtypes)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.numel() * 4 * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for b in model.buffers())


@mutant("keeps gradients and state in float32", caught_by=dtypes)
def train_bytes(model, opt):
    copies = {"sgd": 1, "momentum": 2, "adam": 3}[opt]
    total = sum(p.nbytes for p in model.parameters())
    total += sum(p.numel() * 4 * copies for p in model.parameters() if p.requires_grad)
    return total + sum(b.nbytes for b in model.buffers())


@mutant("goes through the modules, and counts a shared weight twice", caught_by=shared)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = 0
    for module in model.modules():
        for p in module.parameters(recurse=False):
            total += p.nbytes * (copies if p.requires_grad else 1)
        total += sum(b.nbytes for b in module.buffers(recurse=False))
    return total


@mutant("copies the model to measure it", caught_by=meta)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = 0
    for p in model.parameters():
        total += len(bytes(p.detach().cpu().contiguous().view(torch.uint8).flatten())) * (
            copies if p.requires_grad else 1
        )
    return total + sum(b.nbytes for b in model.buffers())


@hinted(1, reaches=frozen)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    return sum(
        p.numel() * p.element_size() * (copies if p.requires_grad else 1)
        for p in model.parameters()
    )


@accepted("asks nbytes")
def train_bytes(model, opt):
    state = ("sgd", "momentum", "adam").index(opt)
    params = list(model.parameters())
    trained = [p for p in params if p.requires_grad]
    once = sum(t.nbytes for t in [*params, *model.buffers()])
    return once + (1 + state) * sum(p.nbytes for p in trained)


@accepted("goes through named tensors and dtype.itemsize")
def train_bytes(model, opt):
    total = 0
    extra = 1 if opt == "sgd" else 2 if opt == "momentum" else 3
    for _, p in model.named_parameters():
        n = p.shape.numel() * p.dtype.itemsize
        total += n
        if p.requires_grad:
            total += extra * n
    for _, b in model.named_buffers():
        total += b.shape.numel() * b.dtype.itemsize
    return total
