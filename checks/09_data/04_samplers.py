"""Judges lessons/09_data/04_samplers.md."""

import itertools
import random

import numpy as np
import torch
from torch.utils.data import DataLoader

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Sequences of 5 and of 500 tokens in one batch",
    "*Length bucketing* puts",
    "Sorting the whole dataset would do it",
    "Then `batch_size`, `shuffle`, `sampler` and `drop_last` are left out of the call.",
)

ALL = (
    "Every index belongs into exactly one batch of a pass, and the last indices make a smaller one."
)
SORT = "Sort the samples of a pool by length before you cut it into batches: neighbours then have "
SORT += "similar lengths."
MIX = "Shuffle all indices first, and sort inside pools of pool * bs of them. What is sorted as a "
MIX += "whole falls into the same batches in every epoch."
ORDER = "Shuffle the batches at the end. Training would see short samples first and long ones last."
STREAM = "Make one torch.Generator in __init__, and draw each pass from it."


def lengths_of(rng, n, top=100):
    return [rng.randint(0, top) for _ in range(n)]


def batches_of(buckets):
    """One pass: lists of ints."""
    made = list(buckets)
    for number, batch in enumerate(made):
        if not isinstance(batch, list) or not all(type(i) is int for i in batch):
            kind = (
                f"a {type(batch).__name__} of {type(batch[0]).__name__}" if len(batch) else "empty"
            )
            fail(f"batch {number} is {kind}, a list of ints is wanted",
                 hint="tolist() makes Python ints of a tensor.")  # fmt: skip
    return [list(batch) for batch in made]


def padding(batches, lengths):
    """The share of places that hold no data."""
    places = sum(len(b) * max(lengths[i] for i in b) for b in batches) or 1
    return 1 - sum(lengths) / places


