"""Judges lessons/09_data/07_workers_seeding.md."""

import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, get_worker_info

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

shows = ["maths/random_generators"]

background(
    "You move a run from a machine with two cores",
    "The noise of every sample becomes another one",
)

N = 18
COUNT = (
    "With W workers, worker k makes batches k, k + W and so on. Whatever a worker draws one after "
)
COUNT += "the other depends on W. Give each sample a seed of its own, before ds[i] draws."
EPOCH = (
    "The seed of a sample has to follow from seed, epoch and i, each with a say of its own. A sum "
)
EPOCH += "of them is the same for many."
STATE = (
    "Give the loader a generator of its own. Without workers the samples are made in this process "
)
STATE += "with its ds.g: keep its state, and put it back."
ORDER = (
    "The order comes from the sampler, in this process: seed it there. With workers, a new loader "
)
ORDER += (
    "calls iter() of a batch_sampler twice: draw where the first item is asked for, after a yield "
)
ORDER += "or in a sampler=."
BROKEN = (
    "A pass that is broken off after a batch has drawn less than a whole one, if each sample draws "
)
BROKEN += "its seed when its turn comes. Draw the order and all seeds when the pass begins."
LENGTH = "len(loader) asks your sampler for its length: give it a __len__."
CLASS = "Put ds into a dataset of your own, and leave its class as it is."
CONTEXT = "Without workers there is no process to start: multiprocessing_context is for 1 or more."


class Noisy(Dataset):
    """Sample i: i, the process that made it, and two numbers from g."""

    def __init__(self, seed, n=N):
        self.g, self.n = torch.Generator().manual_seed(seed), n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        torch.rand(i % 3, generator=self.g)
        drawn = torch.randint(2**60, (2,), generator=self.g)
        return i, os.getpid(), int(drawn[0]), int(drawn[1])


CLASS_OF_DS = dict(vars(Noisy))


def disturb(rng):
    """Put the generators of this process somewhere."""
    torch.manual_seed(rng.randrange(2**31))
    np.random.seed(rng.randrange(2**31))
    random.seed(rng.randrange(2**31))


def states(ds):
    """Where every generator of this process stands."""
    return {
        "torch's default generator": torch.get_rng_state().tolist(),
        "np.random": tuple(map(str, np.random.get_state())),
        "random": random.getstate(),
        "ds.g of this process": ds.g.get_state().tolist(),
    }


def passes(answer, ds, seed, workers, count):
    """The samples of `count` passes over a new loader, batch by batch, as tuples."""
    with advising(ValueError, saying="multiprocessing_context", hint=CONTEXT):
        loader = answer.make_loader(ds, seed, workers)
        expect_true(isinstance(loader, DataLoader), "make_loader returns no DataLoader")
        return [
            [list(zip(*(part.tolist() for part in batch), strict=True)) for batch in loader]
            for _ in range(count)
        ]


class Run:
    """Two passes, and the states of all generators before and after them."""

    def __init__(self, answer, seed, workers, rng):
        disturb(rng)
        ds = Noisy(rng.randrange(2**32))
        torch.rand(5, generator=ds.g)
        kept, self.before = ds.g, states(ds)
        self.passes = passes(answer, ds, seed, workers, 2)
        self.after, self.replaced = states(ds), ds.g is not kept
        self.changed = type(ds) is not Noisy or dict(vars(Noisy)) != CLASS_OF_DS


runs = {}
"""By seed and workers. Several checks look at one run: to start processes takes time."""


def run_of(answer, rng, workers):
    """The run of this seed: each check gets an `rng` that begins at the same place."""
    seed = random.Random(rng.getrandbits(64)).randrange(2**32)
    key = seed, workers
    if key not in runs:
        runs[key] = Run(answer, seed, workers, random.Random(seed + workers))
    return seed, runs[key]


def flat(batches):
    return [sample for batch in batches for sample in batch]


def column(batches, number):
    """One entry of each sample: 0 its index, 1 its process, 2 and 3 random numbers."""
    return [sample[number] for sample in flat(batches)]


def drawn(batches):
    """By sample: what it drew."""
    return {i: (a, b) for i, _, a, b in flat(batches)}


