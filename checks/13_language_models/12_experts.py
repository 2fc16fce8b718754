"""Judges lessons/13_language_models/12_experts.md."""

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
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Write moe", "A call that may help")

ONE = (
    "With k = 1 a token gets what its likeliest expert gives, and nothing else: p divided by itself"
    " is 1."
)
SUM = "The outputs of a token's experts are added, weighted by p over the sum of the chosen."
LATE = "First choices in the order of the tokens, then the second ones. Who is late adds 0."
AGAIN = "The other weights stay: divide by the sum of the k chosen, whether they are taken or not."
BEFORE = "The shares are those before any choice was left out."
NONE_LEFT = "0 is a capacity too: ask `is not None`."
NOBODY = "An expert without tokens adds nothing."
BALANCE = "E * sum of share times mean probability. The share is of the N * k choices."


class Expert(nn.Module):
    """Counts its calls and rows."""

    def __init__(self, width):
        super().__init__()
        self.inner = nn.Linear(width, width)
        self.rows = self.calls = 0

    def forward(self, x):
        self.calls += 1
        self.rows += len(x)
        return self.inner(x).tanh()


def wanted(x, logits, experts, k, capacity=None, again=False):
    """Token by token, in float64. again: weights are divided by the sum of those that are taken."""
    n_tokens, n_experts = logits.shape
    p = logits.double().softmax(-1)
    order = p.argsort(-1, descending=True)[:, :k]
    used = [0] * n_experts
    y = torch.zeros_like(x, dtype=torch.double)
    taken = torch.zeros(n_tokens, dtype=torch.double, device=x.device)
    outs = [
        (x.double() @ e.inner.weight.double().T + e.inner.bias.double()).tanh() for e in experts
    ]
    for j in range(k):
        for n in range(n_tokens):
            e = order[n, j].item()
            if capacity is not None and used[e] >= capacity:
                continue
            used[e] += 1
            weight = p[n, e] / p[n, order[n]].sum()
            taken[n] += weight.detach()
            y[n] += weight * outs[e][n]
    y = y / taken.clamp(min=1e-9)[:, None] if again else y
    share = torch.bincount(order.flatten(), minlength=n_experts).double() / (n_tokens * k)
    return y.to(x.dtype), (n_experts * (share * p.mean(0)).sum()).to(x.dtype)


def problem(rng, device, n=None, e=None, dtype=torch.float32):
    n, e, width = n or rng.randint(10, 20), e or rng.choice([4, 5, 6]), rng.choice([4, 6])
    experts = nn.ModuleList(Expert(width) for _ in range(e)).to(device, dtype)
    x = torch.randn(n, width, device=device, dtype=dtype)
    return x, torch.randn(n, e, device=device, dtype=dtype) * 1.5, experts


@check(
    "one expert for each token",
    holds=[
        "weighted by these divided by their sum",
        "and the balance loss as a tensor.",
        "returns: y (N, C), balance ()",
        "experts is a list of modules that map (n, C) to (n, C).",
    ],
    both_sides=True,
)
def single(answer, rng, device):
    x, z, experts = problem(rng, device)
    y, balance = answer.moe(x, z, experts, 1)
    expect_shape(y, x.shape, name="y")
    expect_dtype(y, x.dtype, name="y")
    expect_shape(balance, (), name="the balance loss")
    right, _ = wanted(x, z, experts, 1)
    expect_close(y, right, name="y with k = 1", rtol=1e-4, atol=1e-5, hint=ONE)


@check(
    "k experts add up",
    holds="Each token goes to the k experts with the largest probabilities",
    both_sides=True,
)
def several(answer, rng, device):
    x, z, experts = problem(rng, device)
    for k in (2, 3):
        y, _ = answer.moe(x, z, list(experts), k)
        right, _ = wanted(x, z, experts, k)
        expect_close(y, right, name=f"y with k = {k}", rtol=1e-4, atol=1e-5, hint=SUM)


