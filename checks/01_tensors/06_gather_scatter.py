"""Judges lessons/01_tensors/06_gather_scatter.md."""

import torch
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_shape,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "A language model gives",
    "Training asks",
    "Sampling asks",
    "`pick_logprobs` answers the first.",
    "`logits.log_softmax(d)` turns scores",
)

INF = float("inf")


def problem(rng, device, b, t, v, dtype=torch.float32):
    """Logits (b, t, v), and a token for each place."""
    logits = torch.randn(b, t, v)
    tok = torch.randint(v, (b, t))
    return (3 * logits).to(device, dtype), tok.to(device)


def counted(tok, v):
    """How often each token stands in each row, one place at a time."""
    out = torch.zeros(len(tok), v, dtype=torch.int64, device=tok.device)
    for i in range(tok.shape[0]):
        for j in range(tok.shape[1]):
            out[i, tok[i, j]] += 1
    return out


def wanted(logits, tok):
    """One place at a time, in float64."""
    out = torch.zeros(tok.shape, dtype=torch.float64, device=tok.device)
    for i in range(tok.shape[0]):
        for j in range(tok.shape[1]):
            scores = logits[i, j].double()
            out[i, j] = scores[tok[i, j]] - scores.logsumexp(0)
    return out


def compare(answer, logits, tok, hint="", **more):
    right = wanted(logits, tok)  # before the call: it might change what it is given
    got = answer.pick_logprobs(logits, tok)
    expect_close(got, right, dtype=logits.dtype, hint=hint, **more)


def compare_counts(answer, tok, v, **more):
    right = counted(tok, v)
    expect_equal(answer.count_tokens(tok, v), right, name="count_tokens", **more)


def sizes(rng):
    """B, T and V, all different.

    V is the smallest: a lookup along the wrong dimension then gives wrong numbers. Out of bounds,
    it would stop a GPU for all the checks that follow.
    """
    v, *others = sorted(rng.sample(range(2, 8), 3))
    rng.shuffle(others)
    return *others, v


@check("one number for each place", holds="returns: (B, T), dtype and precision of logits")
def one_each(answer, rng, device):
    logits, tok = problem(rng, device, *sizes(rng))
    got = answer.pick_logprobs(logits, tok)
    every = (
        "Indexing with `tok` in the last position looks up every token of the batch at "
        "every place: (B, T, B, T). Each place has one token."
    )
    left = "`gather` returns the shape of its index. A dimension added for it must go again."
    expect_shape(got, tok.shape, hint=every if getattr(got, "ndim", 0) == 4 else left)


@check("the probabilities over the vocabulary add up to 1", holds="The log-probability")
def normalised(answer, rng, device):
    b, t, v = sizes(rng)
    logits, _ = problem(rng, device, b, t, v)
    total = torch.zeros(b, t, device=device)
    hint = "A logit is not yet a log-probability. Normalise each place over its V scores, and "
    hint += (
        "return the log as it is: 0 or less. If you do: along V the token is looked up that was "
    )
    hint += "asked for, token 0 too."
    for token in range(v):
        tok = torch.full((b, t), token, device=device)
        got = answer.pick_logprobs(logits, tok)
        expect_shape(got, (b, t))
        total = total + got.exp()
    expect_close(
        total, torch.ones(b, t, device=device), name="the sum of exp over all tokens", hint=hint
    )


@check(
    "each place reads its own token",
    holds=["of the token at every place", "from 0 to V - 1"],
)
def own_token(answer, rng, device):
    b, t, v = sizes(rng)
    logits, tok = problem(rng, device, b, t, v)
    tok[0, 0] = logits[0, 0].argmin()
    tok[-1, -1], tok[-1, 0] = v - 1, 0
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


@check("very unlikely tokens stay finite")
def far_apart(answer, rng, device):
    b, t, v = sizes(rng)
    logits, tok = problem(rng, device, b, t, v)
    logits[0, 0] = torch.linspace(-900, 900, v, device=device)
    tok[0, 0] = 0
    hint = "exp(-1800) is 0 in float32, and its log is -inf. `log_softmax` never leaves the log."
    more = hint + " A small number added before the log changes the result."
    compare(answer, logits, tok, nan_hint=hint, hint=more)


@check(
    "transposed arguments are as good as any",
    holds="Both arguments may be transposed.",
    both_sides=True,
)
def transposed(answer, rng, device):
    b, t, v = sizes(rng)
    hint = "A transposed tensor has its numbers in another order in memory. `gather` takes it "
    hint += "as it is, and `reshape` copies where `view` refuses."
    logits, tok = torch.randn(v, t, b, device=device), torch.randint(v, (t, b), device=device)
    with advising(RuntimeError, saying="view size is not compatible", hint=hint):
        compare(answer, logits.permute(2, 1, 0), tok.T)
        compare(answer, logits.permute(2, 1, 0).contiguous(), tok.T)
        compare(answer, logits.permute(2, 1, 0), tok.T.contiguous())