@check(
    "each pass has every sample once, in shuffled batches of 4, from that many workers",
    holds=[
        "a DataLoader with a length, that shuffles, in batches of 4; the last may be smaller",
        'It has this many workers, started by "fork"',
        "workers: an int, 0 or more",
    ],
    both_sides=True,
)
def loads(answer, rng, device):
    started = answer.make_loader(Noisy(0), 0, 2).multiprocessing_context
    method = started.get_start_method() if started is not None else None
    expect_equal(method, "fork", name="the way in which workers start")
    start = rng.getstate()
    for workers in (0, 2):
        rng.setstate(start)
        _, run = run_of(answer, rng, workers)
        for batches in run.passes:
            order = column(batches, 0)
            hint = "Each sample once: the last batch is smaller, and no batch is dropped."
            expect_equal(
                sorted(order), list(range(N)), name="the samples of a pass, sorted,", hint=hint
            )
            expect_equal(
                [len(b) for b in batches], [4, 4, 4, 4, 2], name="the sizes of the batches"
            )
            expect_true(order != sorted(order), "the samples come in order", hint="Shuffle them.")
            found = set(column(batches, 1))
            own = os.getpid() in found
            message = f"with {workers} workers, samples were made in "
            message += "the main process" if own else "another process"
            expect_true(own == (workers == 0), message)
            expect_equal(len(found), max(workers, 1), name="the number of processes that made "
                         "samples")  # fmt: skip
    for n in (1, 4, 5, rng.randrange(6, 30)):
        with advising(ValueError, saying="multiprocessing_context", hint=CONTEXT):
            loader = answer.make_loader(Noisy(0, n), rng.randrange(2**32), 0)
        with advising(TypeError, hint=LENGTH):
            expect_equal(len(loader), -(-n // 4), name=f"len(loader) for {n} samples", hint=LENGTH)
        made = sorted(int(i) for batch in loader for i in batch[0])
        expect_equal(made, list(range(n)), name=f"the samples of a pass over {n}, sorted,")


@check(
    "the number of workers changes neither the order nor a number",
    holds=[
        "whose numbers do not depend on the number of workers, none included",
        "A loader whose epochs do not depend on the workers.",
        "order and random numbers follow from seed and k alone: for any number of workers",
    ],
    side="workers",
)
def count(answer, rng, device):
    start = rng.getstate()
    seed, run = run_of(answer, rng, 0)
    rng.setstate(start)
    two = run_of(answer, rng, 2)[1].passes
    three = passes(answer, Noisy(3), seed, 3, 1)
    for workers, again in ((2, two), (3, three)):
        for epoch, (once, other) in enumerate(zip(run.passes, again, strict=False)):
            expect_true(
                column(once, 0) == column(other, 0),
                f"epoch {epoch} with {workers} workers has another order than with none",
                hint=ORDER,
            )
            same = sum(drawn(once)[i] == drawn(other)[i] for i in range(N))
            expect_equal(
                same,
                N,
                name=f"in epoch {epoch} with {workers} workers, of {N} samples the number that "
                "draw what they draw without workers",
                hint=COUNT,
            )


@check(
    "samples and epochs share no random numbers",
    holds=[
        "No two samples share numbers.",
        "Two epochs, or two seeds, share neither numbers nor an order.",
    ],
    side="epochs",
)
def different(answer, rng, device):
    start = rng.getstate()
    for workers in (0, 2):
        rng.setstate(start)
        _, run = run_of(answer, rng, workers)
        first, second = run.passes
        numbers = [v for batches in (first, second) for k in (2, 3) for v in column(batches, k)]
        expect_equal(
            len(set(numbers)),
            4 * N,
            name=f"with {workers} workers, of {4 * N} draws in two epochs, the number of "
            "different ones",
            hint=EPOCH,
        )
        expect_true(column(first, 0) != column(second, 0), "both epochs have the same order",
                    hint="A pass begins with a draw from a generator that lives on.")  # fmt: skip


@check(
    "the same seed gives the same, whatever was drawn elsewhere",
    holds=[
        "order and random numbers follow from seed and k alone: for any number of workers",
        "whatever state any generator of this process is in",
    ],
    side="state",
)
def repeats(answer, rng, device):
    seed, run = run_of(answer, rng, 0)
    disturb(random.Random(seed ^ 1))
    ds = Noisy(rng.randrange(2**32) ^ 1)
    torch.rand(7, generator=ds.g)
    again = passes(answer, ds, seed, 0, 2)
    for epoch, (once, twice) in enumerate(zip(run.passes, again, strict=True)):
        hint = "All must follow from the seed that make_loader was given: not from the state of "
        hint += "ds.g, and not from a default generator."
        same = column(once, 0) == column(twice, 0)
        expect_true(same, f"epoch {epoch} of a second loader has another order", hint=hint)
        same = drawn(once) == drawn(twice)
        expect_true(same, f"epoch {epoch} of a second loader has other numbers", hint=hint)


FACTORS = (100, 1000, 1009, 10**4, 10**6, 1_000_003, 10**9 + 7)
"""Some of what people multiply a seed with, to add the epoch or the sample to it."""


def clash(factor):
    """The seed for which seed * factor is 0 or 1 in its low 32 bits, and which is not 0."""
    twos = (factor & -factor).bit_length() - 1
    return 2 ** (32 - twos) if twos else pow(factor, -1, 2**32)


@check(
    "a pass that is broken off counts as one",
    holds="Its epoch k is the k-th pass over it; one that is broken off counts too.",
)
def broken(answer, rng, device):
    seed, run = run_of(answer, rng, 0)
    with advising(ValueError, saying="multiprocessing_context", hint=CONTEXT):
        loader = answer.make_loader(Noisy(2), seed, 0)
    next(iter(loader))
    again = [list(zip(*(part.tolist() for part in batch), strict=True)) for batch in loader]
    same = column(run.passes[1], 0) == column(again, 0)
    expect_true(same, "after a pass that ended early, epoch 1 has another order", hint=BROKEN)
    same = drawn(run.passes[1]) == drawn(again)
    expect_true(same, "after a pass that ended early, epoch 1 has other numbers", hint=BROKEN)


@check(
    "another seed gives another order and other numbers",
    holds="Two epochs, or two seeds, share neither numbers nor an order.",
    side="seeds",
)
def seeds(answer, rng, device):
    base = rng.randrange(2**31)
    asked = {0, 1, 2, base, base + 1, base + N, 2**32 - 1, *FACTORS, *map(clash, FACTORS)}
    orders, numbers = {}, {}
    for seed in sorted(asked):
        for epoch, batches in enumerate(passes(answer, Noisy(1), seed, 0, 3)):
            here = f"seed {seed} in epoch {epoch}"
            other = orders.setdefault(tuple(column(batches, 0)), here)
            expect_true(other == here, f"{here} has the order of {other}", hint=EPOCH)
            for i, (number, _) in drawn(batches).items():
                name = f"sample {i} of {here}"
                other = numbers.setdefault(number, name)
                expect_true(other == name, f"{name} draws what {other} draws", hint=EPOCH)


@check(
    "no generator of this process is moved",
    holds=[
        "No generator of this process is moved: not ds.g, and not without workers either.",
        "ds.g stays the same object.",
        "The dataset keeps a `torch.Generator` in `ds.g`, draws from it in each `ds[i]`",
        "map-style dataset of 1 or more samples, with a torch.Generator in ds.g",
    ],
    both_sides=True,
)
def still(answer, rng, device):
    start = rng.getstate()
    for workers in (0, 2):
        rng.setstate(start)
        _, run = run_of(answer, rng, workers)
        for name, state in run.before.items():
            message = f"with {workers} workers, {name} was moved"
            expect_true(run.after[name] == state, message, hint=STATE)
        expect_true(not run.replaced, "ds.g of this process was replaced", hint=STATE)


@check(
    "the class of ds is as it was",
    holds="You cannot change its class, but you may wrap it.",
    both_sides=True,
)
def wrapped(answer, rng, device):
    _, run = run_of(answer, rng, 0)
    expect_true(not run.changed, "the class of ds was changed", hint=CLASS)


class Keys:
    """A sampler of pairs of an index and the seed of that sample."""

    def __init__(self, n, seed):
        self.n, self.g = n, torch.Generator().manual_seed(seed)

    def __iter__(self):
        order = torch.randperm(self.n, generator=self.g).tolist()
        seeds = torch.randint(2**32, (self.n,), generator=self.g).tolist()
        yield from ((i, seeds[i]) for i in order)

    def __len__(self):
        return self.n


class Seeded(Dataset):
    """ds, with ds.g seeded before each sample."""

    def __init__(self, ds, keep=True):
        self.ds, self.keep = ds, keep

    def __len__(self):
        return len(self.ds)

    def __getitem__(self, key):
        i, seed = key
        before = self.ds.g.get_state()
        self.ds.g.manual_seed(seed)
        sample = self.ds[i]
        if self.keep:
            self.ds.g.set_state(before)
        return sample


def built(ds, sampler, workers, **more):
    context = "fork" if workers else None
    more = {"generator": torch.Generator().manual_seed(0), **more}
    return DataLoader(ds, batch_size=4, sampler=sampler, num_workers=workers,
                      multiprocessing_context=context, **more)  # fmt: skip


def reseed_copy(worker):
    get_worker_info().dataset.g.manual_seed(torch.randint(2**32, ()).item())


@mutant("seeds each worker's copy", caught_by=count)
def make_loader(ds, seed, workers):
    return DataLoader(
        ds,
        batch_size=4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        worker_init_fn=reseed_copy,
        generator=torch.Generator().manual_seed(seed),
    )


@mutant("leaves ds.g as it comes", caught_by=count)
def make_loader(ds, seed, workers):
    return DataLoader(
        ds,
        batch_size=4,
        shuffle=True,
        num_workers=workers,
        multiprocessing_context="fork" if workers else None,
        generator=torch.Generator().manual_seed(seed),
    )


@mutant("asks for fork without workers too", caught_by=loads)
def make_loader(ds, seed, workers):
    return DataLoader(
        Seeded(ds),
        batch_size=4,
        sampler=Keys(len(ds), seed),
        num_workers=workers,
        multiprocessing_context="fork",
        generator=torch.Generator().manual_seed(seed),
    )


@mutant("leaves ds.g where the last sample put it", caught_by=still)
def make_loader(ds, seed, workers):
    return built(Seeded(ds, keep=False), Keys(len(ds), seed), workers)


@mutant("gives the loader no generator", caught_by=still)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Keys(len(ds), seed), workers, generator=None)


class ByIndex(Keys):
    """The same seed for sample i in each epoch."""

    def __init__(self, n, seed):
        super().__init__(n, seed)
        self.seed = seed

    def __iter__(self):
        for i in torch.randperm(self.n, generator=self.g).tolist():
            yield i, self.seed * N + i


@mutant("seeds by seed and index, and not by epoch", caught_by=different)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), ByIndex(len(ds), seed), workers)


