"""Judges lessons/15_distributed/06_tensor_parallel.md."""

import datetime
import inspect
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch.autograd import Function
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Each rank of group calls tp_mlp with the same x",
    "The number of hidden features divides by N.",
)

equivalent(
    "@staticmethod def forward(ctx, part, group):",
    "def forward(ctx, part, group):",
    because="torch takes the method from the class, where it is the plain function.",
)
equivalent(
    "@staticmethod def backward(ctx, grad_y):",
    "def backward(ctx, grad_y):",
    because="torch takes the method from the class, where it is the plain function.",
)
equivalent(
    "@staticmethod def forward(ctx, x, group):",
    "def forward(ctx, x, group):",
    because="torch takes the method from the class, where it is the plain function.",
)
equivalent(
    "@staticmethod def backward(ctx, grad_x):",
    "def backward(ctx, grad_x):",
    because="torch takes the method from the class, where it is the plain function.",
)
equivalent(
    "y = part.clone()",
    "y = part",
    because="part is a fresh product, which nothing else reads.",
)
equivalent(
    "total = grad_x.clone()",
    "total = grad_x",
    because="the gradient is a fresh product, which nothing else reads in this MLP.",
)
equivalent(
    "return x.view_as(x)",
    "return x",
    because="torch makes a view of an input that a Function returns as it is.",
)

# A rank that waits for another one raises after this time, so that both come back to the check.
WAIT = datetime.timedelta(seconds=5)

PARTS = (
    "A rank's product over its own hidden features is one term of a sum. Are all terms added, "
    "each once, and b2 once after them?"
)
INPUT = (
    "x enters every rank, and the backward of a rank knows of its own hidden features alone. "
    "What adds up the gradients of the ranks?"
)
OWN = "A rank that computes with all hidden features saves nothing. Which block is its own?"
GRADS = (
    "In the rank's own block the gradient is that of the whole MLP, and zero outside of it. A "
    "weight belongs to one rank: its gradient is not summed over the ranks. Which block is whose?"
)
NAMES = ("x", "w1", "b1", "w2", "b2")


class Traffic(TorchDispatchMode):
    """The collectives that this rank calls: their names and how many numbers they take."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            sizes = [
                t.numel()
                for a in args
                for t in (a if isinstance(a, (list, tuple)) else [a])
                if isinstance(t, torch.Tensor)
            ]
            self.seen.append((str(func).split(".")[1].strip("_"), sum(sizes)))
        return func(*args, **(kwargs or {}))


def everywhere(value):
    """What each rank holds, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


@contextmanager
def groups(alone=False, turned=False):
    """A group of all ranks, or one for each rank alone, with a short timeout.

    turned: the group counts its ranks from the other end, as PyTorch 2.13 can.

    Its sockets are closed at the end: a process may open so many, and no more.
    """
    if alone:
        each = [dist.new_group([r], timeout=WAIT) for r in range(dist.get_world_size())]
        group = each[dist.get_rank()]
    else:
        able = turned and "sort_ranks" in inspect.signature(dist.new_group).parameters
        ranks = list(range(dist.get_world_size()))[:: -1 if able else 1]
        group = dist.new_group(ranks, timeout=WAIT, **({"sort_ranks": False} if able else {}))
    try:
        yield group
    finally:
        dist.destroy_process_group(group)


def problem(rng, dtype=torch.float32):
    """x, w1, b1, w2, b2: the same on both ranks, which draw with the same seed.

    Hidden features that are 0 for the whole batch are rare: no gradient would show their block.
    """
    batch, inputs, outputs = rng.randint(5, 8), rng.randint(2, 5), rng.randint(2, 4)
    hidden = 2 * rng.randint(3, 6)
    shapes = (batch, inputs), (hidden, inputs), (hidden,), (outputs, hidden), (outputs,)
    x, w1, b1, w2, b2 = (torch.randn(shape, dtype=dtype) for shape in shapes)
    return [x, w1, b1.abs(), w2, b2]