@check(
    "an expert runs once, on its own tokens",
    holds="An expert is called at most once, with the rows of its tokens.",
    both_sides=True,
)
def work(answer, rng, device):
    x, z, experts = problem(rng, device)
    answer.moe(x, z, experts, 2)
    rows, calls = sum(e.rows for e in experts), max(e.calls for e in experts)
    expect_equal(rows, 2 * len(x), name="the rows that the experts saw", hint="Run x[tokens] only.")
    expect_equal(calls, 1, name="the calls of an expert", hint="Gather its tokens, call it once.")


@check(
    "a full expert leaves choices out",
    holds=[
        "With a capacity, an expert takes at most that many choices",
        "The first choices of all tokens come first, in the order of the tokens",
        "What is left out adds 0, and the other weights stay.",
    ],
    both_sides=True,
)
def dropped(answer, rng, device):
    x, z, experts = problem(rng, device, 16, 4)
    z[:, rng.randrange(4)] += 2.0
    for k in (1, 2):
        y, _ = answer.moe(x, z, experts, k, 3)
        right, _ = wanted(x, z, experts, k, 3)
        hint = LATE
        if torch.allclose(y, wanted(x, z, experts, k, 3, again=True)[0], rtol=1e-3, atol=1e-4):
            hint = AGAIN
        expect_close(y, right, name="y with capacity 3", rtol=1e-4, atol=1e-5, hint=hint)


@check(
    "room for all, and an expert that nobody wants",
    holds="An expert without tokens adds nothing.",
    side="an expert without tokens",
)
def nobody(answer, rng, device):
    x, z, experts = problem(rng, device, 6, 6)
    z[:, 2] = -50.0
    y, _ = answer.moe(x, z, experts, 2, 12)
    right, _ = wanted(x, z, experts, 2)
    expect_close(y, right, name="y with capacity 12", rtol=1e-4, atol=1e-5, hint=NOBODY)


@check(
    "the balance loss",
    holds="The balance loss takes the shares of all N · k choices before any is left out",
    both_sides=True,
)
def balanced(answer, rng, device):
    x, z, experts = problem(rng, device)
    e = z.shape[1]
    even = torch.eye(e, device=device).repeat(2, 1)[:, torch.randperm(e)] * 1e-3
    _, got = answer.moe(torch.randn(2 * e, x.shape[1], device=device), even, experts, 1)
    one = torch.ones((), device=device)
    expect_close(got, one, name="the balance loss of an even routing", atol=0.01, hint=BALANCE)
    crowd = torch.zeros(7, e, device=device)
    crowd[:, 1] = 30.0
    _, got = answer.moe(torch.randn(7, x.shape[1], device=device), crowd, experts, 1)
    expect_close(got, e * one, name="the balance loss of one for all", atol=0.01, hint=BALANCE)
    for k in (1, 2):
        _, got = answer.moe(x, z, experts, k)
        expect_close(got, wanted(x, z, experts, k)[1], name="the balance loss", hint=BALANCE)


@check(
    "a capacity of 0 leaves all out", holds="an expert takes at most that many choices, with 0 none"
)
def closed(answer, rng, device):
    x, z, experts = problem(rng, device)
    y, balance = answer.moe(x, z, experts, 2, 0)
    expect_close(y, torch.zeros_like(x), name="y with capacity 0", hint=NONE_LEFT)
    right = wanted(x, z, experts, 2)[1]
    expect_close(balance, right, name="the balance loss", hint=BEFORE)


@check(
    "y has the dtype of x", holds=["y, of the shape and dtype of x", "of the same floating dtype"]
)
def dtypes(answer, rng, device):
    for dtype, tolerance in ((torch.float64, 1e-6), (torch.bfloat16, 0.05)):
        x, z, experts = problem(rng, device, dtype=dtype)
        if dtype is torch.bfloat16:  # its routing is the same however p is rounded
            z = torch.stack([torch.randperm(z.shape[1]) for _ in z]).to(z)
        hint = "torch.zeros_like(x) has dtype and device of x."
        with advising(RuntimeError, hint=hint):
            y, _ = answer.moe(x, z, experts, 2)
        expect_dtype(y, dtype, name="y", hint=hint)
        right = wanted(x, z, experts, 2)[0]
        expect_close(y, right, name="y", rtol=tolerance, atol=tolerance)


