"""Judges lessons/09_data/04_samplers.md."""

import itertools

import torch
from torch.utils.data import DataLoader

from tensortutor.checking import (
    accepted,
    check,
    expect_equal,
    expect_true,
    fail,
    mutant,
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
    return [rng.randint(1, top) for _ in range(n)]


def batches_of(buckets):
    """One pass: lists of ints."""
    made = list(buckets)
    for number, batch in enumerate(made):
        if not isinstance(batch, (list, tuple)) or not all(type(i) is int for i in batch):
            kind = (
                f"a {type(batch).__name__} of {type(batch[0]).__name__}" if len(batch) else "empty"
            )
            fail(f"batch {number} is {kind}, a list of ints is wanted",
                 hint="tolist() makes Python ints of a tensor.")  # fmt: skip
    return [list(batch) for batch in made]


def padding(batches, lengths):
    """The share of places that hold no data."""
    places = sum(len(b) * max(lengths[i] for i in b) for b in batches)
    return 1 - sum(lengths) / places


@check("every sample comes once, in batches of bs and one smaller at most")
def once(answer, rng, device):
    for n, bs, pool in ((50, 8, 2), (48, 8, 2), (7, 8, 3), (1, 1, 1), (33, 4, 100), (30, 7, 1)):
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


@check("len() is the number of batches")
def length(answer, rng, device):
    for n, bs in ((50, 8), (48, 8), (3, 8), (1, 1)):
        buckets = answer.Buckets(lengths_of(rng, n), bs, 3, 0)
        hint = "A smaller batch counts as well: divide and round up."
        expect_equal(len(buckets), -(-n // bs), name=f"len() for n = {n}, bs = {bs}", hint=hint)
        loader = DataLoader(range(n), batch_sampler=buckets)
        expect_equal(len(list(loader)), len(loader), name="the number of batches of a loader",
                     hint=hint)  # fmt: skip


@check("a batch holds samples of similar length")
def similar(answer, rng, device):
    lengths = lengths_of(rng, 400)
    for pool, most in ((1000, 0.06), (10, 0.2)):
        got = batches_of(answer.Buckets(lengths, 8, pool, rng.randrange(2**31)))
        share = padding(got, lengths)
        expect_true(share < most, f"with pools of {pool} batches, {share:.0%} of all places are "
                    f"padding, at most {most:.0%} are wanted", hint=SORT)  # fmt: skip
    whole = batches_of(answer.Buckets(lengths, 8, 50, rng.randrange(2**31)))
    whole.sort(key=lambda b: (max(lengths[i] for i in b), min(lengths[i] for i in b)))
    for before, after in itertools.pairwise(whole):
        expect_true(
            max(lengths[i] for i in before) <= min(lengths[i] for i in after),
            "with a single pool, two batches overlap in their lengths",
            hint=SORT,
        )


@check("in each epoch other samples meet")
def mixes(answer, rng, device):
    lengths = rng.sample(range(1, 1000), 240)
    for pool in (1, 5):
        buckets = answer.Buckets(lengths, 8, pool, rng.randrange(2**31))
        first, second = ({frozenset(b) for b in batches_of(buckets)} for _ in range(2))
        same = len(first & second)
        expect_true(same < 3, f"with pools of {pool} batches, {same} of 30 batches have the same "
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


@check("short and long batches come in any order")
def shuffled(answer, rng, device):
    lengths = rng.sample(range(1, 1000), 240)
    for pool in (1000, 5):
        buckets = answer.Buckets(lengths, 8, pool, rng.randrange(2**31))
        for _ in range(2):
            tops = [max(lengths[i] for i in b) for b in batches_of(buckets)]
            rises = sum(a < b for a, b in itertools.pairwise(tops))
            expect_true(6 <= rises <= 23, f"of 29 steps from one batch to the next, {rises} go to "
                        "a longer one", hint=ORDER)  # fmt: skip
    orders = [[tuple(sorted(b)) for b in batches_of(buckets)] for _ in range(2)]
    expect_true(orders[0] != orders[1], "two epochs have the same order", hint=STREAM)


@check("the seed decides, and the default generator is not moved")
def repeats(answer, rng, device):
    lengths, seed = lengths_of(rng, 60), rng.randrange(2**31)
    torch.manual_seed(rng.randrange(2**31))
    before = torch.get_rng_state()
    one = answer.Buckets(lengths, 8, 3, seed)
    first = [batches_of(one) for _ in range(3)]
    same = torch.equal(torch.get_rng_state(), before)
    expect_true(same, "torch's default generator was moved", hint=STREAM)
    torch.manual_seed(rng.randrange(2**31))
    other = answer.Buckets(torch.tensor(lengths), 8, 3, seed)
    expect_equal([batches_of(other) for _ in range(3)], first, hint=STREAM,
                 name="the list of batches in three epochs, for the same seed,")  # fmt: skip
    expect_true(first[0] != first[1], "two epochs have the same batches", hint=STREAM)
    another = batches_of(answer.Buckets(lengths, 8, 3, seed + 1))
    expect_true(another != first[0], "two seeds give the same batches", hint=STREAM)


@check("the caller's lengths are left as they are")
def untouched(answer, rng, device):
    lengths = lengths_of(rng, 30)
    given = list(lengths)
    list(answer.Buckets(lengths, 4, 2, 1))
    expect_equal(lengths, given, name="the list of lengths", hint="Sort indices, not lengths.")


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


@mutant("draws from the default generator", caught_by=repeats)
class Buckets(Right):
    def drawn(self, n):
        return torch.randperm(n).tolist()


@mutant("seeds the default generator", caught_by=repeats)
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