def whole(x, w1, b1, w2, b2):
    return torch.relu(x @ w1.T + b1) @ w2.T + b2


def leaves(tensors):
    return [t.detach().requires_grad_() for t in tensors]


def attempt(answer, tensors, group, weight=None):
    """Forward, and backward if there is a weight for the loss: output, gradients, collectives.

    Each rank learns how it ended on all ranks before it raises.
    """
    failed, y, grads, traffic = None, None, None, Traffic()
    try:
        with traffic:
            y = answer.tp_mlp(*tensors, group=group)
            if weight is not None:
                (y * weight).sum().backward()
                grads = [t.grad for t in tensors]
            y = y.detach()
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    if failed is not None:
        raise failed
    expect_true(not any(troubles), f"tp_mlp failed on another rank: {''.join(troubles)[:200]}")
    return y, grads, traffic.seen


def compare(held, wanted, what, hint, **near):
    """held: what each rank has."""
    for rank, got in enumerate(held):
        name = f"{what} on rank {rank}"
        expect_true(got is not None, f"{name} is None", hint=hint)
        expect_close(got, wanted, name=name, hint=hint, rtol=1e-4, atol=1e-4, **near)


def gradients(answer, tensors, group):
    """What the answer's backward leaves on each rank, and the gradients of the whole MLP."""
    mine, right = leaves(tensors), leaves(tensors)
    y = whole(*right)
    weight = torch.randn_like(y)
    (y * weight).sum().backward()
    _, grads, seen = attempt(answer, mine, group, weight)
    return everywhere(grads), [t.grad for t in right], seen, y


