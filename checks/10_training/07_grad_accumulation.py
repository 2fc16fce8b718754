"""Judges lessons/10_training/07_grad_accumulation.md."""

import copy
import math

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("`loss_fn` returns a mean.")

shows = ["autograd/accumulation"]

EQUAL = "Clear once, before the first batch: what the others left is still needed. And each batch "
EQUAL += "counts for its part of the whole."
UNEVEN = "The mean of means gives the one sample in a batch of 1 the weight of eight. Weight each "
UNEVEN += "batch by count(targets) / N."
WORDS = "The mean divides by the words that are not padding. Weight by what count says, not by the "
WORDS += "number of rows."
NONE = "A count of 0 makes a mean of 0/0, which is NaN, and NaN times 0 is NaN. Leave it out."
SUM = "The mean over everything: the sum of the weighted losses."
STALE = "The model came with gradients of an earlier step. Clear them before the first backward."
RUN = "After each call .grad must be what a whole batch leaves: cleared once, each piece weighted."
ALIVE = "backward() frees a batch's graph. Call it inside the loop, for this batch alone, and keep "
ALIVE += "nothing but numbers."


def words(targets):
    """How many targets are not padding."""
    return (targets != -100).sum().item()


def stale(model):
    """The model, with gradients of an earlier step."""
    for p in model.parameters():
        p.grad = torch.randn_like(p) * 9
    return model


def samples(rng, device, sizes):
    """A small model, and batches of so many samples."""
    model = nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2)).to(device)
    batches = [(torch.randn(n, 5, device=device), torch.randn(n, 2, device=device)) for n in sizes]
    return stale(model), batches


def sentences(rng, device, counts):
    """A small model of words, and batches with so many targets that are not padding."""
    model = nn.Sequential(nn.Linear(3, 5), nn.Flatten(0, 1)).to(device)
    batches = []
    for n in counts:
        targets = torch.full((2, 6), -100, device=device)
        places = torch.randperm(12)[:n].to(device)
        targets.view(-1)[places] = torch.randint(5, (n,), device=device)
        batches.append((torch.randn(2, 6, 3, device=device), targets))
    return stale(model), batches


def word_loss(outputs, targets):
    return F.cross_entropy(outputs, targets.flatten())


def wanted(model, batches, loss_fn):
    """(gradients, loss) of one pass over everything, in float64."""
    model = copy.deepcopy(model).double()
    inputs = torch.cat([x for x, _ in batches]).double()
    targets = torch.cat([y for _, y in batches])
    targets = targets.double() if targets.is_floating_point() else targets
    model.zero_grad()
    loss = loss_fn(model(inputs), targets)
    loss.backward()
    return [p.grad for p in model.parameters()], loss.item()


def compare(answer, model, batches, loss_fn, hint, *count):
    gradients, _ = wanted(model, batches, loss_fn)
    answer.accumulate(model, batches, loss_fn, *count)
    for (name, p), gradient in zip(model.named_parameters(), gradients, strict=True):
        expect_close(p.grad, gradient, dtype=p.dtype, name=f"{name}.grad", hint=hint)


@check(
    "equal batches act as one large batch",
    holds="is what one backward pass over all batches together would have left",
)
def equal(answer, rng, device):
    n = rng.randint(2, 6)
    model, batches = samples(rng, device, (n,) * rng.randint(2, 5))
    compare(answer, model, batches, F.mse_loss, EQUAL)


@check(
    "a smaller last batch counts for less",
    holds="By what it divides, `count` tells: by the number of targets, or of words",
    side="targets",
)
def uneven(answer, rng, device):
    for sizes in ((8, 8, 3, 1), (5, 5, 2)):
        model, batches = samples(rng, device, sizes)
        compare(answer, model, batches, F.mse_loss, UNEVEN)


@check(
    "padding does not count",
    holds="By what it divides, `count` tells: by the number of targets, or of words",
    side="words",
)
def padding(answer, rng, device):
    model, batches = sentences(rng, device, (12, 1, 7, rng.randint(2, 5)))
    compare(answer, model, batches, word_loss, WORDS, words)


@check(
    "a batch of nothing but padding does not matter",
    holds=["A batch of nothing but padding has a count of 0", "It must not matter."],
)
def nothing(answer, rng, device):
    counts = [9, 0, 2, 0]
    rng.shuffle(counts)
    model, batches = sentences(rng, device, counts)
    expected = wanted(model, batches, word_loss)[1]
    value = answer.accumulate(model, batches, word_loss, words)
    for name, p in model.named_parameters():
        bad = p.grad is not None and bool(p.grad.isnan().any())
        expect_true(not bad, f"there is NaN in {name}.grad", hint=NONE)
    expect_true(not math.isnan(value), "the mean loss is NaN", hint=NONE)
    off = abs(value - expected) > 1e-4
    expect_true(not off, f"the mean loss is {value:.5g}, not {expected:.5g}", hint=SUM)
    compare(answer, stale(model), batches, word_loss, WORDS, words)


