"""Judges lessons/03_maths/07_random_generators.md."""

import builtins
import hashlib
import os
import random
from unittest import mock

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    fail,
    hinted,
    mutant,
)

background("A training run makes two choices that must be repeatable")

OTHERS = "Python's random", "NumPy's global generator"
ODD = (31, 37, 101, 997, 1009, 7919, 9973, 10007, 65537, 99991, 100003, 1000003, 10**9 + 7)
"""Factors with which people make one number of two."""


def parts(answer, n, frac, seed):
    """What split returns: two 1-D int64 tensors on the CPU."""
    got = answer.split(n, frac, seed)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        fail("split returns two tensors")
    for name, part in zip(("the first part", "the second part"), got, strict=True):
        expect_dtype(part, torch.int64, name=name, hint="Indices are int64.")
        expect_true(part.ndim == 1, f"{name} has {part.ndim} dimensions, 1 is wanted")
        on_cpu(name, part)
    return got


def on_cpu(name, tensor):
    expect_true(
        tensor.device.type == "cpu",
        f"{name} is on {tensor.device}",
        hint="Drawn on the CPU, the numbers are the same on every machine.",
    )


def order_of(answer, n, seed, epoch):
    """What epoch_order returns: an order of 0 to n - 1."""
    got = answer.epoch_order(n, seed, epoch)
    expect_shape(got, (n,), name="the order")
    expect_dtype(got, torch.int64, name="the order")
    on_cpu("the order", got)
    expect_equal(
        got.sort().values,
        torch.arange(n),
        name="the order, sorted,",
        hint="An epoch visits every sample once.",
    )
    return got


def states(device):
    """Where every stream stands that a program may have drawn from."""
    kept = {
        "torch's default generator": torch.get_rng_state().tolist(),
        "Python's random": random.getstate(),
        "NumPy's global generator": tuple(map(str, np.random.get_state())),
    }
    if device.type == "cuda":
        kept["the GPU's default generator"] = torch.cuda.get_rng_state(device).tolist()
    return kept


def leaves_alone(call, device):
    """`call` moves no stream of the caller's."""
    torch.rand(3)  # a stream that stands where its seed put it could be put back by that seed
    random.random()
    np.random.rand()
    before = states(device)
    call()
    seeded = "`torch.manual_seed` sends the default generator back to a start, for everybody. "
    for name, state in states(device).items():
        expect_true(
            state == before[name],
            f"{name} is not where it was before the call",
            hint=("" if name in OTHERS else seeded) + "Draw from a torch.Generator of your own.",
        )


def seed_of(rng):
    return rng.randrange(2**32)


@check(
    "split: every number is in exactly one part",
    holds=[
        "Write split and epoch_order.",
        "each number is in exactly one",
        "returns: two 1-D int64 tensors on the CPU",
    ],
    both_sides=True,
)
def partition(answer, rng, device):
    n = rng.randrange(30, 80)
    first, second = parts(answer, n, rng.uniform(0.3, 0.7), seed_of(rng))
    for name, part in (("first", first), ("second", second)):
        expect_true(
            len(part.unique()) == len(part),
            f"a number is in the {name} part twice",
            hint="`randint` draws each number without a thought for those before it. "
            "`randperm` draws an order: each number once.",
        )
    hint = "Two orders that were drawn one after the other know nothing of each other. Draw one, "
    hint += "and cut it."
    both = torch.cat([first, second]).sort().values
    name = "both parts together, sorted,"
    expect_equal(both, torch.arange(n), name=name, hint=hint, shape_hint=hint)


@check(
    "split: the first part has int(n * frac) numbers",
    holds=[
        "of int(n * frac) and of the remaining numbers",
        "n: an int, 0 or more",
        "frac: the share of the first part, from 0 to 1",
    ],
    both_sides=True,
)
def sizes(answer, rng, device):
    n = rng.randrange(20, 60)
    for size, frac in (
        (7, 0.5),
        (100, 0.29),
        (n, rng.random()),
        (n, 0.0),
        (n, 1.0),
        (1, 0.9),
        (0, 0.5),
    ):
        first, second = parts(answer, size, frac, seed_of(rng))
        expect_equal(
            [len(first), len(second)],
            [int(size * frac), size - int(size * frac)],
            name=f"the sizes of the parts for n = {size}, frac = {frac:.3g}",
            hint="int() rounds down, and what is not in the first part is in the second.",
        )


