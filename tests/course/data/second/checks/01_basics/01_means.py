"""Judges lessons/01_basics/01_means.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_shape,
    expect_unchanged,
    hinted,
    mutant,
)

background("A row is a sample.", "Write `centre`.")


def rows(rng, device):
    shape = rng.randint(2, 4), rng.randint(5, 7)
    return torch.randn(shape, device=device)


@check("the shape stays", holds="(rows, columns), floating point -> the same shape")
def shape(answer, rng, device):
    x = torch.ones(3, 3, device=device)
    expect_shape(answer.centre(x), (3, 3))


@check(
    "every row is centred on its own mean",
    holds="Every row, keepdim or not, loses its own mean.",
    both_sides=True,
)
def centred(answer, rng, device):
    x = rows(rng, device)
    expect_close(answer.centre(x), x - x.sum(1, keepdim=True) / x.shape[1])


@check("the input stays as it was", holds=["The input stays as it is"])
def untouched(answer, rng, device):
    x = rows(rng, device)
    with expect_unchanged(x):
        answer.centre(x)


@mutant("averages the columns", caught_by=centred)
def centre(x):
    return x - x.mean(dim=0, keepdim=True)


@mutant("subtracts in place", caught_by=untouched)
def centre(x):
    return x.sub_(x.mean(dim=1, keepdim=True))


@accepted("adds a dimension by hand")
def centre(x):
    return x - x.mean(1)[:, None]


@hinted(1, reaches=shape)
def centre(x):
    return x - x.mean(dim=1)
