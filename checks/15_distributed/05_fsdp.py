"""Judges lessons/15_distributed/05_fsdp.md."""

import datetime
import inspect
from contextlib import contextmanager

import torch
import torch.distributed as dist
from torch import nn
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode

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
    "Write the class ShardedOptimizer.",
    "Each rank of group makes one",
    "The replicas begin equal",
    "make(tensors) returns an optimizer",
    "They may be one tensor.",
    "Its step is that of ZeRO",
    "A call that may help",
    "It fills out with this rank's sum.",
)

equivalent(
    "self.mine = parts[dist.get_rank(group)].clone()",
    "self.mine = parts[dist.get_rank(group)]",
    because="the numbers are the same; without a clone the whole row stays in memory, unmeasured.",
)
equivalent(
    "row = F.pad(row, (0, -len(row) % self.world))",
    "row = F.pad(row, (0, len(row) % self.world))",
    because="the groups here have one or two ranks, where both are the same number.",
)

# A rank that waits for another one raises after this time, so that both come back to the check.
WAIT = datetime.timedelta(seconds=5)

MEAN = (
    "Each rank needs the sum of all ranks' gradients, for its own part, divided by the number of "
    "ranks; and after its step every rank needs the new parts of all."
)
SIZE = "All parts that are reduced or gathered have one size; zeros stand for a gradient of None."
SKIPS = "A parameter that skips memory has no flat view: flatten() copies where it must."
LATE = "Every rank makes the same calls in the same order, also a rank that has no gradient."
OWN = "A rank's optimizer holds the r-th of N equal parts of the row, and no other number."


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


def sgd(tensors):
    return torch.optim.SGD(tensors, lr=0.5)


def momentum(tensors):
    return torch.optim.SGD(tensors, lr=0.1, momentum=0.9)


def adamw(tensors):
    return torch.optim.AdamW(tensors, lr=0.05, weight_decay=0.1)


def replica(rng, odd, dtype=torch.float32):
    """Parameters, equal on all ranks; their numbers are odd in sum, or even."""
    shapes = [(rng.randint(2, 4), 2 * rng.randint(1, 3)), (2 * rng.randint(1, 3),), ()]
    shapes += [] if odd else [(1, 1)]
    rng.shuffle(shapes)
    return [nn.Parameter(torch.randn(shape, dtype=dtype)) for shape in shapes]


def gradients(params, steps=1):
    """For each step, for each rank, a gradient for each parameter; drawn alike on all ranks."""
    return [
        [[torch.randn_like(p).detach() for p in params] for _ in range(dist.get_world_size())]
        for _ in range(steps)
    ]


def alone_in_one_process(params, grads, make):
    """What the parameters are after steps with the mean gradients, without any shards."""
    whole = [p.detach().clone().requires_grad_() for p in params]
    opt = make(whole)
    for step in grads:
        for i, p in enumerate(whole):
            every = [torch.zeros_like(p) if g[i] is None else g[i] for g in step]
            p.grad = sum(every).detach() / len(every)
        opt.step()
    return [p.detach() for p in whole]


def attempt(answer, params, grads, make, group=None, mode=None, given=None):
    """Run the answer's steps on this rank; fails on all ranks if it raised on one.

    grads: for each step, for each rank, a gradient or None for each parameter
    mode: a context around the last step
    given: what the answer is given for the parameters, if not the list itself
    """
    failed = None
    try:
        opt = answer.ShardedOptimizer(params if given is None else given, make, group)
        for k, step in enumerate(grads):
            for p, g in zip(params, step[dist.get_rank()]):
                p.grad = None if g is None else g.clone()
            if mode is not None and k == len(grads) - 1:
                with mode:
                    opt.step()
            else:
                opt.step()
    except Exception as error:
        failed = error
    troubles = everywhere("" if failed is None else f"{type(failed).__name__}: {failed}")
    for rank, said in enumerate(troubles):
        hint = LATE if "Timed out" in said else SKIPS if "view size" in said else SIZE
        expect_true(
            not said,
            f"on rank {rank} ShardedOptimizer raised {said}",
            hint=hint,
        )