@check(
    "the output of the whole MLP",
    holds=[
        "Every rank gets the output of the whole MLP",
        "relu(x @ w1.T + b1) @ w2.T + b2, its hidden features split.",
        "returns: (batch, outputs)",
    ],
    both_sides=True,
)
def output(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        tensors = problem(rng, dtype)
        with torch.no_grad(), groups() as group:
            y, _, _ = attempt(answer, tensors, group)
        compare(everywhere(y), whole(*tensors), "the output", PARTS)


@check(
    "a rank computes with its own block",
    holds=[
        "its rank r computes with the r-th of N equal blocks of hidden features, and with no other",
        "The gradients of w1, b1 and w2 are right in the rank's own block and zero outside of it.",
        "Write tp_mlp and the backward of CopyToRanks.",
    ],
    both_sides=True,
)
def blocks(answer, rng, device):
    with groups() as group:
        held, right, _, _ = gradients(answer, problem(rng), group)
    for i, dim in ((1, 0), (2, 0), (3, 1)):
        parts = right[i].chunk(2, dim)
        for rank, grads in enumerate(held):
            wanted = torch.cat([p if r == rank else 0 * p for r, p in enumerate(parts)], dim)
            name = f"the gradient of {NAMES[i]} on rank {rank}"
            expect_true(grads[i] is not None, f"{name} is None", hint=GRADS)
            expect_close(grads[i], wanted, name=name, hint=GRADS, rtol=1e-4, atol=1e-4)


@check(
    "a rank multiplies its own block alone",
    holds="its rank r computes with the r-th of N equal blocks of hidden features, "
    "and with no other",
    side="work",
)
def work(answer, rng, device):
    tensors = problem(rng)
    counter, right = FlopCounterMode(display=False), FlopCounterMode(display=False)
    with right:
        whole(*tensors)
    with torch.no_grad(), groups() as group, counter:
        attempt(answer, tensors, group)
    wanted = right.get_total_flops() // 2
    for rank, got in enumerate(everywhere(counter.get_total_flops())):
        expect_true(
            got <= wanted,
            f"rank {rank} spends {got} operations in products of matrices, and half of the "
            f"whole MLP is {wanted}",
            hint=OWN,
        )


@check(
    "the gradients of x and b2",
    holds="and the gradient of x and of b2 of the whole MLP",
    both_sides=True,
)
def shared(answer, rng, device):
    with groups() as group:
        held, right, _, _ = gradients(answer, problem(rng, torch.float64), group)
    hint = "Each rank adds the whole b2 once, to the sum. Then its gradient is whole everywhere."
    compare([g[4] for g in held], right[4], "the gradient of b2", hint)
    compare([g[0] for g in held], right[0], "the gradient of x", INPUT)


@check(
    "one all_reduce forward, one backward",
    holds="Forward sends one all_reduce and backward another one, both in group.",
    both_sides=True,
)
def traffic(answer, rng, device):
    tensors = problem(rng)
    with groups() as group:
        with torch.no_grad():
            y, _, forward = attempt(answer, tensors, group)
        _, _, seen, _ = gradients(answer, tensors, group)
    hint = "The terms of the output travel in forward, the gradient of x in backward."
    wanted = [("allreduce", y.numel())]
    name = "the collectives of forward, with the numbers that they take"
    expect_equal(forward, wanted, name=name, hint=hint)
    wanted += [("allreduce", tensors[0].numel())]
    name = "the collectives of forward and backward, with the numbers that they take"
    expect_equal(seen, wanted, name=name, hint=hint)


@check(
    "a group of one rank",
    holds=["Also a group of one rank works.", "With N ranks in the group"],
    hint="A rank has one number among all ranks and another in its group.",
)
def alone(answer, rng, device):
    tensors = problem(rng)
    with groups(alone=True) as group:
        held, right, _, y = gradients(answer, tensors, group)
        with torch.no_grad():
            got, _, _ = attempt(answer, tensors, group)
    for i, name in enumerate(NAMES):
        hint = (
            "Every hidden feature belongs to the one rank of the group. Ask `group` for the rank "
            "and the number of ranks, and name it in every all_reduce."
        )
        compare([g[i] for g in held], right[i], f"the gradient of {name}", hint)
    compare(everywhere(got), y.detach(), "the output", PARTS)


@check(
    "a group that counts its ranks differently",
    holds="A rank has a number in the group and another among all ranks, which may differ.",
    both_sides=True,
)
def turned(answer, rng, device):
    with groups(turned=True) as group:
        numbers = everywhere(dist.get_rank(group))
        held, right, _, _ = gradients(answer, problem(rng), group)
    parts = right[1].chunk(2)
    hint = "dist.get_rank(group) is the number in the group, and decides which block is whose."
    for (rank, grads), number in zip(enumerate(held), numbers):
        wanted = torch.cat([p if r == number else 0 * p for r, p in enumerate(parts)])
        name = f"the gradient of w1 on rank {rank}, which has the number {number} in the group,"
        expect_true(grads[1] is not None, f"{name} is None", hint=hint)
        expect_close(grads[1], wanted, name=name, hint=hint, rtol=1e-4, atol=1e-4)


@check("the inputs stay as they were", holds="The inputs keep their values.")
def untouched(answer, rng, device):
    tensors = leaves(problem(rng))
    with groups() as group, expect_unchanged(*[t.detach() for t in tensors]):
        attempt(answer, tensors, group, weight=1.0)


class Summed(Function):
    @staticmethod
    def forward(ctx, part, group):
        y = part.clone()
        dist.all_reduce(y, group=group)
        return y

    @staticmethod
    def backward(ctx, grad):
        return grad, None


class Copied(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total, group=ctx.group)
        return total, None


@mutant("adds b2 on each rank", caught_by=output)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, 1)[r].T + b2, group)


@mutant("splits the inputs of the first layer and applies relu to the terms", caught_by=output)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    inputs = torch.arange(x.shape[1]).tensor_split(n)[r]
    h = torch.relu(x[:, inputs] @ w1[:, inputs].T + b1 / n)
    return Summed.apply(h, group) @ w2.T + b2


