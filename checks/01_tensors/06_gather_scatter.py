"""Judges lessons/01_tensors/06_gather_scatter.md."""

import torch
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_unchanged,
    mutant,
)

INF = float("inf")


def problem(rng, device, b, t, v, dtype=torch.float32):
    """Logits (b, t, v), half of the time not contiguous, and a token for each place."""
    logits = torch.randn(b, t, v)
    if rng.random() < 0.5:
        logits = torch.randn(v, t, b).permute(2, 1, 0)
    tok = torch.randint(v, (b, t))
    return (3 * logits).to(device, dtype), tok.to(device)


def wanted(logits, tok):
    """One place at a time, in float64."""
    out = torch.zeros(tok.shape, dtype=torch.float64, device=tok.device)
    for i in range(tok.shape[0]):
        for j in range(tok.shape[1]):
            scores = logits[i, j].double()
            out[i, j] = scores[tok[i, j]] - scores.logsumexp(0)
    return out


def compare(answer, logits, tok, hint="", **more):
    got = answer.pick_logprobs(logits, tok)
    expect_close(got, wanted(logits, tok), dtype=logits.dtype, hint=hint, **more)


def sizes(rng):
    """B, T and V, all different.

    V is the smallest: a lookup along the wrong dimension then gives wrong numbers. Out of bounds,
    it would stop a GPU for all the checks that follow.
    """
    v, *others = sorted(rng.sample(range(2, 8), 3))
    rng.shuffle(others)
    return *others, v


@check("one number for each place")
def one_each(answer, rng, device):
    logits, tok = problem(rng, device, *sizes(rng))
    got = answer.pick_logprobs(logits, tok)
    every = (
        "Indexing with `tok` in the last position looks up every token of the batch at "
        "every place: (B, T, B, T). Each place has one token."
    )
    left = "`gather` returns the shape of its index. A dimension added for it must go again."
    expect_shape(got, tok.shape, hint=every if getattr(got, "ndim", 0) == 4 else left)


@check("the probabilities over the vocabulary add up to 1")
def normalised(answer, rng, device):
    b, t, v = sizes(rng)
    logits, _ = problem(rng, device, b, t, v)
    total = torch.zeros(b, t, device=device)
    hint = "A logit is not yet a log-probability. Normalise each place over its V scores, and "
    hint += "return the log as it is: 0 or less."
    for token in range(v):
        tok = torch.full((b, t), token, device=device)
        got = answer.pick_logprobs(logits, tok)
        expect_shape(got, (b, t))
        total = total + got.exp()
    expect_close(
        total, torch.ones(b, t, device=device), name="the sum of exp over all tokens", hint=hint
    )


@check("each place reads its own token")
def own_token(answer, rng, device):
    logits, tok = problem(rng, device, *sizes(rng))
    tok[0, 0] = logits[0, 0].argmin()
    with expect_unchanged(logits, tok):
        compare(
            answer,
            logits,
            tok,
            hint="Entry [i, j] is about the token tok[i, j] and the scores logits[i, j], "
            "whether that token was likely or not.",
        )


@check("equal sizes hide no mistake")
def cube(answer, rng, device):
    n = rng.randint(3, 5)
    logits, _ = problem(rng, device, n, n, n)
    tok = torch.stack([torch.randperm(n) for _ in range(n)]).to(device)
    tok[1] = tok[0].roll(1)
    compare(
        answer,
        logits,
        tok,
        hint="B, T and V are equal here, so a lookup along the wrong dimension fits without "
        "an error. V is the last dimension, and each of the B x T places stands alone.",
    )


@check("sizes of 1 and 0 stay")
def small_sizes(answer, rng, device):
    for b, t, v in ((1, 1, 4), (1, 3, 5), (3, 1, 2), (2, 3, 1), (2, 0, 4)):
        logits, tok = problem(rng, device, b, t, v)
        compare(
            answer,
            logits,
            tok,
            shape_hint="A batch of one text, or a text of one token, is still (B, T). Drop the "
            "dimension that you added, and only that one.",
        )