@check(
    "split: the parts are mixed",
    holds="Divide the numbers 0 to n - 1 into two parts at random.",
)
def mixed(answer, rng, device):
    n = 200
    first, _ = parts(answer, n, 0.5, seed_of(rng))
    inside = torch.zeros(n, dtype=torch.bool)
    inside[first] = True
    changes = (inside != inside.roll(1)).sum().item()
    expect_true(
        changes > n // 4,
        f"from 0 to {n - 1}, the numbers change sides only {changes} times",
        hint="Data files are often sorted. A cut through the numbers as they stand holds out "
        "what is alike.",
    )
    where, kinds = torch.zeros(20), set()
    for seed in range(100):
        first, _ = parts(answer, 20, 0.5, seed)
        where[first] += 1
        kinds.add(tuple(sorted(first.tolist())))
    expect_true(
        len(kinds) > 1,
        "100 seeds give the same first part",
        hint="A Generator without manual_seed begins at a constant. The seed must reach it.",
    )
    least, most = int(where.min()), int(where.max())
    expect_true(
        least > 25 and most < 75,
        "of 100 seeds, half of 20 numbers: one number is in the first part "
        f"{least} times, another {most} times",
        hint="Each number should have the same chance, about 50 of 100.",
    )
    expect_true(
        len(kinds) > 90,
        f"100 seeds have only {len(kinds)} different first parts of 10 out of 20 numbers",
        hint="A random place or step leaves the numbers in a pattern. Draw an order of all.",
    )