def expect_parameters(params, wanted, hint, **tolerances):
    """All ranks hold the wanted parameters."""
    for rank, held in enumerate(everywhere([p.detach().clone() for p in params])):
        for i, (got, want) in enumerate(zip(held, wanted)):
            name = f"parameter {i} on rank {rank}"
            expect_close(got, want, name=name, hint=hint, **tolerances)


@check(
    "the optimizer has the rank's own part",
    holds=[
        "Lay the numbers of all parameters in one row, in their order.",
        "With N ranks in the group, its rank r owns the r-th of N equal parts of the row.",
        "Call it once, in __init__, with the numbers that the rank owns and no others.",
    ],
    both_sides=True,
)
def owned(answer, rng, device):
    params = replica(rng, odd=False)
    row = torch.cat([p.detach().flatten() for p in params])
    calls = []

    def make(tensors):
        calls.append([t.detach().clone() for t in tensors])
        return sgd(tensors)

    with groups() as group:
        attempt(answer, params, [], make, group)
        before = len(calls)
        attempt(answer, params, gradients(params, 2), make, group)
    for rank, (first, both) in enumerate(everywhere((before, len(calls)))):
        name = f"calls of make on rank {rank}"
        expect_equal(first, 1, name=name + ", by __init__", hint="__init__ calls make once.")
        expect_equal(both - first, 1, name=name + ", by __init__ and two steps")
    for rank, got in enumerate(everywhere(calls[0])):
        want = row.chunk(dist.get_world_size())[rank]
        numbers = torch.cat([t.flatten() for t in got])
        name = f"the numbers that the optimizer of rank {rank} has"
        expect_equal(len(numbers), len(want), name=f"how many are {name}", hint=OWN)
        expect_equal(numbers, want, name=name, hint=OWN)


@check(
    "a step with the mean gradient",
    holds="replaces each parameter, on every rank, by what the optimizer makes of it with the "
    "mean gradient over the ranks.",
    both_sides=True,
)
def means(answer, rng, device):
    params = replica(rng, odd=False)
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, sgd)
    with groups() as group:
        attempt(answer, params, grads, sgd, group)
    expect_parameters(params, wanted, MEAN)


@check(
    "a row that does not divide",
    holds="If N does not divide the length, zeros at the end fill the row up.",
    side="one number too few",
)
def odd(answer, rng, device):
    params = replica(rng, odd=True)
    n, sizes = sum(p.numel() for p in params), []
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, sgd)

    def make(tensors):
        sizes.append(sum(t.numel() for t in tensors))
        return sgd(tensors)

    with groups() as group:
        attempt(answer, params, grads, make, group)
    expect_parameters(params, wanted, f"The row has {n} numbers: are the last ones among them?")
    for rank, got in enumerate(everywhere(sizes)):
        expect_equal(got[0], (n + 1) // 2, name=f"the numbers of rank {rank}", hint=OWN)


@check(
    "fewer numbers than ranks",
    holds="If N does not divide the length, zeros at the end fill the row up.",
    side="a single number",
)
def single(answer, rng, device):
    params = [nn.Parameter(torch.randn(1))]
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, sgd)
    with groups() as group:
        attempt(answer, params, grads, sgd, group)
    expect_parameters(params, wanted, "One number on two ranks: rank 1 owns a zero.")


@check(
    "several steps",
    holds="What the optimizer knows of earlier steps stays.",
)
def several(answer, rng, device):
    for make in (momentum, adamw):
        params = replica(rng, odd=rng.random() < 0.5)
        grads = gradients(params, 4)
        wanted = alone_in_one_process(params, grads, make)
        with groups() as group:
            attempt(answer, params, grads, make, group)
        hint = "After one step all is well: is the optimizer of the first step still there?"
        expect_parameters(params, wanted, hint, rtol=1e-3, atol=1e-5)