@check("the inputs keep their values", holds="All inputs keep their values.", both_sides=True)
def unchanged(answer, rng, device):
    x, z, experts = problem(rng, device)
    with expect_unchanged(x, z, *experts.parameters(), hint="Compute new tensors."):
        answer.moe(x, z, experts, 2, 3)


@check(
    "gradients reach the router, the input and the experts",
    holds=[
        "The gradient of y reaches the logits, x and the weights of the experts.",
        "and the mean probabilities",
    ],
    both_sides=True,
)
def pull(answer, rng, device):
    x, z, experts = problem(rng, device)
    z.requires_grad_()
    x.requires_grad_()
    y, got = answer.moe(x, z, experts, 2, 3)
    expect_true(got.requires_grad, "the balance loss has no gradient", hint="p.mean(0) has one.")
    (mine,) = torch.autograd.grad(got, z, retain_graph=True)
    w = z.detach().clone().requires_grad_()
    v = x.detach().clone().requires_grad_()
    right_y, right = wanted(v, w, experts, 2, 3)
    (right,) = torch.autograd.grad(right, w, retain_graph=True)
    name = "the gradient of the balance loss"
    expect_close(mine, right, name=name, atol=1e-6, hint=BEFORE)
    expect_true(y.requires_grad, "y has no graph")
    weights = [e.inner.weight for e in experts]
    mine = torch.autograd.grad(y.square().sum(), [z, *weights, x], allow_unused=True)
    right = torch.autograd.grad(right_y.square().sum(), [w, *weights, v], allow_unused=True)
    names = ["the logits", *(f"the weight of expert {i}" for i in range(len(weights))), "x"]
    hints = (
        ["Detach no weights."] + ["Detach no outputs."] * len(weights) + ["Detach no rows of x."]
    )
    for name, a, b, hint in zip(names, mine, right, hints, strict=True):
        if b is not None and bool(b.any()):
            expect_true(a is not None, f"y has no gradient to {name}", hint=hint)
            name = f"the gradient of y to {name}"
            expect_close(a, b, name=name, rtol=1e-3, atol=1e-4, hint=hint)


def body(
    x, logits, experts, k, capacity=None, norm=True, add=True, dense=False, late="rank",
    scaled=True, of_chosen=False, after=False, detach=False, inputs=True, outputs=True,
):  # fmt: skip
    """The layer, with one mistake at a time."""
    N, E = logits.shape
    p = logits.softmax(-1)
    top, chosen = p.topk(k, -1)
    weight = top / top.sum(-1, keepdim=True) if norm else top
    weight = weight.detach() if detach else weight
    y = torch.zeros_like(x)
    counts = torch.zeros(E, device=x.device)
    for e, expert in enumerate(experts):
        if late == "rank":
            rank, token = (chosen == e).T.nonzero(as_tuple=True)
        else:
            token, rank = (chosen == e).nonzero(as_tuple=True)
        rank, token = rank[:capacity], token[:capacity]
        counts[e] = len(token)
        if dense:
            w = torch.zeros(N, device=x.device).index_put((token,), weight[token, rank])
            y = y + w[:, None] * expert(x)
        elif len(token):
            rows = x[token] if inputs else x[token].detach()
            out = expert(rows) if outputs else expert(rows).detach()
            part = weight[token, rank, None] * out
            y = y.index_add(0, token, part) if add else y.index_put((token,), part)
    share = counts / counts.sum() if after else F.one_hot(chosen, E).float().mean((0, 1))
    mean = (p * F.one_hot(chosen, E).sum(1)).mean(0) if of_chosen else p.mean(0)
    return y, (share * mean).sum() * (E if scaled else 1)


