"""Judges lessons/11_projects/02_split_first.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("Write `split(groups, fraction, generator)`", "A call that may help")
equivalent(
    "held = sizes.cumsum(0) - sizes < fraction * len(groups)",
    "held = sizes.cumsum(-1) - sizes < fraction * len(groups)",
    because="A tensor of one dimension has its first as its last.",
)

SIZE = "Count rows, not groups, and stop as soon as there are enough."


def some_groups(rng):
    """Interleaved rows of groups whose sizes differ widely, with ids of any kind."""
    ids = rng.sample(range(-50, 1000), rng.randint(4, 9))
    sizes = [20, 1] + [rng.choice((1, 2, 3, 20)) for _ in ids[2:]]
    rows = [g for g, n in zip(ids, sizes, strict=True) for _ in range(n)]
    rng.shuffle(rows)
    return torch.tensor(rows)


def fits(groups, rows, wanted):
    """Whether these are enough rows, and one of their groups was needed."""
    sizes = groups[rows].unique(return_counts=True)[1].tolist()
    return len(rows) >= wanted and any(len(rows) - n < wanted for n in sizes)


def halves(answer, groups, fraction, seed):
    got = answer.split(groups, fraction, torch.Generator().manual_seed(seed))
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        fail("split does not return two results", hint="Return train, val.")
    for rows in got:
        expect_true(
            isinstance(rows, torch.Tensor) and rows.dtype == torch.int64 and rows.dim() == 1,
            "a result is no one-dimensional int64 tensor",
            hint="Row numbers: a mask's nonzero().flatten() are some.",
        )
    return got


@check(
    "every row is on one side",
    holds=[
        "row numbers for training and for validation, by whole groups.",
        "Every row stands in one of the two results",
    ],
)
def partition(answer, rng, device):
    for fraction in (0.2, 0.5):
        groups = some_groups(rng)
        with expect_unchanged(groups):
            train, val = halves(answer, groups, fraction, rng.randrange(2**31))
        hint = "Each row number once, in train or in val. Rows, not the ids of groups."
        got = sorted(train.tolist() + val.tolist())
        expect_equal(got, list(range(len(groups))), name="all rows together", hint=hint)


@check("a group is on one side", holds="and all rows of a group stand on the same side.")
def whole_groups(answer, rng, device):
    for fraction in (0.2, 0.5):
        groups = some_groups(rng)
        train, val = halves(answer, groups, fraction, rng.randrange(2**31))
        shared = set(groups[train].tolist()) & set(groups[val].tolist())
        message = f"{len(shared)} groups stand on both sides"
        expect_true(not shared, message, hint="The model has met these writers.")


@check(
    "validation has enough rows, and no group too many",
    holds="until validation has at least `fraction` of the rows.",
    both_sides=True,
)
def size(answer, rng, device):
    for _ in range(4):
        for fraction in (0.2, 0.5):
            groups = some_groups(rng)
            train, val = halves(answer, groups, fraction, rng.randrange(2**31))
            wanted = fraction * len(groups)
            several = len(groups[train].unique()) > 1
            if several and fits(groups, train, wanted) and not fits(groups, val, wanted):
                message = "the first result is what validation should be"
                fail(message, hint="Return train, val, in this order.")
            if len(val) < wanted:
                left = len(groups[train].unique())
                message = f"validation has {len(val)} rows of {len(groups)}, {wanted:.1f} wanted"
                expect_true(left == 1, message, hint=SIZE)
            counts = groups[val].unique(return_counts=True)[1].tolist()
            message = "without any one of its groups, validation would still have enough rows"
            expect_true(any(len(val) - n < wanted for n in counts), message, hint=SIZE)
    groups = torch.arange(8).repeat(rng.randint(2, 5))
    val = halves(answer, groups, 0.5, rng.randrange(2**31))[1]
    message = f"validation has {len(val)} rows, and {len(groups) // 2} are half of them"
    hint = "Half of the rows is at least half: no further group."
    expect_true(2 * len(val) == len(groups), message, hint=hint)


@check(
    "something is left to train on",
    holds="At least one group stays for training, even if validation then has too few.",
    both_sides=True,
)
def something_left(answer, rng, device):
    for seed in range(8):
        train, val = halves(answer, torch.tensor([7, 8, 8, 9]), 0.9, seed)
        expect_true(len(train) > 0, "nothing is left to train on", hint="One group stays.")
        left = len({7: 1, 8: 2, 9: 1}) - len(set(torch.tensor([7, 8, 8, 9])[val].tolist()))
        expect_true(left == 1, f"{left} groups stay, and validation has too few", hint=SIZE)


@check("the order is random", holds="in random order")
def random_order(answer, rng, device):
    groups = torch.arange(12).repeat_interleave(3)
    kinds = {tuple(halves(answer, groups, 0.25, s)[1].tolist()) for s in rng.sample(range(999), 12)}
    hint = "Shuffle the groups with the generator."
    expect_true(len(kinds) > 3, "every seed holds out the same groups", hint=hint)
    # Of 220 ways to choose three groups of twelve, twelve are neighbours.
    sets = [sorted({i // 3 for i in kind}) for kind in kinds]
    apart = [
        s for s in sets if sorted((b - a) % 12 for a, b in zip(s, s[1:] + s[:1])) != [1, 1, 10]
    ]
    hint = "Shuffle the groups: a random beginning alone leaves neighbours together."
    expect_true(apart, "the groups held out are always neighbours", hint=hint)


@check(
    "sizes do not decide the order",
    holds="A large group is as likely to come early as a small one.",
)
def any_size(answer, rng, device):
    # Four groups, of which one has 21 of 24 rows; one is held out.
    groups = torch.full((24,), 5)
    groups[[3, 9, 15]] = torch.tensor([2, 7, 11])
    groups = 30 - groups if rng.random() < 0.5 else groups
    seeds = rng.sample(range(2**31), 200)
    large = sum(len(halves(answer, groups, 0.01, seed)[1]) == 21 for seed in seeds)
    message = f"of 200 seeds {large} hold out the largest of four groups, and 50 are expected"
    hint = "Shuffle the different ids, of which each stands there once, and do not sort by size."
    expect_true(15 < large < 100, message, hint=hint)  # 50 +- 6.1


@check(
    "the seed decides, and nothing else",
    holds="The random order comes from `generator` alone, and the same seed gives the same split.",
)
def seeded(answer, rng, device):
    groups, seed = some_groups(rng), rng.randrange(2**31)
    state = torch.get_rng_state()
    first = halves(answer, groups, 0.4, seed)[1]
    for _ in range(3):
        again = halves(answer, groups, 0.4, seed)[1]
        expect_equal(again.tolist(), first.tolist(), name="the split again", hint="Pass generator.")
    same = torch.equal(torch.get_rng_state(), state)
    expect_true(same, "the global generator was used", hint="Pass generator=generator.")


@mutant("splits rows", caught_by=whole_groups)
def split(groups, fraction, generator):
    order = torch.randperm(len(groups), generator=generator)
    n = int(fraction * len(groups))
    return order[n:], order[:n]


@mutant("sorts by group and cuts", caught_by=whole_groups)
def split(groups, fraction, generator):
    order = groups.argsort(stable=True)
    cut = 1 + int((groups[order] == groups.mode().values).nonzero()[0])
    return order[cut:], order[:cut]


@mutant("takes a fraction of the groups", caught_by=size)
def split(groups, fraction, generator):
    ids = groups.unique()
    n = max(1, round(fraction * len(ids)))
    val = torch.isin(groups, ids[torch.randperm(len(ids), generator=generator)[:n]])
    return torch.where(~val)[0], torch.where(val)[0]


@mutant("holds out the lowest ids", caught_by=random_order)
def split(groups, fraction, generator):
    ids, sizes = groups.unique(return_counts=True)
    held = sizes.cumsum(0) - sizes < fraction * len(groups)
    held[-1] = False
    val = torch.isin(groups, ids[held])
    return torch.where(~val)[0], torch.where(val)[0]


@mutant("holds out everything", caught_by=something_left)
def split(groups, fraction, generator):
    ids, sizes = groups.unique(return_counts=True)
    order = torch.randperm(len(ids), generator=generator)
    held = sizes[order].cumsum(0) - sizes[order] < fraction * len(groups)
    val = torch.isin(groups, ids[order[held]])
    return torch.where(~val)[0], torch.where(val)[0]


@mutant("uses the global generator", caught_by=seeded)
def split(groups, fraction, generator):
    ids, sizes = groups.unique(return_counts=True)
    order = torch.randperm(len(ids))
    held = sizes[order].cumsum(0) - sizes[order] < fraction * len(groups)
    held[-1] = False
    val = torch.isin(groups, ids[order[held]])
    return torch.where(~val)[0], torch.where(val)[0]


@mutant("takes a group more where the rows are just enough", caught_by=size)
def split(groups, fraction, generator):
    ids, sizes = groups.unique(return_counts=True)
    order = torch.randperm(len(ids), generator=generator)
    held = sizes[order].cumsum(0) - sizes[order] <= fraction * len(groups)
    held[-1] = False
    val = torch.isin(groups, ids[order[held]])
    return torch.where(~val)[0], torch.where(val)[0]


def in_order(groups, fraction, ids):
    k = 1
    while k < len(ids) - 1 and torch.isin(groups, ids[:k]).sum() < fraction * len(groups):
        k += 1
    val = torch.isin(groups, ids[:k])
    return torch.where(~val)[0], torch.where(val)[0]


@mutant("takes small groups first", caught_by=any_size)
def split(groups, fraction, generator):
    ids, sizes = groups.unique(return_counts=True)
    return in_order(
        groups, fraction, ids[(sizes + torch.rand(len(ids), generator=generator)).argsort()]
    )


@mutant("takes the group of a random row", caught_by=any_size)
def split(groups, fraction, generator):
    rows = groups[torch.randperm(len(groups), generator=generator)].tolist()
    return in_order(groups, fraction, torch.tensor(list(dict.fromkeys(rows))))


@mutant("begins at a random group, and goes on in order", caught_by=random_order)
def split(groups, fraction, generator):
    ids = groups.unique()
    start = torch.randint(len(ids), (1,), generator=generator).item()
    return in_order(groups, fraction, ids.roll(start))


@mutant("swaps the results", caught_by=size)
def split(groups, fraction, generator):
    ids = groups.unique()
    ids = ids[torch.randperm(len(ids), generator=generator)]
    return in_order(groups, fraction, ids)[::-1]


@mutant("returns ids of groups", caught_by=partition)
def split(groups, fraction, generator):
    ids = groups.unique()[torch.randperm(len(groups.unique()), generator=generator)]
    return ids[1:], ids[:1]


@hinted(1, reaches=whole_groups)
def split(groups, fraction, generator):
    ids = groups.unique()
    held = ids[torch.randperm(len(ids), generator=generator)[:1]]
    val = groups == held
    return torch.where(~val)[0], torch.where(val)[0]


@accepted("walks through the groups with a set")
def split(groups, fraction, generator):
    ids, held, rows = sorted(set(groups.tolist())), set(), 0
    for k in torch.randperm(len(ids), generator=generator).tolist():
        if rows >= fraction * len(groups) or len(held) == len(ids) - 1:
            break
        held.add(ids[k])
        rows += (groups == ids[k]).sum().item()
    numbered = list(enumerate(groups.tolist()))
    return tuple(
        torch.tensor([i for i, g in numbered if (g in held) is side]) for side in (False, True)
    )


@accepted("gives each group a random rank")
def split(groups, fraction, generator):
    ids, inverse = torch.unique(groups, return_inverse=True)
    rank = torch.rand(len(ids), generator=generator).argsort().argsort()[inverse]
    before = (rank[None] < rank[:, None]).sum(1)
    val = (before < fraction * len(groups)) & (rank < len(ids) - 1)
    return torch.where(~val)[0], torch.where(val)[0]
