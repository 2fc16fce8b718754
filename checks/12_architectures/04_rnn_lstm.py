"""Judges lessons/12_architectures/04_rnn_lstm.md."""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("PyTorch's own recurrent functions are refused.")

GATES = "The parts are i, f, g, o: three sigmoids, and tanh for g, the third."
CELL = "c = sigmoid(f) * c + sigmoid(i) * tanh(g), then h = sigmoid(o) * tanh(c), with the new c."
BIASES = "Both biases are added, bi and bh. Both states begin at 0."
ENDS = (
    "A sequence that has ended keeps its h and c: torch.where(t < lengths, new, old). Row b of the "
    "result is sequence b."
)
THROUGH = (
    "Compute with the tensors themselves, from the first position to the last: no detach(), and no "
    "no_grad()."
)
ZERO = "Behind the end of a sequence `out` is 0, up to position T."
PADDING = "0 * NaN is NaN: replace padding with torch.where before the product."


def problem(rng, device, lengths, dtype=torch.float32, T=None):
    B, T = len(lengths), T or max(lengths)
    D = rng.randint(2, 5)
    H = rng.choice([n for n in range(2, 6) if n != D])
    layer = nn.LSTM(D, H, batch_first=True).to(device=device, dtype=dtype)
    with torch.no_grad():
        for p in layer.parameters():
            p.copy_(torch.randn(p.shape, device=device) * 0.7)
    x = torch.randn(B, T, D, device=device).to(dtype)
    return x, torch.tensor(lengths, device=device), layer


def wanted(x, lengths, layer):
    """By PyTorch's packed sequences, in float64."""
    T = x.shape[1]
    double = nn.LSTM(*layer.weight_ih_l0.shape[1:], layer.hidden_size, batch_first=True)
    double = double.to(device=x.device, dtype=torch.float64)
    with torch.no_grad():
        for p, q in zip(double.parameters(), layer.parameters(), strict=True):
            p.copy_(q)
    packed = pack_padded_sequence(x.double(), lengths.cpu(), batch_first=True, enforce_sorted=False)
    out, (h, c) = double(packed)
    out, _ = pad_packed_sequence(out, batch_first=True, total_length=T)
    return out.detach(), h[0].detach(), c[0].detach()


def run(answer, x, lengths, layer):
    weights = [p.detach() for p in layer.parameters()]
    got = answer.lstm(x, lengths, *weights)
    if not (isinstance(got, tuple) and len(got) == 3):
        fail("the result is not a triple", hint="Return out, h and c.")
    return got


def compare(answer, x, lengths, layer, hint, **near):
    for name, mine, right in zip(
        ("out", "h", "c"), run(answer, x, lengths, layer), wanted(x, lengths, layer), strict=True
    ):
        expect_close(mine, right, dtype=x.dtype, name=name, hint=hint, **near)


@check(
    "one step: the cell",
    counts_calls=True,
    holds=["Write `lstm`", "The states begin at zero", "parts i, f, g, o"],
)
def cell(answer, rng, device):
    for B in (1, 3):
        compare(answer, *problem(rng, device, [1] * B), f"{GATES} {CELL} {BIASES}")
    borrowed = [name for name in answer.calls if name in ("lstm", "lstm_cell")]
    hint = "The formula of the first step is all it takes."
    expect_true(not borrowed, f"the program calls torch.{''.join(borrowed[:1])}", hint=hint)


@check("many steps", holds="which runs the formula over a batch of sequences")
def steps(answer, rng, device):
    for T in (2, 7):
        compare(answer, *problem(rng, device, [T] * rng.randint(1, 4)), CELL)
    compare(answer, *problem(rng, device, [4] * 4), "Cut features, not the batch: chunk(4, -1).")


@check(
    "states of sequences that end early",
    holds=[
        "sequences of different lengths",
        "`h` and `c` are the states after the last real position of each sequence",
        "Sequence b has `lengths[b]` positions",
    ],
    both_sides=True,
)
def ends(answer, rng, device):
    for lengths in ([5, 3, 1], [1, 4, 2, 4], [2, 6]):
        x, lengths, layer = problem(rng, device, lengths)
        _, h, c = run(answer, x, lengths, layer)
        _, right_h, right_c = wanted(x, lengths, layer)
        expect_close(h, right_h, dtype=x.dtype, name="h", hint=ENDS)
        expect_close(c, right_c, dtype=x.dtype, name="c", hint=ENDS)


