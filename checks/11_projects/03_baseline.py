"""Judges lessons/11_projects/03_baseline.md."""

import math

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("Write `baseline(train_y, val_y, classes)`")
GUESS = "The guess is the most frequent class of the training labels, scored on the validation."
LAST = torch.tensor([0, 0, 0, 1]), torch.tensor([0, 1, 2, 2]), 3
"""Training lacks the last class: the one that bincount leaves out without minlength."""
LOSS = "Make shares of the training labels, and take the mean of -ln of them over val_y."


def labels(rng):
    """(train, val, C): val has another majority than train, and a class that train lacks."""
    classes = rng.randint(3, 7)
    top, absent, other = rng.sample(range(classes), 3)
    pool = [c for c in range(classes) if c != absent]
    train = rng.choices(pool, k=30) + [top] * 35
    val = rng.choices(range(classes), k=12) + [absent] + [other] * 25 + [top] * 3
    rng.shuffle(train)
    rng.shuffle(val)
    return torch.tensor(train), torch.tensor(val), classes


def by_hand(train, val, classes):
    seen = [1] * classes
    for c in train.tolist():
        seen[c] += 1
    best, val = seen.index(max(seen)), val.tolist()
    loss = -sum(math.log(seen[c] / sum(seen)) for c in val) / len(val)
    return sum(c == best for c in val) / len(val), loss


def pair(answer, train, val, classes):
    hint = "bincount ends at the largest label it sees. minlength=classes counts them all."
    with expect_unchanged(train, val), advising(IndexError, hint=hint):
        got = answer.baseline(train, val, classes)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        fail("baseline returns no pair", hint="Return accuracy, loss.")
    return got


def near(got, wanted, name, hint):
    expect_true(abs(got - wanted) < 1e-4, f"{name} is {got:.4f}, not {wanted:.4f}", hint=hint)


@check(
    "the accuracy is that of training's majority",
    holds=[
        "a pair of the accuracy and the loss of the best guess that looks at no input.",
        "The guess is the most frequent class of the training labels, and the accuracy is its "
        "share of the validation labels.",
    ],
)
def accuracy(answer, rng, device):
    for _ in range(3):
        case = labels(rng)
        near(pair(answer, *case)[0], by_hand(*case)[0], "the accuracy", GUESS)


@check(
    "a class that training has not seen costs a finite loss",
    holds="So a class that training has not seen is rare and not impossible.",
)
def unseen(answer, rng, device):
    loss = pair(answer, *labels(rng))[1]
    hint = "log 0 is -inf, and one such sample makes the whole loss infinite. Count one more."
    expect_true(math.isfinite(loss), f"the loss is {loss}", hint=hint)
    loss = pair(answer, *LAST)[1]
    expect_true(math.isfinite(loss), f"the loss is {loss}", hint=hint)


@check(
    "the loss is that of training's shares on the validation labels",
    holds=[
        "The loss is the mean of -ln(share of the true class) over the validation labels.",
        "The share of a class is (n + 1) / (N + C): n of the N training labels belong to it, "
        "and there are C classes.",
    ],
)
def loss(answer, rng, device):
    for _ in range(3):
        case = labels(rng)
        got = pair(answer, *case)[1]
        equal = abs(got - math.log(case[2])) < 1e-3
        expect_true(not equal, "the loss is ln C", hint="The classes are not equally frequent.")
        close = [hint for misread, hint in misreadings(*case) if abs(got - misread) < 1e-4]
        near(got, by_hand(*case)[1], "the loss", close[0] if close else LOSS)
    wanted = by_hand(*LAST)[1]
    near(pair(answer, *LAST)[1], wanted, "the loss where training lacks the last class", LOSS)


def misreadings(train, val, classes):
    """(loss, hint) of each mistake that a number gives away."""
    right, seen = by_hand(train, val, classes)[1], len(train.unique())
    share = (torch.bincount(train, minlength=classes) + 1).double() / (len(train) + classes)
    of_seen = right + math.log((len(train) + seen) / (len(train) + classes))
    return (
        (right / math.log(2), "That is the logarithm to base 2. -ln is wanted."),
        (right * len(val), "That is the sum. The mean over the validation labels is wanted."),
        (by_hand(train, train, classes)[1], "That is the mean over train_y. val_y is wanted."),
        (-(share * share.log()).sum().item(), "The shares come from train_y, the mean from val_y."),
        (-share[val].mean().log().item(), "The logarithm of each share first, then the mean."),
        (of_seen, "C counts all classes, also those that train_y lacks."),
        (right + math.log(len(train) / (len(train) + classes)), "Divide by N + C, not by N."),
    )


