"""Judges lessons/12_architectures/06_multihead_sdpa.md."""

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("`nn.MultiheadAttention` is refused, SDPA is what to use.")

LAYERS = "qkv = nn.Linear(C, 3 * C) and out = nn.Linear(C, C), both with a bias, and no more."
HEADS = (
    "Cut the features: (B, T, C) to (B, T, H, D), then swap T and H. Bring them back the same way: "
    "swap first, then flatten. SDPA divides by the root of D by itself."
)
PARTS = "chunk(3, -1): the first C features are q, then k, then v."
ALONE = (
    "A position that is alone sees itself, so the result is out(v): with all layers, no dropout."
)
FUTURE = (
    "Position t may see positions 0 to t: is_causal=True, or a lower triangle of True, dtype bool."
)
OWN = "x and keep belong to the caller: write into neither."
THROUGH = "Keep the graph: no detach() and no no_grad() in forward."
KEEP = "True means that the token counts as a key. SDPA reads a bool mask the same way."
BOTH = "Both masks hold together: triangle & keep, which broadcasts as (B, 1, 1, T)."
EMPTY = "A query without any key: let it see itself, or set its output to 0. No NaN."


def made(answer, rng, device, C, H, dtype=torch.float32):
    """The learner's module, with weights large enough that heads differ."""
    net = answer.CausalSelfAttention(C, H).to(device=device, dtype=dtype)
    with torch.no_grad():
        for p in net.parameters():
            p.copy_(torch.randn(p.shape, device=device) / p.shape[-1] ** 0.5)
    return net


def wanted(net, x, H, keep=None, causal=True):
    """By nn.MultiheadAttention with the same weights, in float64."""
    C = x.shape[-1]
    mha = nn.MultiheadAttention(C, H, batch_first=True, device=x.device, dtype=torch.float64)
    with torch.no_grad():
        mha.in_proj_weight.copy_(net.qkv.weight)
        mha.in_proj_bias.copy_(net.qkv.bias)
        mha.out_proj.weight.copy_(net.out.weight)
        mha.out_proj.bias.copy_(net.out.bias)
    T = x.shape[1]
    hidden = torch.ones(T, T, dtype=torch.bool, device=x.device).triu(1 if causal else T)
    ignored = None if keep is None else ~keep
    return mha(x.double(), x.double(), x.double(), attn_mask=hidden, key_padding_mask=ignored)[0]


def compare(answer, rng, device, H, D, T, hint, B=None, **near):
    net = made(answer, rng, device, H * D, H)
    x = torch.randn(rng.randint(2, 4) if B is None else B, T, H * D, device=device)
    right = wanted(net, x, H)
    expect_close(net(x), right, dtype=x.dtype, atol=1e-4, hint=hint, **near)


@check(
    "the layers, by name and size",
    holds=[
        "Its layers are `qkv`, from C to 3C, and `out`, from C to C, with biases",
        "Write the module `CausalSelfAttention`",
    ],
    both_sides=True,
)
def layers(answer, rng, device):
    H = rng.choice((1, 2, 3))
    C = H * rng.randint(2, 5)
    net = answer.CausalSelfAttention(C, H)
    got = {name: list(p.shape) for name, p in net.named_parameters()}
    right = {"qkv.weight": [3 * C, C], "qkv.bias": [3 * C], "out.weight": [C, C], "out.bias": [C]}
    expect_equal(got, right, name=f"the parameters of CausalSelfAttention({C}, {H})", hint=LAYERS)


@check(
    "one head, one position: q, k, v in their order",
    counts_calls=True,
    holds="The 3C features are those of q, then of k, then of v",
)
def order(answer, rng, device):
    compare(answer, rng, device, 1, 4, 1, f"{PARTS} {ALONE}")
    compare(answer, rng, device, 1, 5, 3, f"{PARTS} {FUTURE}")
    whole = answer.calls["multi_head_attention_forward"]
    hint = "Split the heads yourself, and call F.scaled_dot_product_attention."
    expect_true(not whole, "the program calls PyTorch's multi-head attention", hint=hint)