@check(
    "split: the seed decides, and nothing else",
    holds=["Both are pure functions of their arguments.", "seed: an int, from 0 to 2**32 - 1"],
    side="split",
)
def repeatable(answer, rng, device):
    n = rng.randrange(40, 80)
    for seed in (0, 2**32 - 1, seed_of(rng)):
        first, _ = parts(answer, n, 0.5, seed)
        torch.rand(rng.randrange(1, 9))
        random.random()
        np.random.rand()
        again, _ = parts(answer, n, 0.5, seed)
        expect_equal(
            again,
            first,
            name=f"the first part for the seed {seed}, asked for again,",
            hint="The same arguments must give the same parts, whatever was drawn in between. 0 "
            "is a seed like any other.",
        )
    for other in ((seed + 1) % 2**32, seed // 2 + 1):
        part, _ = parts(answer, n, 0.5, other)
        expect_true(
            not torch.equal(part.sort().values, first.sort().values),
            f"the seeds {seed} and {other} give the same parts",
            hint="A Generator without manual_seed begins at a constant. The seed must reach it.",
        )


@check(
    "split: the caller's streams stay where they were",
    holds="Both leave the streams of the caller where they were: torch's, NumPy's and Python's.",
    side="split",
)
def split_alone(answer, rng, device):
    leaves_alone(lambda: answer.split(rng.randrange(9, 50), 0.5, seed_of(rng)), device)


@check(
    "epoch_order: every sample is visited once",
    holds=[
        "returns: (n,) int64 on the CPU, each of 0 to n - 1 once",
        "The order in which an epoch visits n samples.",
    ],
    both_sides=True,
)
def permutation(answer, rng, device):
    for n in (rng.randrange(20, 60), 1, 0):
        order_of(answer, n, seed_of(rng), rng.randrange(5))


@check(
    "epoch_order: an epoch does not depend on the ones before",
    holds=[
        "Training resumes at epoch 7, so epoch 7 must not depend on the earlier ones",
        "Both are pure functions of their arguments.",
    ],
    side="epoch_order",
)
def resumable(answer, rng, device):
    n, seed = rng.randrange(30, 60), seed_of(rng)
    orders = [order_of(answer, n, seed, epoch) for epoch in range(4)]
    torch.rand(rng.randrange(1, 9))
    random.random()
    np.random.rand()
    for epoch in (3, 0, 2):
        expect_equal(
            order_of(answer, n, seed, epoch),
            orders[epoch],
            name=f"the order of epoch {epoch}, asked for again,",
            hint="After a restart nobody has drawn the earlier epochs. Begin at the seed each "
            "time.",
        )


@check(
    "epoch_order: each epoch has an order of its own",
    holds="n, seed: as above; epoch: an int, 0 or more",
    both_sides=True,
)
def epochs_differ(answer, rng, device):
    n = rng.randrange(30, 60)
    for seed in (seed_of(rng), 0):
        start, later = (order_of(answer, n, seed, epoch) for epoch in (0, n))
        expect_true(
            not torch.equal(start, later),
            f"epoch {n} has the order of epoch 0, for {n} samples",
            hint="An order that is turned by the epoch is back after n of them, and in all of "
            "them each sample follows the same one. Draw each epoch anew.",
        )
        seen = {tuple(order_of(answer, n, seed, epoch).tolist()) for epoch in range(6)}
        expect_true(
            len(seen) == 6,
            f"with the seed {seed}, 6 epochs have only {len(seen)} different orders",
            hint="The epoch must have a say, too, also where the seed is 0.",
        )


def noted_order(answer, n, seed, epoch):
    """The order, and the numbers that torch's generators are seeded with on the way."""
    noted = []
    seed_all = torch.manual_seed

    class Noted(torch.Generator):
        def manual_seed(self, number):
            noted.append(number)
            return super().manual_seed(number)

    def noted_seed(number):
        noted.append(number)
        return seed_all(number)

    with (
        mock.patch.object(torch, "Generator", Noted),
        mock.patch.object(torch, "manual_seed", noted_seed),
    ):
        return order_of(answer, n, seed, epoch), noted


@check(
    "epoch_order: no epoch of another seed is the same",
    holds="No two pairs (seed, epoch) have the same order, chance apart.",
)
def seeds_apart(answer, rng, device):
    n, seed = rng.randrange(30, 60), rng.choice((0, 1))
    pairs = [(seed + i, epoch) for i in range(5) for epoch in range(5)]
    pairs += [(0, 1), (1, 11), (11, 1), (6, 12), (12, 6)]
    pairs += [(0, many) for many in (100, 128, 1000, 1024)]  # a multiplier is not enough
    pairs += [(2**bits, 0) for bits in (8, 16, 20, 24, 26, 29, 31)]  # an even one shifts bits out
    for factor in ODD:
        pairs += [(factor, 0), (pow(factor, -1, 2**32), 0)]  # seed + factor * 1, factor * seed + 1
    mixed = "From one number that is made of two, nobody can tell which two they were."
    seen = {}
    for pair in dict.fromkeys(pairs):
        order = tuple(order_of(answer, n, *pair).tolist())
        other = seen.get(order, pair)
        hint = "The seed must have a say, too." if other[1] == pair[1] else mixed
        if order == tuple(range(n)):
            hint = "Both are 0 to n - 1, unshuffled. Epoch 0 needs a draw as well: epoch + 1 draws."
        expect_true(
            order not in seen,
            f"seed {pair[0]}, epoch {pair[1]} has the order of seed {other[0]}, epoch {other[1]}",
            hint=hint,
        )
        seen[order] = pair
    for first, second in ((0, 1), (3, 2)):
        seed = seed_of(rng)
        order, used = noted_order(answer, n, seed, first)
        _, others = noted_order(answer, n, seed, second)
        for a, b in zip(used, others, strict=False):
            for other in ((seed + a - b) % 2**32, seed ^ (a % 2**32) ^ (b % 2**32)):
                expect_true(
                    not torch.equal(order_of(answer, n, other, second), order),
                    f"seed {seed}, epoch {first} has the order of seed {other}, epoch {second}",
                    hint=mixed,
                )


@check(
    "epoch_order: the caller's streams stay where they were",
    holds="Both leave the streams of the caller where they were: torch's, NumPy's and Python's.",
    side="epoch_order",
)
def order_alone(answer, rng, device):
    leaves_alone(lambda: answer.epoch_order(rng.randrange(9, 50), seed_of(rng), 2), device)


HASH = hash


def salted(value):
    """hash(value) as another process could have it: strings have another one in each."""
    own = HASH(value)
    return own ^ 0x5DEECE66D if "'" in repr(value) or '"' in repr(value) else own


@check(
    "another process gets the same",
    holds="They give the same in another process, however much anyone else has drawn.",
)
def other_process(answer, rng, device):
    n, seed, epoch = rng.randrange(30, 60), seed_of(rng), rng.randrange(4)
    calls = (
        ("split", lambda: parts(answer, n, 0.5, seed)[0]),
        ("epoch_order", lambda: order_of(answer, n, seed, epoch)),
    )
    for name, call in calls:
        here = call()
        torch.manual_seed(seed_of(rng))
        with (
            mock.patch.object(builtins, "hash", salted),
            mock.patch.object(builtins, "id", return_value=12345),
            mock.patch.object(os, "getpid", return_value=999_999),
        ):
            there = call()
        expect_equal(
            there,
            here,
            name=f"what {name} returns in another process",
            hint="hash() of a string, id() and the number of the process differ between "
            "processes. The run that resumes would get other samples.",
        )


def cut(order, frac):
    k = int(len(order) * frac)
    return order[:k], order[k:]


@mutant("seeds the default generator", caught_by=split_alone)
def split(n, frac, seed):
    torch.manual_seed(seed)
    return cut(torch.randperm(n), frac)


@mutant("draws two orders", caught_by=partition)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(seed)
    k = int(n * frac)
    return torch.randperm(n, generator=g)[:k], torch.randperm(n, generator=g)[k:]


@mutant("draws numbers that may repeat", caught_by=partition)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(seed)
    return cut(torch.randint(max(n, 1), (n,), generator=g), frac)


@mutant("does not seed its generator", caught_by=repeatable)
def split(n, frac, seed):
    return cut(torch.randperm(n, generator=torch.Generator()), frac)


@mutant("takes the seed 0 for no seed", caught_by=repeatable)
def split(n, frac, seed, g=torch.Generator()):  # noqa: B008
    return cut(torch.randperm(n, generator=g.manual_seed(seed) if seed else g), frac)


@mutant("seeds its generator and does not pass it on", caught_by=repeatable)
def split(n, frac, seed):
    torch.Generator().manual_seed(seed)
    return cut(torch.randperm(n), frac)


@mutant("rounds to the nearest", caught_by=sizes)
def split(n, frac, seed):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    k = round(n * frac)
    return order[:k], order[k:]


@mutant("counts the second part from behind", caught_by=sizes)
def split(n, frac, seed):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    k = int(n * frac)
    return order[:k], order[-(n - k) :]


@mutant("cuts at a random place", caught_by=mixed)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(seed)
    start = int(torch.randint(max(n, 1), (), generator=g))
    return cut(torch.arange(n).roll(start), frac)


@mutant("does not shuffle", caught_by=mixed)
def split(n, frac, seed):
    return cut(torch.arange(n), frac)


@mutant("seeds with the hash of a string", caught_by=other_process)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(hash(f"split {seed}") % 2**32)
    return cut(torch.randperm(n, generator=g), frac)


@mutant("picks every second number, from a random place", caught_by=mixed)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(seed)
    start = int(torch.randint(max(n, 1), (), generator=g))
    order = torch.arange(n).roll(start)
    return cut(torch.cat([order[::2], order[1::2]]), frac)


@mutant("holds out the large numbers more often", caught_by=mixed)
def split(n, frac, seed):
    g = torch.Generator().manual_seed(seed)
    weights = 1 / (1 + torch.arange(float(n)))
    order = torch.multinomial(weights, n, generator=g) if n else torch.arange(0)
    return cut(order, frac)


@mutant("puts the default generator back by its old seed", caught_by=split_alone)
def split(n, frac, seed):
    old = torch.initial_seed()
    torch.manual_seed(seed)
    order = torch.randperm(n)
    torch.manual_seed(old)
    return cut(order, frac)


@mutant("uses NumPy's global generator", caught_by=split_alone)
def split(n, frac, seed):
    np.random.seed(seed)
    return cut(torch.from_numpy(np.random.permutation(n)).long(), frac)


@mutant("adds seed and epoch", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed + epoch))


