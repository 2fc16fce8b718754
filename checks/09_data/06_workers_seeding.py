"""Judges lessons/09_data/06_workers_seeding.md."""

import os
import random

import numpy as np
import torch
from torch.utils.data import DataLoader, Dataset, RandomSampler, get_worker_info

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_equal,
    expect_true,
    mutant,
)

N = 18
STREAMS = ("ds.g", "torch's default generator", "np.random", "random")
COPY = "Each worker has a copy of ds.g in the state of the original. Seed the copy there, from the "
COPY += "seed that the worker was given."
APART = (
    "get_worker_info().seed is where torch's default generator of that worker began. Two "
    "generators with one seed hand out the same numbers: ds.g needs another one."
)
STATE = "Give the loader a generator of its own, and seed ds.g in the workers only."
PLACES = (
    "The loader gives each worker seeds of its own. Something has put two of them to one place."
)


class Noisy(Dataset):
    """Sample i: i, the process that made it, a number from each of four streams, the seed of g."""

    def __init__(self, seed):
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return N

    def __getitem__(self, i):
        return (
            i,
            os.getpid(),
            int(torch.randint(2**60, (), generator=self.g)),
            int(torch.randint(2**60, ())),
            int(np.random.randint(2**60)),
            random.randrange(2**60),
            self.g.initial_seed() % 2**32,
        )


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
    loader = answer.make_loader(ds, seed, workers)
    expect_true(isinstance(loader, DataLoader), "make_loader returns no DataLoader")
    made = []
    for _ in range(count):
        made.append(
            [list(zip(*(part.tolist() for part in batch), strict=True)) for batch in loader]
        )
    return made


class Run:
    """Two passes, and the states of all generators before and after them."""

    def __init__(self, answer, rng):
        self.seed, self.workers = rng.randrange(2**32), 2
        disturb(rng)
        ds = Noisy(rng.randrange(2**32))
        torch.rand(5, generator=ds.g)
        kept, self.before = ds.g, states(ds)
        self.passes = passes(answer, ds, self.seed, self.workers, 2)
        self.after, self.replaced = states(ds), ds.g is not kept


runs = {}
"""By seed. Several checks look at one run: to start processes takes time."""


def run_of(answer, rng):
    """The run of this seed: each check gets an `rng` that begins at the same place."""
    key = rng.getrandbits(64)
    if key not in runs:
        runs[key] = Run(answer, rng)
    return runs[key]


def flat(batches):
    return [sample for batch in batches for sample in batch]


def column(batches, number):
    """One entry of each sample: 0 its index, 1 its process, 2 to 5 random numbers, 6 a seed."""
    return [sample[number] for sample in flat(batches)]


def processes(batches, workers):
    found = set(column(batches, 1))
    expect_true(os.getpid() not in found, "the samples were made in the main process")
    expect_equal(len(found), workers, name="the number of processes that made samples")


@check("each pass has every sample once, in shuffled batches of 4, from that many workers")
def loads(answer, rng, device):
    run = run_of(answer, rng)
    for batches in run.passes:
        order = column(batches, 0)
        expect_equal(sorted(order), list(range(N)), name="the samples of a pass, sorted,")
        expect_equal([len(b) for b in batches], [4, 4, 4, 4, 2], name="the sizes of the batches")
        expect_true(order != sorted(order), "the samples come in order", hint="shuffle=True.")
        processes(batches, run.workers)


@check("workers and epochs share no random numbers")
def different(answer, rng, device):
    first, second = run_of(answer, rng).passes
    for number, stream in enumerate(STREAMS, 2):
        for batches, when in ((first, "the first epoch"), (second, "the second epoch")):
            expect_equal(
                len(set(column(batches, number))),
                N,
                name=f"in {when}, of {N} draws from {stream}, the number of different ones",
                hint=COPY if number == 2 else PLACES,
            )
        expect_equal(
            len(set(column(first + second, number))),
            2 * N,
            name=f"in two epochs, of {2 * N} draws from {stream}, the number of different ones",
            hint="The workers of an epoch are new processes. The seed of each must come from the "
            "pass, not from a constant.",
        )
    expect_true(column(first, 0) != column(second, 0), "both epochs have the same order")
    largest = max(column(first + second, 6))
    expect_true(
        largest >= 2**16,
        f"two workers in two epochs, and no seed of ds.g is above {largest}",
        hint="With so few seeds to choose from, two workers soon get the same one.",
    )


@check("ds.g draws none of the numbers of torch's default generators")
def apart(answer, rng, device):
    samples = [batch for batches in run_of(answer, rng).passes for batch in batches]
    own, default = column(samples, 2), column(samples, 3)
    expect_equal(
        len({*own} & {*default}),
        0,
        name=f"of {len(own)} draws from ds.g, the number that torch's default generator drew too",
        hint=APART,
    )


@check("the same seed gives the same, whatever was drawn elsewhere")
def repeats(answer, rng, device):
    run = run_of(answer, rng)
    disturb(random.Random(run.seed))
    again = passes(answer, Noisy(rng.randrange(2**32) ^ 1), run.seed, run.workers, 2)
    for epoch, (once, twice) in enumerate(zip(run.passes, again, strict=True)):
        expect_true(
            column(once, 0) == column(twice, 0),
            f"epoch {epoch} of a second loader with the same seed has another order",
            hint="The order comes from the loader's generator, or from the default one if it has "
            "none.",
        )
        for number, stream in enumerate(STREAMS, 2):
            expect_true(
                column(once, number) == column(twice, number),
                f"epoch {epoch} of a second loader with the same seed has other numbers "
                f"from {stream}",
                hint="What a worker draws must follow from the seed alone: not from the state of "
                "ds.g, and not from the default generator.",
            )


