"""Judges lessons/02_repairs/01_lost_dim.md."""

import torch

from tensortutor.checking import check, expect_close, expect_shape, mutant

shows = ["basics/means"]


@check("the program runs to its end")
def runs(answer, rng, device):
    expect_shape(answer.result, (2, 3))


@check("the largest of every row becomes 1")
def largest(answer, rng, device):
    x = torch.rand(rng.randint(2, 4), 5, device=device) + 0.1
    expect_close(answer.scale(x).max(dim=1).values, torch.ones(len(x), device=device))


@mutant("divides by the largest of all", caught_by=largest)
def scale(x):
    return x / x.max()


@mutant(
    "divides by the mean of every column",
    caught_by=largest,
    misconception="basics/means",
    like="averages the columns",
)
def scale(x):
    return x / x.mean(dim=0, keepdim=True)
