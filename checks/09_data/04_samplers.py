"""Judges lessons/09_data/04_samplers.md."""

import torch
from torch.utils.data import WeightedRandomSampler

from tensortutor.checking import (
    accepted,
    advising,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    mutant,
)

OWN = "The weight of a sample is 1 over the number of samples of its class, or a multiple of that."


def labels(rng, counts):
    """Labels with these counts by class, mixed. A count of 0 skips the number."""
    y = torch.cat([torch.full((n,), c) for c, n in counts.items()])
    return y[torch.randperm(len(y))]


def uneven(rng):
    """Counts of three classes, far apart, and no square of each other."""
    a, b, c = rng.sample([2, 5, 11, 23, 47, 90], 3)
    return {0: a, 1: b, 2: c}


def weights_of(answer, y):
    """What balance returns: (N,) float64, finite and above 0."""
    with expect_unchanged(y):
        got = answer.balance(y)
    expect_shape(
        got,
        y.shape,
        name="the tensor of weights",
        hint="The sampler draws from as many indices as there are weights: one per sample.",
    )
    expect_dtype(got, torch.float64, name="the tensor of weights")
    expect_true(
        bool(got.isfinite().all()),
        "a weight is inf or NaN",
        hint="A number that is no label has the count 0. Divide by counts that you looked up.",
    )
    expect_true(bool((got > 0).all()), "a weight is not above 0", hint="It would never be drawn.")
    return got


def weights_with_gaps(answer, y):
    """The same for labels that skip numbers."""
    top, n = int(y.max()), len(y.unique())
    hint = f"Labels may skip numbers: y of {top} is no row of a table with {n}."
    with advising(IndexError, hint=hint):
        return weights_of(answer, y)


def sums_agree(got, y, hint=OWN):
    """The weights of each class add up to the same."""
    sums = torch.stack([got[y == c].sum() for c in y.unique()])
    expect_close(
        sums,
        sums[:1].expand_as(sums).clone(),
        name="the sum of the weights, class by class,",
        rtol=1e-9,
        atol=0,
        hint=hint,
    )


@check("one weight per sample, float64")
def per_sample(answer, rng, device):
    for counts in (uneven(rng), {0: 2, 1: 3, 2: 1, 3: 4}, {0: 1}):
        weights_of(answer, labels(rng, counts))


@check("the weights of each class add up to the same")
def sums(answer, rng, device):
    for counts in (uneven(rng), {0: 90, 1: 9, 2: 1}, {0: 3, 1: 3}):
        y = labels(rng, counts)
        sums_agree(weights_of(answer, y), y)


@check("samples of one class have one weight, in the order of y")
def order(answer, rng, device):
    counts = uneven(rng)
    for y in (labels(rng, counts), labels(rng, counts).sort().values):
        got = weights_of(answer, y)
        for c in counts:
            own = got[y == c]
            expect_close(
                own,
                own[:1].expand_as(own).clone(),
                name=f"the weights of the samples of class {c}",
                rtol=1e-12,
                atol=0,
                hint="Weight i belongs to sample i: look it up with the label of sample i.",
            )
        rare, common = min(counts, key=counts.get), max(counts, key=counts.get)
        expect_true(
            bool(got[y == rare].min() > got[y == common].max()),
            "a sample of the common class has as much weight as one of the rare class",
            hint="Rare samples must be drawn more often than common ones.",
        )


@check("labels may skip numbers")
def skipped(answer, rng, device):
    for counts in ({0: 4, 3: 1, 7: 9}, {5: 2, 2: 6}, {1000: 3, 40: 1}):
        y = labels(rng, counts)
        sums_agree(weights_with_gaps(answer, y), y)


@check("a single class, a single sample")
def single(answer, rng, device):
    for counts in ({0: 6}, {4: 5}, {0: 1}, {3: 1}):
        y = labels(rng, counts)
        got = weights_with_gaps(answer, y)
        expect_close(
            got, got[:1].expand_as(got).clone(), name="the weights of one class", rtol=1e-12, atol=0
        )


@check("a sampler draws each class equally often")
def drawn(answer, rng, device):
    counts = uneven(rng)
    y = labels(rng, counts)
    g = torch.Generator().manual_seed(rng.randrange(2**31))
    i = list(WeightedRandomSampler(weights_of(answer, y), 30_000, generator=g))
    shares = y[i].bincount(minlength=3) / 30_000
    for c, share in enumerate(shares.tolist()):
        expect_true(
            abs(share - 1 / 3) < 0.02,
            f"class {c} of 3, with {counts[c]} of {len(y)} samples, "
            f"has a share of {share:.2f} of the draws",
            hint=OWN,
        )


@check("the result is the same each time")
def again(answer, rng, device):
    y = labels(rng, uneven(rng))
    first = weights_of(answer, y).clone()
    expect_equal(weights_of(answer, y), first, name="the weights, asked for again,")


@mutant("one weight per class", caught_by=per_sample)
def balance(y):
    return 1 / y.bincount().double()


@mutant("the counts themselves", caught_by=drawn)
def balance(y):
    return y.bincount()[y].double()


@mutant("stops half way, at the root", caught_by=sums)
def balance(y):
    return 1 / y.bincount()[y].double().sqrt()


@mutant("goes too far", caught_by=sums)
def balance(y):
    return 1 / y.bincount()[y].double().square()


@mutant("no effect", caught_by=drawn)
def balance(y):
    return torch.ones(len(y), dtype=torch.float64)


@mutant("one minus the share", caught_by=sums)
def balance(y):
    return 1 - 0.999 * y.bincount()[y].double() / len(y)


@mutant("repeats the class weights in the order of the classes", caught_by=order)
def balance(y):
    counts = y.bincount()
    return (1 / counts.double()).repeat_interleave(counts)


@mutant("numbers the classes that occur, and forgets to look up", caught_by=skipped)
def balance(y):
    _, counts = y.unique(return_counts=True)
    if len(counts) <= int(y.max()):
        return 1 / counts[y % len(counts)].double()
    return 1 / counts[y].double()


@mutant("looks up in a table of the classes that occur", caught_by=skipped)
def balance(y):
    counts = y.unique(return_counts=True)[1]
    return (1 / counts.double())[y]


@mutant("float32", caught_by=per_sample)
def balance(y):
    return 1 / y.bincount()[y].float()


@mutant("one over the label", caught_by=sums)
def balance(y):
    return 1 / (y + 1).double()


@accepted("numbers the classes with unique")
def balance(y):
    _, place, counts = torch.unique(y, return_inverse=True, return_counts=True)
    weights = 1.0 / counts.to(torch.float64)
    return weights[place] / len(counts)


@accepted("compares every label with every other")
def balance(y):
    return (y[:, None] == y).double().mean(1).reciprocal()


@accepted("counts in a dictionary")
def balance(y):
    counts = {}
    for label in y.tolist():
        counts[label] = counts.get(label, 0) + 1
    return torch.tensor([1 / counts[label] for label in y.tolist()], dtype=torch.float64)


equivalent(
    "return 1 / counts[y].double()",
    "return 2 / counts[y].double()",
    because="Weights need not add up to 1: the text leaves the sum open.",
)