class Sums(ByIndex):
    """seed + epoch + i."""

    epoch = -1

    def __iter__(self):
        self.epoch += 1
        for i in torch.randperm(self.n, generator=self.g).tolist():
            yield i, self.seed + self.epoch + i


@mutant(
    "adds seed, epoch and index",
    caught_by=different,
    misconception="maths/random_generators",
    like="adds seed and epoch",
)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Sums(len(ds), seed), workers)


class Restarts(Keys):
    """Begins at the seed in each pass."""

    def __init__(self, n, seed):
        super().__init__(n, seed)
        self.seed = seed

    def __iter__(self):
        self.g.manual_seed(self.seed)
        return super().__iter__()


@mutant("begins each epoch at the seed", caught_by=different)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Restarts(len(ds), seed), workers)


class Places(Keys):
    """Seeds by place in the order, all of one batch alike."""

    def __iter__(self):
        order = torch.randperm(self.n, generator=self.g).tolist()
        seeds = torch.randint(2**32, (self.n,), generator=self.g).tolist()
        yield from ((i, seeds[k // 4]) for k, i in enumerate(order))


@mutant("gives a batch one seed", caught_by=different)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Places(len(ds), seed), workers)


@mutant("forgets the seed", caught_by=seeds)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Keys(len(ds), 0), workers)


class InOrder(Keys):
    def __iter__(self):
        seeds = torch.randint(2**32, (self.n,), generator=self.g).tolist()
        yield from enumerate(seeds)


@mutant("does not shuffle", caught_by=loads)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), InOrder(len(ds), seed), workers)


