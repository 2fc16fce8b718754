"""Judges lessons/11_projects/05_overfitting.md."""

from itertools import pairwise

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Does more data help?",
    "Train on the first 50, 100, 200 rows",
    "For that, each beginning of the order",
    "A call that may help",
)


equivalent(
    "turn = torch.zeros_like(shuffled)",
    "turn = torch.ones_like(shuffled)",
    because="Every entry is overwritten.",
)
equivalent(
    "for c in shuffled.unique():",
    "for c in shuffled:",
    because="It numbers a class again, in the same way.",
)
equivalent(
    "turn[mine] = torch.arange(int(mine.sum()))",
    "turn[mine] = torch.arange(mine.sum())",
    because="arange takes a tensor of one number too.",
)
equivalent(
    "return order[turn.argsort(stable=True)]",
    "return order[turn.argsort()]",
    because="Any order within a round is balanced; that it is stable makes it repeatable.",
)
equivalent(
    "return order[turn.argsort(stable=True)]",
    "return order[turn.argsort(stable=False)]",
    because="Any order within a round is balanced; that it is stable makes it repeatable.",
)


def some_labels(rng, strange=None):
    """Shuffled labels. strange: whether they are any numbers, one of them below 0."""
    sizes = rng.choice(([rng.randint(3, 9) for _ in range(rng.randint(2, 5))], [1, 12, 5], [7] * 3))
    strange = rng.random() < 0.5 if strange is None else strange
    ids = rng.sample(range(1, 40) if strange else range(len(sizes)), len(sizes))
    ids[-1] = -ids[-1] if strange else ids[-1]
    rows = [c for c, n in zip(ids, sizes, strict=True) for _ in range(n)]
    rng.shuffle(rows)
    return torch.tensor(rows)


def ordered(answer, labels, seed):
    with expect_unchanged(labels):
        order = answer.balanced_order(labels, torch.Generator().manual_seed(seed))
    expect_dtype(order, torch.int64, name="the order", hint="Row numbers are int64.")
    return order.tolist()


@check(
    "every row stands in the order once",
    holds=["a permutation of the row numbers.", "All rows stand in it once."],
)
def permutation(answer, rng, device):
    for k in range(4):
        labels = some_labels(rng, strange=k % 2 == 1)
        order = ordered(answer, labels, rng.randrange(2**31))
        hint = "Every row exactly once, also those of the largest class."
        expect_equal(sorted(order), list(range(len(labels))), name="its row numbers", hint=hint)


@check(
    "every prefix is balanced",
    holds="no class is ahead of another by two rows or more, as long as that other one has rows "
    "left.",
    both_sides=True,
)
def balanced(answer, rng, device):
    for k in range(4):
        labels = some_labels(rng, strange=k % 2 == 1)
        total = {c: (labels == c).sum().item() for c in labels.tolist()}
        seen = dict.fromkeys(total, 0)
        for place, i in enumerate(ordered(answer, labels, rng.randrange(2**31)), 1):
            seen[labels[i].item()] += 1
            top = max(seen.values())
            behind = [c for c, n in seen.items() if n < min(top - 1, total[c])]
            message = f"among the first {place} rows a class is two or more behind: {seen}"
            expect_true(not behind, message, hint="One row of each class, then the next of each.")


@check("the order within a class is random", holds="Within a class the order is random.")
def random_within(answer, rng, device):
    labels = torch.arange(3).repeat_interleave(20)
    firsts = [ordered(answer, labels, s)[:9] for s in rng.sample(range(2**31), 16)]
    distinct = len({tuple(sorted(rows)) for rows in firsts})
    hint = "Shuffle the rows before you number them."
    expect_true(distinct > 12, "seeds begin with the same rows", hint=hint)
    low = sum(i % 20 for rows in firsts for i in rows) / 144
    message = f"the first rows stand at {low:.1f} of 20 in the file on average"
    expect_true(6 < low < 13, message, hint=hint)
    steps = []
    for seed in rng.sample(range(2**31), 6):
        first = [i for i in ordered(answer, labels, seed) if i < 20]
        steps += [(b - a) % 20 for a, b in pairwise(first)]
    share = sum(step in (1, 19) for step in steps) / len(steps)
    hint = "Shuffle all rows. A random beginning leaves neighbours of the file together."
    message = f"in {share:.0%} of the cases a row of the file is followed by its neighbour"
    expect_true(share < 0.4, message, hint=hint)  # 11 % by chance