@check(
    "a gradient that is None",
    holds="A gradient that is None on a rank counts as zeros there.",
)
def missing(answer, rng, device):
    params = replica(rng, odd=False)
    grads = gradients(params)
    for i in range(len(params)):
        grads[0][rng.randint(0, 1)][i] = None
    wanted = alone_in_one_process(params, grads, sgd)
    with groups() as group:
        attempt(answer, params, grads, sgd, group)
    expect_parameters(params, wanted, "A rank without a gradient adds zeros to the sum.")


@check(
    "a rank without any gradient",
    holds="A gradient that is None on a rank counts as zeros there.",
    side="all of them None",
)
def idle(answer, rng, device):
    params = replica(rng, odd=False)
    grads = gradients(params, 2)
    grads[1][rng.randint(0, 1)] = [None] * len(params)
    wanted = alone_in_one_process(params, grads, momentum)
    with groups() as group:
        attempt(answer, params, grads, momentum, group)
    hint = "A rank without any gradient takes part in both collectives, with zeros."
    expect_parameters(params, wanted, hint)


@check(
    "the same objects",
    holds=[
        "The parameters stay the same objects.",
        "params may be an iterator, as model.parameters() is.",
    ],
)
def objects(answer, rng, device):
    linear = nn.Linear(3, 2)
    before = list(linear.parameters())
    start = [p.detach().clone() for p in before]
    with groups() as group:
        attempt(answer, before, gradients(before), sgd, group, given=linear.parameters())
    for p, after, was in zip(before, linear.parameters(), start):
        expect_true(p is after, "the model has new parameters")
        expect_true(p.requires_grad and p.is_leaf, "a parameter no longer asks for a gradient")
        expect_true(not torch.equal(p.detach(), was), "a parameter of the model did not change")