@mutant("makes the samples itself", caught_by=loads)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Keys(len(ds), seed), 0)


@mutant("takes the seeds from the default generator", caught_by=still)
def make_loader(ds, seed, workers):
    torch.manual_seed(seed)
    return built(Seeded(ds), Keys(len(ds), torch.randint(2**31, ()).item()), workers)


class Grouped(Keys):
    """Batches of pairs, drawn when iter() is called."""

    def __iter__(self):
        pairs = list(super().__iter__())
        return iter([pairs[k : k + 4] for k in range(0, self.n, 4)])

    def __len__(self):
        return -(-self.n // 4)


@mutant("draws at each iter() of a batch sampler", caught_by=count)
def make_loader(ds, seed, workers):
    how = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    g = torch.Generator().manual_seed(1)
    return DataLoader(Seeded(ds), batch_sampler=Grouped(len(ds), seed), generator=g, **how)


class Linear(Sums):
    """seed * 1000 + epoch * 100 + i."""

    def __iter__(self):
        order = list(super().__iter__())
        yield from ((i, (self.seed * 1000 + self.epoch * 100 + i) % 2**32) for i, _ in order)


@mutant("multiplies the seed by 1000 and the epoch by 100", caught_by=seeds)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Linear(len(ds), seed), workers)


class OneByOne(Keys):
    """Draws the seed of a sample when its turn comes."""

    def __iter__(self):
        for i in torch.randperm(self.n, generator=self.g).tolist():
            yield i, torch.randint(2**32, (), generator=self.g).item()


