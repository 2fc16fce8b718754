"""Judges lessons/13_language_models/06_long_context.md."""

import itertools

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write window_mask")

equivalent(
    "def window_mask(T, window, sinks=0):",
    "def window_mask(T, window, sinks=-1):",
    because="no position is below 0 or below -1",
)

FUTURE = "True is where the query may look, and it looks back only: j <= i."
BOOL = "A comparison as `j <= i` gives bool."
ITSELF = "The token itself is one of the window's places: i - j < window."
SINKS = "The first places are seen by all behind them, and by nobody before them."
KEPT = "Keep positions below sinks, and those above the newest position minus window."
SIZE = "The cache holds at most window + sinks tokens."
PAIRED = "The same places of keys, values and positions are kept."
TWICE = "A token that is a sink and in the window stands in the cache once."
FIRST = "Without sinks the first token leaves the window like any other: a sink has j < sinks."
PLACES = "Positions are those of the text: they go along with their keys."


def mask_of(T, window, sinks=0):
    """Place by place."""
    rows = [[j <= i and (j > i - window or j < sinks) for j in range(T)] for i in range(T)]
    return torch.tensor(rows)


def places(n, window, sinks):
    """Positions in the cache after n tokens."""
    return [j for j in range(n) if j < sinks or j >= n - window]


def same(got, right, name, hint):
    expect_shape(got, right.shape, name=name)
    expect_dtype(got, torch.bool, name=name)
    expect_equal(got.int().tolist(), right.int().tolist(), name=name, hint=hint)


@check(
    "each token sees itself and window - 1 before it",
    holds=[
        "a boolean mask that is True where the query of the row may look",
        "Token i sees itself and the `window - 1` tokens before it.",
        "Nobody sees a later token.",
    ],
    both_sides=True,
)
def near(answer, rng, device):
    T, window = rng.randint(6, 12), rng.randint(2, 5)
    got = answer.window_mask(T, window)
    expect_shape(got, (T, T), name="the mask")
    expect_dtype(got, torch.bool, name="the mask", hint=BOOL)
    future = int(got.triu(1).sum())
    expect_equal(future, 0, name="the places in the future", hint=FUTURE)
    hint = FIRST if got[:, 0].all() else ITSELF
    expect_equal(int(got.sum(1).max()), window, name="the places that a token sees", hint=hint)
    for size in (window, 1, T, T + 3):
        got = answer.window_mask(T, size)
        same(got, mask_of(T, size), f"window_mask({T}, {size})", ITSELF)


@check(
    "sinks stay visible",
    holds="Positions below `sinks` are visible to themselves and to all later tokens.",
    both_sides=True,
)
def sinks(answer, rng, device):
    T, window = rng.randint(8, 12), rng.randint(1, 4)
    for s in (rng.randint(2, 3), 1, 0, T + 1):
        got = answer.window_mask(T, window, s)
        same(got, mask_of(T, window, s), f"window_mask({T}, {window}, {s})", SINKS)


def tokens(rng, n, device, dtype=torch.float32):
    heads, width = rng.randint(1, 3), rng.choice([4, 6])
    q, k, v = torch.randn(3, 2, n, heads, width, device=device, dtype=dtype).transpose(2, 3)
    return q, k, v


@check(
    "a cache that grows by one gives what the mask gives",
    holds=[
        "`cache` is None or the result of the last call.",
        "It keeps keys, values and positions of the tokens that the newest token sees",
        "returns: (k, v, pos)",
        "k, v: (B, H, t, D), the new tokens",
    ],
    both_sides=True,
)
def one_by_one(answer, rng, device):
    for s in (0, rng.randint(2, 3)):
        n, window = rng.randint(9, 14), rng.randint(2, 4)
        q, k, v = tokens(rng, n, device)
        right = F.scaled_dot_product_attention(q, k, v, attn_mask=mask_of(n, window, s).to(device))
        cache, outs = None, []
        for t in range(n):
            at = torch.tensor([t], device=device)
            one = slice(t, t + 1)
            cache = answer.push(cache, k[:, :, one], v[:, :, one], at, window, s)
            held, most = cache[0].shape[2], len(places(t + 1, window, s))
            message = f"after {t + 1} tokens the cache holds {held} keys, {most} are visible"
            hint = TWICE if held > t + 1 else SIZE if held > most else KEPT
            expect_true(held == most, message, hint=hint)
            right_pos = places(t + 1, window, s)
            expect_equal(cache[2].tolist(), right_pos, name="pos", hint=PLACES)
            outs.append(F.scaled_dot_product_attention(q[:, :, one], cache[0], cache[1]))
        got = torch.cat(outs, 2)
        expect_close(got, right, name="attention with the cache", atol=1e-5, hint=PAIRED)