@check(
    "no position sees a later one",
    holds="Each position attends to itself and to earlier ones",
    both_sides=True,
)
def causal(answer, rng, device):
    H, D, T = rng.choice(((1, 4, 6), (2, 3, 6)))
    net = made(answer, rng, device, H * D, H)
    x = torch.randn(2, T, H * D, device=device)
    before = net(x).detach()
    for t in (T - 1, 2):
        changed = x.clone()
        changed[:, t] += 1
        after = net(changed).detach()
        name = f"outputs before position {t}, after position {t} of x has changed"
        expect_close(after[:, :t], before[:, :t], name=name, hint=FUTURE)
        gap = (after[:, t:] - before[:, t:]).abs().amax((0, 2))
        message = f"positions {t} and later do not notice that position {t} has changed"
        expect_true((gap > 1e-6).all(), message, hint=FUTURE)


@check(
    "heads own features",
    holds="Head h owns features h * D to (h + 1) * D of each of the three",
    both_sides=True,
)
def heads(answer, rng, device):
    for H, D, T in ((2, 3, 4), (4, 2, 4), (3, 1, 2), (2, 5, 7), (2, 2, rng.randint(30, 60))):
        compare(answer, rng, device, H, D, T, HEADS)
    compare(answer, rng, device, 3, 2, 5, HEADS, B=1)


@check(
    "an H that does not divide C is a ValueError",
    holds="If H does not divide C, `__init__` raises ValueError",
)
def divides(answer, rng, device):
    for C, H in ((10, 3), (4, 8)):
        hint = "Ask C % H in __init__. Later the error would speak of shapes."
        call = f"CausalSelfAttention({C}, {H})"
        try:
            answer.CausalSelfAttention(C, H)
        except ValueError:
            continue
        except Exception as error:
            fail(f"{call} raises {type(error).__name__}, ValueError is wanted", hint=hint)
        fail(f"{call} raises no ValueError", hint=hint)


@check(
    "keep takes keys away",
    holds=["`keep` takes further keys away", "True where a token counts as a key, or None for all"],
    both_sides=True,
)
def padding(answer, rng, device):
    for H, D, T in ((1, 4, 5), (2, 3, 6)):
        net = made(answer, rng, device, H * D, H)
        x = torch.randn(3, T, H * D, device=device)
        keep = torch.ones(3, T, dtype=torch.bool, device=device)
        keep[0, 3:] = False
        keep[1, 1] = False
        keep[2, -1] = False
        right = wanted(net, x, H, keep)
        with expect_unchanged(x, keep, hint=OWN):
            got = net(x, keep)
        hint = f"{KEEP} {BOTH}"
        expect_close(got[keep], right[keep], dtype=x.dtype, atol=1e-4, hint=hint)
        everything = torch.ones_like(keep)
        expect_close(net(x, everything), wanted(net, x, H), dtype=x.dtype, atol=1e-4, hint=hint)


@check(
    "padding on the left gives no NaN",
    holds="where `keep` is False, the output at that position is not looked at",
)
def left(answer, rng, device):
    H, D, T = 2, 3, 5
    net = made(answer, rng, device, H * D, H)
    x = torch.randn(3, T, H * D, device=device).requires_grad_()
    keep = torch.ones(3, T, dtype=torch.bool, device=device)
    keep[0, :2] = False
    keep[1] = False
    with expect_unchanged(x, keep, hint=OWN):
        got = net(x, keep)
    expect_true(got.isfinite().all(), "padding on the left gives NaN or inf", hint=EMPTY)
    right = wanted(net, x[::2], H, keep[::2])
    expect_close(got[::2][keep[::2]], right[keep[::2]], dtype=x.dtype, atol=1e-4, hint=BOTH)
    got[keep].square().sum().backward()
    expect_true(x.grad.isfinite().all(), "padding on the left gives NaN in gradients", hint=EMPTY)


@check("x and keep stay as they are", holds="`x` and `keep` stay as they are.")
def untouched(answer, rng, device):
    net = made(answer, rng, device, 6, rng.choice((1, 2, 3)))
    x = torch.randn(2, 4, 6, device=device)
    keep = torch.tensor([[False, True, True, True], [True, True, False, False]], device=device)
    with expect_unchanged(x, keep, hint=OWN):
        net(x, keep)


