"""Judges lessons/09_data/02_dataloader.md."""

import builtins
import hashlib
import os
import random
from unittest import mock

import numpy as np
import torch
from torch.overrides import TorchFunctionMode

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_dtype,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background("And of its seed, a generator on the CPU uses the low 32 bits alone.")

shows = ["maths/random_generators"]

STATE = "Draw from a torch.Generator of your own: `manual_seed` without one sends the default "
STATE += "generator back to a start, for everybody."
PAIRS = (
    "The seed names a stream, the epoch a place in it. A sum or an XOR of the two does not keep "
    "them apart, whatever factor is before either: a generator uses only the low 32 bits of what "
    "it is seeded with."
)


def indices(answer, n, bs, shuffle=False, drop_last=False, seed=0, epoch=0):
    """What batches returns: a list of 1-D int64 tensors on the CPU, here as lists of ints."""
    got = answer.batches(n, bs, shuffle, drop_last, seed, epoch)
    if not isinstance(got, list):
        fail(f"batches returns a {type(got).__name__}, a list is wanted")
    for number, batch in enumerate(got):
        name = f"batch {number} for n = {n}, bs = {bs}"
        expect_dtype(batch, torch.int64, name=name, hint="Indices are int64.")
        expect_true(batch.ndim == 1, f"{name} has {batch.ndim} dimensions, 1 is wanted")
        expect_true(batch.device.type == "cpu", f"{name} is on {batch.device}")
        expect_true(len(batch) > 0, f"{name} is empty", hint="Only batches with samples count.")
    return [batch.tolist() for batch in got]


def flat(batches):
    return [index for batch in batches for index in batch]


def cut(n, bs, drop_last):
    """The batches without shuffling."""
    parts = [list(range(k, min(k + bs, n))) for k in range(0, n, bs)]
    return [part for part in parts if len(part) == bs or not drop_last]


def seed_of(rng):
    return rng.randrange(2**32)


def same(rng, answer, drop_last, cases, hint):
    for n, bs in cases:
        got = indices(answer, n, bs, False, drop_last, seed_of(rng), rng.randrange(5))
        expect_equal(got, cut(n, bs, drop_last), name=f"the list for n = {n}, bs = {bs}", hint=hint)


@check(
    "without shuffling: in order, a smaller last batch included",
    holds=[
        "batches returns the indices of every batch of an epoch",
        "list of 1-D int64 tensors on the CPU",
        "False: the numbers 0 to n - 1 in order",
        "bs: batch size, 1 or more",
    ],
    both_sides=True,
)
def in_order(answer, rng, device):
    bs = rng.randrange(3, 9)
    k = rng.randrange(2, 6)
    cases = ((k * bs + 1, bs), (k * bs + bs - 1, bs), (k * bs, bs), (bs - 1, bs), (bs, 1), (1, 1))
    cases += ((bs, bs), (1, 10**4))
    same(rng, answer, False, cases, "ceil(n / bs) batches: what is left over makes one more.")


@check(
    "drop_last leaves out a smaller last batch, and no other",
    holds="drop_last: leave out a last batch of fewer than bs",
)
def dropped(answer, rng, device):
    bs = rng.randrange(3, 9)
    k = rng.randrange(2, 6)
    cases = ((k * bs + 1, bs), (k * bs - 1, bs), (k * bs, bs), (bs - 1, bs), (bs, 1), (1, 1))
    cases += ((bs, bs), (1, 10**4))
    same(rng, answer, True, cases, "floor(n / bs) batches, all of them of bs samples.")


@check(
    "no samples, no batches",
    holds=["none of them empty; n = 0 gives an empty list", "n: number of samples, 0 or more"],
    both_sides=True,
)
def nothing(answer, rng, device):
    for shuffle in (False, True):
        for drop_last in (False, True):
            got = indices(answer, 0, 4, shuffle, drop_last, seed_of(rng), 1)
            expect_equal(got, [], name="for n = 0, the list", hint="There is nothing to cut.")


