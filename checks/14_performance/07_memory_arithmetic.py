"""Judges lessons/14_performance/07_memory_arithmetic.md."""

import copy

import torch
from torch import nn
from torch.utils._python_dispatch import TorchDispatchMode

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
    "itself, its gradient, its state. Adam's counters of steps are left out."
)
NESTED = "model.parameters() also goes through modules inside of modules, each parameter once."
FROZEN = "A parameter whose requires_grad is False is held once: no gradient, no state."
BUFFERS = (
    "Each buffer is held once, with its own element_size(). model.buffers() also finds those that "
    "a state_dict leaves out."
)
DTYPES = "Ask every tensor for its own element_size(). Gradient and state follow the parameter."
ONCE = (
    "One tensor under two names is one tensor in memory. parameters() and buffers() name it once."
)
SAME = "Read sizes alone. The model goes on as it was: its modes, its flags, its gradients."
SIZES = "nbytes, or numel() · element_size(), needs no copy of a tensor."
META = "A meta tensor has sizes and no memory: its data_ptr() is 0, as that of each other."


class Allocations(TorchDispatchMode):
    """Adds up the bytes of new memory, on devices that have memory."""

    bytes = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        flat = torch.utils._pytree.tree_leaves
        old = {t.untyped_storage()._cdata for t in flat((args, kwargs)) if is_real(t)}
        new = {t.untyped_storage()._cdata: t for t in flat(out) if is_real(t)}
        self.bytes += sum(t.nbytes for storage, t in new.items() if storage not in old)
        return out


def is_real(value):
    return isinstance(value, torch.Tensor) and value.device.type != "meta"


def compare(answer, model, right, hint):
    for opt in right:
        # A copy, so that what one call changes is told by the check that is about changes.
        got = answer.train_bytes(copy.deepcopy(model), opt)
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
    state = []
    if params:
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
    model = nn.Sequential(nn.Sequential(nn.Linear(a, b), nn.Tanh()), nn.Linear(b, b)).to(device)
    compare(answer, model, wanted(model), NESTED)


@check("frozen parameters", holds="A frozen parameter has no gradient and no state.")
def frozen(answer, rng, device):
    a, b, c = rng.sample(range(3, 40), 3)
    model = nn.Sequential(nn.Linear(a, b), nn.Linear(b, c)).to(device)
    model[rng.randint(0, 1)].requires_grad_(False)
    compare(answer, model, wanted(model), FROZEN)
    model.requires_grad_(False)
    bytes_held = sum(p.nbytes for p in model.parameters())
    compare(answer, model, dict.fromkeys(STATE, bytes_held), FROZEN)


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


@check("buffers", holds="the parameters, their gradients, the state of the optimizer and the buf")
def buffers(answer, rng, device):
    n = rng.randint(3, 40)
    model = nn.Sequential(nn.Linear(5, n), nn.BatchNorm1d(n)).to(device)
    dtype = rng.choice([torch.bool, torch.int16, torch.float64])
    model.register_buffer("table", torch.zeros(n, 3, dtype=dtype), persistent=False)
    model.to(device)
    compare(answer, model, wanted(model), BUFFERS)


@check("the model stays as it is", hint=SAME, holds="and the model stays as it is")
def untouched(answer, rng, device):
    n = rng.randint(3, 40)
    model = nn.Sequential(nn.Linear(n, 5), nn.Dropout(0.5), nn.BatchNorm1d(5), nn.Linear(5, 2))
    model = model.to(device)
    model[1].eval()
    model[2].weight.requires_grad_(False)
    for p in model[0].parameters():
        p.grad = torch.randn_like(p)
    was = state_of(model)
    for opt in STATE:
        answer.train_bytes(model, opt)
        now = state_of(model)
        for what in now:
            expect_equal(now[what], was[what], name=what, hint=SAME)


def state_of(model):
    """What could be changed, by what to call it, in values that can be compared."""
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    grads = [(name, p.grad) for name, p in model.named_parameters()]
    return {
        "device, tensor by tensor,": [t.device.type for t in tensors.values()],
        "requires_grad, tensor by tensor,": [t.requires_grad for t in tensors.values()],
        "the list of parameters with a gradient": [
            name for name, grad in grads if grad is not None
        ],
        "training, module by module,": [m.training for m in model.modules()],
        "the list of the model's tensors": [id(t) for t in tensors.values()],
        "the list of values": [t.detach().clone() for t in tensors.values()],
        "the list of gradients": [grad.clone() for _, grad in grads if grad is not None],
    }


@check("nothing is allocated", hint=SIZES, holds="Nothing is run or allocated", both_sides=True)
def bare(answer, rng, device):
    model = nn.Sequential(nn.Linear(rng.randint(30, 60), 50), nn.BatchNorm1d(50)).to(device)
    for opt in STATE:
        with Allocations() as new:
            answer.train_bytes(model, opt)
        # As much as a few counters take does no harm.
        text = f"train_bytes has made tensors of {new.bytes:,} bytes"
        expect_true(new.bytes < 100, text, hint=SIZES)