@check(
    "gradients reach x through q, k and v",
    holds="Gradients flow to `x` through q, k and v.",
)
def flows(answer, rng, device):
    net = made(answer, rng, device, 6, 2)
    x = torch.randn(2, 5, 6, device=device)
    mine, right = (x.clone().requires_grad_() for _ in range(2))
    seed = torch.randn_like(x)
    got = net(mine)
    expect_true(got.requires_grad, "the result has no graph", hint=THROUGH)
    got.backward(seed)
    wanted(net, right, 2).backward(seed.double())
    expect_true(mine.grad is not None, "no gradient reaches x", hint=THROUGH)
    expect_close(mine.grad, right.grad, atol=1e-3, name="the gradient of x", hint=THROUGH)


@check("every layer learns, in any dtype", holds="x: (B, T, C); returns (B, T, C)")
def learns(answer, rng, device):
    for dtype in (torch.float32, torch.bfloat16):
        net = made(answer, rng, device, 6, 2, dtype)
        x = torch.randn(6, 2, 4, device=device).to(dtype).permute(1, 2, 0)  # not contiguous
        got = net(x)
        expect_dtype(got, dtype, hint="Masks are bool, and nothing else needs a new tensor.")
        near = {"rtol": 6e-2, "atol": 1e-1} if dtype == torch.bfloat16 else {"atol": 1e-4}
        expect_close(got, wanted(net, x, 2), dtype=dtype, hint=HEADS, **near)
        got.float().square().sum().backward()
        for name, p in net.named_parameters():
            reached = p.grad is not None and p.grad.abs().sum() > 0
            expect_true(reached, f"no gradient reaches {name}", hint=THROUGH)


class Base(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        if C % H:
            raise ValueError("H must divide C")
        self.H = H
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)

    def split(self, t):
        return t.unflatten(-1, (self.H, -1)).transpose(1, 2)

    def merge(self, y):
        return y.transpose(1, 2).flatten(2)

    def mask(self, T, keep, device):
        past = torch.ones(T, T, dtype=torch.bool, device=device).tril()
        itself = torch.eye(T, dtype=torch.bool, device=device)
        return past if keep is None else past & keep[:, None, None, :] | itself

    def forward(self, x, keep=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask = self.mask(x.shape[1], keep, x.device)
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


@mutant("merges without swapping back", caught_by=heads)
class CausalSelfAttention(Base):
    def merge(self, y):
        return y.reshape(len(y), y.shape[2], -1)


@mutant("tears tokens apart", caught_by=heads)
class CausalSelfAttention(Base):
    def split(self, t):
        return t.reshape(len(t), self.H, t.shape[1], -1)


@mutant("interleaves the heads", caught_by=heads)
class CausalSelfAttention(Base):
    def split(self, t):
        return t.unflatten(-1, (-1, self.H)).permute(0, 3, 1, 2)

    def merge(self, y):
        return y.permute(0, 2, 3, 1).flatten(2)


@mutant("has one head", caught_by=heads)
class CausalSelfAttention(Base):
    def split(self, t):
        return t[:, None]


@mutant("attends over the heads", caught_by=causal)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        q, k, v = (t.unflatten(-1, (self.H, -1)) for t in self.qkv(x).chunk(3, -1))
        return self.out(F.scaled_dot_product_attention(q, k, v).flatten(2))


@mutant("sees the future", caught_by=causal)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        return None if keep is None else keep[:, None, None, :]


@mutant("sees the future when keep is given", caught_by=padding)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        return super().mask(T, None, device) if keep is None else keep[:, None, None, :]


@mutant("forgets the causal mask's diagonal", caught_by=order)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        mask = torch.ones(T, T, dtype=torch.bool, device=device).tril(-1)
        return mask if keep is None else mask & keep[:, None, None, :]


@mutant("reads q, k, v as k, q, v", caught_by=heads)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        k, q, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask = self.mask(x.shape[1], keep, x.device)
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


@mutant("reads v first", caught_by=order)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        v, q, k = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask = self.mask(x.shape[1], keep, x.device)
        return self.out(self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))


@mutant("ignores keep", caught_by=padding)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        return super().mask(T, None, device)


@mutant("takes True for padding", caught_by=padding)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        return super().mask(T, None if keep is None else ~keep, device)