@check(
    "shuffled: every sample once, in batches of the same sizes",
    holds=["batches returns the indices of every batch of an epoch", "True: in an order"],
)
def once(answer, rng, device):
    for n, bs in ((rng.randrange(40, 90), 7), (64, 16), (5, 8), (1, 1)):
        got = indices(answer, n, bs, True, False, seed_of(rng), rng.randrange(4))
        expect_equal(
            [len(batch) for batch in got],
            [len(b) for b in cut(n, bs, False)],
            name=f"the list of sizes for n = {n}, bs = {bs}",
            hint="Batches of bs, and one more if something is left over.",
        )
        expect_equal(
            sorted(flat(got)),
            list(range(n)),
            name=f"for n = {n}, the list of all indices, sorted,",
            hint="An epoch visits every sample once: draw an order, not single indices.",
        )
        got = indices(answer, n, bs, True, True, seed_of(rng), rng.randrange(4))
        visited = flat(got)
        expect_equal(
            [len(batch) for batch in got],
            [len(b) for b in cut(n, bs, True)],
            name="the sizes with drop_last",
        )
        expect_true(
            len(set(visited)) == len(visited) and set(visited) <= set(range(n)),
            "with drop_last, a sample came twice",
            hint="An epoch visits no sample twice.",
        )


@check("shuffled: samples change their batch, and batches their place", holds="True: in an order")
def mixed(answer, rng, device):
    n, bs = 80, 8
    got = indices(answer, n, bs, True, False, seed_of(rng), rng.randrange(3))
    plain = cut(n, bs, False)
    members = {tuple(sorted(batch)) for batch in got}
    together = members & {tuple(batch) for batch in plain}
    expect_true(
        not together,
        "samples that are neighbours in the dataset are still in one batch",
        hint="Shuffle the samples before they are cut into batches.",
    )
    expect_true(
        any(batch != sorted(batch) for batch in got), "inside the batches, the order is not mixed"
    )
    with_drop = indices(answer, n, bs, True, True, seed_of(rng), rng.randrange(3))
    expect_true(with_drop != plain, "with drop_last, nothing is shuffled")


@check(
    "the same arguments give the same batches",
    holds=[
        "as a function without a state",
        "A run that resumes asks for epoch 7 without epochs 0 to 6, and gets what it would have",
        "The same arguments give the same batches",
    ],
)
def repeatable(answer, rng, device):
    seed = seed_of(rng)
    epochs = [0, 1, 7, 2]
    torch.manual_seed(seed_of(rng))
    first = {epoch: indices(answer, 50, 8, True, False, seed, epoch) for epoch in epochs}
    torch.manual_seed(seed_of(rng))
    random.seed(seed_of(rng))
    np.random.seed(seed_of(rng))
    for epoch in rng.sample(epochs, len(epochs)):
        expect_equal(
            indices(answer, 50, 8, True, False, seed, epoch),
            first[epoch],
            name=f"epoch {epoch}, asked for again,",
            hint="The order depends on something else: on the default generator, on an earlier "
            "call. Resuming at this epoch would give other batches.",
        )


@check(
    "the size of a batch does not change the order",
    holds="in an order that n, seed and epoch alone decide",
)
def alone(answer, rng, device):
    seed, epoch = seed_of(rng), rng.randrange(1, 4)
    whole = flat(indices(answer, 50, 8, True, False, seed, epoch))
    for bs, drop_last in ((7, False), (8, True), (50, False), (1, True)):
        got = flat(indices(answer, 50, bs, True, drop_last, seed, epoch))
        expect_equal(
            got,
            whole[: len(got)],
            name=f"the order with bs = {bs}, drop_last = {drop_last}",
            hint="Draw the order of all n samples, then cut it: bs and drop_last say where.",
        )


def salted(value):
    """hash(value) as another process could have it: strings have another one in each."""
    own = HASH(value)
    return own ^ 0x5DEECE66D if "'" in repr(value) or '"' in repr(value) else own


HASH = hash


@check("another process gets the same batches", holds="in another process too")
def other_process(answer, rng, device):
    hint = "hash() of a string, id() and the process's number differ from process to process: the "
    hint += "run that resumes would get other batches."
    for seed, epoch in ((seed_of(rng), 0), (seed_of(rng), 3)):
        here = indices(answer, 50, 8, True, False, seed, epoch)
        with (
            mock.patch.object(builtins, "hash", salted),
            mock.patch.object(builtins, "id", return_value=12345),
            mock.patch.object(os, "getpid", return_value=999_999),
        ):
            there = answer.batches(50, 8, True, False, seed, epoch)
        there = [batch.tolist() for batch in there]
        expect_equal(there, here, name=f"epoch {epoch} in another process", hint=hint)