@check(
    "the seed decides, and nothing else",
    holds="Randomness comes from `generator` alone, and the same seed gives the same order.",
)
def seeded(answer, rng, device):
    labels, seed = some_labels(rng), rng.randrange(2**31)
    state = torch.get_rng_state()
    orders = [ordered(answer, labels, seed) for _ in range(4)]
    hint = "generator=generator"
    expect_true(all(o == orders[0] for o in orders), "the same seed gives another order", hint=hint)
    same = torch.equal(torch.get_rng_state(), state)
    expect_true(same, "the global generator was used", hint=hint)


def turns(labels):
    turn = torch.zeros_like(labels)
    for c in labels.unique():
        turn[labels == c] = torch.arange(int((labels == c).sum()))
    return turn


def right(labels, generator):
    order = torch.randperm(len(labels), generator=generator)
    return order[turns(labels[order]).argsort(stable=True)]


@mutant("shuffles and no more", caught_by=balanced)
def balanced_order(labels, generator):
    # Seven rows of one class, then the rest: never balanced by chance.
    order = torch.randperm(len(labels), generator=generator)
    return order[(labels[order] != labels.mode().values).int().argsort(stable=True)]


@mutant("puts class after class", caught_by=balanced)
def balanced_order(labels, generator):
    order = torch.randperm(len(labels), generator=generator)
    return order[labels[order].argsort(stable=True)]


@mutant("keeps the order of the file within a class", caught_by=random_within)
def balanced_order(labels, generator):
    return (turns(labels) * 1000 + torch.rand(len(labels), generator=generator)).argsort()


@mutant("begins at a random row of each class, and goes on in order", caught_by=random_within)
def balanced_order(labels, generator):
    turn = turns(labels)
    for c in labels.unique():
        mine = turn[labels == c]
        start = torch.randint(len(mine), (1,), generator=generator)
        turn[labels == c] = (mine + start) % len(mine)
    return turn.argsort(stable=True)


@mutant("expects classes from 0 upwards", caught_by=permutation)
def balanced_order(labels, generator):
    order = torch.randperm(len(labels), generator=generator)
    piles = [order[labels[order] == c].tolist() for c in range(int(labels.max()) + 1)]
    out = []
    while any(piles):
        out += [pile.pop() for pile in piles if pile]
    return torch.tensor(out, dtype=torch.int64)


@mutant("returns places in the shuffled list", caught_by=balanced)
def balanced_order(labels, generator):
    order = torch.randperm(len(labels), generator=generator)
    return turns(labels[order]).argsort(stable=True)


@mutant("stops with the smallest class", caught_by=permutation)
def balanced_order(labels, generator):
    sizes = labels.unique(return_counts=True)[1]
    return right(labels, generator)[: int(sizes.min()) * len(sizes) - 1]


@mutant("draws with replacement", caught_by=permutation)
def balanced_order(labels, generator):
    n = len(labels)
    return torch.multinomial(torch.ones(n), 2 * n, replacement=True, generator=generator)[:n]


@mutant("uses the global generator", caught_by=seeded)
def balanced_order(labels, generator):
    return right(labels, None)


@hinted(1, reaches=random_within)
def balanced_order(labels, generator):
    return right(labels, generator)


@accepted("deals in rounds")
def balanced_order(labels, generator):
    piles = {}
    for i in torch.randperm(len(labels), generator=generator).tolist():
        piles.setdefault(int(labels[i]), []).append(i)
    out, piles = [], list(piles.values())
    while any(piles):
        out += [pile.pop() for pile in piles if pile]
    return torch.tensor(out)


@accepted("cumulates a one-hot table")
def balanced_order(labels, generator):
    order = torch.randperm(len(labels), generator=generator)
    hot = labels[order][:, None] == labels.unique()
    rank = (hot.cumsum(0) * hot).sum(1)
    return order[torch.sort(rank, stable=True).indices]