@check("out is 0 behind the end", holds="`out` is 0 there")
def zeros(answer, rng, device):
    for lengths, T in (([5, 3, 1], 5), ([2, 3], 6)):
        x, lengths, layer = problem(rng, device, lengths, T=T)
        out, _, _ = run(answer, x, lengths, layer)
        right, _, _ = wanted(x, lengths, layer)
        expect_close(out, right, dtype=x.dtype, name="out", hint=ZERO, shape_hint=ZERO)


@check(
    "padding has no influence, not even NaN",
    holds=[
        "what stands behind them in x is padding, which may be anything, even NaN",
        "`x` and `lengths` are not changed",
    ],
    both_sides=True,
)
def padding(answer, rng, device):
    x, lengths, layer = problem(rng, device, [4, 2, 1])
    clean = [t.clone() for t in run(answer, x, lengths, layer)]
    for bad in (1e4, float("inf"), float("nan")):
        dirty = x.clone()
        for b, n in enumerate(lengths.tolist()):
            dirty[b, n:] = bad
        with expect_unchanged(dirty, lengths, hint="x belongs to the caller: make a new tensor."):
            got = run(answer, dirty, lengths, layer)
        for name, mine, right in zip(("out", "h", "c"), got, clean, strict=True):
            name = f"{name}, with {bad} in the padding,"
            expect_equal(mine, right, name=name, hint=PADDING, nan_hint=PADDING)


@check(
    "gradients reach weights and real positions, clean",
    holds="Gradients flow to the weights and to the real positions of x, and no NaN reaches them",
    both_sides=True,
)
def gradients(answer, rng, device):
    x, lengths, layer = problem(rng, device, [4, 2, 3], torch.float64)
    real = torch.arange(4, device=device) < lengths[:, None]
    plain = torch.where(real[..., None], x, 0).requires_grad_()
    packed = pack_padded_sequence(plain, lengths.cpu(), batch_first=True, enforce_sorted=False)
    out, (h, c) = layer(packed)
    out, _ = pad_packed_sequence(out, batch_first=True)
    (out.sum() + (h * c).sum()).backward()
    dirty = torch.where(real[..., None], x, torch.nan).requires_grad_()
    weights = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    out, h, c = answer.lstm(dirty, lengths, *weights)
    expect_true(out.requires_grad, "the result has no graph", hint=THROUGH)
    (out.sum() + (h * c).sum()).backward()
    names = ("wi", "wh", "bi", "bh")
    for name, mine, p in zip(names, weights, layer.parameters(), strict=True):
        expect_true(mine.grad is not None, f"no gradient reaches {name}", hint=THROUGH)
        name = f"the gradient of {name}"
        expect_close(mine.grad, p.grad, name=name, hint=THROUGH, nan_hint=PADDING)
    expect_true(dirty.grad is not None, "no gradient reaches x", hint=THROUGH)
    name = "the gradient of real positions of x"
    got, right = dirty.grad[real], plain.grad[real]
    expect_close(got, right, name=name, hint=THROUGH, nan_hint=PADDING)


@check(
    "other dtypes, and views of x",
    holds="x: (B, T, D), lengths: int64 (B,), in any order",
    both_sides=True,
)
def dtypes(answer, rng, device):
    for dtype in (torch.float64, torch.bfloat16):
        x, lengths, layer = problem(rng, device, [2, 3], dtype)
        out, _, _ = run(answer, x, lengths, layer)
        hint = "The states begin as x.new_zeros(...): dtype and device of x."
        expect_dtype(out, dtype, name=f"out for {dtype}", hint=hint)
        near = {"rtol": 0.1, "atol": 0.1} if dtype == torch.bfloat16 else {"rtol": 1e-9}
        compare(answer, x, lengths, layer, hint, **near)
    x, lengths, layer = problem(rng, device, [3, 1, 3, 2])
    x = x.transpose(0, 1).contiguous().transpose(0, 1)
    compare(answer, x, lengths, layer, "x may be a view: index it, and reshape where view fails.")


