"""Judges lessons/13_language_models/05_kv_cache.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("`layer` has Linear layers")
background("`cache` is None, or a pair")

SEES = "A token sees itself and what stands before it. The scores are divided by the root of D."
DECODE = "A new token sees all cached keys. Of a (1, T) mask is_causal keeps the first column only."
NEAR = {"rtol": 1e-3, "atol": 1e-4}


class Layer(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups = heads, groups
        self.q, self.o = nn.Linear(width, width), nn.Linear(width, width)
        self.k = nn.Linear(width, groups * width // heads)
        self.v = nn.Linear(width, groups * width // heads)


def problem(rng, device, heads=None, groups=None, t=None, b=None):
    heads, groups = (heads, groups) if heads else rng.choice(((4, 2), (6, 2), (6, 3)))
    width = heads * rng.choice((2, 4))
    x = torch.randn(b or rng.choice((1, 3)), t or rng.randint(5, 9), width)
    return Layer(width, heads, groups).to(device), x.to(device)


def wanted(layer, x):
    """The whole sequence, head by head, in float64 on the CPU."""
    x, d, t = x.detach().cpu().double(), x.shape[2] // layer.heads, x.shape[1]

    def linear(m, z):
        return z @ m.weight.detach().cpu().double().T + m.bias.detach().cpu().double()

    q, k, v = (linear(m, x) for m in (layer.q, layer.k, layer.v))
    future, heads = torch.ones(t, t, dtype=torch.bool).triu(1), []
    for h in range(layer.heads):
        at, own = h // (layer.heads // layer.groups) * d, h * d
        s = q[..., own : own + d] @ k[..., at : at + d].mT / d**0.5
        heads.append(s.masked_fill(future, -torch.inf).softmax(-1) @ v[..., at : at + d])
    return linear(layer.o, torch.cat(heads, -1)).float()


def pieces_of(answer, layer, x, sizes):
    out, cache = [], None
    for part in x.split(sizes, 1):
        y, cache = answer.attend(layer, part, cache)
        out.append(y)
    return torch.cat(out, 1), cache


def compare(got, layer, x, hint):
    expect_close(got, wanted(layer, x).to(x.device), hint=hint, **NEAR)


@check(
    "the whole sequence at once",
    holds=["causal attention for the tokens", "divided by the root of D"],
)
def plain(answer, rng, device):
    for b in (2, 1):
        layer, x = problem(rng, device, 4, 4, b=b)
        compare(answer.attend(layer, x)[0], layer, x, SEES)
    layer, x = problem(rng, device, 3, 3, t=1)
    compare(answer.attend(layer, x)[0], layer, x, SEES)


@check(
    "neighbouring heads share a group",
    holds=["Head h reads group", "side by side in the output of `q`"],
)
def grouped(answer, rng, device):
    for heads, groups in ((6, 3), (4, 2), (4, 1)):
        layer, x = problem(rng, device, heads, groups)
        n = heads // groups
        hint = f"{heads} heads, {groups} groups: heads 0 to {n - 1} read group 0, the next {n} 1."
        compare(answer.attend(layer, x)[0], layer, x, hint)


@check(
    "one token at a time gives what the whole sequence gave",
    holds=["that come after those in `cache`", "those in the cache too"],
)
def decode(answer, rng, device):
    layer, x = problem(rng, device)
    sizes = [3] + [1] * (x.shape[1] - 3)
    compare(pieces_of(answer, layer, x, sizes)[0], layer, x, DECODE)


@check("pieces of any size", holds="A token sees itself and all tokens before it")
def pieces(answer, rng, device):
    for sizes in ([4, 3, 2], [1, 6], [2, 2]):
        layer, x = problem(rng, device, t=sum(sizes))
        hint = f"After a cache of {sizes[0]}, the first new row sees {sizes[0] + 1} keys."
        compare(pieces_of(answer, layer, x, sizes)[0], layer, x, hint)


@check(
    "the cache holds all tokens, once per group",
    holds=["holds the keys and values of all tokens so far", "once per group and not per head"],
)
def size(answer, rng, device):
    layer, x = problem(rng, device)
    _, cache = pieces_of(answer, layer, x, [2, x.shape[1] - 2])
    d = x.shape[2] // layer.heads
    hint = f"{x.shape[1]} tokens, {layer.groups} groups. Widen keys after they were cached."
    for name, got, m in zip("kv", cache, (layer.k, layer.v), strict=True):
        shape = (len(x), layer.groups, x.shape[1], d)
        expect_shape(got, shape, name=f"{name} of the cache", hint=hint)
        right = m(x).detach().view(len(x), -1, layer.groups, d).transpose(1, 2)
        expect_close(got, right, name=f"{name} of the cache", hint=hint, **NEAR)


@check(
    "a cache can be continued twice",
    holds=["The cache that came in stays as it was"],
)
def branches(answer, rng, device):
    layer, x = problem(rng, device, t=7)
    _, cache = answer.attend(layer, x[:, :4])
    shape, kept = cache[0].shape, list(cache)
    with expect_unchanged(*cache, hint="Make a new cache: another continuation needs this one."):
        first, _ = answer.attend(layer, x[:, 4:6], cache)
    same = len(cache) == 2 and all(a is b for a, b in zip(cache, kept, strict=True))
    expect_true(
        same and cache[0].shape == shape,
        "the cache that came in holds other tensors now",
        hint="Make a new pair. Another continuation needs the old one.",
    )
    second, _ = answer.attend(layer, x[:, 4:6], cache)
    expect_close(second, first.detach(), name="the second continuation", hint=DECODE)
    compare(torch.cat([answer.attend(layer, x[:, :4])[0], second], 1), layer, x[:, :6], DECODE)


@check("half precision, without a graph", holds="causal attention for the tokens")
def half(answer, rng, device):
    layer, x = problem(rng, device)
    right = wanted(layer.bfloat16(), x.bfloat16()).to(device)
    with torch.no_grad():
        got, _ = pieces_of(answer, layer, x.bfloat16(), [2, x.shape[1] - 2])
    expect_close(got, right, dtype=torch.bfloat16, hint=SEES, rtol=0.1, atol=0.1)


def body(layer, x, cache, mask="right", spread="interleave", narrow=True, append=True):
    b, t, width = x.shape
    d, n = width // layer.heads, layer.heads // layer.groups
    q = layer.q(x).view(b, t, layer.heads, d).transpose(1, 2)
    k = layer.k(x).view(b, t, layer.groups, d).transpose(1, 2)
    v = layer.v(x).view(b, t, layer.groups, d).transpose(1, 2)

    def wide(z):
        return z.repeat_interleave(n, 1) if spread == "interleave" else z.repeat(1, n, 1, 1)

    own = (k, v)
    if not narrow:
        k, v = wide(k), wide(v)
    if cache is not None:
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    new = (k, v) if append else own
    if narrow:
        k, v = wide(k), wide(v)
    past = k.shape[2] - t
    keep = torch.ones(t, past + t, dtype=torch.bool, device=x.device).tril(past)
    if mask == "flag":
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    elif mask == "none" or (mask == "none when cached" and cache is not None):
        y = F.scaled_dot_product_attention(q, k, v)
    elif mask == "unscaled":
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, scale=1.0)
    else:
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    return layer.o(y.transpose(1, 2).flatten(2)), new


@mutant("no mask", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="none")


@mutant("no scale", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="unscaled")


@mutant("repeat in place of repeat_interleave", caught_by=grouped)
def attend(layer, x, cache=None):
    return body(layer, x, cache, spread="repeat")


@mutant("is_causal with a cache", caught_by=decode)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="flag")


@mutant("returns the new keys only", caught_by=decode)
def attend(layer, x, cache=None):
    return body(layer, x, cache, append=False)


@mutant("no mask as soon as there is a cache", caught_by=pieces)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="none when cached")


@mutant("caches the widened keys", caught_by=size)
def attend(layer, x, cache=None):
    return body(layer, x, cache, narrow=False)


@mutant("caches keys and values in the other order", caught_by=size)
def attend(layer, x, cache=None):
    y, (k, v) = body(layer, x, cache if cache is None else cache[::-1])
    return y, (v, k)


@mutant("grows the old tensors", caught_by=branches)
def attend(layer, x, cache=None):
    y, new = body(layer, x, cache)
    for old, z in zip(cache or (), new, strict=False):
        old.data = z.data
    return y, new


@mutant("grows a list that came in", caught_by=branches)
def attend(layer, x, cache=None):
    y, new = body(layer, x, cache)
    if cache is None:
        return y, list(new)
    cache[:] = new
    return y, cache


@mutant("computes in float32", caught_by=half)
def attend(layer, x, cache=None):
    y, new = body(layer, x, cache)
    return y.float(), new


@accepted("by hand, the heads of a group in a dimension of their own")
def attend(layer, x, cache=None):
    b, t, width = x.shape
    g, n, d = layer.groups, layer.heads // layer.groups, width // layer.heads
    q = layer.q(x).view(b, t, g, n, d)
    k, v = (m(x).view(b, t, g, d).permute(0, 2, 1, 3) for m in (layer.k, layer.v))
    past = 0
    if cache:
        past = cache[0].size(2)
        k, v = torch.cat((cache[0], k), dim=2), torch.cat((cache[1], v), dim=2)
    s = torch.einsum("btgnd,bgsd->bgnts", q, k) / d**0.5
    i = torch.arange(t, device=x.device)[:, None] + past
    w = s.masked_fill(torch.arange(past + t, device=x.device) > i, -torch.inf).softmax(-1)
    return layer.o(torch.einsum("bgnts,bgsd->btgnd", w, v).reshape(b, t, width)), (k, v)


@accepted("token by token inside, without any mask")
def attend(layer, x, cache=None):
    rows = []
    for one in x.split(1, 1):
        y, cache = body(layer, one, cache, mask="none")
        rows.append(y)
    return torch.cat(rows, 1), cache


@hinted(1, reaches=grouped)
def attend(layer, x, cache=None):
    return body(layer, x, None, mask="flag")
