"""Judges lessons/13_language_models/07_sampling.md."""

import math

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_unchanged,
    hinted,
    mutant,
)

background("Calls that may help")

equivalent(
    "cut = torch.zeros_like(cut).scatter(-1, at, cut)",
    "cut = cut.scatter(-1, at, cut)",
    because="the indices of a sort fill each place",
)
equivalent(
    "cut = torch.zeros_like(cut).scatter(-1, at, cut)",
    "cut = torch.ones_like(cut).scatter(-1, at, cut)",
    because="the indices of a sort fill each place",
)

ORDER = "Temperature, top_k, top_p, min_p: each on what the former left, after a new softmax."
PLACES = "Column i of the result belongs to token i: carry sorted values back with their indices."
DTYPE = "The probabilities have the dtype of the logits."


def scores(rng, vocabulary=None):
    """Far enough apart that no cut lies within rounding."""
    n = vocabulary or rng.randint(7, 12)
    rows = [torch.randperm(n) * 0.7 + torch.rand(n) * 0.3 for _ in range(rng.choice((2, 3)))]
    return torch.stack(rows)


def wanted(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    """Row by row, token by token, in float64."""
    rows = []
    for row in logits.double().tolist():
        e = [math.exp((z - max(row)) / temperature) for z in row]
        p = [x / sum(e) for x in e]
        order = sorted(range(len(p)), key=lambda i: -p[i])[:top_k]
        if top_p is not None:
            total, kept, mass = sum(p[i] for i in order), [], 0.0
            for i in order:
                if mass >= top_p:
                    break
                kept.append(i)
                mass += p[i] / total
            order = kept
        if min_p is not None:
            order = [i for i in order if p[i] >= min_p * p[order[0]]]
        total = sum(p[i] for i in order)
        rows.append([p[i] / total if i in order else 0.0 for i in range(len(p))])
    return torch.tensor(rows)


def compare(answer, z, hint, **settings):
    """The answer gets a copy: what it writes into the logits is told by a check of its own."""
    right = wanted(z, **settings)
    got = answer.filtered(z.clone(), **settings)
    if isinstance(got, torch.Tensor) and got.shape == right.shape:
        moved = not torch.allclose(got.float(), right, rtol=1e-3, atol=1e-4)
        same = torch.allclose(got.float().sort().values, right.sort().values, rtol=1e-3, atol=1e-4)
        hint = PLACES if moved and same else hint
    expect_close(got, right, hint=hint, dtype_hint=DTYPE, rtol=1e-3, atol=1e-4)


@check(
    "temperature divides the scores",
    holds=["Temperature comes first", "A filter that is None does nothing."],
)
def temperature(answer, rng, device):
    z = scores(rng)
    for t in (0.3, 1.0, 2.5):
        compare(answer, z, "Probabilities are softmax(logits / temperature).", temperature=t)


@check(
    "temperature 0 is the largest score",
    holds=["Temperature 0 gives the largest score", "of equal largest scores, one has it"],
    both_sides=True,
)
def zero(answer, rng, device):
    z = scores(rng)
    right = torch.zeros_like(z).scatter(-1, z.argmax(-1, keepdim=True), 1.0)
    hint = "Nothing can be divided by 0: at temperature 0 take the largest."
    expect_close(answer.filtered(z.clone(), 0), right, hint=hint, dtype_hint=DTYPE)
    expect_close(answer.filtered(z.clone(), 0, 3, 0.9, 0.1), right, hint=hint, dtype_hint=DTYPE)
    near = torch.tensor([[1.0, 2.0, 2.001, -1.0]])
    hint = "At temperature 0 nothing is divided, not by a small number either: take the largest."
    expect_close(answer.filtered(near, 0), torch.tensor([[0.0, 0, 1, 0]]), hint=hint)
    equal = answer.filtered(torch.tensor([[1.0, 2.0, 2.0, -1.0]]), 0)
    shares = sorted(equal[0].tolist())
    hint = (
        "Of equal largest scores one has the probability 1. A division by a small number shares it."
    )
    expect_equal(shares, [0, 0, 0, 1], name="the shares with two equal scores", hint=hint)


@check(
    "top_k keeps k tokens, each at its place",
    holds=["`top_k` keeps exactly k tokens", "in order of the vocabulary"],
    both_sides=True,
)
def top_k(answer, rng, device):
    z = scores(rng)
    hint = (
        "The k largest keep their shares, scaled to a sum of 1, at their places in the vocabulary."
    )
    for k in (1, 3):
        compare(answer, z, hint, top_k=k)
    few = "With fewer than k tokens all are kept: take min(k, the number of tokens)."
    with advising((RuntimeError, IndexError), hint=few):
        compare(answer, z, few, top_k=100)
    got = answer.filtered(torch.tensor([[1.0, 2.0, 2.0, 2.0]]), top_k=2)
    hint = "Of equal scores exactly k are kept: use the indices of topk."
    expect_equal(int((got > 0).sum()), 2, name="tokens kept of three equal ones", hint=hint)


@check(
    "top_p keeps the token that crosses p",
    holds="`top_p` keeps a token while the mass",
)
def top_p(answer, rng, device):
    z = scores(rng)
    hint = "Keep while the mass before is below p: the one that crosses stays, so one is kept."
    for p in (0.05, 0.4, 0.9):
        compare(answer, z, hint, top_p=p)
    # four equal scores have 1/4 each, so the mass before the third is p exactly
    kept = int((answer.filtered(torch.zeros(1, 4), top_p=0.5) > 0).sum())
    hint = "A mass before it that equals p is not below p."
    expect_equal(kept, 2, name="tokens kept of four with 1/4 each, top_p=0.5", hint=hint)


@check(
    "min_p is relative to the largest",
    holds="`min_p` keeps tokens with at least",
    both_sides=True,
)
def min_p(answer, rng, device):
    z = scores(rng)
    for m in (0.05, 0.3, 0.9):
        compare(answer, z, "The bar is min_p times the largest.", min_p=m)
    z = torch.cat([z[:1] * 3, z[:1] * 0.2])
    hint = "Each row has a largest probability of its own: amax(-1, keepdim=True)."
    for m in (0.3, 0.7):
        compare(answer, z, hint, min_p=m)
    kept = int((answer.filtered(torch.zeros(1, 4), min_p=1.0) > 0).sum())
    hint = "At least the bar: what equals it stays."
    expect_equal(kept, 4, name="tokens kept of four with 1/4 each, min_p=1", hint=hint)


@check(
    "each filter works on what is left",
    holds=["each on the probabilities that the former filters left", "after all four settings"],
    both_sides=True,
)
def both(answer, rng, device):
    for _ in range(4):
        z = scores(rng, 10)
        for k, p in ((3, 0.8), (4, 0.6), (5, 0.93)):
            compare(answer, z, ORDER, temperature=1.7, top_k=k, top_p=p)
            compare(answer, z, ORDER, temperature=1.7, top_k=k, top_p=p, min_p=0.35)
    # of 0.4, 0.2 and four of 0.1, top_p=0.55 keeps two; after min_p=0.3 it would keep one
    z = torch.tensor([0.4, 0.2, 0.1, 0.1, 0.1, 0.1]).log()[torch.randperm(6)][None]
    hint = "min_p comes last, on what top_p left."
    compare(answer, z, hint, top_p=0.55, min_p=0.3)


@check("the scores stay as they were", holds="The logits stay as they were.")
def unchanged(answer, rng, device):
    z = scores(rng, 8).T.contiguous().T
    with expect_unchanged(z, hint="masked_fill_, /= and -= write into the scores."):
        answer.filtered(z, temperature=0.7, top_k=3, top_p=0.9, min_p=0.1)
    with expect_unchanged(z, hint="At temperature 0 the scores stay too."):
        answer.filtered(z, temperature=0)
    compare(answer, z, ORDER, temperature=1.0, top_k=3, top_p=0.9, min_p=0.1)


def body(z, temperature=1.0, top_k=None, top_p=None, min_p=None, wrong=""):
    if temperature == 0 and wrong != "zero":
        return torch.zeros_like(z).scatter(-1, z.argmax(-1, keepdim=True), 1.0)
    z = z if wrong == "late" else z * temperature if wrong == "times" else z / temperature
    full = z.softmax(-1)
    if top_k is not None:
        best = z.topk(min(top_k, z.shape[-1]), -1)
        if wrong == "place":
            return best.values.softmax(-1)
        if wrong == "threshold":
            z = z.masked_fill(z < best.values[..., -1:], -torch.inf)
        else:
            z = torch.full_like(z, -torch.inf).scatter(-1, best.indices, best.values)
    if top_p is not None:
        now = full.masked_fill(z == -torch.inf, 0) if wrong == "old mass" else z.softmax(-1)
        p, at = now.sort(-1, descending=True)
        before = p.cumsum(-1) - p
        cut = before + p > top_p if wrong == "drop" else before >= top_p
        cut = before > top_p if wrong == "equal" else cut
        back = cut if wrong == "sorted" else torch.zeros_like(cut).scatter(-1, at, cut)
        z = z.masked_fill(back, -torch.inf)
    if min_p is not None:
        p = z.softmax(-1)
        bar = min_p if wrong == "absolute" else min_p * p.amax(-1, keepdim=True)
        bar = min_p * p.max() if wrong == "batch" else bar
        low = p <= bar if wrong == "above" else p < bar
        low.scatter_(-1, p.argmax(-1, keepdim=True), False)
        z = z.masked_fill(low, -torch.inf)
    return (z / temperature if wrong == "late" else z).softmax(-1)


@mutant("multiplies by the temperature", caught_by=temperature)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="times")