@check(
    "positions and the order of the text",
    holds=["in the order of the text", "The positions are those of the text"],
)
def order(answer, rng, device):
    window, s, n = rng.randint(2, 4), rng.randint(1, 3), rng.randint(9, 14)
    cache = None
    for t in range(n):
        one = torch.full((1, 1, 1, 2), float(t), device=device)
        cache = answer.push(cache, one, -one, torch.tensor([t], device=device), window, s)
    right = places(n, window, s)
    expect_equal(cache[2].tolist(), right, name="pos", hint=PLACES)
    expect_equal(cache[0][0, 0, :, 0].tolist(), [float(t) for t in right], name="k", hint=PLACES)
    expect_equal(cache[1][0, 0, :, 0].tolist(), [-float(t) for t in right], name="v", hint=PLACES)


@check(
    "several new tokens, with and without a cache",
    holds=[
        "adds one or more new tokens to a cache and returns the new cache",
        "That holds with and without a cache.",
    ],
    both_sides=True,
)
def chunks(answer, rng, device):
    for dtype in (torch.float32, torch.bfloat16):
        window, s = rng.randint(2, 4), rng.randint(0, 3)
        n = 20
        _, k, v = tokens(rng, n, device, dtype)
        cuts = [0, rng.randint(8, 11), 12, 14, n]
        cache = None
        for a, b in itertools.pairwise(cuts):
            pos = torch.arange(a, b, device=device)
            cache = answer.push(cache, k[:, :, a:b], v[:, :, a:b], pos, window, s)
            right = places(b, window, s)
            expect_equal(cache[2].tolist(), right, name=f"pos after {b} tokens", hint=KEPT)
            expect_close(cache[0], k[:, :, right], name="k", hint=KEPT)
            expect_close(cache[1], v[:, :, right], name="v", hint=KEPT)


@check("the cache that came in stays", holds="and the cache that came in stays as it was")
def untouched(answer, rng, device):
    window, s = rng.randint(2, 4), rng.randint(1, 2)
    _, k, v = tokens(rng, 12, device)
    cache = None
    for t in range(11):
        at = torch.tensor([t], device=device)
        cache = answer.push(cache, k[:, :, t : t + 1], v[:, :, t : t + 1], at, window, s)
    at = torch.tensor([11], device=device)
    with expect_unchanged(*cache, hint="Return new tensors: the caller may go on from the old."):
        new = answer.push(cache, k[:, :, 11:], v[:, :, 11:], at, window, s)
    kept = list(range(s)) + list(range(11 - window, 11))
    expect_equal(cache[2].tolist(), kept, name="the old positions", hint="Return a new cache.")
    expect_equal(new[2].tolist(), places(12, window, s), name="pos", hint=KEPT)


def glued(cache, k, v, pos):
    if cache is None:
        return k, v, pos
    return (
        torch.cat([cache[0], k], 2),
        torch.cat([cache[1], v], 2),
        torch.cat([cache[2], pos]),
    )