def walk(x, lengths, wi, wh, bi, bh, step, hold=True, blank=True, zero=True):
    h = c = x.new_zeros(len(x), wh.shape[1])
    outs = []
    for t in range(x.shape[1]):
        alive = (t < lengths)[:, None]
        now = torch.where(alive, x[:, t], 0) if blank else x[:, t]
        new_h, new_c = step(now @ wi.T + bi + h @ wh.T + bh, h, c)
        h = torch.where(alive, new_h, h) if hold else new_h
        c = torch.where(alive, new_c, c) if hold else new_c
        outs.append(torch.where(alive, h, 0) if zero else h)
    return torch.stack(outs, 1), h, c


def good(z, h, c):
    i, f, g, o = z.chunk(4, -1)
    c = f.sigmoid() * c + i.sigmoid() * g.tanh()
    return o.sigmoid() * c.tanh(), c


@mutant("takes the parts for i, f, o, g", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        i, f, o, g = z.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("shows c without tanh", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        i, f, g, o = z.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c, c

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("makes a gate of g", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        i, f, g, o = z.sigmoid().chunk(4, -1)
        c = f * c + i * g
        return o * c.tanh(), c

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("forgets one bias", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths, wi, wh, bi, torch.zeros_like(bh), good)


@mutant("forgets and writes with one gate", caught_by=steps)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        i, _, g, o = z.chunk(4, -1)
        c = (1 - i.sigmoid()) * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), c

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("shows the old cell", caught_by=steps)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        i, f, g, o = z.chunk(4, -1)
        new = f.sigmoid() * c + i.sigmoid() * g.tanh()
        return o.sigmoid() * c.tanh(), new

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("begins every step with h of zero", caught_by=steps)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths, wi, torch.zeros_like(wh), bi, bh, good)


@mutant("runs on through the padding", caught_by=ends)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths, wi, wh, bi, bh, good, hold=False)


@mutant("takes h at the end, and c too late", caught_by=ends)
def lstm(x, lengths, wi, wh, bi, bh):
    out, h, _ = walk(x, lengths, wi, wh, bi, bh, good)
    _, _, c = walk(x, lengths, wi, wh, bi, bh, good, hold=False)
    return out, h, c


@mutant("counts one position too many", caught_by=ends)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths + 1, wi, wh, bi, bh, good)


@mutant("expects the longest first, and cuts the batch", caught_by=ends)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths.sort(descending=True).values, wi, wh, bi, bh, good)


@mutant("repeats the last state behind the end", caught_by=zeros)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths, wi, wh, bi, bh, good, zero=False)


@mutant("multiplies the padding by 0", caught_by=gradients)
def lstm(x, lengths, wi, wh, bi, bh):
    real = torch.arange(x.shape[1], device=x.device) < lengths[:, None]
    return walk(x * real[..., None], lengths, wi, wh, bi, bh, good, blank=False)


@mutant("lets NaN into the product, and selects afterwards", caught_by=gradients)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x, lengths, wi, wh, bi, bh, good, blank=False)


@mutant("clears the padding of the caller's x", caught_by=padding)
def lstm(x, lengths, wi, wh, bi, bh):
    with torch.no_grad():
        for b, n in enumerate(lengths.tolist()):
            x[b, n:] = 0
    return walk(x, lengths, wi, wh, bi, bh, good)


@mutant("cuts the graph between two steps", caught_by=gradients)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        return good(z, h, c.detach())

    return walk(x, lengths, wi, wh, bi, bh, step)