@mutant("weights do not sum to 1", caught_by=single)
def moe(*a, **k):
    return body(*a, **k, norm=False)


@mutant("the second expert overwrites the first", caught_by=several)
def moe(*a, **k):
    return body(*a, **k, add=False)


@mutant("runs all experts on all tokens", caught_by=work)
def moe(*a, **k):
    return body(*a, **k, dense=True)


@mutant("adds all experts, never routes", caught_by=single)
def moe(x, logits, experts, k, capacity=None):
    return sum(e(x) for e in experts), body(x, logits, experts, k)[1]


@mutant("first come, first served, token by token", caught_by=dropped)
def moe(*a, **k):
    return body(*a, **k, late="token")


@mutant("gives the dropped weight to the others", caught_by=dropped)
def moe(x, logits, experts, k, capacity=None):
    y, aux = body(x, logits, experts, k, capacity)
    if capacity is not None:
        p = logits.softmax(-1)
        top, chosen = p.topk(k, -1)
        w, kept = top / top.sum(-1, keepdim=True), torch.zeros(len(x), device=x.device)
        for e in range(logits.shape[1]):
            rank, token = (chosen == e).T.nonzero(as_tuple=True)
            kept.index_add_(0, token[:capacity], w[token[:capacity], rank[:capacity]].detach())
        y = y / kept.clamp(min=1e-9)[:, None]
    return y, aux


@mutant("no factor E", caught_by=balanced)
def moe(*a, **k):
    return body(*a, **k, scaled=False)


@mutant("mean over the chosen probabilities only", caught_by=balanced)
def moe(*a, **k):
    return body(*a, **k, of_chosen=True)


@mutant("shares after dropping", caught_by=pull)
def moe(*a, **k):
    return body(*a, **k, after=True)


@mutant("detached weights", caught_by=pull)
def moe(*a, **k):
    return body(*a, **k, detach=True)


@mutant("detached rows of x", caught_by=pull)
def moe(*a, **k):
    return body(*a, **k, inputs=False)


@mutant("detached outputs of the experts", caught_by=pull)
def moe(*a, **k):
    return body(*a, **k, outputs=False)


@mutant("a capacity of 0 is no capacity", caught_by=closed)
def moe(x, logits, experts, k, capacity=None):
    return body(x, logits, experts, k, capacity or None)


@mutant("y is in float32", caught_by=dtypes)
def moe(x, logits, experts, k, capacity=None):
    y, aux = body(x, logits, experts, k, capacity)
    return y.float(), aux


@mutant("subtracts the largest score in place", caught_by=unchanged)
def moe(x, logits, experts, k, capacity=None):
    with torch.no_grad():
        logits -= logits.amax(-1, keepdim=True)
    return body(x, logits, experts, k, capacity)


@mutant("adds y to x in place", caught_by=unchanged)
def moe(x, logits, experts, k, capacity=None):
    y, aux = body(x, logits, experts, k, capacity)
    x.data += y.data
    return y, aux


@mutant("a dropped token passes through", caught_by=dropped)
def moe(x, logits, experts, k, capacity=None):
    y, aux = body(x, logits, experts, k, capacity)
    return torch.where((y == 0).all(-1, keepdim=True), x, y), aux


@mutant("keeps the likeliest choices", caught_by=dropped)
def moe(x, logits, experts, k, capacity=None):
    _, aux = body(x, logits, experts, k)
    order = logits.softmax(-1).amax(-1).argsort(descending=True)
    y, _ = body(x[order], logits[order], experts, k, capacity)
    return torch.zeros_like(y).index_put((order,), y), aux


@mutant("each rank of choice has a capacity of its own", caught_by=dropped)
def moe(x, logits, experts, k, capacity=None):
    _, aux = body(x, logits, experts, k)
    top, chosen = logits.softmax(-1).topk(k, -1)
    w, y = top / top.sum(-1, keepdim=True), torch.zeros_like(x)
    for e, expert in enumerate(experts):
        table = chosen == e
        table = table & (table.cumsum(0) <= (len(x) if capacity is None else capacity))
        rank, token = table.T.nonzero(as_tuple=True)
        if len(token):
            y = y.index_add(0, token, w[token, rank, None] * expert(x[token]))
    return y, aux