class Seeds(TorchFunctionMode):
    """Notes the seed of each generator that a torch function draws from. Others draw nothing."""

    drawing = frozenset(
        ("rand", "randint", "randn", "randperm", "multinomial", "random_", "uniform_", "normal_")
    )

    def __init__(self):
        super().__init__()
        self.noted = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if getattr(function, "__name__", "") in self.drawing:
            generator = kwargs.get("generator")
            seed = torch.initial_seed() if generator is None else generator.initial_seed()
            self.noted.append(seed % 2**32)
        return function(*args, **kwargs)


def number_of(answer, seed, epoch):
    """The low 32 bits of the seed of what the order is drawn from; None if nothing is seen."""
    with Seeds() as seeds:
        answer.batches(2, 2, True, False, seed, epoch)
    return (seeds.noted or [None])[-1]


def inverse(number, wanted, most=16):
    """Seeds whose `number` has the same low 32 bits as `wanted`, found bit by bit.

    The low bits of sums, products, XORs and shifts to the left depend on low bits alone, so one
    finds such seeds; of a digest one finds none. A halved product depends on one bit more.
    """
    seeds = [0]
    for bit in range(32):
        grown = [seed + (one << bit) for seed in seeds for one in (0, 1)]
        seeds = [seed for seed in grown if (number(seed) - wanted) % 2**bit == 0][:most]
    return {seed for seed in seeds if (number(seed) - wanted) % 2**32 == 0}


@check(
    "no seed in epoch 0 has the order of another epoch",
    holds=[
        "seed + epoch is not the way",
        "A factor, as in seed * 1000 + epoch, only moves that clash, and so does an XOR.",
        "that no other pair (seed, epoch) has",
    ],
)
def mixed_seeds(answer, rng, device):
    for seed, epoch in ((0, 1), (seed_of(rng), 2), (seed_of(rng), 5)):
        used = number_of(answer, seed, epoch)
        if used in (None, number_of(answer, seed, 0)):
            continue  # one stream for all epochs
        order = indices(answer, 60, 7, True, False, seed, epoch)
        others = {used, *inverse(lambda s: number_of(answer, s, 0), used)}
        for other in sorted(others - {seed}):
            got = indices(answer, 60, 7, True, False, other, 0)
            message = f"seed {other} in epoch 0 has the order of seed {seed} in epoch {epoch}"
            expect_true(got != order, message, hint=PAIRS)


FACTORS = (10, 31, 100, 1000, 1009, 7919, 10**4, 2**16, 10**5, 10**6, 1_000_003, 10**9 + 7)
"""Some of what people multiply a seed with, to add the epoch to it."""


def clash(factor):
    """The seed for which seed * factor is 0 or 1 in its low 32 bits, and which is not 0."""
    twos = (factor & -factor).bit_length() - 1
    return 2 ** (32 - twos) if twos else pow(factor, -1, 2**32)


@check(
    "each epoch and each seed has its own order",
    holds=["that no other pair (seed, epoch) has", "from 0 to 2**32 - 1", "an int, 0 or more"],
    both_sides=True,
)
def pairs(answer, rng, device):
    base = rng.randrange(2**31)
    seeds = {0, 1, 2, base, base + 1, 2**31, 2**32 - 1, *FACTORS, *map(clash, FACTORS)}
    asked = [(0, epoch) for epoch in (10, 31, 100, 1000, 1009, 10**4)]
    asked += [(seed, epoch) for seed in sorted(seeds) for epoch in (0, 1, 2, 5)]
    seen = {}
    for seed, epoch in asked:
        got = tuple(map(tuple, indices(answer, 60, 7, True, False, seed, epoch)))
        other, then = seen.setdefault(got, (seed, epoch))
        message = f"seed {seed} in epoch {epoch} has the order of seed {other} in epoch {then}"
        expect_true((other, then) == (seed, epoch), message, hint=PAIRS)


