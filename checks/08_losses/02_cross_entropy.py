"""Judges lessons/08_losses/02_cross_entropy.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    check,
    equivalent,
    expect_close,
    expect_true,
    expect_unchanged,
    hinted,
    key_line_shown,
    mutant,
)

shows = ["maths/special_stable", "tensors/gather_scatter"]

key_line_shown("logsumexp", because="The exercise is about which rows count, and in which order.")

INF = float("inf")
LOSS = "logsumexp(z) - z[y] for each sample, along the classes, and the mean of them over N."
RANGE = (
    "A share that was rounded to 0 has no log. The loss of a far score is the distance of the "
    "scores: take logsumexp or log_softmax, and never the log of a softmax."
)
ONE_HOT = (
    "One of these sizes is the largest label plus 1. Is it a one_hot? Tell it the number of "
    "classes, one_hot(y, C): the largest may not occur."
)
PADDING = (
    "A label of -100 is no index. Leave its row out before anything is computed from it: NaN "
    "times 0 is NaN."
)
PAD = -100
GRAD = "The softmax along the classes, minus 1 at the right class, and all of it divided by N."


def batch(rng, device, n=None, c=None, dtype=torch.float32):
    """Scores (N, C), half of the time not contiguous, and labels (N,)."""
    n, c = n or rng.randint(6, 9), c or rng.randint(3, 5)
    z = 2 * torch.randn(n, c)
    z = z.mT.contiguous().mT if rng.random() < 0.5 else z
    return z.to(device, dtype), torch.randint(c, (n,)).to(device)


def right_ce(z, y):
    """In float64, over the rows that are no padding."""
    return F.cross_entropy(z.detach().double()[y != PAD], y[y != PAD])


def right_grad(z, y):
    leaf = z.detach().double().requires_grad_()
    F.cross_entropy(leaf[y != PAD], y[y != PAD]).backward()
    return leaf.grad


def calling(y):
    """Inside, an error that speaks of as many classes as occur in y is put down to one_hot."""
    return advising(RuntimeError, saying=f"({int(y.max()) + 1})", hint=ONE_HOT)


def expect_no_flag(z):
    hint = "requires_grad_() writes into the caller's tensor: its flag stays on."
    expect_true(not z.requires_grad, "logits require grad now, they did not before", hint=hint)


def compare(answer, z, y, hint, **near):
    given = z.clone()
    with calling(y):
        got = answer.my_ce(given, y)
    expect_close(got, right_ce(z, y), dtype=z.dtype, name="my_ce", hint=hint, **near)
    expect_no_flag(given)


def compare_grad(answer, z, y, hint=GRAD, rtol=1e-4, atol=1e-6):
    given = z.clone()
    with torch.no_grad(), calling(y):
        got = answer.ce_grad(given, y)
    expect_no_flag(given)
    wanted = right_grad(z, y)
    expect_close(got, wanted, dtype=z.dtype, name="ce_grad", hint=hint, rtol=rtol, atol=atol)


@check(
    "my_ce: the mean of the samples' losses",
    holds=["my_ce, the mean cross-entropy", "F.cross_entropy and F.nll_loss are off limits."],
    forbid=("torch.nn.functional.cross_entropy", "torch.nn.functional.nll_loss"),
)
def values(answer, rng, device):
    z, y = batch(rng, device)
    compare(answer, z, y, LOSS)
    n = rng.randint(3, 5)
    z, y = batch(rng, device, n, n)
    compare(answer, z, y, LOSS)


@check(
    "my_ce: scores of 900 and of 10000 stay in range",
    holds="Scores may be as large as 1e4, either sign.",
    side="the loss",
)
def far(answer, rng, device):
    compare(answer, *batch(rng, device, 4, 3), LOSS)
    for size in (900.0, 1e4):
        z, y = batch(rng, device, 4, 3)
        rows = torch.arange(4, device=device)
        z[rows, y] -= size  # sure, and wrong
        compare(answer, z, y, RANGE)
        z[rows, y] += 2 * size  # sure, and right
        compare(answer, z, y, RANGE)
    for size in (1e4, -1e4):  # a distance of 20000 between the scores
        z = torch.full((4, 3), size, device=device)
        z[rows, y] = -size
        compare(answer, z, y, RANGE)


@check("my_ce: each sample has its own largest score")
def apart(answer, rng, device):
    z, y = batch(rng, device, 4, 3)
    compare(answer, z, y, LOSS)
    z = z + torch.tensor([[0.0], [900.0], [-900.0], [1e4]], device=device)
    hint = "Subtract the largest score of each row, not of the whole batch: beside 1e4 all of "
    hint += "another row's exp are 0, and their log is -inf."
    # Beside 1e4 the steps of float32 are 0.001: a difference of two such numbers keeps no more.
    compare(answer, z, y, hint, atol=1e-3)


@check(
    "my_ce: a class that is switched off does no harm",
    holds="A score of -inf switches off a class",
    side="the loss",
)
def switched_off(answer, rng, device):
    z, y = batch(rng, device, 5, 4)
    z, y = z.contiguous(), y % 3
    compare(answer, z, y, LOSS)
    z[:, 3] = -INF
    z[0, (y[0] + 1) % 3] = -INF
    hint = "-inf times 0 is NaN. Pick the right score by its index, without a product."
    compare(answer, z, y, hint)


@check(
    "my_ce: backward leaves (softmax - onehot) / N in the scores",
    holds="0-d tensor of logits' dtype, part of the graph",
)
def backward(answer, rng, device):
    z, y = batch(rng, device)
    compare(answer, z, y, LOSS)
    z[0, y[0]] = 500.0  # rounded to a share of 1
    z[1, y[1]] = -500.0  # and of 0
    leaf = z.clone().requires_grad_()
    loss = answer.my_ce(leaf, y)
    hint = "Compute with torch's operations alone, and stay in the log."
    expect_true(
        isinstance(loss, torch.Tensor) and loss.requires_grad, "my_ce has no graph", hint=hint
    )
    (grad,) = torch.autograd.grad(loss, leaf)
    expect_close(grad, right_grad(z, y), dtype=z.dtype, name="the gradient", hint=hint)


@check(
    "both: one sample, one class, float64, inputs left alone",
    holds=[
        "Both leave their inputs as they are.",
        "float32 or float64",
        "N and C at least 1",
    ],
    both_sides=True,
)
def edges(answer, rng, device):
    z, y = batch(rng, device)
    compare(answer, z, y, LOSS)
    compare_grad(answer, z, y)
    for n, c in ((1, 4), (5, 1), (1, 1)):
        z, y = batch(rng, device, n, c)
        hint = f"N = {n} and C = {c} are no special case: the same formula holds."
        compare(answer, z, y, hint)
        compare_grad(answer, z, y, hint)
    z, y = batch(rng, device, dtype=torch.float64)
    hint = "float64 in, float64 out, with all its digits."
    compare(answer, z, y, hint, rtol=1e-11, atol=1e-13)
    compare_grad(answer, z, y, hint, rtol=1e-11, atol=1e-13)
    for z, y in (batch(rng, device), padded(rng, device, 3)):
        with expect_unchanged(z, y):
            answer.my_ce(z, y)
        with expect_unchanged(z, y), torch.no_grad():
            answer.ce_grad(z, y)


@check(
    "ce_grad: softmax minus onehot, over N",
    holds=[
        "ce_grad, its gradient",
        "ce_grad is called with gradients switched off",
        "torch.autograd.grad and backward are off limits there",
    ],
    both_sides=True,
    forbid=("torch.autograd.grad", "torch.Tensor.backward"),
)
def grads(answer, rng, device):
    compare_grad(answer, *batch(rng, device))
    n = rng.randint(3, 5)
    compare_grad(answer, *batch(rng, device, n, n))


@check(
    "ce_grad: far scores and classes that are switched off",
    holds=["Scores may be as large as 1e4, either sign.", "A score of -inf switches off a class"],
    side="the gradient",
)
def far_grads(answer, rng, device):
    z, y = batch(rng, device, 4, 3)
    z, y = z.contiguous(), y % 2
    compare_grad(answer, z, y)
    z[:, 2] = -INF
    z[0] *= 1e4
    z[1, y[1]] -= 900
    hint = "The same formula holds far out: softmax stays in range where exp alone overflows."
    compare_grad(answer, z, y, hint)


def padded(rng, device, kept):
    """A batch with `kept` rows that count; one padding row has NaN for scores."""
    z, y = batch(rng, device, kept + 2)
    y = y.clone()
    lost = torch.randperm(len(y))[:2].to(device)
    y[lost] = PAD
    z[lost[0]] = float("nan")
    return z, y


@check(
    "my_ce: padding adds nothing and is not counted",
    holds=["A label of -100 marks padding", "At least one label is no padding."],
    both_sides=True,
)
def padding(answer, rng, device):
    compare(answer, *padded(rng, device, rng.randint(3, 6)), PADDING)
    compare(answer, *padded(rng, device, 1), PADDING)
    z, y = padded(rng, device, 4)
    hint = "The rows of padding are the caller's as well: select or mask, and write nothing."
    with expect_unchanged(z, y, hint=hint):
        answer.my_ce(z, y)
    leaf = z.clone().requires_grad_()
    with calling(y):
        (grad,) = torch.autograd.grad(answer.my_ce(leaf, y), leaf)
    expect_close(grad, right_grad(z, y), dtype=z.dtype, name="the gradient", nan_hint=PADDING)


@check(
    "ce_grad: padding has a gradient of 0",
    holds=["Its gradient is 0, even where its scores are NaN", "At least one label is no padding."],
    both_sides=True,
)
def padding_grad(answer, rng, device):
    z, y = padded(rng, device, 3)
    hint = "The labels of padding are the caller's as well: -100 stays -100."
    with expect_unchanged(z, y, hint=hint), torch.no_grad():
        answer.ce_grad(z, y)
    compare_grad(answer, *padded(rng, device, rng.randint(3, 6)), PADDING)
    compare_grad(answer, *padded(rng, device, 1), PADDING)


@mutant("lets autograd find the gradient", caught_by=grads)
def ce_grad(logits, y):
    with torch.enable_grad():
        leaf = logits.detach().requires_grad_()
        keep = y != PAD
        share = leaf[keep].log_softmax(1)[range(int(keep.sum())), y[keep]]
        return torch.autograd.grad(-share.mean(), leaf)[0]


@mutant("clears the rows of padding in the caller's scores", caught_by=padding)
def my_ce(logits, y):
    keep = y != PAD
    with torch.no_grad():
        logits[~keep] = 0
    return -logits.log_softmax(1)[keep][range(int(keep.sum())), y[keep]].mean()


@mutant("gives padding the label 0 in the caller's labels", caught_by=padding_grad)
def ce_grad(logits, y):
    keep = y != PAD
    y[~keep] = 0
    grad = logits.softmax(1)
    grad[range(len(y)), y] -= 1
    return grad.masked_fill(~keep[:, None], 0) / keep.sum()


@mutant("takes the log of the softmax", caught_by=far)
def my_ce(logits, y):
    return -logits.softmax(1).gather(1, y[:, None]).log().mean()


@mutant("bounds the share from below", caught_by=far)
def my_ce(logits, y):
    return -logits.softmax(1).gather(1, y[:, None]).clamp(min=1e-12).log().mean()


@mutant("bounds the log of the share from below", caught_by=far)
def my_ce(logits, y):
    return -logits.log_softmax(1).clamp(min=-1e4)[range(len(y)), y].mean()


@mutant("subtracts the largest score of the batch", caught_by=apart)
def my_ce(logits, y):
    z = logits - logits.max()
    return (z.exp().sum(1).log() - z.gather(1, y[:, None])[:, 0]).mean()


@mutant(
    "adds a small number before the log",
    caught_by=far,
    misconception="maths/special_stable",
    like="adds a small number before the log",
)
def my_ce(logits, y):
    return -(logits.softmax(1).gather(1, y[:, None]) + 1e-9).log().mean()


@mutant("takes padding for class 0", caught_by=padding)
def my_ce(logits, y):
    y = y.clamp(min=0)
    return (logits.logsumexp(1) - logits.gather(1, y[:, None])[:, 0]).mean()


@mutant("sets the loss of padding to 0, and divides by N", caught_by=padding)
def my_ce(logits, y):
    right = logits.gather(1, y.clamp(min=0)[:, None])[:, 0]
    return torch.where(y != -100, logits.logsumexp(1) - right, 0).mean()


@mutant("multiplies padding by 0", caught_by=padding)
def my_ce(logits, y):
    keep = (y != -100).to(logits.dtype)
    right = logits.gather(1, y.clamp(min=0)[:, None])[:, 0]
    return ((logits.logsumexp(1) - right) * keep).sum() / keep.sum()


@mutant("divides the gradient by N", caught_by=padding_grad)
def ce_grad(logits, y):
    keep = y != -100
    grad = logits.softmax(1)
    grad[keep, y[keep]] -= 1
    grad[~keep] = 0
    return grad / len(y)


@mutant("leaves a gradient in padding", caught_by=padding_grad)
def ce_grad(logits, y):
    keep = y != -100
    grad = logits.softmax(1)
    grad[keep, y[keep]] -= 1
    return grad / keep.sum()


@mutant("picks probabilities", caught_by=values)
def my_ce(logits, y):
    return -logits.softmax(1).gather(1, y[:, None]).mean()


@mutant("takes softmax twice", caught_by=values)
def my_ce(logits, y):
    return -logits.softmax(1).log_softmax(1).gather(1, y[:, None]).mean()


@mutant("adds the samples up", caught_by=values)
def my_ce(logits, y):
    return -logits.log_softmax(1).gather(1, y[:, None]).sum()


@mutant("divides by the number of scores", caught_by=values)
def my_ce(logits, y):
    return -logits.log_softmax(1).gather(1, y[:, None]).sum() / logits.numel()


@mutant("normalises over the samples", caught_by=values)
def my_ce(logits, y):
    return -logits.log_softmax(0).gather(1, y[:, None]).mean()


@mutant("forgets the minus", caught_by=values)
def my_ce(logits, y):
    return logits.log_softmax(1).gather(1, y[:, None]).mean()


@mutant(
    "reads every label's column in every row",
    caught_by=values,
    misconception="tensors/gather_scatter",
    like="looks up every token at every place",
)
def my_ce(logits, y):
    return -logits.log_softmax(1)[:, y].mean()


@mutant("multiplies by a onehot", caught_by=switched_off)
def my_ce(logits, y):
    onehot = F.one_hot(y, logits.shape[1]).to(logits.dtype)
    return -(onehot * logits.log_softmax(1)).sum(1).mean()


@mutant("leaves it to torch", caught_by=values)
def my_ce(logits, y):
    return F.cross_entropy(logits, y)


@mutant("takes torch's second half", caught_by=values)
def my_ce(logits, y):
    return F.nll_loss(logits.log_softmax(1), y)


@mutant("cuts the right score out of the graph", caught_by=backward)
def my_ce(logits, y):
    right = logits.gather(1, y[:, None])[:, 0].detach()
    return (logits.logsumexp(1) - right).mean()


@mutant("works in float32", caught_by=edges)
def my_ce(logits, y):
    z = logits.float()
    return (z.logsumexp(1) - z.gather(1, y[:, None])[:, 0]).mean().to(logits.dtype)


@mutant("forgets to divide by N", caught_by=grads)
def ce_grad(logits, y):
    return logits.softmax(1) - F.one_hot(y, logits.shape[1]).to(logits.dtype)


@mutant("turns the sign round", caught_by=grads)
def ce_grad(logits, y):
    return (F.one_hot(y, logits.shape[1]).to(logits.dtype) - logits.softmax(1)) / len(y)


@mutant("gives the wrong classes nothing", caught_by=grads)
def ce_grad(logits, y):
    onehot = F.one_hot(y, logits.shape[1]).to(logits.dtype)
    return onehot * (logits.softmax(1) - 1) / len(y)


@mutant("subtracts 1 in every column of the labels", caught_by=grads)
def ce_grad(logits, y):
    grad = logits.softmax(1)
    grad[:, y] -= 1
    return grad / len(y)


@mutant("writes the softmax out", caught_by=far_grads)
def ce_grad(logits, y):
    p = logits.exp() / logits.exp().sum(1, keepdim=True)
    return (p - F.one_hot(y, logits.shape[1]).to(logits.dtype)) / len(y)


@mutant("asks autograd", caught_by=grads)
def ce_grad(logits, y):
    leaf = logits.detach().clone().requires_grad_()
    loss = (leaf.logsumexp(1) - leaf.gather(1, y[:, None])[:, 0]).mean()
    return torch.autograd.grad(loss, leaf)[0]


@hinted(1, reaches=values)
def my_ce(logits, y):
    keep = y != -100
    z, y = logits[keep], y[keep]
    return -z.softmax(1).gather(1, y[:, None]).log().mean()


@accepted("picks from log_softmax by index pairs")
def my_ce(logits, y):
    rows = (y != -100).nonzero()[:, 0]
    return -logits[rows].log_softmax(-1)[range(len(rows)), y[rows]].mean()


@accepted("subtracts the largest score itself")
def my_ce(logits, y):
    kept = y != -100
    z = logits[kept] - logits[kept].amax(1, keepdim=True)
    right = z.take_along_dim(y[kept][:, None], 1).squeeze(1)
    return (z.exp().sum(1).log() - right).sum() / kept.sum()


@accepted("chooses by where before and after")
def my_ce(logits, y):
    keep = y != -100
    z = torch.where(keep[:, None], logits, 0)
    right = z.gather(1, y.clamp(min=0)[:, None])[:, 0]
    return torch.where(keep, z.logsumexp(1) - right, 0).sum() / keep.sum()


@accepted("subtracts a onehot")
def ce_grad(logits, y):
    keep = (y != -100)[:, None]
    onehot = F.one_hot(y.clamp(min=0), logits.size(1))
    return torch.where(keep, torch.softmax(logits, dim=1) - onehot, 0) / keep.sum()


@accepted("scatters -1 into the rows that count")
def ce_grad(logits, y):
    keep = y != -100
    z, y = logits[keep], y[keep]
    minus = -torch.ones_like(y, dtype=z.dtype)[:, None]
    grad = torch.zeros_like(logits)
    grad[keep] = z.log_softmax(1).exp().scatter_add(1, y[:, None], minus).div(y.numel())
    return grad


equivalent(
    "right = z.gather(1, y[:, None])[:, 0]",
    "right = z.gather(1, y[:, None])[:, -1]",
    because="There is one column, so it is the first and the last.",
)
equivalent(
    "right = z.gather(1, y[:, None])[:, 0]",
    "right = z.gather(1, y[:, None])",
    because="The mean of all differences of two rows is the difference of the two means.",
)
