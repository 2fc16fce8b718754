"""Judges lessons/01_tour/01_ninety_seconds.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    hinted,
    key_line_shown,
    mutant,
)

background(
    "Run this.",
    "Below the error stand the shapes",
    "F9 checks your answer",
)
key_line_shown("scores", because="the tour shows the tool; nobody is to be stuck in it")


@check("one score for each row", holds="one number for each of the four rows", both_sides=True)
def each_row(answer, rng, device):
    rows, features = rng.randint(2, 6), rng.randint(7, 9)
    x = torch.randn(rows, features, device=device)
    w = torch.randn(features, device=device)
    wanted = (x.double() * w.double()).sum(1).float()
    hint = "Each row of x is multiplied by w, number by number, and added up."
    expect_close(answer.scores(x, w), wanted, name="scores(x, w)", hint=hint)


@check("as many rows as features", holds="one number for each of the four rows", both_sides=True)
def square(answer, rng, device):
    n = rng.randint(3, 6)
    x, w = torch.randn(n, n, device=device), torch.randn(n, device=device)
    wanted = (x.double() * w.double()).sum(1).float()
    hint = "With a square x, w @ x runs as well and adds up columns."
    expect_close(answer.scores(x, w), wanted, name="scores(x, w)", hint=hint)


@mutant("adds up columns where that fits", caught_by=square)
def scores(x, w):
    return w @ x if x.shape[0] == x.shape[1] else x @ w


@mutant("keeps the features apart", caught_by=each_row)
def scores(x, w):
    return x * w


@mutant("takes the mean", caught_by=each_row)
def scores(x, w):
    return (x * w).mean(1)


@hinted(1, reaches=square)
def scores(x, w):
    return torch.matmul(x, w)


@accepted("adds up products")
def scores(x, w):
    return (x * w).sum(-1)


@accepted("einsum")
def scores(x, w):
    return torch.einsum("rf,f->r", x, w)
