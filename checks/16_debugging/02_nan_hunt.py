"""Judges lessons/16_debugging/02_nan_hunt.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "This program learns from a fifth of the labels, and pushes the model to be sure on the rest.",
    "Some images are blank.",
    "It ends with NaN.",
    "There are three sources, one in each function.",
)

equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32 too",
)
equivalent(
    "y[torch.rand(len(y)) < 0.8] = -100",
    "y[torch.rand(len(y)) <= 0.8] = -100",
    because="no draw of this seed is 0.8",
)

STEPS = 40
BLANK = "A row of equal values minus its mean is 0. Divide it by something that is not 0."
SPREAD = (
    "Mean and spread are those of each row. The root of the mean squared difference "
    "divides by the number of values, not one less."
)
KNOWN = "Divide the sum over the known labels by their number, which is at least 1 here."
SUMS = "Minus the sum of p log p over the classes, with ln and no addend; then a mean over rows."
SHIFT = "A number that is added to all scores of a row changes no p: clamp no scores."
BRANCH = "Compute log p from the scores at once; then no branch has to be hidden."


def first_losses(x, y):
    """The first losses of the program as it is meant, from its seed on."""
    torch.manual_seed(0)
    torch.rand(len(y))  # as the program draws which labels are unknown
    model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(STEPS):
        rows = torch.randperm(len(x))[:16]
        centred = x[rows] - x[rows].mean(1, keepdim=True)
        spread = centred.square().mean(1, keepdim=True).sqrt().clamp(min=1e-6)
        z = model(centred / spread)
        total = F.cross_entropy(z, y[rows], reduction="sum")
        loss = total / (y[rows] != -100).sum().clamp(min=1)
        loss = loss + 0.1 * torch.distributions.Categorical(logits=20 * z).entropy().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
        losses.append(loss.detach())
    return torch.stack(losses)


def scores(rng, device, n=None, dtype=torch.float32):
    n = n or rng.randint(3, 9)
    k = rng.randint(2, 9)
    return torch.randn(n, k, device=device, dtype=dtype, requires_grad=True)


@check(
    "rows are standardised",
    holds="subtracts from each row its mean and divides by the root of the mean squared difference",
    both_sides=True,
)
def rows(answer, rng, device):
    dtype = rng.choice([torch.float32, torch.float64])
    n, k = rng.randint(2, 6), rng.randint(3, 70)
    x = torch.randn(n, k, device=device, dtype=dtype) * 3 + rng.randint(-4, 4)
    wanted = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0)
    expect_close(answer.standardise(x), wanted, rtol=1e-4, atol=1e-5, hint=SPREAD)
    small = x * 0.01
    expect_close(answer.standardise(small), wanted, rtol=1e-3, atol=1e-3, hint=SPREAD)


@check(
    "a row of equal values becomes 0",
    holds="A row that is one whole number throughout, such as a blank image, becomes 0.",
)
def blank(answer, rng, device):
    x = torch.randn(4, 16, device=device)
    x[1], x[3] = 0.0, float(rng.randint(1, 5))
    got = answer.standardise(x)
    expect_close(got[[1, 3]], torch.zeros(2, 16, device=device), name="the blank rows", hint=BLANK)
    wanted = (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True, correction=0)
    expect_close(got[[0, 2]], wanted[[0, 2]], name="the other rows", rtol=1e-4, hint=SPREAD)


@check("x keeps its values", holds="`x` keeps its values.")
def untouched(answer, rng, device):
    x = torch.randn(3, 8, device=device)
    with expect_unchanged(x):
        answer.standardise(x)


@check(
    "the mean over known labels",
    holds=["is the mean cross-entropy over the known labels", "Labels of -100 are unknown."],
)
def known(answer, rng, device):
    z = scores(rng, device, n=rng.randint(4, 12))
    y = torch.randint(z.shape[1], (len(z),), device=device)
    y[: rng.randint(1, len(y) - 1)] = -100
    wanted = F.cross_entropy(z, y, ignore_index=-100)
    got = answer.loss_of(z, y)
    expect_close(got, wanted, name="the loss", hint=KNOWN)
    mine, right = torch.autograd.grad(got, z)[0], torch.autograd.grad(wanted, z)[0]
    expect_close(mine, right, name="the gradient of the loss", hint=KNOWN)


@check("no label is known", holds="Without any it is 0, and so is its gradient.", both_sides=True)
def unknown(answer, rng, device):
    z = scores(rng, device)
    y = torch.full((len(z),), -100, device=device)
    got = answer.loss_of(z, y)
    expect_close(got, torch.zeros((), device=device), name="the loss", hint=KNOWN)
    expect_true(got.requires_grad, "the loss has no graph", hint="It has to go through backward().")
    got.backward()
    expect_close(z.grad, torch.zeros_like(z), name="the gradient", hint=KNOWN)


@check(
    "the entropy",
    holds="is the mean over the rows of -Σ p log p, where p is the softmax of scores z",
)
def plain(answer, rng, device):
    z = scores(rng, device, dtype=torch.float64)
    wanted = torch.distributions.Categorical(logits=z).entropy().mean()
    got = answer.entropy(z)
    expect_close(got, wanted, name="the entropy", hint=SUMS)
    mine, right = torch.autograd.grad(got, z)[0], torch.autograd.grad(wanted, z)[0]
    expect_close(mine, right, name="the gradient of the entropy", hint=BRANCH)
    added = rng.choice([-1, 1]) * rng.uniform(100, 900)
    got, name = answer.entropy(z.detach() + added), f"the entropy with {added:.0f} added to z"
    expect_close(got, wanted, name=name, hint=SHIFT, nan_hint=BRANCH)


@check(
    "scores far apart",
    holds="Value and gradient are finite for scores from -1e30 to 1e30, however far apart.",
    both_sides=True,
)
def far(answer, rng, device):
    for apart in (rng.uniform(80, 120), rng.uniform(200, 900), 1e30):
        z = torch.zeros(2, 3, device=device)
        z[0] = -apart
        z[0, rng.randint(0, 2)] = apart
        z.requires_grad_()
        got = answer.entropy(z)
        wanted = torch.tensor(3.0, device=device).log() / 2
        expect_close(got, wanted, name=f"the entropy with {apart:.3g}", hint=BRANCH)
        got.backward()
        expect_close(z.grad, torch.zeros_like(z), name="the gradient", atol=1e-5, hint=BRANCH)


@check(
    "every loss of the program is finite, and its data are as they were",
    holds="Mend them, and leave data",
)
def whole(answer, rng, device):
    hint = "Ask the five places in each step, and mend the first that is not finite."
    expect_equal(answer.bad, 0, name="the number of losses that are not finite", hint=hint)
    expect_equal(len(answer.losses), 400, name="the number of steps")
    unknown = (answer.y == -100).sum().item()
    expect_true(1300 < unknown < 1550, f"{unknown} labels are unknown now", hint="Keep the data.")
    expect_equal(answer.x.max().item(), 1.0, name="the largest value of x", hint="Keep the data.")
    expect_true(not answer.x[::50].any(), "the blank images have values", hint="Keep the data.")


@check("the training is as it was", holds="leave data and training as they are")
def training(answer, rng, device):
    wanted = first_losses(answer.x, answer.y)
    expect_close(
        answer.losses[:STEPS].float(), wanted, name="the first losses", rtol=1e-3, atol=1e-4,
        hint="Keep model, optimizer and batches.",
    )  # fmt: skip


@mutant("divides by the spread of n - 1", caught_by=rows)
def standardise(x):
    return (x - x.mean(1, keepdim=True)) / x.std(1, keepdim=True).clamp(min=1e-6)


@mutant("adds a number that is not small", caught_by=rows)
def standardise(x):
    centred = x - x.mean(1, keepdim=True)
    return centred / (centred.square().mean(1, keepdim=True) + 1e-3).sqrt()


@mutant("replaces NaN, and zeroes a blank row before its mean", caught_by=rows)
def standardise(x):
    return ((x - x.mean()) / x.std(1, keepdim=True, correction=0)).nan_to_num(0)


@mutant("takes the mean and the spread of the whole batch", caught_by=rows)
def standardise(x):
    return (x - x.mean()) / x.std(correction=0).clamp(min=1e-6)


@mutant("leaves blank rows as they are", caught_by=blank)
def standardise(x):
    centred = x - x.mean(1, keepdim=True)
    spread = centred.square().mean(1, keepdim=True).sqrt()
    return torch.where(spread > 0, centred / spread, x)


@mutant("centres in place", caught_by=untouched)
def standardise(x):
    x -= x.mean(1, keepdim=True)
    return x / x.square().mean(1, keepdim=True).sqrt().clamp(min=1e-6)


@mutant("gives each row the scale of its variance", caught_by=rows)
def standardise(x):
    return (x - x.mean(1, keepdim=True)) / x.var(1, keepdim=True, correction=0).clamp(min=1e-6)


@mutant("returns a number of Python where no label is known", caught_by=unknown)
def loss_of(z, y):
    return F.cross_entropy(z, y) if (y != -100).any() else 0.0


@mutant("asks entr, whose derivative at 0 is infinite", caught_by=far)
def entropy(z):
    return torch.special.entr(z.softmax(1)).sum(1).mean()


@mutant("lets p pass no gradient", caught_by=plain)
def entropy(z):
    logp = z.log_softmax(1)
    return -(logp.detach().exp() * logp).sum(1).mean()


@mutant("divides by the size of the batch", caught_by=known)
def loss_of(z, y):
    return F.cross_entropy(z, y, reduction="sum") / len(y)


@mutant("adds one to the number of labels", caught_by=known)
def loss_of(z, y):
    return F.cross_entropy(z, y, reduction="sum") / ((y != -100).sum() + 1)


@mutant("returns a zero without a graph", caught_by=unknown)
def loss_of(z, y):
    if (y == -100).all():
        return torch.zeros((), device=z.device)
    return F.cross_entropy(z, y)


@mutant("hides the NaN of the loss in the number alone", caught_by=known)
def loss_of(z, y):
    return F.cross_entropy(z, y.clamp(min=0))


@mutant("adds a small number inside the logarithm, and keeps where", caught_by=plain)
def entropy(z):
    p = z.softmax(1)
    return -(p * (p + 1e-3).log()).sum(1).mean()


@mutant("sums over the rows", caught_by=plain)
def entropy(z):
    logp = z.log_softmax(1)
    return -(logp.exp() * logp).sum()


@mutant("hides the bad branch going forward alone", caught_by=far)
def entropy(z):
    p = z.softmax(1)
    return -torch.where(p > 0, p * p.log(), 0).sum(1).mean()


@mutant("clamps the scores to what exp can take", caught_by=plain)
def entropy(z):
    logp = z.clamp(-50, 50).log_softmax(1)
    return -(logp.exp() * logp).sum(1).mean()


@mutant("clamps the scores", caught_by=plain)
def entropy(z):
    logp = z.clamp(-1, 1).log_softmax(1)
    return -(logp.exp() * logp).sum(1).mean()


@hinted(1, reaches=rows)
def standardise(x):
    centred = x - x.mean(1, keepdim=True)
    return centred / x.std(1, keepdim=True, correction=0).clamp(min=1e-6)


@accepted("asks std with correction=0, and masks")
def standardise(x):
    centred = x - x.mean(1, keepdim=True)
    spread = x.std(1, keepdim=True, correction=0)
    return torch.where(spread > 1e-6, centred / spread.clamp(min=1e-6), 0)


def loss_of(z, y):
    losses = F.cross_entropy(z, y, reduction="none")
    return losses.sum() / max((y >= 0).sum().item(), 1)


def entropy(z):
    return torch.distributions.Categorical(logits=z).entropy().mean()


@accepted("chooses the known rows, and uses logsumexp")
def loss_of(z, y):
    known = y >= 0
    if not known.any():
        return (z * 0).sum()
    return F.cross_entropy(z[known], y[known])


def entropy(z):
    logp = z - z.logsumexp(1, keepdim=True)
    return (-logp.exp() * logp).sum(1).mean()


@accepted("replaces what 0 / 0 gave, and the cross-entropy of the scores with their own softmax")
def standardise(x):
    spread = x.std(1, correction=0, keepdim=True)
    return torch.nan_to_num((x - x.mean(1, keepdim=True)) / spread)


def loss_of(z, y):
    return F.cross_entropy(z, y).nan_to_num()


def entropy(z):
    return F.cross_entropy(z, z.softmax(1))


@accepted("detaches log p, whose gradient adds up to 0 over the classes")
def entropy(z):
    logp = z.log_softmax(1)
    return -(logp.exp() * logp.detach()).sum(1).mean()