@mutant("divides by 0", caught_by=zero)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="zero")


@mutant("divides by a small number at temperature 0", caught_by=zero)
def filtered(z, temperature=1.0, *args, **settings):
    return body(z, max(temperature, 1e-6), *args, **settings)


@mutant("keeps all that equal the k-th score", caught_by=top_k)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="threshold")


@mutant("returns k probabilities", caught_by=top_k)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="place")


@mutant("drops the token that crosses p", caught_by=top_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="drop")


@mutant("keeps one more where the mass before is p", caught_by=top_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="equal")


@mutant("masks in sorted order", caught_by=top_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="sorted")


@mutant("min_p as an absolute bar", caught_by=min_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="absolute")


@mutant("the largest probability of the whole batch", caught_by=min_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="batch")


@mutant("drops what equals the bar of min_p", caught_by=min_p)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="above")


@mutant("min_p before top_p", caught_by=both)
def filtered(z, temperature=1.0, top_k=None, top_p=None, min_p=None):
    left = body(z, temperature, top_k, None, min_p)
    return left if temperature == 0 else body(left.log(), top_p=top_p)


@mutant("top_p before top_k", caught_by=both)
def filtered(z, temperature=1.0, top_k=None, top_p=None, min_p=None):
    left = body(z, temperature, None, top_p)
    return left if temperature == 0 else body(left.log(), top_k=top_k, min_p=min_p)


