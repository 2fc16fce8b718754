"""Judges lessons/01_basics/01_means.md."""

import torch

from tensortutor.checking import accepted, check, expect_close, expect_unchanged, mutant


def rows(rng, device):
    shape = rng.randint(2, 4), rng.randint(5, 7)
    return torch.randn(shape, device=device)


@check("every row is centred on its own mean")
def centred(answer, rng, device):
    x = rows(rng, device)
    expect_close(answer.centre(x), x - x.sum(1, keepdim=True) / x.shape[1])


@check("the mean is computed, not looked up", forbid=("torch.nn.functional.layer_norm",))
def computed(answer, rng, device):
    x = rows(rng, device)
    expect_close(answer.centre(x).sum(), torch.zeros((), device=device), atol=1e-3)


@check("the input stays as it was")
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