@mutant("calls an expert for each rank of choice", caught_by=work)
def moe(x, logits, experts, k, capacity=None):
    top, chosen = logits.softmax(-1).topk(k, -1)
    w, y = top / top.sum(-1, keepdim=True), torch.zeros_like(x)
    for e, expert in enumerate(experts):
        for j in range(k):
            token = (chosen[:, j] == e).nonzero()[:, 0]
            if len(token):
                y = y.index_add(0, token, w[token, j, None] * expert(x[token]))
    return y, body(x, logits, experts, k)[1]


@mutant("the shares of the first choices", caught_by=balanced)
def moe(x, logits, experts, k, capacity=None):
    y, _ = body(x, logits, experts, k, capacity)
    return y, body(x, logits, experts, 1)[1]


@mutant("the weight is put on the input of the expert", caught_by=several)
def moe(x, logits, experts, k, capacity=None):
    top, chosen = logits.softmax(-1).topk(k, -1)
    w, y = top / top.sum(-1, keepdim=True), torch.zeros_like(x)
    for e, expert in enumerate(experts):
        rank, token = (chosen == e).T.nonzero(as_tuple=True)
        rank, token = rank[:capacity], token[:capacity]
        if len(token):
            y = y.index_add(0, token, expert(w[token, rank, None] * x[token]))
    return y, body(x, logits, experts, k)[1]


@hinted(1, reaches=work)
def moe(x, logits, experts, k, capacity=None):
    p = logits.softmax(-1)
    top, chosen = p.topk(k, -1)
    weight = top / top.sum(-1, keepdim=True)
    y = torch.zeros_like(x)
    for e, expert in enumerate(experts):
        token, rank = (chosen == e).nonzero(as_tuple=True)
        y = y.index_add(0, token, weight[token, rank, None] * expert(x[token]))
    return y, p.shape[1] * p.mean(0).square().sum()


@accepted("softmax over the chosen scores, a list per expert")
def moe(x, logits, experts, k, capacity=None):
    best = logits.topk(k, dim=-1)
    w = best.values.softmax(-1)
    E = logits.shape[-1]
    todo = [[] for _ in range(E)]
    for j in range(k):
        for n, e in enumerate(best.indices[:, j].tolist()):
            if capacity is None or len(todo[e]) < capacity:
                todo[e].append((n, j))
    y = x.new_zeros(x.shape)
    for e, jobs in enumerate(todo):
        if jobs:
            n, j = torch.tensor(jobs, device=x.device).T
            y = y + torch.zeros_like(x).index_put((n,), w[n, j].unsqueeze(1) * experts[e](x[n]))
    f = torch.bincount(best.indices.flatten(), minlength=E) / best.indices.numel()
    return y, E * torch.dot(f.to(logits), logits.softmax(-1).mean(0))


@accepted("sorts the assignments")
def moe(x, logits, experts, k, capacity=None):
    N, E = logits.shape
    p = torch.softmax(logits, 1)
    w, chosen = p.topk(k, 1)
    w = w / w.sum(1, keepdim=True)
    flat, token = chosen.T.flatten(), torch.arange(N, device=x.device).repeat(k)
    order = flat.argsort(stable=True)
    sizes = torch.bincount(flat, minlength=E).tolist()
    y, wf = torch.zeros_like(x), w.T.flatten()
    for e, part in enumerate(order.split(sizes)):
        part = part if capacity is None else part[:capacity]
        if part.numel():
            y = torch.index_add(
                y, 0, token[part], experts[e](x[token[part]]) * wf[part].unsqueeze(-1)
            )
    aux = E * (torch.tensor(sizes, device=x.device) / (N * k) * p.mean(0)).sum()
    return y, aux