class Traffic(TorchDispatchMode):
    """The collectives that this rank calls, by name."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func.namespace == "c10d":
            name = str(func).split(".")[1].strip("_")
            plain = {"allgather_base": "allgather", "reduce_scatter_base": "reduce_scatter"}
            self.seen.append(plain.get(name, name))
        return func(*args, **(kwargs or {}))


@check(
    "one reduce-scatter and one all-gather",
    holds="A step calls one reduce-scatter and one all-gather in group, and no other collective.",
)
def traffic(answer, rng, device):
    params = replica(rng, odd=True)
    counted = Traffic()
    with groups() as group:
        attempt(answer, params, gradients(params, 2), sgd, group, mode=counted)
    for rank, seen in enumerate(everywhere(counted.seen)):
        expect_equal(
            seen,
            ["reduce_scatter", "allgather"],
            name=f"the collectives of a step on rank {rank}",
            hint="A row of all parameters needs each of them once, whatever their number.",
        )


@check(
    "a group of one rank",
    holds=["A group of one rank works too.", "its rank r owns the r-th of N equal parts"],
    both_sides=True,
)
def alone(answer, rng, device):
    params = replica(rng, odd=True)
    grads, mine = gradients(params), dist.get_rank()
    wanted = alone_in_one_process(params, [[grads[0][mine]]], sgd)
    with groups(alone=True) as group:
        attempt(answer, params, grads, sgd, group)
    for rank, troubled in enumerate(
        everywhere([not torch.allclose(p, w, atol=1e-5) for p, w in zip(params, wanted)])
    ):
        expect_true(
            not any(troubled),
            f"in a group of rank {rank} alone, a step is not that of its own gradient",
            hint="Ask `group` for the rank and for the number of ranks.",
        )


@check(
    "a group that counts its ranks differently",
    holds="A rank's number in the group may differ from its number among all ranks.",
)
def turned(answer, rng, device):
    params, own = replica(rng, odd=False), []
    row = torch.cat([p.detach().flatten() for p in params])
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, sgd)

    def make(tensors):
        own.append(torch.cat([t.detach().clone().flatten() for t in tensors]))
        return sgd(tensors)

    with groups(turned=True) as group:
        numbers = everywhere(dist.get_rank(group))
        attempt(answer, params, grads, make, group)
    hint = "dist.get_rank(group) is the number in the group, and decides which part is whose."
    for rank, (got, number) in enumerate(zip(everywhere(own[0]), numbers)):
        want = row.chunk(dist.get_world_size())[number]
        name = f"what rank {rank} owns, which has the number {number} in the group,"
        expect_equal(len(got), len(want), name=f"how many are {name}", hint=OWN)
        expect_equal(got, want, name=name, hint=hint)
    expect_parameters(params, wanted, hint)


@check("a view that skips memory", holds="A parameter may be a view that skips memory.")
def views(answer, rng, device):
    whole = torch.randn(rng.randint(3, 5), rng.randint(3, 5), 2)
    params = [nn.Parameter(whole[:, :, 0].T), nn.Parameter(torch.randn(3))]
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, sgd)
    with groups() as group:
        attempt(answer, params, grads, sgd, group)
    expect_parameters(params, wanted, "In which order are the numbers of a transposed parameter?")


@check(
    "float64",
    holds="All parameters have one dtype, float64 for example.",
)
def dtypes(answer, rng, device):
    params = replica(rng, odd=True, dtype=torch.float64)
    grads = gradients(params)
    wanted = alone_in_one_process(params, grads, momentum)
    with groups() as group:
        attempt(answer, params, grads, momentum, group)
    hint = "All parts have the dtype of the parameters."
    expect_parameters(params, wanted, hint, rtol=1e-12, atol=1e-12)


def pieces(tensors, world):
    row = torch.cat([t.detach().flatten() for t in tensors])
    return list(F.pad(row, (0, -len(row) % world)).chunk(world))


def write_back(row, params):
    for p in params:
        p.detach().copy_(row[: p.numel()].view(p.shape))
        row = row[p.numel() :]


def grads_of(params):
    return [torch.zeros_like(p) if p.grad is None else p.grad for p in params]


class Sharded:
    """The right answer in steps, for answers that go wrong in one of them."""

    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        self.world, self.rank = dist.get_world_size(group), dist.get_rank(group)
        self.mine = self.own()
        self.opt = make([self.mine])

    def own(self):
        return pieces(self.params, self.world)[self.rank].clone()

    def reduce(self):
        self.mine.grad = torch.empty_like(self.mine)
        parts = pieces(grads_of(self.params), self.world)
        dist.reduce_scatter(self.mine.grad, parts, group=self.group)
        self.mine.grad /= self.world

    def gather(self):
        every = [torch.empty_like(self.mine) for _ in range(self.world)]
        dist.all_gather(every, self.mine, group=self.group)
        write_back(torch.cat(every), self.params)

    def step(self):
        self.reduce()
        self.opt.step()
        self.gather()


@mutant("steps with its own gradient", caught_by=means)
class ShardedOptimizer(Sharded):
    def reduce(self):
        self.mine.grad = pieces(grads_of(self.params), self.world)[self.rank].clone()


@mutant("takes the sum for the mean", caught_by=means)
class ShardedOptimizer(Sharded):
    def reduce(self):
        super().reduce()
        self.mine.grad *= self.world


@mutant("does not gather the new parameters", caught_by=means)
class ShardedOptimizer(Sharded):
    def gather(self):
        every = pieces(self.params, self.world)
        every[self.rank] = self.mine
        write_back(torch.cat(every), self.params)


@mutant("averages the parameters after a step of each rank", caught_by=owned)
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        self.opt = make(self.params)

    def step(self):
        self.opt.step()
        for p in self.params:
            dist.all_reduce(p.detach(), group=self.group)
            p.detach().div_(dist.get_world_size(self.group))


@mutant("averages all gradients, and every rank holds the whole state", caught_by=owned)
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        self.opt = make(self.params)

    def step(self):
        for p, g in zip(self.params, grads_of(self.params)):
            p.grad = g
            dist.all_reduce(p.grad, group=self.group)
            p.grad /= dist.get_world_size(self.group)
        self.opt.step()


@mutant("makes a new optimizer in each step", caught_by=owned)
class ShardedOptimizer(Sharded):
    def __init__(self, params, make, group=None):
        super().__init__(params, make, group)
        self.make = make

    def step(self):
        self.reduce()
        self.make([self.mine]).step()
        self.gather()


@mutant("forgets the state of the optimizer", caught_by=several)
class ShardedOptimizer(Sharded):
    def step(self):
        self.opt.state.clear()
        super().step()


@mutant("deals whole parameters out", caught_by=owned)
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        world, rank = dist.get_world_size(group), dist.get_rank(group)
        self.opt = make(self.params[rank::world])

    def step(self):
        for p, g in zip(self.params, grads_of(self.params)):
            p.grad = g
            dist.all_reduce(p.grad, group=self.group)
            p.grad /= dist.get_world_size(self.group)
        self.opt.step()
        for i, p in enumerate(self.params):
            source = i % dist.get_world_size(self.group)
            dist.broadcast(p.detach(), group=self.group, group_src=source)


@mutant("does not fill the row up", caught_by=odd)
class ShardedOptimizer(Sharded):
    def own(self):
        row = torch.cat([p.detach().flatten() for p in self.params])
        size = len(row) // self.world
        return row[self.rank * size : (self.rank + 1) * size].clone()

    def reduce(self):
        row = torch.cat([g.flatten() for g in grads_of(self.params)])
        parts = list(row[: self.world * len(self.mine)].split(max(len(self.mine), 1)))
        self.mine.grad = torch.empty_like(self.mine)
        dist.reduce_scatter(self.mine.grad, parts, group=self.group)
        self.mine.grad /= self.world

    def gather(self):
        row = torch.cat([p.detach().flatten() for p in self.params])
        every = [torch.empty_like(self.mine) for _ in range(self.world)]
        dist.all_gather(every, self.mine, group=self.group)
        row[: self.world * len(self.mine)] = torch.cat(every)
        write_back(row, self.params)


@mutant("leaves parameters without a gradient out of the row", caught_by=missing)
class ShardedOptimizer(Sharded):
    def reduce(self):
        grads = [p.grad for p in self.params if p.grad is not None]
        row = torch.cat([g.flatten() for g in grads]) if grads else torch.zeros(0)
        size = len(self.mine) * self.world
        self.mine.grad = torch.empty_like(self.mine)
        parts = list(F.pad(row, (0, size - len(row))).chunk(self.world))
        dist.reduce_scatter(self.mine.grad, parts, group=self.group)
        self.mine.grad /= self.world


@mutant("leaves the step out where no gradient is there", caught_by=idle)
class ShardedOptimizer(Sharded):
    def step(self):
        if any(p.grad is not None for p in self.params):
            super().step()


@mutant("reduces each parameter by itself", caught_by=traffic)
class ShardedOptimizer(Sharded):
    def reduce(self):
        for p in self.params:
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad
            dist.all_reduce(p.grad, group=self.group)
            p.grad /= self.world
        self.mine.grad = pieces(grads_of(self.params), self.world)[self.rank].clone()


@mutant("works with the number among all ranks", caught_by=alone)
class ShardedOptimizer(Sharded):
    def __init__(self, params, make, group=None):
        super().__init__(params, make, None)


@mutant("owns the part of its number among all ranks", caught_by=turned)
class ShardedOptimizer(Sharded):
    def own(self):
        return pieces(self.params, self.world)[dist.get_rank() % self.world].clone()


@mutant("takes views of the parameters", caught_by=views)
class ShardedOptimizer(Sharded):
    def own(self):
        return pieces([p.detach().view(-1) for p in self.params], self.world)[self.rank].clone()


@mutant("writes into a copy of a parameter that has no flat view", caught_by=views)
class ShardedOptimizer(Sharded):
    def gather(self):
        every = [torch.empty_like(self.mine) for _ in range(self.world)]
        dist.all_gather(every, self.mine, group=self.group)
        row = torch.cat(every)
        for p in self.params:
            p.detach().reshape(-1).copy_(row[: p.numel()])
            row = row[p.numel() :]


@mutant("keeps an iterator, which is empty in the first step", caught_by=objects)
class ShardedOptimizer(Sharded):
    def __init__(self, params, make, group=None):
        super().__init__(params, make, group)
        self.params = params


@mutant("makes the parts float32", caught_by=dtypes)
class ShardedOptimizer(Sharded):
    def own(self):
        return super().own().float()

    def reduce(self):
        self.mine.grad = torch.empty_like(self.mine)
        parts = [p.float() for p in pieces(grads_of(self.params), self.world)]
        dist.reduce_scatter(self.mine.grad, parts, group=self.group)
        self.mine.grad /= self.world


@hinted(1, reaches=owned)
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        world = dist.get_world_size(group)
        row = torch.cat([p.detach().flatten() for p in self.params])
        row = F.pad(row, (0, -len(row) % world))
        self.mine = row.chunk(world)[dist.get_rank(group)].clone()
        self.opt = make([self.mine])

    def step(self):
        self.opt.step()


@accepted("keeps the whole row, and gathers into it")
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = [*params], group
        self.n = dist.get_world_size(group)
        total = sum(p.numel() for p in self.params)
        self.size = (total + self.n - 1) // self.n
        self.row = self.params[0].new_zeros(self.n * self.size).detach()
        self.places, start = [], 0
        for p in self.params:
            place = self.row[start : start + p.numel()].view(p.shape)
            place.copy_(p.detach())
            self.places.append(place)
            start += p.numel()
        first = dist.get_rank(group) * self.size
        self.part = self.row[first : first + self.size]
        self.optimizer = make([self.part])

    def step(self):
        grads = torch.zeros_like(self.row)
        start = 0
        for p in self.params:
            if p.grad is not None:
                grads[start : start + p.numel()] = p.grad.reshape(-1) / self.n
            start += p.numel()
        out = torch.zeros_like(self.part)
        dist.reduce_scatter(out, list(grads.split(self.size)), group=self.group)
        self.part.grad = out
        self.optimizer.step()
        dist.all_gather(list(self.row.split(self.size)), self.part.clone(), group=self.group)
        with torch.no_grad():
            for p, place in zip(self.params, self.places):
                p.copy_(place)


@accepted("collectives of one tensor")
class ShardedOptimizer:
    def __init__(self, params, make, group=None):
        self.params, self.group = list(params), group
        self.world = dist.get_world_size(group)
        self.mine = nn.Parameter(self.row(self.params).view(self.world, -1)[dist.get_rank(group)])
        self.opt = make([self.mine])

    def row(self, tensors):
        row = nn.utils.parameters_to_vector([t.detach().contiguous() for t in tensors])
        return torch.cat([row, row.new_zeros(-len(row) % self.world)])

    def step(self):
        grads = self.row([p.new_zeros(p.shape) if p.grad is None else p.grad for p in self.params])
        mean, new = torch.empty_like(self.mine.detach()), torch.empty_like(grads)
        scatter = getattr(dist, "reduce_scatter_single", None) or dist.reduce_scatter_tensor
        gather = getattr(dist, "all_gather_single", None) or dist.all_gather_into_tensor
        scatter(mean, grads, group=self.group)
        self.mine.grad = mean / self.world
        self.opt.step()
        gather(new, self.mine.detach(), group=self.group)
        write_back(new, self.params)