@check(
    "a shared tensor counts once", holds="A tensor that the model uses in two places counts once."
)
def shared(answer, rng, device):
    n = rng.randint(5, 30)
    model = nn.Sequential(nn.Embedding(n, 6), nn.Linear(6, n, bias=False)).to(device)
    model[1].weight = model[0].weight
    compare(answer, model, wanted(model), ONCE)
    norms = nn.ModuleList(nn.BatchNorm1d(n, affine=False) for _ in range(2)).to(device)
    norms[1].running_mean = norms[0].running_mean
    twice = nn.ModuleList([norms, norms[0]])
    compare(answer, twice, wanted(twice), ONCE)


@check(
    "a large model on the meta device",
    hint=META,
    holds=["It may be built on the meta device", "model: nn.Module on any device"],
)
def meta(answer, rng, device):
    n = rng.randint(100_000, 200_000)
    with torch.device("meta"):
        model = nn.Sequential(nn.Linear(n, n, bias=False), nn.BatchNorm1d(n))
    trained, held = 4 * n * n + 8 * n, 8 * n + 8
    right = {opt: trained * (2 + STATE[opt]) + held for opt in STATE}
    compare(answer, model, right, META)


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


@mutant("goes through the buffers of each module", caught_by=shared)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for m in model.modules() for b in m.buffers(recurse=False))


@mutant("names buffers twice", caught_by=shared)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for _, b in model.named_buffers(remove_duplicate=False))


@mutant("tells tensors apart by their addresses", caught_by=meta)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    tensors = {t.data_ptr(): t for t in [*model.parameters(), *model.buffers()]}
    return sum(t.nbytes * (copies if t.requires_grad else 1) for t in tensors.values())


@mutant("counts the counters of steps", caught_by=whole)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = 0
    for p in model.parameters():
        total += p.nbytes * (copies if p.requires_grad else 1)
        total += 4 if p.requires_grad and opt == "adam" else 0
    return total + sum(b.nbytes for b in model.buffers())


@mutant("looks into the model's own modules, not into theirs", caught_by=whole)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    params = [p for m in [model, *model.children()] for p in m.parameters(recurse=False)]
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in params)
    return total + sum(b.nbytes for b in model.buffers())


@mutant("takes buffers for float32", caught_by=buffers)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(4 * b.numel() for b in model.buffers())


@mutant("moves the model to the meta device", caught_by=untouched)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    model.to("meta")
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for b in model.buffers())


@mutant("puts the model into training mode", caught_by=untouched)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    model.train()
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for b in model.buffers())


@mutant("sets the gradients to None", caught_by=untouched)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    model.zero_grad()
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
    return total + sum(b.nbytes for b in model.buffers())


@mutant("makes the gradients", caught_by=untouched)
def train_bytes(model, opt):
    copies = {"sgd": 1, "momentum": 2, "adam": 3}[opt]
    total = sum(p.nbytes for p in model.parameters()) + sum(b.nbytes for b in model.buffers())
    for p in model.parameters():
        if p.requires_grad:
            p.grad = torch.zeros_like(p)
            total += copies * p.grad.nbytes
    return total


@mutant("makes what it counts", caught_by=bare)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    total = sum(b.nbytes for b in model.buffers())
    for p in model.parameters():
        total += sum(torch.empty_like(p).nbytes for _ in range(copies if p.requires_grad else 1))
    return total


@mutant("steps a deep copy", caught_by=bare)
def train_bytes(model, opt):
    copies = {"sgd": 2, "momentum": 3, "adam": 4}[opt]
    model = copy.deepcopy(model)
    total = sum(p.nbytes * (copies if p.requires_grad else 1) for p in model.parameters())
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


@accepted("keeps a list of the tensors that it has seen, module by module")
def train_bytes(model, opt):
    more = {"sgd": 1, "momentum": 2, "adam": 3}[opt]
    seen = {}
    for module in model.modules():
        for t in [*module._parameters.values(), *module._buffers.values()]:
            if t is not None:
                seen[id(t)] = t.nbytes * (1 + more * t.requires_grad)
    return sum(seen.values())


@accepted("lets a real optimizer step on meta tensors")
def train_bytes(model, opt):
    held = [*model.parameters(), *model.buffers()]
    meta = [torch.empty_like(p, device="meta") for p in model.parameters() if p.requires_grad]
    for p in meta:
        p.requires_grad_().grad = torch.empty_like(p)
    if meta and opt == "adam":
        optimizer = torch.optim.Adam(meta)
    elif meta:
        optimizer = torch.optim.SGD(meta, lr=0.1, momentum=0.9 * (opt == "momentum"))
    if meta:
        optimizer.step()
        held += [p.grad for p in meta]
        held += [t for s in optimizer.state.values() for k, t in s.items() if k != "step"]
    return sum(t.nbytes for t in held if t is not None)
