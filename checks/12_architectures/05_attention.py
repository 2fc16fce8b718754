"""Judges lessons/12_architectures/05_attention.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("`F.scaled_dot_product_attention` is refused.")
background("(A model that writes word by word")

SCALE = "Divide the scores by the root of D, the last size of q."
KEYS = "The softmax goes over the keys, the last dimension: each query's weights sum to 1."
CAUSAL = "The last query sees every key, the one before it all but the last: tril(Tk - Tq)."
KEEP = "True means that the key counts. Hide the others before the softmax, for all queries."
BEFORE = "What is hidden is hidden before the softmax, so that the others share the whole weight."
LOWEST = (
    "The number that hides a score must lie below all scores: -inf, or torch.finfo(dtype).min. "
    "With a fixed number like -10000 a hidden key can win."
)
OWN = "The inputs belong to the caller: write into none of them."
THROUGH = "Compute with the tensors themselves: no detach(), no .data, no no_grad()."
NOTHING = "A query without a key gets zeros. Its weights may not be NaN, before or after."
FINITE = "0 times NaN is NaN on the way back: no row may be all -inf when softmax sees it."


def problem(rng, device, tq, tk, dtype=torch.float32, scale=1.0, dv=None, b=None, grad=False):
    b, h, d = rng.randint(2, 4) if b is None else b, rng.randint(1, 3), rng.choice((2, 3, 5, 8))
    q = torch.randn(b, h, tq, d, device=device) * scale
    k = torch.randn(b, h, tk, d, device=device) * scale
    v = torch.randn(b, h, tk, d if dv is None else dv, device=device)
    return [t.to(dtype).requires_grad_(grad) for t in (q, k, v)]


def allowed(q, k, causal, keep):
    tq, tk = q.shape[-2], k.shape[-2]
    sees = torch.ones(tq, tk, dtype=torch.bool, device=q.device)
    if causal:
        last = torch.arange(tk - tq, tk, device=q.device)[:, None]
        sees = torch.arange(tk, device=q.device) <= last
    sees = sees[None, None]
    return sees if keep is None else sees & keep[:, None, None]


def wanted(q, k, v, causal=False, keep=None):
    """In float64, with a mask that hides nothing where a row would be empty, and zeros there."""
    sees = allowed(q, k, causal, keep)
    some = sees.any(-1, keepdim=True)
    out = F.scaled_dot_product_attention(q.double(), k.double(), v.double(), attn_mask=sees | ~some)
    return torch.where(some, out, 0.0)


def compare(answer, q, k, v, hint, causal=False, keep=None, **near):
    right = wanted(q, k, v, causal, keep)
    with expect_unchanged(*(t for t in (q, k, v, keep) if t is not None), hint=OWN):
        got = answer.attend(q, k, v, causal, keep)
    expect_close(got, right, dtype=v.dtype, hint=hint, **near)


def random_keep(device, b, tk):
    """At least one key for each sample, at least one hidden somewhere."""
    keep = torch.rand(b, tk, device=device) < 0.6
    keep[:, 0] = True
    keep[0, -1] = False
    return keep


@check(
    "weights over the keys, with the scale",
    forbid=("torch.scaled_dot_product_attention",),
    counts_calls=True,
    holds=["Write `attend`", "Scaled dot-product attention with masks"],
)
def scaled(answer, rng, device):
    for t in (5, 2):
        q, k, v = problem(rng, device, t, t)
        right = wanted(q, k, v)
        with expect_unchanged(q, k, v, hint=OWN):
            got = answer.attend(q, k, v)
        expect_close(got, right, dtype=v.dtype, hint=f"{SCALE} {KEYS}")
    borrowed = [name for name in answer.calls if "attention" in name]
    message = f"the program calls torch's own {''.join(borrowed[:1])}"
    expect_true(not borrowed, message, hint="Two products and a softmax are all it takes.")


@check(
    "other numbers of queries and keys, and values of another width",
    holds=["The number of queries Tq and of keys Tk may differ", "v: (B, H, Tk, Dv)"],
    both_sides=True,
)
def unequal(answer, rng, device):
    for tq, tk, dv in ((3, 5, 4), (6, 2, 1), (1, 4, 7), (1, 1, 2)):
        compare(
            answer, *problem(rng, device, tq, tk, dv=dv, b=rng.choice((1, 3))), f"{KEYS} {SCALE}"
        )


@check(
    "causal: no look at later positions",
    holds=[
        "When `causal` is True, the queries are the *last* Tq",
        "The last query sees all keys",
        "whether later positions are hidden",
    ],
    both_sides=True,
)
def is_causal(answer, rng, device):
    for tq, tk in ((5, 5), (3, 7), (1, 4), (1, 1)):
        compare(answer, *problem(rng, device, tq, tk), f"{CAUSAL} {BEFORE}", causal=True)
    q, k, v = problem(rng, device, 4, 4)
    compare(answer, q, k, v, "causal is False: nothing is hidden.", causal=False)


@check(
    "keep hides keys, before the softmax",
    holds="True where a key counts, or None for all",
    both_sides=True,
)
def padding(answer, rng, device):
    for tq, tk in ((4, 6), (5, 5)):
        q, k, v = problem(rng, device, tq, tk)
        keep = random_keep(device, len(q), tk)
        compare(answer, q, k, v, KEEP, keep=keep)
    q, k, v = problem(rng, device, 4, 4, b=4)  # B = H = Tq = Tk would hide a wrong broadcast
    compare(answer, q, k, v, KEEP, keep=random_keep(device, 4, 4))


@check("both masks together", holds="True where a key counts", side="with causal")
def both(answer, rng, device):
    q, k, v = problem(rng, device, 4, 6)
    compare(answer, q, k, v, f"{KEEP} {CAUSAL}", causal=True, keep=random_keep(device, len(q), 6))


@check("a query that sees no key gets zeros", holds=["A query that may see no key gets zeros"])
def empty(answer, rng, device):
    q, k, v = problem(rng, device, 3, 5)
    keep = random_keep(device, len(q), 5)
    keep[1] = False
    compare(answer, q, k, v, NOTHING, keep=keep)
    q, k, v = problem(rng, device, 5, 5)
    keep = torch.ones(len(q), 5, dtype=torch.bool, device=device)
    keep[:, :2] = False  # padded on the left: the first two queries see nothing
    compare(answer, q, k, v, NOTHING, causal=True, keep=keep)


@check("the inputs stay as they are", holds="The inputs stay as they are.")
def untouched(answer, rng, device):
    q, k, v = problem(rng, device, 3, 4)
    keep = random_keep(device, len(q), 4)
    with expect_unchanged(q, k, v, keep, hint=OWN):
        answer.attend(q, k, v, True, keep)


@check(
    "large scores, and every gradient, stay finite",
    holds="No NaN or infinity comes out, not even in the gradients of `q`, `k` and `v`",
    both_sides=True,
)
def finite(answer, rng, device):
    q, k, v = problem(rng, device, 4, 5, scale=100.0)
    got = answer.attend(q, k, v)
    hint = "torch.softmax subtracts the largest score. exp() by hand overflows at 89."
    expect_true(got.isfinite().all(), "inputs times 100 give inf or NaN", hint=hint)
    for causal in (False, True):
        q, k, v = problem(rng, device, 4, 4, torch.float64, grad=True)
        keep = random_keep(device, len(q), 4)
        keep[0] = False
        out = answer.attend(q, k, v, causal, keep)
        right = wanted(q, k, v, causal, keep)
        seed = torch.randn_like(right)
        expect_true(out.requires_grad, "the result has no graph", hint=THROUGH)
        mine = torch.autograd.grad(out, (q, k, v), seed, allow_unused=True)
        torchs = torch.autograd.grad(right, (q, k, v), seed)
        for name, g, t in zip("qkv", mine, torchs, strict=True):
            expect_true(g is not None, f"no gradient reaches {name}", hint=THROUGH)
            name = f"the gradient of {name}"
            expect_close(g, t, name=name, hint=THROUGH, nan_hint=FINITE)


@check(
    "hidden keys stay hidden beside very negative scores",
    holds="A hidden key gets no weight, however large the scores are.",
)
def hidden(answer, rng, device):
    for causal in (False, True):
        q, k, v = problem(rng, device, 4, 4)
        q, k = torch.full_like(q, 200.0), k / 100 - 200.0  # scores of -56,000 and less
        compare(
            answer, q, k, v, LOWEST, causal, random_keep(device, len(q), 4), rtol=3e-2, atol=3e-2
        )


@check(
    "the dtype of v, on any layout",
    holds=["returns: (B, H, Tq, Dv), of the dtype of v", "float64 keeps its digits"],
)
def dtypes(answer, rng, device):
    for dtype, near in (
        (torch.float16, {"rtol": 1e-2, "atol": 1e-2}),
        (torch.bfloat16, {"rtol": 5e-2, "atol": 6e-2}),
        (torch.float64, {"rtol": 1e-10, "atol": 1e-11}),
    ):
        q, k, v = problem(rng, device, 3, 4, dtype)
        keep = random_keep(device, len(q), 4)
        hint = (
            "Masks are bool, the number that hides a score must exist in the scores' dtype, and "
            "nothing is converted to a narrower dtype."
        )
        with advising(RuntimeError, saying="without overflow", hint=hint):
            got = answer.attend(q, k, v, True, keep)
        expect_dtype(got, dtype, name=f"the result for {dtype}", hint=hint)
        compare(answer, q, k, v, hint, causal=True, keep=keep, **near)
    q, k, v = (t.transpose(1, 2).contiguous().transpose(1, 2) for t in problem(rng, device, 4, 4))
    compare(answer, q, k, v, "Heads often come as a view of (B, T, H, D).", causal=True)


def masked(q, k, v, sees, lowest=-1e30, scale=True):
    s = q @ k.mT / (q.shape[-1] ** 0.5 if scale else 1)
    w = s.masked_fill(~sees, max(lowest, torch.finfo(s.dtype).min)).softmax(-1)
    return w.masked_fill(~sees, 0) @ v


@mutant("has no scale", caught_by=scaled)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, causal, keep), scale=False)


@mutant("divides by D, not by its root", caught_by=scaled)
def attend(q, k, v, causal=False, keep=None):
    return masked(q / q.shape[-1] ** 0.5, k, v, allowed(q, k, causal, keep))


@mutant("scales by the width of the values", caught_by=unequal)
def attend(q, k, v, causal=False, keep=None):
    q = q * (q.shape[-1] / v.shape[-1]) ** 0.5
    return masked(q, k, v, allowed(q, k, causal, keep))


@mutant("takes the softmax over the queries", caught_by=scaled)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~sees, torch.finfo(q.dtype).min)
    return s.softmax(-2).masked_fill(~sees, 0) @ v


@mutant("ignores causal", caught_by=is_causal)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, False, keep))


@mutant("hides the past in place of the future", caught_by=is_causal)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, False, keep)
    if causal:
        sees = sees & torch.ones_like(sees[0, 0]).triu(k.shape[-2] - q.shape[-2])
    return masked(q, k, v, sees)


@mutant("counts the queries from the first key", caught_by=is_causal)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, False, keep)
    if causal:
        sees = sees & torch.ones(q.shape[-2], k.shape[-2], device=q.device).bool().tril()
    return masked(q, k, v, sees)


@mutant("hides the query's own position too", caught_by=is_causal)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, False, keep)
    if causal:
        ones = torch.ones(q.shape[-2], k.shape[-2], device=q.device).bool()
        sees = sees & ones.tril(k.shape[-2] - q.shape[-2] - 1)
    return masked(q, k, v, sees)


@mutant("ignores keep", caught_by=padding)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, causal, None))


@mutant("takes True for hidden", caught_by=padding)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, causal, None if keep is None else ~keep))


@mutant("zeroes weights after the softmax", caught_by=padding)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    w = (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)
    return w.masked_fill(~sees, 0) @ v


@mutant("adds the bool mask to the scores", caught_by=padding)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    return (q @ k.mT / q.shape[-1] ** 0.5 + sees).softmax(-1) @ v


@mutant("lets one mask overrule the other", caught_by=both)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, causal and keep is None, keep))


@mutant("fills with -inf", caught_by=empty)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~sees, -torch.inf)
    return s.softmax(-1) @ v


@mutant("gives the mean of all values where nothing is seen", caught_by=empty)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~sees, torch.finfo(q.dtype).min)
    return s.softmax(-1) @ v


@mutant("hides with -10000", caught_by=hidden)
def attend(q, k, v, causal=False, keep=None):
    return masked(q, k, v, allowed(q, k, causal, keep), lowest=-1e4)


@mutant("divides the caller's q", caught_by=untouched)
def attend(q, k, v, causal=False, keep=None):
    q.data.div_(q.shape[-1] ** 0.5)
    return masked(q, k, v, allowed(q, k, causal, keep), scale=False)


@mutant("inverts the caller's keep", caught_by=untouched)
def attend(q, k, v, causal=False, keep=None):
    if keep is None:
        return masked(q, k, v, allowed(q, k, causal, keep))
    return masked(q, k, v, allowed(q, k, causal, None) & ~keep.logical_not_()[:, None, None])


@mutant("takes the weights for constants", caught_by=finite)
def attend(q, k, v, causal=False, keep=None):
    return masked(q.detach(), k.detach(), v, allowed(q, k, causal, keep))


@mutant("looks for empty rows in keep alone", caught_by=empty)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~sees, -torch.inf)
    if keep is None:
        return s.softmax(-1) @ v
    blind = ~keep.any(-1)[:, None, None, None]
    return s.masked_fill(blind, 0).softmax(-1).masked_fill(blind, 0) @ v


@mutant("adds -inf and mends NaN after the softmax", caught_by=finite)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    mask = torch.zeros(sees.shape, dtype=q.dtype, device=q.device)
    s = q @ k.mT / q.shape[-1] ** 0.5 + mask.masked_fill(~sees, -torch.inf)
    return s.softmax(-1).masked_fill(~sees, 0) @ v


@accepted("fills with -inf, which sends 0 back, and mends NaN after the softmax")
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    s = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~sees, -torch.inf)
    return s.softmax(-1).nan_to_num(0) @ v


@mutant("writes the softmax with exp", caught_by=finite)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    w = (q @ k.mT / q.shape[-1] ** 0.5).exp() * sees
    return w / w.sum(-1, keepdim=True).clamp(min=1e-20) @ v


@mutant("computes in float32, and converts at the end", caught_by=dtypes)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    return masked(q.float(), k.float(), v.float(), sees).to(v.dtype)


@mutant("computes in float32 and stays there", caught_by=dtypes)
def attend(q, k, v, causal=False, keep=None):
    return masked(q.float(), k.float(), v.float(), allowed(q, k, causal, keep)).to(
        torch.float64 if v.dtype == torch.float64 else torch.float32
    )


@mutant("leaves it to torch, by another name", caught_by=scaled)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    sees = sees.expand(len(q), 1, q.shape[2], k.shape[2])
    return torch.ops.aten._scaled_dot_product_attention_math(q, k, v, sees)[0]


@mutant("leaves it to torch", caught_by=scaled)
def attend(q, k, v, causal=False, keep=None):
    sees = allowed(q, k, causal, keep)
    return F.scaled_dot_product_attention(q, k, v, attn_mask=sees)


@accepted("einsum, and an additive mask with a correction for empty rows")
def attend(q, k, v, causal=False, keep=None):
    tq, tk = q.shape[2], k.shape[2]
    bias = torch.zeros(len(q), 1, tq, tk, dtype=q.dtype, device=q.device)
    if causal:
        future = torch.ones(tq, tk, dtype=torch.bool, device=q.device).triu(tk - tq + 1)
        bias = bias.masked_fill(future, -torch.inf)
    if keep is not None:
        bias = bias.masked_fill(~keep.view(len(q), 1, 1, tk), -torch.inf)
    blind = bias.isinf().all(-1, keepdim=True)
    s = torch.einsum("bhid,bhjd->bhij", q * q.shape[-1] ** -0.5, k)
    s = s + torch.where(blind, 0.0, bias)
    out = torch.einsum("bhij,bhje->bhie", s.softmax(-1), v)
    return torch.where(blind, 0.0, out)


@accepted("one query after the other")
def attend(q, k, v, causal=False, keep=None):
    (tq, d), tk = q.shape[-2:], k.shape[-2]
    rows = []
    for i in range(tq):
        upto = tk - tq + i + 1 if causal else tk
        s = (q[:, :, i : i + 1] * k[:, :, :upto]).sum(-1) / d**0.5
        sees = torch.ones(len(q), 1, upto, dtype=torch.bool, device=q.device)
        if keep is not None:
            sees = sees & keep[:, None, :upto]
        s = torch.where(sees, s, torch.finfo(s.dtype).min)
        e = torch.exp(s - s.amax(-1, keepdim=True)) * sees
        w = e / e.sum(-1, keepdim=True).clamp(min=torch.finfo(s.dtype).tiny)
        rows.append((w[..., None] * v[:, :, :upto]).sum(-2))
    return torch.stack(rows, 2)


@hinted(1, reaches=is_causal)
def attend(q, k, v, causal=False, keep=None):
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if causal:
        tq, tk = scores.shape[-2:]
        last = torch.arange(tk - tq, tk, device=q.device)[:, None]
        behind = torch.arange(tk, device=q.device) > last
        scores = scores.masked_fill(behind, -torch.inf)
    return scores.softmax(-1) @ v