@mutant("fills empty rows with -inf", caught_by=left)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        T = x.shape[1]
        mask = torch.ones(T, T, dtype=torch.bool, device=x.device).tril()
        if keep is not None:
            mask = mask & keep[:, None, None, :]
        scores = (q @ k.mT / q.shape[-1] ** 0.5).masked_fill(~mask, -torch.inf)
        return self.out(self.merge(scores.softmax(-1) @ v))


@mutant("shows the first token to all", caught_by=left)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        first = torch.arange(T, device=device) == 0
        return super().mask(T, keep, device) | first


@mutant("keeps the first token of the caller's keep", caught_by=untouched)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        if keep is not None:
            keep[:, 0] = True
        return super().forward(x, keep)


@mutant("has a triangle of 16 positions", caught_by=heads)
class CausalSelfAttention(Base):
    def mask(self, T, keep, device):
        return super().mask(T if keep is not None else 16, keep, device)[..., :T, :T]


@mutant("takes the values for constants", caught_by=flows)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask = self.mask(x.shape[1], keep, x.device)
        y = F.scaled_dot_product_attention(q, k, v.detach(), attn_mask=mask)
        return self.out(self.merge(y))


@mutant("divides by the root of C", caught_by=heads)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask, scale = self.mask(x.shape[1], keep, x.device), x.shape[-1] ** -0.5
        y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=scale)
        return self.out(self.merge(y))


@mutant("asserts that H divides C", caught_by=divides)
class CausalSelfAttention(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        assert C % H == 0
        self.H = H
        self.qkv, self.out = nn.Linear(C, 3 * C), nn.Linear(C, C)

    forward = Base.forward
    split, merge, mask = Base.split, Base.merge, Base.mask


@mutant("has no biases", caught_by=layers)
class CausalSelfAttention(Base):
    def __init__(self, C, H):
        super().__init__(C, H)
        self.qkv = nn.Linear(C, 3 * C, bias=False)


@mutant("takes any number of heads", caught_by=divides)
class CausalSelfAttention(Base):
    def __init__(self, C, H):
        super().__init__(C - C % H if C > H else H, H)


@mutant("forgets the output layer", caught_by=order)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        q, k, v = (self.split(t) for t in self.qkv(x).chunk(3, -1))
        mask = self.mask(x.shape[1], keep, x.device)
        return self.merge(F.scaled_dot_product_attention(q, k, v, attn_mask=mask))


@mutant("leaves it to nn.MultiheadAttention", caught_by=order)
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        hidden = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool, device=x.device).triu(1)
        return F.multi_head_attention_forward(
            *[x.transpose(0, 1)] * 3, x.shape[-1], self.H, self.qkv.weight, self.qkv.bias,
            None, None, False, 0.0, self.out.weight, self.out.bias, attn_mask=hidden,
            key_padding_mask=None if keep is None else ~keep, need_weights=False,
        )[0].transpose(0, 1)  # fmt: skip


@accepted("loops over the heads, with weights by hand")
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        C = x.shape[-1]
        D = C // self.H
        qkv = self.qkv(x)
        sees = self.mask(x.shape[1], keep, x.device).reshape(-1, x.shape[1], x.shape[1])
        done = []
        for h in range(self.H):
            q, k, v = (qkv[..., i * C + h * D : i * C + (h + 1) * D] for i in range(3))
            scores = torch.einsum("btd,bsd->bts", q, k) * D**-0.5
            scores = scores.masked_fill(~sees, torch.finfo(x.dtype).min)
            done.append(scores.softmax(-1) @ v)
        return self.out(torch.cat(done, -1))


@accepted("one reshape for all three, and SDPA's zeros for empty rows")
class CausalSelfAttention(Base):
    def forward(self, x, keep=None):
        B, T, C = x.shape
        q, k, v = self.qkv(x).reshape(B, T, 3, self.H, C // self.H).permute(2, 0, 3, 1, 4)
        if keep is None:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            mask = keep[:, None, None].expand(B, 1, T, T).tril()
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        return self.out(y.permute(0, 2, 1, 3).reshape(B, T, C))


@hinted(1, reaches=causal)
class CausalSelfAttention(nn.Module):
    def __init__(self, C, H):
        super().__init__()
        self.H = H
        self.qkv = nn.Linear(C, 3 * C)
        self.out = nn.Linear(C, C)

    def forward(self, x, keep=None):
        q, k, v = self.qkv(x).chunk(3, -1)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y)