@check(
    "many epochs over few samples have many orders", holds="that no other pair (seed, epoch) has"
)
def many_epochs(answer, rng, device):
    seed = seed_of(rng)
    orders = {tuple(flat(indices(answer, 7, 3, True, False, seed, e))) for e in range(40)}
    expect_true(
        len(orders) > 30,
        f"40 epochs over 7 samples have {len(orders)} orders, of 5040 that there are",
        hint="An order made from the epoch before, by one permutation again and again or by "
        "rolling, comes back soon. Draw a new one for each epoch.",
    )


@check(
    "no stream of the caller is moved",
    holds="The default generators of torch, NumPy and random stand where they stood.",
)
def streams(answer, rng, device):
    for shuffle in (True, False):
        torch.manual_seed(seed_of(rng))
        torch.rand(3)
        before = torch.get_rng_state()
        others = random.getstate(), tuple(map(str, np.random.get_state()))
        answer.batches(30, 4, shuffle, False, seed_of(rng), 2)
        expect_true(
            torch.equal(torch.get_rng_state(), before),
            f"torch's default generator was moved (shuffle={shuffle})",
            hint=STATE,
        )
        expect_true(
            others == (random.getstate(), tuple(map(str, np.random.get_state()))),
            "the generator of random or of numpy.random was moved",
            hint="They have users too. torch.Generator() is a stream of your own.",
        )


def order_of(n, seed, epoch):
    g = torch.Generator().manual_seed(seed)
    for _ in range(epoch + 1):
        order = torch.randperm(n, generator=g)
    return order


def parts(order, bs, drop_last):
    return [p for p in order.split(bs) if len(p) == bs or (not drop_last and len(p))]