@mutant("begins with random states", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    extra = torch.randn(len(x), 1, x.shape[-1]).to(x)
    return tuple(
        t[:, 1:] if t.dim() == 3 else t
        for t in walk(torch.cat([extra, x], 1), lengths + 1, wi, wh, bi, bh, good)
    )


@mutant("sorts by length, and leaves it so", caught_by=ends)
def lstm(x, lengths, wi, wh, bi, bh):
    order = lengths.argsort(descending=True)
    return walk(x[order], lengths[order], wi, wh, bi, bh, good)


@mutant("ends the outputs with the longest sequence", caught_by=zeros)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(x[:, : int(lengths.max())], lengths, wi, wh, bi, bh, good)


@mutant("begins with float32 zeros, and converts to them", caught_by=dtypes)
def lstm(x, lengths, wi, wh, bi, bh):
    return walk(*(t if t is lengths else t.float() for t in (x, lengths, wi, wh, bi, bh)), good)


@mutant("leaves it to torch", caught_by=cell)
def lstm(x, lengths, wi, wh, bi, bh):
    def step(z, h, c):
        return good(z, h, c)

    state = [x.new_zeros(1, len(x), wh.shape[1])] * 2
    torch.lstm(x, state, [wi, wh, bi, bh], True, 1, 0.0, False, False, True)
    return walk(x, lengths, wi, wh, bi, bh, step)


@accepted("one sequence at a time")
def lstm(x, lengths, wi, wh, bi, bh):
    H = wh.shape[1]
    outs, hs, cs = [], [], []
    for sample, n in zip(x, lengths.tolist(), strict=True):
        h = c = x.new_zeros(H)
        rows = []
        for row in sample[:n]:
            z = wi @ row + bi + wh @ h + bh
            i, f, o = z[:H].sigmoid(), z[H : 2 * H].sigmoid(), z[3 * H :].sigmoid()
            c = f * c + i * z[2 * H : 3 * H].tanh()
            h = o * c.tanh()
            rows.append(h)
        rows += [x.new_zeros(H)] * (x.shape[1] - n)
        outs.append(torch.stack(rows))
        hs.append(h)
        cs.append(c)
    return torch.stack(outs), torch.stack(hs), torch.stack(cs)


@accepted("a batch that shrinks: sorted by length, and put back in order")
def lstm(x, lengths, wi, wh, bi, bh):
    order = lengths.argsort(descending=True)
    x, ends = x[order], lengths[order]
    B, H = len(x), wh.shape[1]
    h = c = x.new_zeros(B, H)
    outs = []
    for t in range(x.shape[1]):
        n = int((ends > t).sum())
        z = x[:n, t] @ wi.T + bi + h[:n] @ wh.T + bh
        new_h, new_c = good(z, h[:n], c[:n])
        h, c = torch.cat([new_h, h[n:]]), torch.cat([new_c, c[n:]])
        outs.append(torch.cat([new_h, x.new_zeros(B - n, H)]))
    back = order.argsort()
    return torch.stack(outs, 1)[back], h[back], c[back]


@accepted("all inputs in one product, states gathered at the ends")
def lstm(x, lengths, wi, wh, bi, bh):
    B, T, _ = x.shape
    real = (torch.arange(T, device=x.device) < lengths[:, None])[..., None]
    z = x.masked_fill(~real, 0) @ wi.T + (bi + bh)
    h = c = z.new_zeros(B, wh.shape[1])
    hs, cs = [], []
    for row in z.unbind(1):
        i, f, g, o = torch.tensor_split(row + h @ wh.T, 4, dim=1)
        c = torch.addcmul(torch.sigmoid(f) * c, torch.sigmoid(i), torch.tanh(g))
        h = torch.sigmoid(o) * torch.tanh(c)
        hs.append(h)
        cs.append(c)
    hs, cs = torch.stack(hs, 1), torch.stack(cs, 1)
    rows = torch.arange(B, device=x.device)
    return hs.masked_fill(~real, 0), hs[rows, lengths - 1], cs[rows, lengths - 1]


@hinted(1, reaches=steps)
def lstm(x, lengths, wi, wh, bi, bh):
    h = c = x.new_zeros(len(x), wh.shape[1])
    outs = []
    for t in range(x.shape[1]):
        z = x[:, t] @ wi.T + bi + h @ wh.T + bh
        i, f, g, o = z.chunk(4, -1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outs.append(h)
    return torch.stack(outs, 1), h, c


equivalent(
    "now = torch.where(alive, x[:, t], 0)",
    "now = torch.where(alive, x[:, t], 1)",
    because="What stands in for padding is dropped again: any finite number will do.",
)


equivalent(
    "now = torch.where(alive, x[:, t], 0)",
    "now = torch.where(alive, x[:, t], -1)",
    because="What stands in for padding is dropped again: any finite number will do.",
)
