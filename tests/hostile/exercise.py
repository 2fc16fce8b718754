"""Judges `def double(x): return 2 * x`, the exercise that the corpus tries to pass without it."""

import torch

from tensortutor.checking import check, expect_close, expect_equal


@check("doubles every number")
def doubles(answer, rng, device):
    x = torch.randn(rng.randint(2, 5), 3, device=device)
    wanted = x + x
    expect_close(answer.double(x), wanted)


@check("keeps the type of whole numbers")
def keeps_type(answer, rng, device):
    x = torch.tensor([rng.randint(1, 9) for _ in range(4)], device=device)
    wanted = x + x
    expect_equal(answer.double(x), wanted)