@mutant("draws seeds one by one", caught_by=broken)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), OneByOne(len(ds), seed), workers)


class Endless(Keys):
    __len__ = None


@mutant("has no length", caught_by=loads)
def make_loader(ds, seed, workers):
    return built(Seeded(ds), Endless(len(ds), seed), workers)


@mutant("changes the class of ds", caught_by=wrapped)
def make_loader(ds, seed, workers):
    kind, plain = type(ds), Noisy.__dict__["__getitem__"]

    def seeded(self, key):
        i, seed = key if isinstance(key, tuple) else (key, 0)
        before = self.g.get_state()
        self.g.manual_seed(seed)
        sample = plain(self, i)
        self.g.set_state(before)
        return sample

    if kind.__getitem__ is plain:
        kind.__getitem__ = seeded
    return built(ds, Keys(len(ds), seed), workers)


@mutant("starts workers by spawn", caught_by=loads)
def make_loader(ds, seed, workers):
    return DataLoader(
        Seeded(ds),
        batch_size=4,
        sampler=Keys(len(ds), seed),
        num_workers=workers,
        multiprocessing_context="spawn" if workers else None,
        generator=torch.Generator().manual_seed(seed),
    )


@hinted(1, reaches=seeds)
def make_loader(ds, seed, workers):
    return built(Seeded(ds, keep=False), Keys(len(ds), seed), workers, generator=None)


class Epochs(Keys):
    """Pairs of an index and the number of the epoch."""

    epoch = -1

    def __iter__(self):
        self.epoch += 1
        order = torch.randperm(self.n, generator=self.g).tolist()
        yield from ((i, self.epoch) for i in order)


class Mixed(Seeded):
    """Makes the seed of a sample where the sample is made."""

    def __init__(self, ds, seed):
        super().__init__(ds)
        self.seed = seed

    def __getitem__(self, key):
        i, epoch = key
        (mixed,) = np.random.SeedSequence([self.seed, epoch, i]).generate_state(1, np.uint64)
        return super().__getitem__((i, int(mixed) >> 1))


@accepted("mixes seed, epoch and index with a hash")
def make_loader(ds, seed, workers):
    return built(Mixed(ds, seed), Epochs(len(ds), seed), workers)


class Clones(Dataset):
    """Draws with a generator of its own in the place of ds.g for the time of one sample."""

    def __init__(self, ds):
        self.ds = ds

    def __len__(self):
        return len(self.ds)

    def __getitem__(self, key):
        i, seed = key
        kept, self.ds.g = self.ds.g, torch.Generator().manual_seed(seed)
        try:
            return self.ds[i]
        finally:
            self.ds.g = kept


@accepted("lends the dataset another generator, in batches of its own making")
def make_loader(ds, seed, workers):
    keys = Keys(len(ds), seed)
    batches = torch.utils.data.BatchSampler(keys, batch_size=4, drop_last=False)
    how = {"num_workers": workers, "multiprocessing_context": "fork"} if workers else {}
    g = torch.Generator().manual_seed(1)
    return DataLoader(Clones(ds), batch_sampler=batches, generator=g, **how)


equivalent(
    "seeds = torch.randint(2**32, (self.n,), generator=self.g)",
    "seeds = torch.randint(3**32, (self.n,), generator=self.g)",
    because="Seeds from a range as wide differ as well.",
)


equivalent(
    "seeds = torch.randint(2**32, (self.n,), generator=self.g)",
    "seeds = torch.randint(2**33, (self.n,), generator=self.g)",
    because="Seeds from a range as wide differ as well.",
)


equivalent(
    "seeds = torch.randint(2**32, (self.n,), generator=self.g)",
    "seeds = torch.randint(2**31, (self.n,), generator=self.g)",
    because="Seeds from a range as wide differ as well.",
)

equivalent(
    "return DataLoader(Seeded(ds), 4, sampler=Keys(len(ds), seed), num_workers=workers, "
    'multiprocessing_context="fork" if workers else None, '
    "generator=torch.Generator().manual_seed(seed))",
    "return DataLoader(Seeded(ds), 4, sampler=Keys(len(ds), seed), num_workers=workers, "
    'multiprocessing_context="fork" if workers else None, generator=torch.Generator())',
    because="It seeds the default generators of the workers, and ds draws from ds.g alone.",
)
