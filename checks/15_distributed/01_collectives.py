"""Judges lessons/15_distributed/01_collectives.md."""

import torch
import torch.distributed as dist

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "You report statistics of a data set",
    "The shards have different sizes.",
)

equivalent(
    "total = torch.tensor(parts, dtype=torch.float64)",
    "total = torch.tensor(parts)",
    because="torch.tensor takes float64 from the 0-d tensors in the list.",
)

SIZES = (
    "A rank with more numbers must weigh more. Which quantities may be added over ranks, and "
    "which may not?"
)
SPREAD = (
    "It is the mean of the squared distances from the mean of all numbers, divided by n and not "
    "n - 1. A variance of one rank knows its own mean alone."
)
EMPTY = (
    "The mean of no numbers is NaN, and a rank that returns early leaves the others waiting. "
    "Without numbers the sums and n are 0: this rank makes the same calls with them."
)
DIGITS = (
    "float32 keeps about seven digits, and the difference of two large numbers loses most of "
    "them. Convert before you square and sum."
)


def shards(sizes, scale=1.0, shift=0.0):
    """The same list on both ranks: they draw with the same seed."""
    return [torch.randn(n) * scale + shift + r for r, n in enumerate(sizes)]


def number(value):
    return torch.as_tensor(value, dtype=torch.float64).detach()


def compare(answer, parts, which=(0, 1), rtol=1e-3, hint=SIZES):
    """Ask with this rank's shard, and compare with the statistics of all."""
    whole = torch.cat(parts).double()
    got = answer.global_stats(parts[dist.get_rank()].clone())
    expect_true(
        isinstance(got, (tuple, list)) and len(got) == 2,
        "global_stats does not return a pair (mean, var)",
    )
    wanted = whole.mean(), whole.var(correction=0)
    for i in which:
        name = ("the mean", "the variance")[i]
        expect_close(number(got[i]), wanted[i], rtol=rtol, atol=1e-9, name=name, hint=hint)


def unequal(rng):
    few, many = rng.randint(1, 4), rng.randint(7, 12)
    return [few, many] if rng.random() < 0.5 else [many, few]


@check("the mean of all numbers", holds="the mean and the variance of all numbers", side="mean")
def means(answer, rng, device):
    compare(answer, shards(unequal(rng)), which=(0,))


@check(
    "the variance of all numbers",
    holds=[
        "the mean and the variance of all numbers on all ranks together, the same on every rank",
        "The variance divides by n.",
        "two numbers: floats or 0-d tensors",
        "The shards may differ in size",
    ],
    both_sides=True,
)
def variances(answer, rng, device):
    compare(answer, shards(unequal(rng)), which=(1,), hint=SPREAD)


@check("a rank without numbers", holds="a rank may hold none")
def nothing_here(answer, rng, device):
    sizes = [0, rng.randint(2, 6)]
    rng.shuffle(sizes)
    compare(answer, shards(sizes), hint=EMPTY)


@check(
    "numbers far from 0",
    holds="Numbers far from 0 with a small spread keep their variance to three digits.",
)
def far(answer, rng, device):
    parts = [torch.randn(n) * 0.1 + 3000 for n in unequal(rng)]
    compare(answer, parts, hint=DIGITS)


@check("the shard stays as it was", holds="The shard itself keeps its values.")
def untouched(answer, rng, device):
    x = shards(unequal(rng))[dist.get_rank()]
    with expect_unchanged(x, hint="all_reduce writes into the tensor that it is given."):
        answer.global_stats(x)


@mutant("averages the means and variances of the ranks", caught_by=means)
def global_stats(x):
    t = torch.stack([x.double().mean(), x.double().var(correction=0)])
    dist.all_reduce(t)
    t /= dist.get_world_size()
    return t[0], t[1]


@mutant("divides by the count of this rank", caught_by=means)
def global_stats(x):
    d = x.double()
    t = torch.stack([d.sum(), (d * d).sum()])
    dist.all_reduce(t)
    mean, square = (t / max(len(d), 1)).tolist()
    return mean, square - mean**2


@mutant("averages the variances", caught_by=variances)
def global_stats(x):
    d = x.double()
    t = torch.stack([torch.tensor(float(len(d))).double(), d.sum(), d.var(correction=0) / 2])
    dist.all_reduce(t)
    n, s, var = t.tolist()
    return s / n, var


@mutant("divides the variance by n - 1", caught_by=variances)
def global_stats(x):
    d = x.double()
    t = torch.tensor([len(d), d.sum(), (d * d).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, (q - s * s / n) / (n - 1)


@mutant("begins with the mean of each rank", caught_by=nothing_here)
def global_stats(x):
    d = x.double()
    n = float(len(d))
    t = torch.tensor([n, d.mean().item() * n, (d * d).mean().item() * n], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


@mutant("returns early without numbers", caught_by=nothing_here)
def global_stats(x):
    if len(x) == 0:
        return 0.0, 0.0
    d = x.double()
    t = torch.tensor([len(d), d.sum(), (d * d).sum()], dtype=torch.float64)
    dist.all_reduce(t)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


@mutant("reduces to rank 0 alone", caught_by=means)
def global_stats(x):
    d = x.double()
    t = torch.tensor([len(d), d.sum(), (d * d).sum()], dtype=torch.float64)
    dist.reduce(t, dst=0)
    n, s, q = t.tolist()
    return s / n, q / n - (s / n) ** 2


@mutant("sums in float32", caught_by=far)
def global_stats(x):
    t = torch.stack([torch.tensor(float(len(x))), x.sum(), (x * x).sum()])
    dist.all_reduce(t)
    n, s, q = t
    return s / n, q / n - (s / n) ** 2


@mutant("centres the shard in place", caught_by=untouched)
def global_stats(x):
    d = x.double()
    t = torch.tensor([len(d), d.sum()], dtype=torch.float64)
    dist.all_reduce(t)
    mean = (t[1] / t[0]).item()
    square = ((d - mean) ** 2).sum()
    x.sub_(mean)
    dist.all_reduce(square)
    return mean, square / t[0]


@hinted(1, reaches=means)
def global_stats(x):
    t = torch.tensor([x.sum().item(), len(x)])
    dist.all_reduce(t)
    return t[0] / t[1], x.var(correction=0)


@accepted("centres between two collectives")
def global_stats(x):
    d = x.double()
    t = torch.tensor([len(d), d.sum()], dtype=torch.float64)
    dist.all_reduce(t)
    mean = t[1] / t[0]
    square = ((d - mean) ** 2).sum()
    dist.all_reduce(square)
    return mean, square / t[0]


@accepted("merges counts, means and squared distances")
def global_stats(x):
    d = x.double()
    mean = float(d.mean()) if len(d) else 0.0
    mine = torch.tensor([len(d), mean, float((d - mean).square().sum())], dtype=torch.float64)
    every = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
    dist.all_gather(every, mine)
    count, centre, spread = 0.0, 0.0, 0.0
    for n, mean, squares in torch.stack(every).tolist():
        if n:
            apart, total = mean - centre, count + n
            spread += squares + apart**2 * count * n / total
            centre += apart * n / total
            count = total
    return centre, spread / count


@accepted("gathers the sums of all ranks")
def global_stats(x):
    d = x.double()
    every = [None] * dist.get_world_size()
    dist.all_gather_object(every, (len(d), float(d.sum()), float((d * d).sum())))
    n, s, q = (sum(column) for column in zip(*every))
    return s / n, q / n - (s / n) ** 2