@mutant("adds a random number of the epoch to the seed", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(epoch)
    more = torch.randint(2**31, (), generator=g).item()
    return torch.randperm(n, generator=torch.Generator().manual_seed((seed + more) % 2**32))


@mutant("multiplies seed and epoch", caught_by=epochs_differ)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * epoch))


@mutant("gives each seed a thousand epochs", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * 1000 + epoch))


@mutant("gives each seed a million epochs", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * 10**6 + epoch))


@mutant("multiplies by a prime", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed * 1000003 + epoch))


@mutant("adds a prime for each epoch", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed + 1000003 * epoch))


@mutant("puts the seed above the lower 16 bits", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed((seed << 16) + epoch))


@mutant("puts the seed above the lower 32 bits", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed((seed << 32) + epoch))


@mutant("turns the first order", caught_by=epochs_differ)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed)).roll(epoch)


@mutant("writes seed and epoch side by side", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(int(f"{seed}{epoch}"))
    return torch.randperm(n, generator=g)


@mutant("ignores the epoch", caught_by=epochs_differ)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed))


@mutant("ignores the seed", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(epoch))


@mutant("goes on where the last call stopped", caught_by=resumable)
def epoch_order(n, seed, epoch, streams={}):  # noqa: B006
    g = streams.setdefault(seed, torch.Generator().manual_seed(seed))
    return torch.randperm(n, generator=g)