@check(
    "old gradients do not leak in",
    holds="a .grad may be None, or hold old values, which must not count",
    side="old values",
)
def starts_clean(answer, rng, device):
    model, batches = samples(rng, device, (4,))
    compare(answer, model, batches, F.mse_loss, STALE)


@check(
    "a parameter that no loss reaches has no gradient",
    holds=[
        "a .grad may be None, or hold old values, which must not count",
        "its .grad ends as None or as zeros",
    ],
    both_sides=True,
)
def unreached(answer, rng, device):
    model, batches = samples(rng, device, (4, 3))
    extra = nn.Linear(2, 2).to(device)
    used = model[0], model[1], model[2]
    model.add_module("extra", extra)
    model.forward = lambda x: used[2](used[1](used[0](x)))
    for old in (True, False):
        for p in extra.parameters():
            p.grad = torch.ones_like(p) if old else None
        with advising(TypeError, hint="A .grad may be None: nothing can be done with it."):
            answer.accumulate(model, batches, F.mse_loss)
        left = [p.grad for p in extra.parameters() if p.grad is not None]
        expect_true(
            not any(bool(g.any()) for g in left),
            "a parameter that no loss reaches "
            + ("still has its gradient of an earlier step" if old else "has got a gradient"),
            hint="Clear the gradients of the whole model, and add to those that a loss reaches.",
        )


@check(
    "only one batch's graph is alive at a time",
    holds="Only one batch's graph is alive at a time.",
)
def one_graph(answer, rng, device):
    model, batches = samples(rng, device, (4, 4, 2, 4))
    alive, most, walks = 0, 0, 0

    def counting_loss(outputs, targets):
        nonlocal alive, most
        alive += 1
        most = max(most, alive)

        def gone(_):
            nonlocal alive, walks
            alive -= 1
            walks += 1

        outputs.register_hook(gone)
        return F.mse_loss(outputs, targets)

    answer.accumulate(model, batches, counting_loss)
    expect_true(most == 1, f"{most} graphs were alive at once", hint=ALIVE)
    expect_true(
        walks == len(batches),
        f"{len(batches)} batches were walked back {walks} times",
        hint="One forward and one backward for each batch.",
    )


@check(
    "it returns the mean loss as a number",
    holds="the mean loss over all batches, a Python float",
)
def number(answer, rng, device):
    model, batches = samples(rng, device, (6, 6, 1))
    expected = wanted(model, batches, F.mse_loss)[1]
    value = answer.accumulate(model, batches, F.mse_loss)
    hint = "A 0-d tensor may hold a graph. item() makes a number of it."
    expect_true(
        isinstance(value, float), f"the result is of type {type(value).__name__}, not float",
        hint=hint,
    )  # fmt: skip
    message = f"the mean loss is {value:.5g}, not {expected:.5g}"
    expect_true(
        abs(value - expected) < 1e-4 * (1 + abs(expected)), message,
        hint=SUM,
    )  # fmt: skip


@check(
    "nothing but the gradients has changed",
    holds="Parameters, and the model's mode, stay as they are",
)
def rest(answer, rng, device):
    model, batches = samples(rng, device, (3, 2))
    for mode in (True, False):
        model.train(mode)
        before = [p.detach().clone() for p in model.parameters()]
        answer.accumulate(model, batches, F.mse_loss)
        for (name, p), old in zip(model.named_parameters(), before, strict=True):
            expect_equal(p.detach(), old, name=name, hint="The caller steps, later.")
        modes = {m.training for m in model.modules()}
        expect_equal(modes, {mode}, name="the model's mode", hint="The caller has set it.")


@check("a training run goes as with whole batches")
def run(answer, rng, device):
    model, _ = samples(rng, device, ())
    other = copy.deepcopy(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    by_whole = torch.optim.SGD(other.parameters(), lr=0.1, momentum=0.9)
    for _ in range(4):
        x, y = torch.randn(7, 5, device=device), torch.randn(7, 2, device=device)
        answer.accumulate(model, list(zip(x.split(3), y.split(3), strict=True)), F.mse_loss)
        opt.step()
        by_whole.zero_grad()
        F.mse_loss(other(x), y).backward()
        by_whole.step()
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        expect_close(p.detach(), q.detach(), name=f"{name} after 4 steps", hint=RUN)


@mutant("does not scale", caught_by=equal)
def accumulate(model, batches, loss_fn, count=len):
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y)
            loss.backward()
            mean += loss.item() / len(batches)
    return mean


