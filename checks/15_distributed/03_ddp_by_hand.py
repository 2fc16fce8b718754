"""Judges lessons/15_distributed/03_ddp_by_hand.md."""

import copy

import torch
import torch.distributed as dist
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

background("Write two functions", "Buffers that state_dict() leaves out")

equivalent(
    "dist.broadcast(t.detach(), src=0)",
    "dist.broadcast(t, src=0)",
    because="broadcast writes into a parameter without recording it for autograd.",
)


def replica(rng, seed):
    """A small model, drawn from `seed`; every rank draws the same shapes."""
    wide, hidden = rng.randint(2, 5), rng.randint(3, 6)
    torch.manual_seed(seed)
    return nn.Sequential(
        nn.Linear(wide, hidden), nn.BatchNorm1d(hidden), nn.Linear(hidden, 2)
    ), wide


def values(tensors):
    return [t.detach().clone() for t in tensors]


def everywhere(value):
    """What each rank holds, on all ranks: all of them fail together, and none waits."""
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, value)
    return every


@check(
    "every rank has the parameters of rank 0",
    holds="gives every rank the parameters and the buffers of rank 0",
    side="parameters",
)
def parameters(answer, rng, device):
    seed, place = rng.randint(0, 999), rng.getstate()
    wanted, _ = replica(rng, seed)
    rng.setstate(place)
    model, _ = replica(rng, seed + dist.get_rank())
    answer.sync(model)
    for rank, state in enumerate(everywhere(values(model.parameters()))):
        for (name, _), got, w in zip(model.named_parameters(), state, wanted.parameters()):
            expect_equal(
                got,
                w.detach(),
                name=f"{name} on rank {rank}",
                hint="Replicas start different unless one rank sends its parameters to all.",
            )


@check(
    "every rank has the buffers of rank 0",
    holds=["and the buffers of rank 0", "Buffers may be integers"],
    side="buffers",
)
def buffers(answer, rng, device):
    model, _ = replica(rng, 1)
    norm, rank = model[1], dist.get_rank()
    start = rng.randint(3, 50)
    norm.running_mean.fill_(start + rank)
    norm.num_batches_tracked.fill_(2**53 + 1 + 2 * start + 2 * rank)
    answer.sync(model)
    hint = "Buffers belong to the model too, and no optimizer makes them equal."
    held = everywhere((norm.running_mean, norm.num_batches_tracked.item()))
    for rank, (mean, count) in enumerate(held):
        expect_equal(
            mean, torch.full_like(mean, start), name=f"running_mean on rank {rank}", hint=hint
        )
        expect_equal(
            count, 2**53 + 1 + 2 * start, name=f"num_batches_tracked on rank {rank}", hint=hint
        )


@check("frozen parameters too", holds="parameters may be frozen, with requires_grad=False")
def frozen(answer, rng, device):
    seed, place = rng.randint(0, 999), rng.getstate()
    wanted, _ = replica(rng, seed)
    rng.setstate(place)
    model, _ = replica(rng, seed + dist.get_rank())
    model[0].requires_grad_(False)
    answer.sync(model)
    for rank, state in enumerate(everywhere(values(model[0].parameters()))):
        for (name, _), got, w in zip(model[0].named_parameters(), state, wanted[0].parameters()):
            expect_equal(
                got,
                w.detach(),
                name=f"the frozen {name} on rank {rank}",
                hint="A frozen parameter differs between ranks too, and no step makes it equal.",
            )


@check("the same objects", holds="The parameters stay the same objects")
def objects(answer, rng, device):
    model, _ = replica(rng, dist.get_rank())
    before = list(model.parameters())
    answer.sync(model)
    same = all(a is b for a, b in zip(before, model.parameters()))
    expect_true(same, "sync put new parameters into the model, and an optimizer holds the old ones")
    expect_true(
        all(p.requires_grad and p.is_leaf for p in before),
        "after sync a parameter is no longer a leaf that asks for a gradient",
    )


@check(
    "gradients are the mean over the ranks",
    holds="replaces each gradient by its mean over all ranks",
    both_sides=True,
)
def means(answer, rng, device):
    model, _ = replica(rng, rng.randint(0, 999))
    world = dist.get_world_size()
    drawn = [[torch.randn(p.shape) for _ in range(world)] for p in model.parameters()]
    for p, g in zip(model.parameters(), drawn):
        p.grad = g[dist.get_rank()].clone()
    start = values(model.parameters())
    answer.average_grads(model)
    for (name, p), w in zip(model.named_parameters(), start):
        expect_equal(p.detach(), w, name=name, hint="Average gradients, and leave the weights.")
    for (name, p), g in zip(model.named_parameters(), drawn):
        expect_true(p.grad is not None, f"{name} has no gradient after average_grads")
        expect_close(
            p.grad.detach(),
            sum(g) / world,
            name=f"the gradient of {name}",
            hint="The sum over the ranks is the mean times the number of ranks.",
        )