@check(
    "banned tokens do no harm to the others",
    holds=["those tokens are banned and have probability 0", "-inf if banned"],
)
def banned(answer, rng, device):
    b, t, v = rng.randint(2, 3), rng.randint(2, 4), rng.randint(3, 6)
    logits, tok = problem(rng, device, b, t, v)
    logits[..., 0] = -INF
    tok = tok.clamp(min=1)
    tok[0, 0] = 0
    logits[0, 1, 1:-1] = -INF  # one token is left at this place: its probability is 1
    tok[0, 1] = v - 1
    compare(
        answer,
        logits,
        tok,
        nan_hint="-inf times 0 is NaN. Look up the one value that is wanted, rather than "
        "multiplying the rest away.",
        hint="A token whose logit is -inf has the log-probability -inf, and no other has.",
    )


@check(
    "the result has the dtype of the logits",
    holds=["any floating dtype", "dtype and precision of logits"],
)
def same_dtype(answer, rng, device):
    fixed = "Somewhere a fixed dtype got in."
    digits = "float64 keeps about 16 digits, and a detour over float32 leaves 7 of them."
    logits, tok = problem(rng, device, 2, 3, 4, torch.float64)
    logits = logits / 3
    compare(answer, logits, tok, rtol=1e-12, atol=1e-13, dtype_hint=fixed, hint=digits)
    for dtype in (torch.bfloat16, torch.float16):
        logits, tok = problem(rng, device, 2, 3, 4, dtype)
        compare(answer, logits, tok, rtol=0.05, atol=0.05, dtype_hint=fixed)


@check(
    "a token that stands twice counts twice",
    holds=["How many times a token stands in a row.", "returns: (B, V), int64"],
)
def twice(answer, rng, device):
    b, t, v = rng.randint(2, 4), rng.randint(5, 8), rng.randint(2, 4)
    tok = problem(rng, device, b, t, v)[1]
    right = counted(tok, v)
    got = answer.count_tokens(tok, v)
    shape = "A row for each text, and a column for each of the V tokens."
    expect_shape(got, right.shape, name="count_tokens", hint=shape)
    once = "A row has more places than there are tokens here, so some stand there again and again. "
    once += "Of several writes to one place `scatter_` keeps one: add them."
    each = "Entry [i, v] says how many places of row i hold the token v. All T places of that row "
    each += "count, no place of another row does, and token 0 is a token as any."
    expect_equal(
        got,
        right,
        name="count_tokens",
        hint=once if bool((got == right.clamp(max=1)).all()) else each,
        dtype_hint="A count is a whole number: int64.",
    )


@check("a count may be large", holds="How many times a token stands in a row.")
def many(answer, rng, device):
    tok = torch.zeros(2, rng.randint(600, 700), dtype=torch.int64, device=device)
    tok[:, ::2] = 1
    compare_counts(answer, tok, 2, hint="uint8 and int8 wrap around. Count in int64 throughout.")


@check("rows are counted apart", holds="it counts every row of the batch by itself")
def apart(answer, rng, device):
    v = rng.randint(3, 6)
    tok = torch.arange(v, device=device).repeat_interleave(2).reshape(v, 2).flip(0)
    hint = "Row i counts the tokens of text i alone. Here one text holds one token, twice."
    compare_counts(answer, tok, v, hint=hint)


@check(
    "a token that does not occur is counted 0 times",
    holds="A token that stands nowhere in a row is counted 0 times.",
)
def unused(answer, rng, device):
    b, t, v = rng.randint(1, 3), rng.randint(1, 4), rng.randint(3, 6)
    tok = torch.randint(v - 1, (b, t), device=device)
    hint = "V columns, also for tokens at the end of the vocabulary that nobody used."
    for size in (v, v + rng.randint(3, 9)):
        compare_counts(answer, tok.clone(), size, shape_hint=hint)


@check(
    "the arguments stay as they are",
    holds="Both functions leave their arguments as they are.",
    both_sides=True,
)
def arguments(answer, rng, device):
    b, t, v = sizes(rng)
    logits, tok = problem(rng, device, b, t, v)
    logits[..., 0] = -INF
    with expect_unchanged(logits, tok):
        answer.pick_logprobs(logits, tok)
    with expect_unchanged(tok):
        answer.count_tokens(tok, v)


@check("sizes of 1 and 0 stay", holds=["B, T and V may be 1, and T may be 0.", "T may be 0"])
def small_sizes(answer, rng, device):
    for b, t, v in ((1, 1, 4), (1, 3, 5), (3, 1, 2), (2, 3, 1), (1, 1, 1), (2, 0, 4)):
        logits, tok = problem(rng, device, b, t, v)
        compare(
            answer,
            logits,
            tok,
            shape_hint="A batch of one text, or a text of one token, is still (B, T). Drop the "
            "dimension that you added, and only that one.",
        )
        compare_counts(
            answer,
            tok,
            v,
            shape_hint="(B, V), also for one text, for one token, and for texts without a token.",
        )