@mutant("the shares that are left do not add up to 1", caught_by=top_k)
def filtered(z, temperature=1.0, *args, **settings):
    right = body(z, temperature, *args, **settings)
    return right if temperature == 0 else (z / temperature).softmax(-1) * (right > 0)


@mutant("returns them in sorted order", caught_by=temperature)
def filtered(*args, **settings):
    return body(*args, **settings).sort(-1, descending=True).values


@mutant("shares temperature 0 among equal scores", caught_by=zero)
def filtered(z, temperature=1.0, *args, **settings):
    if temperature == 0:
        most = (z == z.amax(-1, keepdim=True)).to(z.dtype)
        return most / most.sum(-1, keepdim=True)
    return body(z, temperature, *args, **settings)


@mutant("divides the scores in place", caught_by=unchanged)
def filtered(logits, temperature=1.0, *args, **settings):
    if temperature != 0:
        logits /= temperature
        temperature = 1.0
    return body(logits, temperature, *args, **settings)


@mutant("top_p on the mass before top_k", caught_by=both)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="old mass")


@mutant("temperature after the filters", caught_by=both)
def filtered(*args, **settings):
    return body(*args, **settings, wrong="late")


@mutant("writes into the scores", caught_by=unchanged)
def filtered(logits, *args, **settings):
    right = body(logits, *args, **settings)
    logits[right == 0] = -torch.inf
    return right


@accepted("sorts once")
def filtered(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    p, at = (logits / temperature).softmax(-1).sort(-1, descending=True)
    if top_k is not None:
        p = torch.where(torch.arange(p.shape[-1]) < top_k, p, 0.0)
        p = p / p.sum(-1, keepdim=True)
    if top_p is not None:
        before = torch.cat([torch.zeros_like(p[..., :1]), p.cumsum(-1)[..., :-1]], -1)
        p = torch.where(before < top_p, p, 0.0)
    if min_p is not None:
        p = torch.where(p >= min_p * p[..., :1], p, 0.0)
    return torch.zeros_like(p).scatter(-1, at, p / p.sum(-1, keepdim=True))


@accepted("ranks, and no score is set to minus infinity")
def filtered(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    rank = logits.argsort(-1, descending=True).argsort(-1)
    if temperature == 0:
        return (rank == 0).to(logits.dtype)

    def shared(p, keep):
        return p * keep / (p * keep).sum(-1, keepdim=True)

    p = (logits.double() / temperature).softmax(-1)
    if top_k is not None:
        p = shared(p, rank < top_k)
    if top_p is not None:
        ordered = p.gather(-1, rank.argsort(-1))
        p = shared(p, (ordered.cumsum(-1) - ordered).gather(-1, rank) < top_p)
    if min_p is not None:
        p = shared(p, p >= min_p * p.amax(-1, keepdim=True))
    return p.to(logits.dtype)


@accepted("row by row")
def filtered(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    rows = []
    for z in logits:
        p, order = torch.zeros_like(z), z.argsort(descending=True)
        if temperature == 0:
            p[order[0]] = 1
        else:
            order = order[:top_k]
            q = (z[order] / temperature).softmax(0)
            if top_p is not None:
                n = int((q.cumsum(0) < top_p).sum()) + 1
                order, q = order[:n], q[:n]
            if min_p is not None:
                good = q >= min_p * q.max()
                order, q = order[good], q[good]
            p[order] = q / q.sum()
        rows.append(p)
    return torch.stack(rows)


@hinted(1, reaches=zero)
def filtered(logits, temperature=1.0, top_k=None, top_p=None, min_p=None):
    if temperature == 0:
        return torch.nn.functional.one_hot(logits.argmax(-1), logits.shape[-1]).to(logits.dtype)
    return (logits / temperature).softmax(-1)