@mutant("zeroes before every batch", caught_by=equal)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    mean = 0.0
    for x, y in batches:
        if count(y):
            model.zero_grad()
            loss = loss_fn(model(x), y) * count(y) / total
            loss.backward()
            mean += loss.item()
    return mean


@mutant("takes the mean of the batch means", caught_by=uneven)
def accumulate(model, batches, loss_fn, count=len):
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        loss = loss_fn(model(x), y) / len(batches)
        loss.backward()
        mean += loss.item()
    return mean


@mutant("weights by samples, whatever count says", caught_by=padding)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(len(y) for _, y in batches)
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y) * len(y) / total
            loss.backward()
            mean += loss.item()
    return mean


@mutant("multiplies NaN by 0", caught_by=nothing)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        loss = loss_fn(model(x), y) * count(y) / total
        loss.backward()
        mean += loss.item()
    return mean


@mutant(
    "never clears",
    caught_by=starts_clean,
    misconception="autograd/accumulation",
    like="copies p.grad, and never clears it",
)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y) * count(y) / total
            loss.backward()
            mean += loss.item()
    return mean


@mutant("clears what a loss will reach", caught_by=unreached)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    reached = torch.autograd.grad(
        loss_fn(model(batches[0][0]), batches[0][1]), list(model.parameters()), allow_unused=True
    )
    for p, g in zip(model.parameters(), reached, strict=True):
        p.grad = None if g is not None else p.grad
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y) * count(y) / total
            loss.backward()
            mean += loss.item()
    return mean


@mutant("divides each gradient afterwards, None too", caught_by=unreached)
def accumulate(model, batches, loss_fn, count=len):
    model.zero_grad()
    total, summed = 0, 0.0
    for x, y in batches:
        if n := count(y):
            loss = loss_fn(model(x), y) * n
            loss.backward()
            total, summed = total + n, summed + loss.item()
    for p in model.parameters():
        p.grad = p.grad / total
    return summed / total


@mutant("adds up the losses and goes back once", caught_by=one_graph)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    model.zero_grad()
    loss = sum(loss_fn(model(x), y) * count(y) / total for x, y in batches if count(y))
    loss.backward()
    return loss.item()


@mutant("returns a tensor with its graph", caught_by=number)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y) * count(y) / total
            loss.backward()
            mean = mean + loss
    return mean


@mutant("returns the loss of the last batch", caught_by=number)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    model.zero_grad()
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y)
            (loss * count(y) / total).backward()
    return loss.item()


@mutant("takes a step as well", caught_by=rest)
def accumulate(model, batches, loss_fn, count=len):
    total = sum(count(y) for _, y in batches)
    model.zero_grad()
    mean = 0.0
    for x, y in batches:
        if count(y):
            loss = loss_fn(model(x), y) * count(y) / total
            loss.backward()
            mean += loss.item()
    with torch.no_grad():
        for p in model.parameters():
            if p.grad is not None:
                p -= 0.1 * p.grad
    return mean


@hinted(1, reaches=padding)
def accumulate(model, batches, loss_fn, count=len):
    model.zero_grad()
    every = sum(count(targets) for _, targets in batches)
    total = 0.0
    for inputs, targets in batches:
        total = total + loss_fn(model(inputs), targets) * count(targets) / every
    total.backward()
    return total.item()


@accepted("scales the gradients afterwards")
def accumulate(model, batches, loss_fn, count=len):
    model.zero_grad(set_to_none=False)
    total, summed = 0, 0.0
    for x, y in batches:
        n = count(y)
        if n > 0:
            loss = loss_fn(model(x), y) * n
            loss.backward()
            total, summed = total + n, summed + loss.item()
    for p in model.parameters():
        if p.grad is not None:
            p.grad /= total
    return summed / total


@accepted("lets autograd return the shares and adds them itself")
def accumulate(model, batches, loss_fn, count=len):
    parameters = list(model.parameters())
    batches = [(x, y, count(y)) for x, y in batches if count(y)]
    total = sum(n for *_, n in batches)
    sums, mean = [torch.zeros_like(p) for p in parameters], 0.0
    for x, y, n in batches:
        loss = loss_fn(model(x), y)
        shares = torch.autograd.grad(loss, parameters, allow_unused=True)
        for s, share in zip(sums, shares, strict=True):
            if share is not None:
                s += share * (n / total)
        mean += loss.item() * n / total
    for p, s in zip(parameters, sums, strict=True):
        p.grad = s
    return mean


@accepted("takes the gradients off before, one by one")
def accumulate(model, batches, loss_fn, count=len):
    for p in model.parameters():
        p.grad = None
    left = sum(map(count, (y for _, y in batches)))
    losses = []
    for x, y in batches:
        if count(y) != 0:
            share = count(y) / left
            loss = share * loss_fn(model(x), y)
            loss.backward()
            losses.append(float(loss.detach()))
    return sum(losses)