@check("another seed gives another order and other numbers")
def seeds(answer, rng, device):
    run = run_of(answer, rng)
    (other,) = passes(answer, Noisy(1), (run.seed + 1) % 2**32, 1, 1)
    processes(other, 1)
    first = run.passes[0]
    expect_true(column(first, 0) != column(other, 0), "two seeds give the same order")
    for number, stream in enumerate(STREAMS, 2):
        expect_true(
            not {*column(first, number)} & {*column(other, number)},
            f"two seeds share numbers from {stream}",
            hint="All that the workers draw must follow from the seed that make_loader was given.",
        )


@check("no generator of this process is moved")
def still(answer, rng, device):
    run = run_of(answer, rng)
    for name, state in run.before.items():
        expect_true(run.after[name] == state, f"{name} was moved", hint=STATE)
    expect_true(not run.replaced, "ds.g of this process was replaced", hint=STATE)


def reseed_copy(worker):
    get_worker_info().dataset.g.manual_seed(torch.randint(2**32, ()).item())


def loader(ds, workers, **more):
    more = {"batch_size": 4, "shuffle": True, "worker_init_fn": reseed_copy, **more}
    return DataLoader(ds, num_workers=workers, multiprocessing_context="fork", **more)


def stream(seed):
    return torch.Generator().manual_seed(seed)


@mutant("seeds the default generator", caught_by=still)
def make_loader(ds, seed, workers):
    torch.manual_seed(seed)
    return loader(ds, workers)


@mutant("gives the loader no generator", caught_by=repeats)
def make_loader(ds, seed, workers):
    return loader(ds, workers)


@mutant("gives the generator to the sampler alone", caught_by=repeats)
def make_loader(ds, seed, workers):
    return loader(ds, workers, shuffle=False, sampler=RandomSampler(ds, generator=stream(seed)))


@mutant("leaves ds.g to be copied", caught_by=different)
def make_loader(ds, seed, workers):
    return loader(ds, workers, generator=stream(seed), worker_init_fn=None)


@mutant("seeds ds.g before it is copied", caught_by=still)
def make_loader(ds, seed, workers):
    ds.g.manual_seed(seed)
    return loader(ds, workers, generator=stream(seed))


@mutant("seeds every copy alike", caught_by=different)
def make_loader(ds, seed, workers):
    def reseed(worker):
        get_worker_info().dataset.g.manual_seed(seed)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("seeds copies by worker, and not by epoch", caught_by=different)
def make_loader(ds, seed, workers):
    def reseed(worker):
        get_worker_info().dataset.g.manual_seed(seed + worker)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("gives the copy the seed of the default generator", caught_by=apart)
def make_loader(ds, seed, workers):
    def reseed(worker):
        info = get_worker_info()
        info.dataset.g.manual_seed(info.seed)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("gives the copy the seed of the next worker", caught_by=apart)
def make_loader(ds, seed, workers):
    def reseed(worker):
        get_worker_info().dataset.g.manual_seed(torch.initial_seed() + 1)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("takes seeds from the operating system", caught_by=repeats)
def make_loader(ds, seed, workers):
    def reseed(worker):
        get_worker_info().dataset.g.seed()

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("follows the old advice for NumPy", caught_by=different)
def make_loader(ds, seed, workers):
    def reseed(worker):
        reseed_copy(worker)
        np.random.seed(seed)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@mutant("forgets the seed", caught_by=seeds)
def make_loader(ds, seed, workers):
    return loader(ds, workers, generator=torch.Generator())


@mutant("does not shuffle", caught_by=loads)
def make_loader(ds, seed, workers):
    return loader(ds, workers, generator=stream(seed), shuffle=False)


@mutant("makes the samples itself", caught_by=loads)
def make_loader(ds, seed, workers):
    return DataLoader(ds, batch_size=4, shuffle=True, generator=stream(seed))


@accepted("draws a seed for the copy from the worker's own stream")
def make_loader(ds, seed, workers):
    def reseed(worker):
        drawn = torch.randint(2**32, ()).item()
        get_worker_info().dataset.g = torch.Generator().manual_seed(drawn)

    return loader(ds, workers, generator=stream(seed), worker_init_fn=reseed)


@accepted("goes far from the worker's seed, which it asks for by its other name")
def make_loader(ds, seed, workers):
    g = torch.Generator().manual_seed(seed)

    def reseed(worker):
        get_worker_info().dataset.g.manual_seed((torch.initial_seed() + 2**31) % 2**32)

    sampler = RandomSampler(ds, generator=g)
    return loader(ds, workers, shuffle=False, sampler=sampler, generator=g, worker_init_fn=reseed)


equivalent(
    "return DataLoader(ds, batch_size=4, shuffle=True, num_workers=workers, "
    'multiprocessing_context="fork", generator=torch.Generator().manual_seed(seed), '
    "worker_init_fn=reseed)",
    "return DataLoader(ds, batch_size=4, shuffle=True, num_workers=workers, "
    "generator=torch.Generator().manual_seed(seed), worker_init_fn=reseed)",
    because="fork is the default on Linux up to Python 3.13. Later another method starts the "
    "workers, which gives the same samples and numbers.",
)
equivalent(
    "g.manual_seed(torch.randint(2**32, ()).item())",
    "g.manual_seed(torch.randint(2**31, ()).item())",
    because="Any range will do in which two draws hardly ever meet.",
)
equivalent(
    "g.manual_seed(torch.randint(2**32, ()).item())",
    "g.manual_seed(torch.randint(2**33, ()).item())",
    because="Any range will do in which two draws hardly ever meet.",
)
equivalent(
    "g.manual_seed(torch.randint(2**32, ()).item())",
    "g.manual_seed(torch.randint(3**32, ()).item())",
    because="Any range will do in which two draws hardly ever meet.",
)