def pushed(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    keep = torch.tensor([j for j, at in enumerate(pos) if at < sinks or at > pos[-1] - window])
    keep = keep.to(pos.device)
    return k[:, :, keep], v[:, :, keep], pos[keep]


@mutant("looks both ways", caught_by=near)
def window_mask(T, window, sinks=0):
    i, j = torch.arange(T)[:, None], torch.arange(T)
    return ((i - j).abs() < window) | (j < sinks)


@mutant("one place too many", caught_by=near)
def window_mask(T, window, sinks=0):
    i, j = torch.arange(T)[:, None], torch.arange(T)
    return (j <= i) & ((i - j <= window) | (j < sinks))


@mutant("one sink too many", caught_by=near)
def window_mask(T, window, sinks=0):
    i, j = torch.arange(T)[:, None], torch.arange(T)
    return (j <= i) & ((i - j < window) | (j <= sinks))


@mutant("a mask of numbers", caught_by=near)
def window_mask(T, window, sinks=0):
    return mask_of(T, window, sinks).float()


@mutant("True where the query may not look", caught_by=near)
def window_mask(T, window, sinks=0):
    return ~mask_of(T, window, sinks)


@mutant("sinks before their time", caught_by=sinks)
def window_mask(T, window, sinks=0):
    i, j = torch.arange(T)[:, None], torch.arange(T)
    return ((j <= i) & (i - j < window)) | (j < sinks)


@mutant("no sinks", caught_by=sinks)
def window_mask(T, window, sinks=0):
    return mask_of(T, window)


@mutant("sinks see, and are not seen", caught_by=sinks)
def window_mask(T, window, sinks=0):
    i, j = torch.arange(T)[:, None], torch.arange(T)
    return (j <= i) & ((i - j < window) | (i < sinks))


@mutant("a sink in the window is kept twice", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    if len(pos) <= window:
        return k, v, pos
    keep = [*range(sinks), *range(len(pos) - window, len(pos))]
    return k[:, :, keep], v[:, :, keep], pos[keep]


@mutant("sinks take places of the window", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    keep = (pos > pos[-1] - window + sinks) | (pos < sinks)
    keep = keep | (pos == pos[-1])
    return k[:, :, keep], v[:, :, keep], pos[keep]


@mutant("the window of the oldest new token", caught_by=chunks)
def push(cache, k, v, pos, window, sinks):
    first = pos[0]
    k, v, pos = glued(cache, k, v, pos)
    keep = (pos > first - window) | (pos < sinks)
    return k[:, :, keep], v[:, :, keep], pos[keep]


@mutant("the cache forgets the sinks", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    return pushed(cache, k, v, pos, window, 0)


@mutant("the cache never forgets", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    return glued(cache, k, v, pos)


@mutant("the last window + sinks tokens", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    n = window + sinks
    return k[:, :, -n:], v[:, :, -n:], pos[-n:]


@mutant("cuts the old ones, then adds", caught_by=one_by_one)
def push(cache, k, v, pos, window, sinks):
    if cache is not None:
        cache = pushed(None, *cache, window, sinks)
    return glued(cache, k, v, pos)


@mutant("renumbers the positions", caught_by=order)
def push(cache, k, v, pos, window, sinks):
    k, v, at = glued(cache, k, v, pos)
    n = len(at)
    keep = [j for j in range(n) if j < sinks or j >= n - window]
    return k[:, :, keep], v[:, :, keep], torch.arange(len(keep), device=at.device)


@mutant("newest first", caught_by=order)
def push(cache, k, v, pos, window, sinks):
    if cache is not None:
        cache = [cache[0].flip(2), cache[1].flip(2), cache[2].flip(0)]
    k, v, pos = pushed(cache, k, v, pos, window, sinks)
    return k.flip(2), v.flip(2), pos.flip(0)


@mutant("drops one token at a time", caught_by=chunks)
def push(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    if len(pos) > window and pos[-window - 1] >= sinks:
        keep = [j for j in range(len(pos)) if j != sinks]
        k, v, pos = k[:, :, keep], v[:, :, keep], pos[keep]
    return k, v, pos


@mutant("does not cut the first prompt", caught_by=chunks)
def push(cache, k, v, pos, window, sinks):
    return (k, v, pos) if cache is None else pushed(cache, k, v, pos, window, sinks)


@mutant("writes over the oldest entry", caught_by=untouched)
def push(cache, k, v, pos, window, sinks):
    new = pushed(cache, k, v, pos, window, sinks)
    if cache is not None and len(cache[2]) == len(new[2]):
        for old, now in zip(cache, new):
            old.copy_(now)
        return cache
    return new


@accepted("triu and tril")
def window_mask(T, window, sinks=0):
    m = torch.ones(T, T).tril().triu(1 - window)
    m[:, :sinks] = 1
    return m.tril().bool()


@accepted("sinks and window by their place in the cache")
def push(cache, k, v, pos, window, sinks):
    k, v, pos = glued(cache, k, v, pos)
    n = len(pos)
    if n <= window + sinks:
        return k, v, pos
    keep = [*range(sinks), *range(n - window, n)]
    return k[:, :, keep], v[:, :, keep], pos[keep]


@accepted("cuts and glues")
def push(cache, k, v, pos, window, sinks):
    if cache is not None:
        k, v, pos = (torch.cat(pair, d) for *pair, d in zip(cache, (k, v, pos), (2, 2, 0)))
    head = int((pos < sinks).sum())
    tail = max(head, len(pos) - window)

    def cut(t, dim):
        first, last = t.narrow(dim, 0, head), t.narrow(dim, tail, len(pos) - tail)
        return torch.cat([first, last], dim)

    return cut(k, 2), cut(v, 2), cut(pos, 0)


@accepted("the last row of the mask, at the places of the text")
def push(cache, k, v, pos, window, sinks):
    if cache is not None:
        k = torch.cat([cache[0], k], 2)
        v = torch.cat([cache[1], v], 2)
        pos = torch.cat([cache[2], pos])
    row = mask_of(int(pos[-1]) + 1, window, sinks)[-1].to(pos.device)
    at = row[pos].nonzero()[:, 0]
    return k.index_select(2, at), v.index_select(2, at), pos.index_select(0, at)


@hinted(1, reaches=near)
def window_mask(T, window, sinks=0):
    i = torch.arange(T)[:, None]
    j = torch.arange(T)
    back = i - j
    return (back >= 0) & (back < window)
