"""Judges lessons/13_language_models/05_kv_cache.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
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
HALF = "A mask of float32 numbers makes scores of float32: use a bool mask, or masked_fill."
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


def wanted(layer, x, ahead=0, divisor=None, merged=True, out=True, bias=True, apart=True):
    """The whole sequence, head by head, in float64 on the CPU. The settings are mistakes."""
    x, d, t = x.detach().cpu().double(), x.shape[2] // layer.heads, x.shape[1]

    def linear(m, z, bias=True):
        return z @ m.weight.detach().cpu().double().T + bias * m.bias.detach().cpu().double()

    q, k, v = (linear(m, x, bias) for m in (layer.q, layer.k, layer.v))
    q = q if apart else q.unflatten(-1, (d, -1)).mT.flatten(-2)
    future, heads = torch.ones(t, t, dtype=torch.bool).triu(1 + ahead), []
    for h in range(layer.heads):
        at, own = h // (layer.heads // layer.groups) * d, h * d
        s = q[..., own : own + d] @ k[..., at : at + d].mT / (divisor or d**0.5)
        weights = s.masked_fill(future, -torch.inf).softmax(-1).nan_to_num()
        heads.append(weights @ v[..., at : at + d])
    y = torch.cat(heads, -1) if merged else torch.stack(heads, 1).reshape(x.shape)
    return (linear(layer.o, y) if out else y).float()


def advice(got, layer, x):
    """What to say of an output that is wrong."""
    far = x.shape[1]
    slips = {
        "A token sees nothing behind it. Without a cache is_causal=True is such a mask.": {
            "ahead": far
        },
        "A token sees the next one as well: row i of the mask ends at key i.": {"ahead": 1},
        "A token sees itself too: row i of the mask ends at key i.": {"ahead": -1},
        "Divide the scores by the root of D, the features of one head.": {"divisor": 1.0},
        "D is the width of one head. You divide by the root of all heads' width.": {
            "divisor": x.shape[2] ** 0.5
        },
        "Bring the heads side by side first: transpose(1, 2), and then flatten the last two.": {
            "merged": False
        },
        "Head h has the features h * D to h * D + D - 1 of layer.q(x).": {"apart": False},
        "The heads go through layer.o at the end.": {"out": False},
        "Call the layers: layer.q(x) adds the bias.": {"bias": False},
    }
    if isinstance(got, torch.Tensor) and got.shape == x.shape:
        for hint, slip in slips.items():
            if torch.allclose(got.detach().cpu().float(), wanted(layer, x, **slip), **NEAR):
                return hint
    return SEES


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
        got = answer.attend(layer, x)[0]
        compare(got, layer, x, advice(got, layer, x))
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
    "the cache holds all tokens, once per group",
    holds=["holds the keys and values of all tokens so far", "once per group and not per head"],
)
def size(answer, rng, device):
    layer, x = problem(rng, device)
    _, cache = pieces_of(answer, layer, x, [2, x.shape[1] - 2])
    d = x.shape[2] // layer.heads
    for name, got, m in zip("kv", cache, (layer.k, layer.v), strict=True):
        shape = (len(x), layer.groups, x.shape[1], d)
        tokens = (
            f"After 2 and {x.shape[1] - 2} tokens it holds {x.shape[1]}: the old, then the new."
        )
        wide = isinstance(got, torch.Tensor) and got.shape[1:2] == (layer.heads,)
        hint = f"There are {layer.groups} groups: widen keys and values after they were cached."
        expect_shape(got, shape, name=f"{name} of the cache", hint=hint if wide else tokens)
        right = m(x).detach().view(len(x), -1, layer.groups, d).transpose(1, 2)
        expect_close(got, right, name=f"{name} of the cache", hint=tokens, **NEAR)


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


@check(
    "bfloat16, without a graph",
    holds="The result and the cache have the dtype of `x`",
    both_sides=True,
)
def half(answer, rng, device):
    layer, x = problem(rng, device)
    right = wanted(layer.bfloat16(), x.bfloat16()).to(device)
    with torch.no_grad(), advising(RuntimeError, saying="BFloat16", hint=HALF):
        got, cache = pieces_of(answer, layer, x.bfloat16(), [2, x.shape[1] - 2])
    near = {"rtol": 0.1, "atol": 0.1}
    expect_close(got, right, dtype=torch.bfloat16, hint=SEES, dtype_hint=HALF, **near)
    for name, part in zip("kv", cache, strict=True):
        expect_dtype(part, torch.bfloat16, name=f"{name} of the cache", hint=HALF)


def body(
    layer, x, cache, mask="right", spread="interleave", narrow=True, append=True, old_first=True
):
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
        pairs = zip(cache, (k, v), strict=True)
        k, v = (torch.cat(pair if old_first else pair[::-1], 2) for pair in pairs)
    new = (k, v) if append else own
    if narrow:
        k, v = wide(k), wide(v)
    past = k.shape[2] - t
    keep = torch.ones(t, past + t, dtype=torch.bool, device=x.device).tril(past)
    if mask == "one behind":
        keep = keep.tril(past - 1)
    if mask == "flag":
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    elif mask == "none" or (mask == "none when cached" and cache is not None):
        y = F.scaled_dot_product_attention(q, k, v)
    elif mask == "unscaled":
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, scale=1.0)
    elif mask == "one ahead":
        wider = torch.ones_like(keep).tril(past + 1)
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=wider)
    elif mask == "width":
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep, scale=width**-0.5)
    else:
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=keep)
    if mask == "no merge":
        return layer.o(y.reshape(b, t, width)), new
    return layer.o(y.transpose(1, 2).flatten(2)), new


@mutant("no mask", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="none")


@mutant("no scale", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="unscaled")


@mutant("sees one token ahead", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="one ahead")


@mutant("divides by the root of the width", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="width")


@mutant("joins the heads without a transpose", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="no merge")


@mutant("a token does not see itself", caught_by=plain)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="one behind")


@mutant("puts new keys in front of the old ones", caught_by=size)
def attend(layer, x, cache=None):
    return body(layer, x, cache, old_first=False)


@mutant("caches in float32", caught_by=half)
def attend(layer, x, cache=None):
    if cache is not None:
        cache = [z.to(x.dtype) for z in cache]
    y, new = body(layer, x, cache)
    return y, tuple(z.float() for z in new)


@mutant("repeat in place of repeat_interleave", caught_by=grouped)
def attend(layer, x, cache=None):
    return body(layer, x, cache, spread="repeat")


@mutant("is_causal with a cache", caught_by=decode)
def attend(layer, x, cache=None):
    return body(layer, x, cache, mask="flag")


@mutant("returns the new keys only", caught_by=size)
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


@accepted("head by head and row by row, in float64")
def attend(layer, x, cache=None):
    d, old = x.shape[2] // layer.heads, 0
    q = layer.q(x).double()
    k, v = (torch.stack(m(x).split(d, -1), 1) for m in (layer.k, layer.v))
    if cache is not None:
        old = cache[0].shape[2]
        k, v = torch.cat([cache[0], k], 2), torch.cat([cache[1], v], 2)
    rows = []
    for i in range(x.shape[1]):
        parts = []
        for h in range(layer.heads):
            g = h // (layer.heads // layer.groups)
            keys, values = (z[:, g, : old + i + 1].double() for z in (k, v))
            s = (keys @ q[:, i, h * d : (h + 1) * d, None]) / d**0.5
            parts.append((s.mT.softmax(-1) @ values)[:, 0])
        rows.append(torch.cat(parts, -1))
    return layer.o(torch.stack(rows, 1).to(x.dtype)), (k, v)


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