@check(
    "every sample comes once, in batches of bs and one smaller at most",
    holds=[
        "Each batch is a list of Python ints.",
        "Each index comes once; only the last pool may end in a smaller batch.",
        "n at least 1",
        "both at least 1",
    ],
    both_sides=True,
)
def once(answer, rng, device):
    for n, bs, pool in (
        (50, 8, 2),
        (48, 8, 2),
        (7, 8, 3),
        (1, 1, 1),
        (33, 4, 100),
        (30, 7, 1),
        (9, 1, 4),
    ):
        lengths = lengths_of(rng, n)
        buckets = answer.Buckets(lengths, bs, pool, rng.randrange(2**31))
        for _ in range(2):
            got = batches_of(buckets)
            name = f"for n = {n}, bs = {bs}, pool = {pool}, "
            expect_equal(sorted(i for b in got for i in b), list(range(n)),
                         name=f"{name}the list of all indices, sorted,", hint=ALL)  # fmt: skip
            sizes = sorted((len(b) for b in got), reverse=True)
            wanted = [bs] * (n // bs) + [n % bs] * (n % bs > 0)
            expect_equal(sizes, wanted, name=f"{name}the list of sizes, sorted,", hint=ALL)


@check(
    "len() is the number of batches",
    holds=[
        "Write it as a batch sampler.",
        "len() is the number of batches.",
        "`DataLoader(ds, batch_sampler=b)` asks `b` for a list of indices for each batch.",
    ],
    both_sides=True,
)
def length(answer, rng, device):
    for n, bs in ((50, 8), (48, 8), (3, 8), (1, 1)):
        buckets = answer.Buckets(lengths_of(rng, n), bs, 3, 0)
        hint = "A smaller batch counts as well: divide and round up."
        expect_equal(len(buckets), -(-n // bs), name=f"len() for n = {n}, bs = {bs}", hint=hint)
        loader = DataLoader(range(n), batch_sampler=buckets)
        expect_equal(len(list(loader)), len(loader), name="the number of batches of a loader",
                     hint=hint)  # fmt: skip


@check(
    "a batch holds samples of similar length",
    holds=["Batches of samples of similar length.", "sort each pool by length"],
    both_sides=True,
)
def similar(answer, rng, device):
    lengths = lengths_of(rng, 400)
    for pool, most in ((1000, 0.06), (10, 0.2)):
        got = batches_of(answer.Buckets(lengths, 8, pool, rng.randrange(2**31)))
        share = padding(got, lengths)
        expect_true(share < most, f"with pool = {pool}, {share:.0%} of all places are "
                    f"padding, at most {most:.0%} are wanted", hint=SORT)  # fmt: skip
    whole = batches_of(answer.Buckets(lengths, 8, 50, rng.randrange(2**31)))
    whole.sort(key=lambda b: (max(lengths[i] for i in b), min(lengths[i] for i in b)))
    for before, after in itertools.pairwise(whole):
        expect_true(
            max(lengths[i] for i in before) <= min(lengths[i] for i in after),
            "with a single pool, two batches overlap in their lengths",
            hint=SORT,
        )


@check(
    "in each epoch other samples meet",
    holds=[
        "shuffle everything, sort within *pools* of a few dozen batches",
        "shuffle all indices, take pools of pool * bs of them",
        "pool: so many batches are sorted together",
    ],
)
def mixes(answer, rng, device):
    lengths = rng.sample(range(1, 1000), 240)
    for pool in (1, 5):
        buckets = answer.Buckets(lengths, 8, pool, rng.randrange(2**31))
        one, two = batches_of(buckets), batches_of(buckets)
        expect_true(one != two, "two epochs are the same", hint=STREAM)
        first, second = ({frozenset(b) for b in made} for made in (one, two))
        same = len(first & second)
        expect_true(same < 3, f"with pool = {pool}, {same} of 30 batches have the same "
                    "samples in two epochs", hint=MIX)  # fmt: skip
    lengths = [7] * 80
    buckets = answer.Buckets(lengths, 8, 100, rng.randrange(2**31))
    first, second = ({frozenset(b) for b in batches_of(buckets)} for _ in range(2))
    same = len(first & second)
    expect_true(same < 3, f"of 10 batches of equal lengths, {same} are the same in two epochs",
                hint=MIX)  # fmt: skip
    lengths = rng.sample(range(1, 1000), 240)
    share = padding(batches_of(answer.Buckets(lengths, 8, 1, rng.randrange(2**31))), lengths)
    expect_true(share > 0.2, f"with pools of one batch only {share:.0%} is padding: more than one "
                "batch was sorted together", hint=MIX)  # fmt: skip


@check(
    "short and long batches come in any order",
    holds="cut it into batches of bs, and yield the batches of all pools in a shuffled order",
)
def shuffled(answer, rng, device):
    lengths = rng.sample(range(1, 1000), 240)
    for pool in (1000, 5):
        buckets = answer.Buckets(lengths, 8, pool, rng.randrange(2**31))
        for _ in range(2):
            tops = [max(lengths[i] for i in b) for b in batches_of(buckets)]
            rises = sum(a < b for a, b in itertools.pairwise(tops))
            expect_true(6 <= rises <= 23, f"of 29 steps from one batch to the next, {rises} go to "
                        "a longer one", hint=ORDER)  # fmt: skip
    spans = [sorted(lengths[i] for i in b) for b in batches_of(buckets)]
    runs = [sorted(spans[k : k + 5]) for k in range(0, 30, 5)]
    apart = sum(all(a[-1] < b[0] for a, b in itertools.pairwise(run)) for run in runs)
    expect_true(apart < 4, f"{apart} of 6 pools have their batches one after the other",
                hint="Shuffle the batches of all pools together.")  # fmt: skip
    orders = [[tuple(sorted(b)) for b in batches_of(buckets)] for _ in range(2)]
    expect_true(orders[0] != orders[1], "two epochs have the same order", hint=STREAM)
    for n, pool in ((33, 100), (33, 3)):
        buckets = answer.Buckets(rng.sample(range(1000), n), 4, pool, rng.randrange(2**31))
        places = {[len(b) for b in batches_of(buckets)].index(n % 4) for _ in range(20)}
        expect_true(
            len(places) > 1,
            f"in 20 passes the smaller batch has come as number {min(places)} each time",
            hint="All batches change places, the smaller one too.",
        )


@check(
    "passes differ, and the seed decides which they are",
    holds=[
        "Passes differ from each other, and the same seed gives the same passes.",
        "seed: of the generator that all passes draw from",
    ],
    both_sides=True,
)
def repeats(answer, rng, device):
    lengths, seed = lengths_of(rng, 60), rng.randrange(2**31)
    torch.manual_seed(rng.randrange(2**31))
    one = answer.Buckets(lengths, 8, 3, seed)
    first = [batches_of(one) for _ in range(3)]
    torch.manual_seed(rng.randrange(2**31))
    other = answer.Buckets(lengths, 8, 3, seed)
    for wanted in first:
        len(other)
        torch.manual_seed(rng.randrange(2**31))
        random.seed(rng.randrange(2**31))
        np.random.seed(rng.randrange(2**31))
        expect_equal(batches_of(other), wanted, hint=STREAM + " len() draws nothing.",
                     name="the list of batches of a pass, for the same seed,")  # fmt: skip
    expect_true(first[0] != first[1], "two epochs have the same batches", hint=STREAM)
    another = batches_of(answer.Buckets(lengths, 8, 3, seed + 1))
    expect_true(another != first[0], "two seeds give the same batches", hint=STREAM)
    for k, batches in enumerate(first):
        message = f"pass 0 of seed {seed + 1} is pass {k} of seed {seed}"
        expect_true(another != batches, message, hint=STREAM + " Seed it once, with seed alone.")


@check("the default generator is not moved", holds="The default generator is not moved.")
def still(answer, rng, device):
    torch.manual_seed(rng.randrange(2**31))
    before = torch.get_rng_state()
    buckets = answer.Buckets(lengths_of(rng, 20), 4, 2, rng.randrange(2**31))
    for _ in range(2):
        list(buckets)
    same = torch.equal(torch.get_rng_state(), before)
    expect_true(same, "torch's default generator was moved", hint=STREAM)


@check(
    "lengths may be a tensor",
    holds="lengths: n lengths, a list of ints or an int64 tensor",
    both_sides=True,
)
def tensors(answer, rng, device):
    for n in (1, rng.randrange(40, 60)):
        lengths, seed = lengths_of(rng, n), rng.randrange(2**31)
        every_third = torch.tensor(lengths).repeat_interleave(3)[::3]
        for made in (torch.tensor(lengths), every_third):
            got = batches_of(answer.Buckets(made, 4, 100, seed))
            name = "for a tensor of lengths, the list of all indices, sorted,"
            expect_equal(sorted(i for b in got for i in b), list(range(n)), name=name, hint=ALL)
            share = padding(got, lengths)
            expect_true(
                share < 0.3,
                f"for a tensor of lengths and one pool, {share:.0%} of all places are padding",
                hint=SORT,
            )


@check(
    "the caller's lengths are left as they are",
    holds=["a list of ints or an int64 tensor", "it is left as it is"],
    both_sides=True,
)
def untouched(answer, rng, device):
    for kind in (list, torch.tensor):
        lengths = lengths_of(rng, 30)
        given = kind(lengths)
        list(answer.Buckets(given, 4, 2, 1))
        expect_equal(given, kind(lengths), name="the lengths", hint="Sort indices, not lengths.")


class Right:
    """A right answer in steps, for mutants to be wrong in one."""

    def __init__(self, lengths, bs, pool, seed):
        self.lengths, self.bs, self.pool = [int(n) for n in lengths], bs, pool
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return -(-len(self.lengths) // self.bs)

    def drawn(self, n):
        return torch.randperm(n, generator=self.g).tolist()

    def pools(self):
        order, size = self.drawn(len(self.lengths)), self.pool * self.bs
        return [order[k : k + size] for k in range(0, len(order), size)]

    def sort(self, pool):
        return sorted(pool, key=self.lengths.__getitem__)

    def cut(self, pool):
        return [pool[k : k + self.bs] for k in range(0, len(pool), self.bs)]

    def arrange(self, batches):
        return [batches[k] for k in self.drawn(len(batches))]

    def __iter__(self):
        batches = [b for pool in self.pools() for b in self.cut(self.sort(pool))]
        return iter(self.arrange(batches))


@mutant("adds the number of the pass to the seed", caught_by=repeats)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        self.next_seed = seed

    def __iter__(self):
        self.g.manual_seed(self.next_seed)
        self.next_seed += 1
        return super().__iter__()


@mutant("sorts the whole dataset", caught_by=mixes)
class Buckets(Right):
    def pools(self):
        return [list(range(len(self.lengths)))]


@mutant("sorts all that it has shuffled", caught_by=mixes)
class Buckets(Right):
    def pools(self):
        return [self.drawn(len(self.lengths))]


@mutant("does not sort", caught_by=similar)
class Buckets(Right):
    def sort(self, pool):
        return pool


@mutant("sorts inside the batches", caught_by=similar)
class Buckets(Right):
    def sort(self, pool):
        return [i for b in self.cut(pool) for i in super(Buckets, self).sort(b)]


@mutant("leaves the batches in the order of their lengths", caught_by=shuffled)
class Buckets(Right):
    def arrange(self, batches):
        return batches


@mutant("drops the smaller batch", caught_by=once)
class Buckets(Right):
    def cut(self, pool):
        return [b for b in super().cut(pool) if len(b) == self.bs]


@mutant("makes pools of samples, not of batches", caught_by=once)
class Buckets(Right):
    def pools(self):
        order = self.drawn(len(self.lengths))
        return [order[k : k + self.pool] for k in range(0, len(order), self.pool)]


@mutant("begins each pass at the seed", caught_by=mixes)
class Buckets(Right):
    def __iter__(self):
        self.g.manual_seed(self.g.initial_seed())
        return super().__iter__()


@mutant("leaves the smaller batch at the end", caught_by=shuffled)
class Buckets(Right):
    def arrange(self, batches):
        small = [b for b in batches if len(b) < self.bs]
        return super().arrange([b for b in batches if len(b) == self.bs]) + small


@mutant("shuffles batches inside each pool alone", caught_by=shuffled)
class Buckets(Right):
    def __iter__(self):
        for pool in self.pools():
            yield from self.arrange(self.cut(self.sort(pool)))


@mutant("counts by making a pass", caught_by=repeats)
class Buckets(Right):
    def __len__(self):
        return len(list(iter(self)))


@mutant("seeds Python's random", caught_by=repeats)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        random.seed(seed)

    def drawn(self, n):
        return random.sample(range(n), n)


@mutant("yields tuples", caught_by=once)
class Buckets(Right):
    def __iter__(self):
        return map(tuple, super().__iter__())


@mutant("sorts by the lengths as text", caught_by=similar)
class Buckets(Right):
    def sort(self, pool):
        return sorted(pool, key=lambda i: str(self.lengths[i]))


@mutant("repeats the first samples to fill the smaller batch", caught_by=once)
class Buckets(Right):
    def cut(self, pool):
        return [b + pool[: self.bs - len(b)] for b in super().cut(pool)]


@mutant("needs a list", caught_by=tensors)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        if not isinstance(lengths, list):
            self.lengths = [0] * len(lengths)


@mutant("sorts the caller's tensor", caught_by=untouched)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        if not isinstance(lengths, list):
            lengths.copy_(lengths.sort().values)


@mutant("draws from the default generator", caught_by=repeats)
class Buckets(Right):
    def drawn(self, n):
        return torch.randperm(n).tolist()


@mutant("seeds the default generator", caught_by=still)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        torch.manual_seed(seed)

    def drawn(self, n):
        return torch.randperm(n).tolist()


@mutant("rounds the number of batches down", caught_by=length)
class Buckets(Right):
    def __len__(self):
        return len(self.lengths) // self.bs


@mutant("yields tensors", caught_by=once)
class Buckets(Right):
    def __iter__(self):
        return iter([torch.tensor(b) for b in super().__iter__()])


@mutant("sorts the caller's lengths", caught_by=untouched)
class Buckets(Right):
    def __init__(self, lengths, bs, pool, seed):
        super().__init__(lengths, bs, pool, seed)
        if isinstance(lengths, list):
            lengths.sort()


@hinted(1, reaches=mixes)
class Buckets(Right):
    def drawn(self, n):
        return torch.randperm(n).tolist()

    def arrange(self, batches):
        return batches


@accepted("with tensors all the way")
class Buckets:
    def __init__(self, lengths, bs, pool, seed):
        self.lengths = torch.as_tensor(lengths)
        self.bs, self.size = bs, bs * pool
        self.g = torch.Generator().manual_seed(seed)

    def __len__(self):
        return (len(self.lengths) + self.bs - 1) // self.bs

    def __iter__(self):
        order = torch.randperm(len(self.lengths), generator=self.g)
        parts = []
        for pool in order.split(self.size):
            parts += pool[self.lengths[pool].argsort(descending=True)].split(self.bs)
        for k in torch.randperm(len(parts), generator=self.g):
            yield parts[k].tolist()


@accepted("shuffles as pairs, and pops the batches")
class Buckets:
    def __init__(self, lengths, bs, pool, seed):
        self.pairs = [(int(n), i) for i, n in enumerate(lengths)]
        self.bs, self.pool, self.g = bs, pool, torch.Generator()
        self.g.manual_seed(seed)

    def __len__(self):
        return len(range(0, len(self.pairs), self.bs))

    def __iter__(self):
        left = [self.pairs[k] for k in torch.randperm(len(self.pairs), generator=self.g)]
        made = []
        while left:
            pool, left = left[: self.bs * self.pool], left[self.bs * self.pool :]
            pool.sort(key=lambda pair: pair[0])
            while pool:
                made.append([i for _, i in pool[: self.bs]])
                pool = pool[self.bs :]
        yield from (made[k] for k in torch.randperm(len(made), generator=self.g))
