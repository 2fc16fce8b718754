"""Judges lessons/15_distributed/02_distributed_sampler.md."""

import torch
from torch.utils.data import DistributedSampler

from tensortutor.checking import (
    accepted,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

FRONT = (
    "Shards of unequal length leave one rank waiting. What is missing comes from the front of the "
    "order: its first index first."
)
SEED = (
    "All ranks need one order, and each epoch its own: what is in the seed, and what is not? Then "
    "every world-th index."
)


def compare(answer, rng, n, world, drop_last=False, hint=""):
    """Every rank's shard against that of DistributedSampler, in one epoch."""
    epoch, seed = rng.randint(1, 9), rng.randint(0, 99)
    for rank in range(world):
        sampler = DistributedSampler(
            range(n), num_replicas=world, rank=rank, seed=seed, drop_last=drop_last
        )
        sampler.set_epoch(epoch)
        got = answer.shard(n, rank, world, epoch, seed, drop_last)
        expect_true(
            isinstance(got, list) and all(type(i) is int for i in got),
            "shard does not return a list of int",
        )
        expect_equal(got, list(sampler), name=f"the shard of rank {rank} of {world}", hint=hint)


@check(
    "the shards are those of DistributedSampler",
    holds=[
        "the indices of one rank in one epoch, as a list",
        "It gives what DistributedSampler gives with shuffle=True",
        "number of samples, at least 1 -> list of int",
    ],
    both_sides=True,
)
def shards(answer, rng, device):
    world = rng.randint(2, 4)
    compare(answer, rng, world * rng.randint(4, 9), world, hint=SEED)


@check(
    "each epoch has its own order",
    holds="The order of all samples is torch.randperm with a generator seeded with seed + epoch.",
    both_sides=True,
)
def epochs(answer, rng, device):
    n, seed = 2 * rng.randint(10, 20), rng.randint(0, 99)
    g = torch.Generator()
    for epoch in range(3):
        order = torch.randperm(n, generator=g.manual_seed(seed + epoch)).tolist()
        got = answer.shard(n, 1, 2, epoch, seed, False)
        expect_equal(
            got,
            order[1::2],
            name=f"the shard of rank 1 in epoch {epoch}",
            hint="The generator is seeded anew in each call, with seed + epoch.",
        )


@check(
    "the order is repeated from its front",
    holds="If world does not divide n, the order is repeated from its front until it does.",
)
def padded(answer, rng, device):
    world = rng.randint(2, 4)
    n = world * rng.randint(3, 6) + rng.randint(1, world - 1)
    compare(answer, rng, n, world, hint=FRONT)


@check("the tail is cut off", holds="With drop_last the tail is cut off instead.")
def dropped(answer, rng, device):
    world = rng.randint(2, 4)
    n = world * rng.randint(3, 6) + rng.randint(1, world - 1)
    hint = "With drop_last each rank has n // world samples, and nothing is repeated."
    compare(answer, rng, n, world, drop_last=True, hint=hint)


@check("fewer samples than ranks", holds="There may be fewer samples than ranks", side="repeated")
def few(answer, rng, device):
    hint = "One copy of the order may be too short: repeat until `world` divides its length."
    compare(answer, rng, rng.randint(1, 2), rng.randint(5, 7), hint=hint)


@check(
    "fewer samples than ranks, the tail dropped",
    holds="with drop_last each shard is then empty",
    side="dropped",
)
def few_dropped(answer, rng, device):
    hint = "n // world is 0 here: the whole order is the tail."
    compare(answer, rng, rng.randint(1, 2), rng.randint(5, 7), drop_last=True, hint=hint)


@check(
    "the global generator stays as it was",
    holds="The state of torch's global generator stays as it was.",
)
def untouched(answer, rng, device):
    before = torch.get_rng_state()
    answer.shard(rng.randint(8, 12), 0, 2, rng.randint(0, 3), rng.randint(0, 99), False)
    expect_true(
        torch.equal(before, torch.get_rng_state()),
        "shard has changed the state of torch's global generator",
        hint="torch.manual_seed seeds the generator that the whole program draws from. "
        "Make one of your own: torch.Generator().manual_seed(...).",
    )


@check("built by hand", holds="without using it")
def by_hand(answer, rng, device):
    def refuse(*_, **__):
        fail("shard uses DistributedSampler, and it is what you are to build")

    init = DistributedSampler.__init__
    DistributedSampler.__init__ = refuse
    try:
        answer.shard(rng.randint(8, 12), 0, 2, 1, 0, False)
    finally:
        DistributedSampler.__init__ = init


def order_of(n, seed):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).tolist()


@mutant("forgets the epoch", caught_by=epochs)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed)
    total = n // world * world if drop_last else -(-n // world) * world
    return (order * world)[:total][rank::world]


@mutant("puts the rank into the seed", caught_by=shards)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch + rank)
    total = n // world * world if drop_last else -(-n // world) * world
    return (order * world)[:total][rank::world]


@mutant("deals out blocks", caught_by=shards)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch)
    total = n // world * world if drop_last else -(-n // world) * world
    size = total // world
    return (order * world)[rank * size : (rank + 1) * size]


@mutant("does not pad", caught_by=padded)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch)
    return (order[: n // world * world] if drop_last else order)[rank::world]


@mutant("always drops", caught_by=padded)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    return order_of(n, seed + epoch)[: n // world * world][rank::world]


@mutant("never drops", caught_by=dropped)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    return (order_of(n, seed + epoch) * world)[: -(-n // world) * world][rank::world]


@mutant("gives each rank a sample at least", caught_by=few_dropped)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch)
    each = max(1, n // world) if drop_last else -(-n // world)
    return [order[(rank + i * world) % n] for i in range(each)]


@mutant("seeds the global generator", caught_by=untouched)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    torch.manual_seed(seed + epoch)
    order = torch.randperm(n).tolist()
    each = n // world if drop_last else -(-n // world)
    return [order[(rank + i * world) % n] for i in range(each)]


@mutant("repeats the last index", caught_by=padded)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch)
    if drop_last:
        return order[: n // world * world][rank::world]
    return (order + order[-1:] * (-n % world))[rank::world]


@mutant("repeats the order once at most", caught_by=few)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = order_of(n, seed + epoch)
    total = n // world * world if drop_last else -(-n // world) * world
    return (order + order)[:total][rank::world]


@mutant("asks DistributedSampler", caught_by=by_hand)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    sampler = DistributedSampler(range(n), world, rank, seed=seed, drop_last=drop_last)
    sampler.set_epoch(epoch)
    return list(sampler)


@hinted(1, reaches=epochs)
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    return order[rank::world]


@accepted("counts positions modulo n")
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    g = torch.Generator()
    g.manual_seed(seed + epoch)
    order = torch.randperm(n, generator=g)
    each = n // world if drop_last else (n + world - 1) // world
    return order[torch.arange(each * world) % n][rank::world].tolist()


@accepted("draws from the global generator, in a fork of it")
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    with torch.random.fork_rng():
        torch.manual_seed(seed + epoch)
        order = torch.randperm(n).tolist()
    each = n // world if drop_last else -(-n // world)
    return [order[(rank + i * world) % n] for i in range(each)]


@accepted("walks along the order")
def shard(n, rank, world, epoch, seed=0, drop_last=False):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch)).tolist()
    while n % world and len(order) % world:
        if drop_last:
            order.pop()
        else:
            order.append(order[len(order) - n])
    return [i for place, i in enumerate(order) if place % world == rank]
