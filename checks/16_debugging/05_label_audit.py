"""Judges lessons/16_debugging/05_label_audit.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("It stops, because", "audit(y, k) judges the labels")
equivalent('plot(loss, title="loss")', "pass", because="the curve is for the eye")
equivalent('plot(loss, title="loss")', "plot(loss)", because="the curve is for the eye")
equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32 too",
)

ORDER = "Ask in the order of the list, and return at the first that fits."
NEGATIVE = "Of the labels below 0, -100 alone means that there is no label."
ONE = "Of those that count, is the smallest 1, and the largest k, the number of outputs?"
LARGE = "k outputs are for the classes 0 to k - 1: k itself is too large."
IGNORED = "Take the labels of -100 out before you look at smallest and largest."


def labels(rng, device, *extra, low=0, high=None):
    """(labels, k): shuffled, from low to high (k - 1 if not given), with these in addition."""
    k = rng.randint(3, 12)
    top = k - 1 if high is None else high
    y = [rng.randint(low, top) for _ in range(rng.randint(5, 30))] + [low, top, *extra]
    rng.shuffle(y)
    return torch.tensor(y, device=device), k


def judge(answer, y, k, wanted, hint=ORDER):
    expect_equal(answer.audit(y, k), wanted, name=f"audit({y.tolist()}, {k})", hint=hint)


@check("labels as they should be", holds=["It returns one word.", "none of these"])
def good(answer, rng, device):
    y, k = labels(rng, device)
    judge(answer, y, k, "ok")
    judge(answer, y.to(torch.uint8), k, "ok", hint="uint8 is a right dtype.")
    judge(answer, y.repeat_interleave(2)[::2], k, "ok")
    judge(answer, torch.tensor([0], device=device), k, "ok")


@check("a wrong dtype", holds="y is neither int64 nor uint8", both_sides=True)
def dtype(answer, rng, device):
    y, k = labels(rng, device)
    kinds = (torch.int32, torch.int16, torch.int8, torch.float32, torch.float16, torch.bool)
    for kind in kinds:
        judge(answer, y.to(kind), k, "dtype", hint="int64 and uint8 alone are right.")
    judge(answer, y.float()[:, None] / 0, k, "dtype")


@check("a wrong shape", holds="y has not one dimension")
def shape(answer, rng, device):
    y, k = labels(rng, device)
    hint = "One dimension, whatever its size: dim() counts them."
    judge(answer, y[:, None], k, "shape", hint)
    judge(answer, y[None], k, "shape", hint)
    judge(answer, y[0], k, "shape", hint)
    judge(answer, y[:0, None], k, "shape", hint)


@check("nothing counts", holds="no label counts; a label of -100 does not count")
def empty(answer, rng, device):
    k = rng.randint(2, 9)
    judge(answer, torch.empty(0, dtype=torch.int64, device=device), k, "empty")
    n = rng.randint(1, 5)
    judge(answer, torch.full((n,), -100, device=device), k, "empty", IGNORED)


@check("a label below 0", holds="a label that counts is below 0")
def negative(answer, rng, device):
    for low in (-1, -99, -101, -rng.randint(102, 10**9)):
        y, k = labels(rng, device, low)
        judge(answer, y, k, "negative", NEGATIVE)
    judge(answer, torch.tensor([-1, -3], device=device), k, "negative", NEGATIVE)
    y, k = labels(rng, device, -1, 99)
    judge(answer, y, k, "negative")


@check("counted from 1", holds="of those that count, the smallest is 1 and the largest k")
def off_by_one(answer, rng, device):
    y, k = labels(rng, device)
    judge(answer, y + 1, k, "off-by-one", ONE)
    judge(answer, (y + 1).to(torch.uint8), k, "off-by-one", ONE)
    judge(answer, torch.tensor([k, 2, k], device=device), k, "too-large", ONE)
    y, k = labels(rng, device)
    more = torch.cat([y + 1, torch.tensor([-100], device=device)])
    judge(answer, more, k, "off-by-one", IGNORED)
    y, k = labels(rng, device, low=1)
    judge(answer, y, k, "ok", hint="Class 0 may be absent: from 1 to k - 1 nothing is wrong.")


@check("too large", holds="a label that counts is k or more", both_sides=True)
def too_large(answer, rng, device):
    y, k = labels(rng, device)
    for top in (k, k + 1, 200):
        more = torch.cat([y, torch.tensor([top], device=device)])
        judge(answer, more, k, "too-large", LARGE)
        judge(answer, more.to(torch.uint8), k, "too-large", LARGE)
    judge(answer, torch.cat([y + 1, torch.tensor([k + 1], device=device)]), k, "too-large", ONE)
    judge(answer, torch.tensor([k, k + 2], device=device), k, "too-large", ONE)


@check("rows of -100 are left out", holds="a label of -100 does not count")
def ignored(answer, rng, device):
    y, k = labels(rng, device, -100, -100)
    judge(answer, y, k, "ok", IGNORED)
    y = torch.tensor([0, 156], dtype=torch.uint8, device=device)
    judge(answer, y, 12, "too-large", hint="156 in uint8 has the bits of -100, and is a label.")


@check("the first of the list", holds="Where several fit, the first of this list is meant")
def order(answer, rng, device):
    y, k = labels(rng, device, -1, 50)
    judge(answer, y, k, "negative")
    judge(answer, y[:, None], k, "shape")
    judge(answer, y[:, None].int(), k, "dtype")
    judge(answer, y[:0].float(), k, "dtype")


@check(
    "as cross-entropy has it",
    holds="For y of shape (N,) and finite scores (N, k), `F.cross_entropy` is a finite",
)
def agrees(answer, rng, device):
    # On the CPU: on a GPU a label out of range ends every later call of the process.
    k = rng.randint(2, 6)
    for _ in range(20):
        kind = rng.choice([torch.int64, torch.int64, torch.uint8, torch.int32, torch.float32])
        low = rng.choice([0, 0, 1, -1]) if kind is not torch.uint8 else rng.choice([0, 1])
        y = [rng.randint(low, k - rng.choice([0, 1, 1])) for _ in range(rng.randint(0, 4))]
        y += [-100] * (rng.randint(0, 1) if kind is not torch.uint8 else 0)
        y = torch.tensor(y, dtype=kind)
        try:
            fine = F.cross_entropy(torch.randn(len(y), k), y).isfinite().item()
        except (RuntimeError, IndexError, ValueError):
            fine = False
        said = answer.audit(y, k)
        expect_true(
            (said == "ok") == fine,
            f"audit({y.tolist()} of {y.dtype}, {k}) is {said!r}, and the loss is "
            + ("a finite number" if fine else "none"),
            hint=ORDER,
        )


@check("the labels stay as they were", holds="may lie on any device and is not changed")
def untouched(answer, rng, device):
    y, k = labels(rng, device, -100)
    with expect_unchanged(y):
        answer.audit(y, k)


@check(
    "the program names each set, and trains on two",
    holds=[
        "This program audits eight sets of labels, and trains on those that are in order.",
        "Mend audit, and leave data and training as they are.",
    ],
)
def program(answer, rng, device):
    meant = ["ok", "ok", "dtype", "shape", "empty", "negative", "off-by-one", "too-large"]
    expect_equal(answer.words, meant, name="words", hint=ORDER)
    hint = "The faults are in audit."
    expect_equal([m for m, _ in answer.sets], meant, name="the sets", hint=hint)
    y = answer.y
    wanted = [
        y, torch.where(y > 4, -100, y), y.int(), y[:, None], torch.full_like(y, -100),
        torch.where(y == 9, -1, y), y + 1, torch.where(y == 9, 10, y),
    ]  # fmt: skip
    for (_, got), right in zip(answer.sets, wanted):
        expect_true(
            got.dtype == right.dtype and torch.equal(got, right), "a set is another", hint=hint
        )
    expect_equal(answer.x.max().item(), 1.0, name="the largest value of x", hint=hint)
    for _ in range(3):
        seed = rng.randint(0, 99)
        torch.manual_seed(seed)
        said = answer.train(y)
        torch.manual_seed(seed)
        expect_equal(said, f"loss {trained(answer.x, y):.2f}", name="what train returns", hint=hint)


def trained(x, y):
    """The last loss of the program's training as it is meant."""
    model = nn.Linear(64, 10)
    opt = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(100):
        rows = torch.randperm(len(x))[:64]
        loss = F.cross_entropy(model(x[rows]), y[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item()


def by_range(y, k):
    if y.numel() == 0:
        return "empty"
    low, high = y.min(), y.max()
    if low < 0:
        return "negative"
    if low == 1 and high == k:
        return "off-by-one"
    return "too-large" if high >= k else "ok"


def by_form(y):
    if y.dtype not in (torch.int64, torch.uint8):
        return "dtype"
    return "shape" if y.dim() != 1 else ""


def counted(y):
    y = y.long()
    return y[y != -100]


@mutant("asks the largest alone", caught_by=dtype)
def audit(y, k):
    return "ok" if not y.numel() or y.max() < k else "too-large"


@mutant("takes -100 for a negative label", caught_by=ignored)
def audit(y, k):
    return by_form(y) or by_range(y.long(), k)


@mutant("says off-by-one as soon as no label is 0", caught_by=off_by_one)
def audit(y, k):
    if not by_form(y) and counted(y).numel() and counted(y).min() == 1:
        return "off-by-one"
    return by_form(y) or by_range(counted(y), k)


@mutant("says off-by-one wherever 0 is missing and k is there", caught_by=off_by_one)
def audit(y, k):
    said = by_form(y) or by_range(counted(y), k)
    return "off-by-one" if said == "too-large" and counted(y).aminmax() == (2, k) else said


@mutant("takes 156 of uint8 for -100", caught_by=ignored)
def audit(y, k):
    return by_form(y) or by_range(
        y[y != y.new_tensor(-100)] if y.dtype == torch.int64 else y[y != 156], k
    )


@mutant("takes any whole dtype", caught_by=dtype)
def audit(y, k):
    if y.is_floating_point():
        return "dtype"
    return "shape" if y.dim() != 1 else by_range(counted(y), k)


@mutant("takes uint8 for wrong", caught_by=good)
def audit(y, k):
    return "dtype" if y.dtype != torch.int64 else by_form(y) or by_range(counted(y), k)


@mutant("finds too large before negative", caught_by=negative)
def audit(y, k):
    if not by_form(y) and counted(y).numel() and counted(y).max() > k:
        return "too-large"
    return by_form(y) or by_range(counted(y), k)


@mutant("takes bool for a whole dtype of labels", caught_by=dtype)
def audit(y, k):
    return by_form(y.long() if y.dtype == torch.bool else y) or by_range(counted(y), k)


@mutant("leaves out what is below -100", caught_by=negative)
def audit(y, k):
    return by_form(y) or by_range(y.long()[y.long() > -100], k)


@mutant("says empty where all labels are negative", caught_by=negative)
def audit(y, k):
    if not by_form(y) and not (y.long() >= 0).any():
        return "empty"
    return by_form(y) or by_range(counted(y), k)


@mutant("asks that each class occurs", caught_by=good)
def audit(y, k):
    said = by_form(y) or by_range(counted(y), k)
    return "too-large" if said == "ok" and len(counted(y).unique()) < k else said


@mutant("allows k itself", caught_by=too_large)
def audit(y, k):
    said = by_form(y) or by_range(counted(y), k)
    return "ok" if said == "too-large" and counted(y).max() == k else said


@mutant("flattens", caught_by=shape)
def audit(y, k):
    y = y.flatten()
    return by_form(y) or by_range(counted(y), k)


@mutant("writes 0 over -100", caught_by=untouched)
def audit(y, k):
    said = by_form(y) or by_range(counted(y), k)
    y[y == -100] = 0
    return said


@hinted(1, reaches=shape)
def audit(y, k):
    if y.dtype not in (torch.int64, torch.uint8):
        return "dtype"
    if y.dim() != 1:
        return "shape"
    return "ok" if y.max() < k else "too-large"


@accepted("works on a list")
def audit(y, k):
    if y.dtype != torch.int64 and y.dtype != torch.uint8:
        return "dtype"
    if len(y.shape) != 1:
        return "shape"
    seen = {v for v in y.tolist() if v != -100}
    if not seen:
        return "empty"
    if min(seen) < 0:
        return "negative"
    if (min(seen), max(seen)) == (1, k):
        return "off-by-one"
    return "too-large" if max(seen) >= k else "ok"


@accepted("masks with where, and asks any")
def audit(y, k):
    if y.dtype not in {torch.uint8, torch.int64}:
        return "dtype"
    if y.ndim != 1:
        return "shape"
    y = y.to(torch.int64)
    counts = y.ne(-100)
    if not counts.any():
        return "empty"
    if (counts & (y < 0)).any():
        return "negative"
    if not (counts & (y >= k)).any():
        return "ok"
    low = torch.where(counts, y, k).min()
    return "off-by-one" if low == 1 and y.max() == k else "too-large"