@mutant("seeds with the hash of a pair and a string", caught_by=other_process)
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(hash(("epoch", seed, epoch)) % 2**32)
    return torch.randperm(n, generator=g)


@mutant("seeds NumPy's global generator with the pair", caught_by=order_alone)
def epoch_order(n, seed, epoch):
    np.random.seed([seed, epoch])
    return torch.from_numpy(np.random.permutation(n)).long()


@mutant("does not shuffle epoch 0", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    g, order = torch.Generator().manual_seed(seed), torch.arange(n)
    for _ in range(epoch):
        order = torch.randperm(n, generator=g)
    return order


@mutant("XORs seed and epoch", caught_by=seeds_apart)
def epoch_order(n, seed, epoch):
    return torch.randperm(n, generator=torch.Generator().manual_seed(seed ^ epoch))


@mutant("seeds the default generator again", caught_by=order_alone)
def epoch_order(n, seed, epoch):
    torch.manual_seed(seed)
    for _ in range(epoch + 1):
        order = torch.randperm(n)
    return order


@mutant("shuffles with Python's global generator", caught_by=order_alone)
def epoch_order(n, seed, epoch):
    random.seed(f"{seed}, {epoch}")
    order = list(range(n))
    random.shuffle(order)
    return torch.tensor(order, dtype=torch.int64)


@mutant("picks with replacement", caught_by=permutation)
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(seed)
    for _ in range(epoch + 1):
        order = torch.randint(max(n, 1), (n,), generator=g)
    return order


@hinted(1, reaches=split_alone)
def split(n, frac, seed):
    order = torch.randperm(n, generator=torch.Generator().manual_seed(seed))
    k = int(n * frac)
    return order[:k], order[k:]


@accepted("draws a mask of places")
def split(n, frac, seed):
    g = torch.Generator("cpu")
    g.manual_seed(seed)
    first = torch.zeros(n, dtype=torch.bool)
    first[torch.randperm(n, generator=g)[: int(n * frac)]] = True
    return first.nonzero().flatten(), (~first).nonzero().flatten()


@accepted("sorts random keys")
def split(n, frac, seed):
    keys = torch.rand(n, generator=torch.Generator().manual_seed(seed))
    order = keys.argsort()
    k = int(n * frac)
    return order[:k].sort().values, order[k:].sort().values


@accepted("shuffles with a random.Random")
def split(n, frac, seed):
    order = list(range(n))
    random.Random(seed).shuffle(order)
    return cut(torch.tensor(order, dtype=torch.int64), frac)


@accepted("draws a seed for each epoch")
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(seed)
    seeds = torch.randint(2**62, (epoch + 1,), generator=g)
    return torch.randperm(n, generator=g.manual_seed(seeds[-1].item()))


@accepted("hashes the pair's text with SHA")
def epoch_order(n, seed, epoch):
    digest = hashlib.sha256(f"{seed}, {epoch}".encode()).digest()
    g = torch.Generator().manual_seed(int.from_bytes(digest[:4], "little"))
    return torch.randperm(n, generator=g)


@accepted("draws an order of the order at each epoch")
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(seed)
    order = torch.arange(n)
    for _ in range(epoch + 1):
        order = order[torch.randperm(n, generator=g)]
    return order


@accepted("hashes the pair")
def epoch_order(n, seed, epoch):
    g = torch.Generator().manual_seed(hash((seed, epoch)) % 2**63)
    return torch.randperm(n, generator=g)


@accepted("puts the default generator back")
def epoch_order(n, seed, epoch):
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(seed)
        return torch.stack([torch.randperm(n) for _ in range(epoch + 1)])[-1]


@accepted("shuffles with a random.Random of the pair")
def epoch_order(n, seed, epoch):
    order = list(range(n))
    random.Random(f"{seed}, {epoch}").shuffle(order)
    return torch.tensor(order, dtype=torch.int64)


@accepted("asks NumPy for a stream of the pair")
def epoch_order(n, seed, epoch):
    return torch.from_numpy(np.random.default_rng([seed, epoch]).permutation(n)).long()


equivalent(
    "for _ in range(epoch + 1):",
    "for _ in range(epoch + 2):",
    because="Any number of draws that grows with the epoch gives each epoch an order of its own.",
)