@check("the counts lie on the device of tok", holds="on the device of tok")
def same_device(answer, rng, device):
    tok = torch.zeros(1, 1, dtype=torch.int64, device=device)
    expect_equal(
        answer.count_tokens(tok, 2), torch.tensor([[1, 0]], device=device), name="count_tokens"
    )


@mutant("computes in float32 and converts", caught_by=same_dtype)
def pick_logprobs(logits, tok):
    logprobs = logits.float().log_softmax(-1)
    return logprobs.gather(-1, tok[..., None])[..., 0].to(logits.dtype)


@mutant("makes -1e9 of the banned scores, in place", caught_by=arguments)
def pick_logprobs(logits, tok):
    logits[logits.isinf()] = -1e9
    return logits.log_softmax(-1).gather(-1, tok[..., None])[..., 0]


@mutant("counts in uint8", caught_by=many)
def count_tokens(tok, V):
    hot = tok[..., None] == torch.arange(V, device=tok.device)
    return hot.sum(1, dtype=torch.uint8).long()


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


@mutant("flattens the tokens with view", caught_by=transposed)
def pick_logprobs(logits, tok):
    b, t, v = logits.shape
    flat = logits.log_softmax(-1).reshape(b * t, v)
    return flat.gather(1, tok.view(b * t, 1)).view(b, t)


@mutant("flattens the scores with view", caught_by=transposed)
def pick_logprobs(logits, tok):
    b, t, v = logits.shape
    flat = logits.view(b * t, v).log_softmax(-1)
    return flat.gather(1, tok.reshape(b * t, 1)).view(b, t)


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
equivalent(
    "out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)",
    "out = torch.zeros(len(tok), V, dtype=torch.int64)",
    because="On the CPU both are the same. On a GPU the check of the device tells them apart.",
)


@hinted(1, reaches=arguments)
def pick_logprobs(logits, tok):
    return logits.log_softmax(-1).gather(-1, tok[:, :, None]).squeeze()


@hinted(1, reaches=small_sizes)
def count_tokens(tok, V):
    out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)
    return out.scatter_add_(1, tok, torch.ones(tok.shape, dtype=torch.int64, device=tok.device))


@mutant("writes a 1 and does not add", caught_by=twice)
def count_tokens(tok, V):
    out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)
    return out.scatter_(1, tok, torch.ones_like(tok))


@mutant("adds through an index, and loses what is there twice", caught_by=twice)
def count_tokens(tok, V):
    out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)
    out[torch.arange(len(tok), device=tok.device)[:, None], tok] += 1
    return out


@mutant("counts in floats", caught_by=twice)
def count_tokens(tok, V):
    out = torch.zeros(len(tok), V, device=tok.device)
    return out.scatter_add_(1, tok, torch.ones(tok.shape, device=tok.device))


@mutant("adds the numbers of the tokens", caught_by=twice)
def count_tokens(tok, V):
    return torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device).scatter_add_(1, tok, tok)


@mutant("counts over the whole batch", caught_by=apart)
def count_tokens(tok, V):
    return torch.bincount(tok.flatten(), minlength=V).expand(len(tok), V)


@mutant("ends at the largest token that occurs", caught_by=unused)
def count_tokens(tok, V):
    most = int(tok.max()) + 1 if tok.numel() else V
    out = torch.zeros(len(tok), most, dtype=torch.int64, device=tok.device)
    return out.scatter_add_(1, tok, torch.ones_like(tok))


@mutant("squeezes the counts", caught_by=small_sizes)
def count_tokens(tok, V):
    out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)
    return out.scatter_add_(1, tok, torch.ones_like(tok)).squeeze(0)


@mutant("asks for the largest token of a text that may be empty", caught_by=small_sizes)
def count_tokens(tok, V):
    return torch.nn.functional.one_hot(tok, max(V, int(tok.max()) + 1)).sum(1)


@mutant("sorts the tokens in place before it counts", caught_by=arguments)
def count_tokens(tok, V):
    tok.copy_(tok.sort(1).values)
    out = torch.zeros(len(tok), V, dtype=torch.int64, device=tok.device)
    return out.scatter_add_(1, tok, torch.ones_like(tok))


@mutant("normalises the caller's scores", caught_by=arguments)
def pick_logprobs(logits, tok):
    logits.copy_(logits.log_softmax(-1))
    return logits.gather(-1, tok[..., None])[..., 0]


@accepted("compares every place with every token")
def count_tokens(tok, V):
    return (tok[..., None] == torch.arange(V, device=tok.device)).sum(1)


@accepted("counts row by row with bincount")
def count_tokens(tok, V):
    return torch.stack([torch.bincount(row, minlength=V) for row in tok])


@accepted("adds up one-hot rows")
def count_tokens(tok, V):
    return functional.one_hot(tok, V).sum(1)