@check("very unlikely tokens stay finite")
def far_apart(answer, rng, device):
    b, t, v = sizes(rng)
    logits, tok = problem(rng, device, b, t, v)
    logits = logits.contiguous()
    logits[0, 0] = torch.linspace(-900, 900, v, device=device)
    tok[0, 0] = 0
    compare(
        answer,
        logits,
        tok,
        nan_hint="exp(-1800) is 0 in float32, and its log is -inf. `log_softmax` never "
        "leaves the log.",
    )


@check("banned tokens do no harm to the others")
def banned(answer, rng, device):
    b, t, v = rng.randint(1, 3), rng.randint(2, 4), rng.randint(3, 6)
    logits, tok = problem(rng, device, b, t, v)
    logits = logits.contiguous()
    logits[..., 0] = -INF
    tok = tok.clamp(min=1)
    tok[0, 0] = 0
    compare(
        answer,
        logits,
        tok,
        nan_hint="-inf times 0 is NaN. Look up the one value that is wanted, rather than "
        "multiplying the rest away.",
        hint="A token whose logit is -inf has the log-probability -inf, and no other has.",
    )


@check("the result has the dtype of the logits")
def same_dtype(answer, rng, device):
    for dtype in (torch.float64, torch.bfloat16):
        logits, tok = problem(rng, device, 2, 3, 4, dtype)
        expect_dtype(
            answer.pick_logprobs(logits, tok), dtype, hint="Somewhere a fixed dtype got in."
        )


@mutant("gathers the raw logits", caught_by=normalised)
def pick_logprobs(logits, tok):
    return logits.gather(-1, tok.unsqueeze(-1)).squeeze(-1)


@mutant("normalises over T", caught_by=normalised)
def pick_logprobs(logits, tok):
    return logits.log_softmax(1).gather(-1, tok.unsqueeze(-1)).squeeze(-1)


@mutant("looks up every token at every place", caught_by=one_each)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1)[:, :, tok]


@mutant("leaves the dimension of size 1 in", caught_by=one_each)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1).gather(-1, tok[..., None])


@mutant("squeezes every size of 1 away", caught_by=small_sizes)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1).gather(-1, tok.unsqueeze(-1)).squeeze()


@mutant("takes the most likely token", caught_by=own_token)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1).amax(-1)


@mutant("looks up along T", caught_by=cube)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1).gather(1, tok[..., None])[..., 0]


@mutant("pairs the rows with the columns", caught_by=cube)
def pick_logprobs(logits, tok):
    b, t, _ = logits.shape
    return logits.log_softmax(-1)[torch.arange(b), torch.arange(t), tok]


@mutant("takes the log of the softmax", caught_by=far_apart)
def pick_logprobs(logits, tok):
    return logits.softmax(-1).log().gather(-1, tok[..., None])[..., 0]


@mutant("multiplies by a one-hot tensor", caught_by=banned)
def pick_logprobs(logits, tok):
    onehot = torch.zeros_like(logits).scatter_(-1, tok[..., None], 1)
    return (logits.log_softmax(-1) * onehot).sum(-1)


@mutant("turns everything into float32", caught_by=same_dtype)
def pick_logprobs(logits, tok):
    return logits.float().log_softmax(-1).gather(-1, tok[..., None])[..., 0]


@accepted("subtracts the logsumexp afterwards")
def pick_logprobs(logits, tok):
    chosen = logits.take_along_dim(tok.unsqueeze(2), 2).squeeze(2)
    return chosen - logits.logsumexp(2)


@accepted("pairs up three index tensors")
def pick_logprobs(logits, tok):
    b, t, _ = logits.shape
    rows = torch.arange(b, device=tok.device)[:, None]
    columns = torch.arange(t, device=tok.device)
    return torch.log_softmax(logits, dim=2)[rows, columns, tok]


@accepted("asks cross_entropy and turns the sign")
def pick_logprobs(logits, tok):
    flat = logits.reshape(tok.numel(), logits.shape[2])
    return -functional.cross_entropy(flat, tok.reshape(-1), reduction="none").reshape(tok.shape)


equivalent(
    "return lp.gather(-1, tok[..., None])[..., 0]",
    "return lp.gather(-1, tok[..., None])[..., -1]",
    because="A dimension of size 1 has one place, counted from either end.",
)