@check("one class is right every time", holds="of the N training labels belong to it")
def single(answer, rng, device):
    n = rng.randint(5, 9)
    got = pair(answer, torch.zeros(n, dtype=torch.int64), torch.zeros(5, dtype=torch.int64), 2)
    near(got[0], 1.0, "the accuracy with one class", GUESS)
    near(got[1], -math.log((n + 1) / (n + 2)), "the loss with one class", LOSS)


@check("both are Python floats", holds="Both results are Python floats.", both_sides=True)
def floats(answer, rng, device):
    for name, value in zip(("accuracy", "loss"), pair(answer, *labels(rng)), strict=True):
        message = f"the {name} is of the type {type(value).__name__}"
        expect_true(isinstance(value, float), message, hint=".item() makes a Python float.")


def shares(train, classes):
    return (torch.bincount(train, minlength=classes) + 1) / (len(train) + classes)


def right(train, val, classes):
    share = shares(train, classes)
    return (val == share.argmax()).float().mean().item(), -share.log()[val].mean().item()


@mutant("takes the majority of the validation labels", caught_by=accuracy)
def baseline(train_y, val_y, classes):
    hits = (val_y == torch.bincount(val_y).argmax()).float().mean().item()
    return hits, right(train_y, val_y, classes)[1]


@mutant("returns ln C", caught_by=loss)
def baseline(train_y, val_y, classes):
    return right(train_y, val_y, classes)[0], math.log(classes)


@mutant("takes raw counts", caught_by=unseen)
def baseline(train_y, val_y, classes):
    share = torch.bincount(train_y, minlength=classes) / len(train_y)
    return right(train_y, val_y, classes)[0], -share.log()[val_y].mean().item()


@mutant("takes the entropy of the training labels", caught_by=loss)
def baseline(train_y, val_y, classes):
    share = shares(train_y, classes)
    return right(train_y, val_y, classes)[0], -(share * share.log()).sum().item()


@mutant("takes the mean over the classes", caught_by=loss)
def baseline(train_y, val_y, classes):
    return right(train_y, val_y, classes)[0], -shares(train_y, classes).log().mean().item()


@mutant("counts only up to the largest training label", caught_by=unseen)
def baseline(train_y, val_y, classes):
    counts = torch.bincount(train_y)
    share = (counts + 1) / (len(train_y) + classes)
    return right(train_y, val_y, classes)[0], -share[val_y].log().mean().item()


@mutant("guesses at random by share", caught_by=accuracy)
def baseline(train_y, val_y, classes):
    share = torch.bincount(train_y, minlength=classes) / len(train_y)
    return share.square().sum().item(), right(train_y, val_y, classes)[1]


@mutant("scores the guess on the training labels", caught_by=accuracy)
def baseline(train_y, val_y, classes):
    counts = torch.bincount(train_y, minlength=classes)
    return (counts.max() / len(train_y)).item(), right(train_y, val_y, classes)[1]


@mutant("takes the logarithm to base 2", caught_by=loss)
def baseline(train_y, val_y, classes):
    hits, nats = right(train_y, val_y, classes)
    return hits, nats / math.log(2)


@mutant("sums the losses", caught_by=loss)
def baseline(train_y, val_y, classes):
    hits, mean = right(train_y, val_y, classes)
    return hits, mean * len(val_y)


@mutant("counts the classes that it sees", caught_by=loss)
def baseline(train_y, val_y, classes):
    counts = torch.bincount(train_y, minlength=classes)
    share = (counts + 1) / (len(train_y) + (counts > 0).sum())
    return right(train_y, val_y, classes)[0], -share.log()[val_y].mean().item()


@mutant("takes the logarithm of the mean share", caught_by=loss)
def baseline(train_y, val_y, classes):
    return right(train_y, val_y, classes)[0], -shares(train_y, classes)[val_y].mean().log().item()


@mutant("returns tensors", caught_by=floats)
def baseline(train_y, val_y, classes):
    return tuple(torch.tensor(v) for v in right(train_y, val_y, classes))


@hinted(1, reaches=accuracy)
def baseline(train_y, val_y, classes):
    share = torch.bincount(val_y, minlength=classes) / len(val_y)
    top = train_y.mode().values
    return (val_y == top).float().mean().item(), -share.log().mean().item()


@accepted("gives cross_entropy the logarithms of the counts")
def baseline(train_y, val_y, classes):
    counts = 1 + torch.zeros(classes).index_add_(0, train_y, torch.ones(len(train_y)))
    logits = counts.log().expand(len(val_y), classes)
    hits = (logits.argmax(1) == val_y).double().mean().item()
    return hits, F.cross_entropy(logits, val_y).item()


@accepted("counts in plain Python")
def baseline(train_y, val_y, classes):
    return by_hand(train_y, val_y, classes)