@mutant("knows no epoch", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    return parts(order_of(n, seed, 0) if shuffle else torch.arange(n), bs, drop_last)


@mutant(
    "adds the epoch to the seed",
    caught_by=pairs,
    misconception="maths/random_generators",
    like="adds seed and epoch",
)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    return parts(order_of(n, seed + epoch, 0) if shuffle else torch.arange(n), bs, drop_last)


@mutant("multiplies the seed by 1000 first", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed * 1000 + epoch, 0) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("multiplies the seed by a million first", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed * 10**6 + epoch, 0) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("multiplies the seed by a prime first", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed * (10**9 + 7) + epoch, 0) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("puts the seed above 32 bits", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed * 2**31 * 2 + epoch, 0) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("puts the epoch above 16 bits", caught_by=pairs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed ^ (epoch << 16), 0) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("seeds with the hash of a string", caught_by=other_process)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    g = torch.Generator().manual_seed(hash(f"{seed}/{epoch}") % 2**32)
    order = torch.randperm(n, generator=g) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("mixes seed and epoch by XOR", caught_by=mixed_seeds)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    g = torch.Generator().manual_seed((seed ^ epoch * 0x9E3779B1) % 2**32)
    order = torch.randperm(n, generator=g) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("multiplies by a large odd number", caught_by=mixed_seeds)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, (seed * 2654435761 + epoch * 40503) % 2**32, 0)
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("multiplies both and mixes them by XOR", caught_by=mixed_seeds)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, (seed * 0x9E3779B1) ^ (epoch * 0x85EBCA77), 0)
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("seeds with what Python's hash makes of a tuple with a name", caught_by=other_process)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, hash(("epoch", seed, epoch)) % 2**32, 0)
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("pairs seed and epoch after Cantor", caught_by=mixed_seeds)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, (seed + epoch) * (seed + epoch + 1) // 2 + epoch, 0)
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("applies one permutation again and again", caught_by=many_epochs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    once, order = order_of(n, seed, 0), torch.arange(n)
    for _ in range(epoch + 1 if shuffle else 0):
        order = order[once]
    return parts(order, bs, drop_last)


@mutant("rolls the first order", caught_by=many_epochs)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed, 0).roll(epoch) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@mutant("mixes the size of a batch in", caught_by=alone)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed, epoch * 8 + bs % 8)
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("draws an order for each batch that has passed", caught_by=alone)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = order_of(n, seed, epoch * (n // bs))
    return parts(order if shuffle else torch.arange(n), bs, drop_last)


@mutant("goes on where the last call ended", caught_by=repeatable)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    if epoch == 0 or seed not in STREAMS:
        STREAMS[seed] = torch.Generator().manual_seed(seed)
    order = torch.randperm(n, generator=STREAMS[seed]) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


STREAMS = {}


@mutant("draws single indices", caught_by=once)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    g = torch.Generator().manual_seed(seed)
    order = torch.arange(n)
    if shuffle and n:
        for _ in range(epoch + 1):
            order = torch.randint(n, (n,), generator=g)
    return parts(order, bs, drop_last)


@mutant("always loses the rest", caught_by=in_order)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    return parts(order_of(n, seed, epoch) if shuffle else torch.arange(n), bs, True)


@mutant("drops the last batch, whole or not", caught_by=dropped)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    found = parts(order_of(n, seed, epoch) if shuffle else torch.arange(n), bs, False)
    return found[:-1] if drop_last else found


@mutant("keeps an empty batch", caught_by=nothing)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    found = list((order_of(n, seed, epoch) if shuffle else torch.arange(n)).split(bs))
    if drop_last and len(found[-1]) < bs and n:
        found.pop()
    return found


@mutant("shuffles the batches, not the samples", caught_by=mixed)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    found = parts(torch.arange(n), bs, drop_last)
    if shuffle:
        found = [found[k] for k in order_of(len(found), seed, epoch)]
    return found


@mutant("shuffles inside the batches", caught_by=mixed)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    found = parts(torch.arange(n), bs, drop_last)
    return [p[order_of(len(p), seed, epoch)] for p in found] if shuffle else found


@mutant("seeds the default generator", caught_by=streams)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    torch.manual_seed(seed)
    order = torch.arange(n)
    for _ in range(epoch + 1 if shuffle else 0):
        order = torch.randperm(n)
    return parts(order, bs, drop_last)


@mutant("shuffles from the default generator", caught_by=repeatable)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    state = torch.get_rng_state()
    order = torch.arange(n)
    for _ in range(epoch + 1 if shuffle else 0):
        order = torch.randperm(n)
    torch.set_rng_state(state)
    return parts(order, bs, drop_last)


@accepted("seeds the default generator inside a fence")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    if n == 0:
        return []
    order = torch.arange(n)
    if shuffle:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            for _ in range(epoch + 1):
                order = torch.randperm(n)
    found = list(order.split(bs))
    if drop_last and len(found[-1]) < bs:
        del found[-1]
    return found


@accepted("draws a seed for each epoch from the seed")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = torch.arange(n)
    if shuffle:
        seeds = torch.Generator().manual_seed(seed)
        drawn = torch.randint(2**62, (epoch + 1,), generator=seeds)
        g = torch.Generator().manual_seed(drawn[-1].item() % 2**32)
        order = torch.randperm(n, generator=g)
    count = n // bs if drop_last else -(-n // bs)
    return [order[k * bs : (k + 1) * bs] for k in range(count)]


@accepted("seeds with a digest of both")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    digest = hashlib.sha256(f"{seed}/{epoch}".encode()).digest()
    g = torch.Generator().manual_seed(int.from_bytes(digest[:4], "big"))
    order = torch.randperm(n, generator=g) if shuffle else torch.arange(n)
    return parts(order, bs, drop_last)


@accepted("shuffles a list with a generator of Python's")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = list(range(n))
    if shuffle:
        random.Random(f"{seed} {epoch}").shuffle(order)
    stop = n - n % bs if drop_last else n
    return [torch.tensor(order[k : min(k + bs, stop)]) for k in range(0, stop, bs)]


@accepted("lets NumPy mix seed and epoch")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = np.random.default_rng((seed, epoch)).permutation(n) if shuffle else np.arange(n)
    return parts(torch.from_numpy(order).long(), bs, drop_last)


@accepted("sorts random numbers")
def batches(n, bs, shuffle, drop_last, seed, epoch):
    order = torch.arange(n)
    if shuffle:
        g = torch.Generator().manual_seed(seed)
        for _ in range(epoch + 1):
            order = torch.rand(n, generator=g, dtype=torch.float64).argsort()
    return parts(order, bs, drop_last)


@hinted(1, reaches=in_order)
def batches(n, bs, shuffle, drop_last, seed, epoch):
    torch.manual_seed(seed + epoch)
    order = torch.randperm(n) if shuffle else torch.arange(n)
    return [order[k : k + bs] for k in range(0, n, bs)]


equivalent(
    "for _ in range(epoch + 1):",
    "for _ in range(epoch + 2):",
    because="Every epoch has its own place in the stream, one later: orders as good as these.",
)