@mutant("does not add the terms", caught_by=output)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return h @ w2.chunk(n, 1)[r].T + b2


@mutant("averages what every rank computes whole", caught_by=blocks)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n = dist.get_world_size(group)
    y = torch.relu(Copied.apply(x, group) @ w1.T + b1) @ w2.T
    return Summed.apply(y / n, group) + b2


@mutant("deals the hidden features out in turn", caught_by=blocks)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1[r::n].T + b1[r::n])
    return Summed.apply(h @ w2[:, r::n].T, group) + b2


@mutant("computes all hidden features and masks the others", caught_by=work)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    size = len(b1) // n
    mask = torch.zeros_like(b1)
    mask[r * size : (r + 1) * size] = 1
    h = torch.relu(Copied.apply(x, group) @ w1.T + b1) * mask
    return Summed.apply(h @ w2.T, group) + b2


@mutant("adds a part of b2 on each rank", caught_by=shared)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, 1)[r].T + b2 / n, group)


@mutant("does not add the gradients of x", caught_by=shared)
class CopyToRanks(Function):
    @staticmethod
    def forward(ctx, x, group):
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@mutant("averages the gradients of x", caught_by=shared)
class CopyToRanks(Function):
    @staticmethod
    def forward(ctx, x, group):
        ctx.group = group
        return x.view_as(x)

    @staticmethod
    def backward(ctx, grad):
        total = grad.clone()
        dist.all_reduce(total, group=ctx.group)
        return total / dist.get_world_size(ctx.group), None


@mutant("sums the gradient of the output too", caught_by=blocks)
class ReduceFromRanks(Function):
    @staticmethod
    def forward(ctx, part, group):
        ctx.group = group
        return Summed.apply(part, group)

    @staticmethod
    def backward(ctx, grad):
        return Summed.apply(grad, ctx.group), None


@mutant("gathers the hidden features", caught_by=traffic)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    every = [torch.empty_like(h) for _ in range(n)]
    dist.all_gather(every, h.detach().contiguous(), group=group)
    return Summed.apply(h @ w2.chunk(n, 1)[r].T, group) + b2


@mutant("splits by the number among all ranks", caught_by=alone)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(), dist.get_rank()
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, 1)[r].T, group) + b2


@mutant("takes the block of its number among all ranks", caught_by=turned)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n = dist.get_world_size(group)
    r = dist.get_rank() % n
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, 1)[r].T, group) + b2


@mutant("adds into b2", caught_by=untouched)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(Copied.apply(x, group) @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    y = Summed.apply(h @ w2.chunk(n, 1)[r].T, group) + b2
    b2.data.add_(1)
    return y


@hinted(1, reaches=output)
def tp_mlp(x, w1, b1, w2, b2, group=None):
    n, r = dist.get_world_size(group), dist.get_rank(group)
    h = torch.relu(x @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, dim=1)[r].T, group) + b2


@accepted("slices, and torch.nn.functional.linear")
def tp_mlp(x, w1, b1, w2, b2, group=None):
    size = len(b1) // dist.get_world_size(group)
    mine = slice(size * dist.get_rank(group), size * dist.get_rank(group) + size)
    h = torch.nn.functional.linear(Copied.apply(x, group), w1[mine], b1[mine]).clamp(min=0)
    return Summed.apply(torch.nn.functional.linear(h, w2[:, mine]), group) + b2


@accepted("a hook on a view of x adds the gradients")
def tp_mlp(x, w1, b1, w2, b2, group=None):
    def add_up(grad):
        total = grad.clone()
        dist.all_reduce(total, group=group)
        return total

    n, r = dist.get_world_size(group), dist.get_rank(group)
    x = x.view_as(x)
    if x.requires_grad:
        x.register_hook(add_up)
    h = torch.relu(x @ w1.chunk(n)[r].T + b1.chunk(n)[r])
    return Summed.apply(h @ w2.chunk(n, 1)[r].T, group) + b2