@check("steps of the whole batch", holds="gives every rank the parameters", side="training")
def training(answer, rng, device):
    seed, place = rng.randint(0, 999), rng.getstate()
    whole, wide = replica(rng, seed)
    whole = nn.Sequential(whole[0], nn.Tanh(), whole[2])
    rng.setstate(place)
    model, _ = replica(rng, seed + dist.get_rank())
    model = nn.Sequential(model[0], nn.Tanh(), model[2])
    world, rank, n = dist.get_world_size(), dist.get_rank(), rng.randint(2, 5)
    torch.manual_seed(seed + 77)
    x, y = torch.randn(n * world, wide), torch.randn(n * world, 2)
    answer.sync(model)
    mine, theirs = (torch.optim.Adam(m.parameters(), lr=0.05) for m in (model, whole))
    for _ in range(3):
        mine.zero_grad()
        (model(x[rank::world]) - y[rank::world]).square().mean().backward()
        answer.average_grads(model)
        mine.step()
        theirs.zero_grad()
        (whole(x) - y).square().mean().backward()
        theirs.step()
    for (name, p), w in zip(model.named_parameters(), whole.parameters()):
        expect_close(p.detach(), w.detach(), rtol=1e-3, atol=1e-4, name=f"{name} after three steps")


@check(
    "a parameter that one rank did not use",
    holds="A rank whose loss did not use a parameter has None as its gradient, "
    "which counts as zero.",
    hint="Every rank must make the same calls, also for a parameter without a gradient.",
)
def unused(answer, rng, device):
    model, _ = replica(rng, 5)
    lacks, rank = rng.randint(0, 1), dist.get_rank()
    names = [name for name, _ in model.named_parameters()]
    missing = rng.choice(names)
    for name, p in model.named_parameters():
        p.grad = None if name == missing and rank == lacks else torch.full_like(p, 3.0)
    answer.average_grads(model)
    held = everywhere([p.grad for p in model.parameters()])
    for rank, grads in enumerate(held):
        for (name, p), got in zip(model.named_parameters(), grads):
            expect_true(got is not None, f"{name} has no gradient on rank {rank}")
            wanted = torch.full(p.shape, 1.5 if name == missing else 3.0)
            expect_close(got, wanted, name=f"the gradient of {name} on rank {rank}")


@mutant("sends nothing", caught_by=parameters)
def sync(model):
    return None


@mutant("averages the parameters", caught_by=parameters)
def sync(model):
    for t in model.parameters():
        dist.all_reduce(t.data)
        t.data /= dist.get_world_size()
    for b in model.buffers():
        dist.broadcast(b, src=0)


@mutant("sends the parameters of rank 1", caught_by=parameters)
def sync(model):
    for t in [*model.parameters(), *model.buffers()]:
        dist.broadcast(t.detach(), src=1)


@mutant("forgets the buffers", caught_by=buffers)
def sync(model):
    for t in model.parameters():
        dist.broadcast(t.detach(), src=0)


@mutant("leaves out what is frozen", caught_by=frozen)
def sync(model):
    for t in [*model.parameters(), *model.buffers()]:
        if t.requires_grad or not isinstance(t, nn.Parameter):
            dist.broadcast(t.detach(), src=0)


@mutant("sends buffers as float", caught_by=buffers)
def sync(model):
    for t in [*model.parameters(), *model.buffers()]:
        f = t.detach().double()
        dist.broadcast(f, src=0)
        t.data.copy_(f)


@mutant("makes new parameters", caught_by=objects)
def sync(model):
    for module in model.modules():
        for name, p in list(module.named_parameters(recurse=False)):
            dist.broadcast(p.detach(), src=0)
            setattr(module, name, nn.Parameter(p.detach()))
    for b in model.buffers():
        dist.broadcast(b, src=0)


@mutant("does not divide", caught_by=means)
def average_grads(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(p.grad)


@mutant("does not reduce", caught_by=means)
def average_grads(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)


@mutant("averages the weights", caught_by=means)
def average_grads(model):
    for p in model.parameters():
        dist.all_reduce(p.data)
        p.data /= dist.get_world_size()


@mutant("takes the gradients of rank 0", caught_by=means)
def average_grads(model):
    for p in model.parameters():
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.broadcast(p.grad, src=0)


@mutant("divides by the ranks that have a gradient", caught_by=unused)
def average_grads(model):
    for p in model.parameters():
        count = torch.tensor(0.0 if p.grad is None else 1.0)
        if p.grad is None:
            p.grad = torch.zeros_like(p)
        dist.all_reduce(count)
        dist.all_reduce(p.grad)
        p.grad /= count.clamp(min=1)


@mutant("gives no gradient back where there was none", caught_by=unused)
def average_grads(model):
    for p in model.parameters():
        g = torch.zeros_like(p) if p.grad is None else p.grad
        dist.all_reduce(g)
        g /= dist.get_world_size()


@hinted(1, reaches=parameters)
def sync(model):
    for t in model.parameters():
        dist.broadcast(t.detach(), src=0)
    for t in model.buffers():
        dist.broadcast(t.detach(), src=0)


@accepted("one collective for all gradients")
def average_grads(model):
    grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in model.parameters()]
    flat = torch.cat([g.flatten() for g in grads])
    dist.all_reduce(flat)
    flat /= dist.get_world_size()
    parts = flat.split([g.numel() for g in grads])
    for p, part in zip(model.parameters(), parts):
        p.grad = part.view_as(p).clone()


@accepted("reduces to rank 0 and sends the mean back")
def average_grads(model):
    world = dist.get_world_size()
    for p in model.parameters():
        g = (torch.zeros_like(p) if p.grad is None else p.grad).detach() / world
        dist.reduce(g, dst=0)
        dist.broadcast(g, src=0)
        p.grad = g


@accepted("sends the state as an object")
def sync(model):
    box = [copy.deepcopy(model.state_dict())]
    dist.broadcast_object_list(box, src=0)
    model.load_state_dict(box[0])
