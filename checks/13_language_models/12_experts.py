"""Judges lessons/13_language_models/12_experts.md."""

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
    expect_shape,
    expect_true,
    hinted,
    mutant,
)

background("Write moe", "A call that may help")

ONE = "With k = 1 the weights of a token sum to 1: its one expert counts fully."
SUM = "The outputs of a token's experts are added, weighted by p over the sum of the chosen."
LATE = "First choices in the order of the tokens, then the second ones. Who is late adds 0."
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


def wanted(x, logits, experts, k, capacity=None):
    """Token by token, in float64."""
    n_tokens, n_experts = logits.shape
    p = logits.double().softmax(-1)
    order = p.argsort(-1, descending=True)[:, :k]
    used = [0] * n_experts
    y = torch.zeros_like(x, dtype=torch.double)
    outs = [
        (x.double() @ e.inner.weight.double().T + e.inner.bias.double()).tanh() for e in experts
    ]
    for j in range(k):
        for n in range(n_tokens):
            e = order[n, j].item()
            if capacity is not None and used[e] >= capacity:
                continue
            used[e] += 1
            y[n] += p[n, e] / p[n, order[n]].sum() * outs[e][n]
    share = torch.bincount(order.flatten(), minlength=n_experts).double() / (n_tokens * k)
    return y.to(x.dtype), (n_experts * (share * p.mean(0)).sum()).to(x.dtype)


def problem(rng, device, n=None, e=None):
    n, e, width = n or rng.randint(10, 20), e or rng.choice([4, 5, 6]), rng.choice([4, 6])
    experts = nn.ModuleList(Expert(width) for _ in range(e)).to(device)
    return torch.randn(n, width, device=device), torch.randn(n, e, device=device) * 1.5, experts


@check(
    "one expert for each token",
    holds=[
        "weighted by these divided by their sum",
        "It returns the output y, of the shape and dtype of x, and the balance loss as a tensor.",
        "x: (N, C); logits: (N, E) -> y: (N, C), balance: ()",
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
        "With a capacity, an expert takes at most that many choices.",
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
        expect_close(y, right, name="y with capacity 3", rtol=1e-4, atol=1e-5, hint=LATE)


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
    "gradients reach the router",
    holds=["The gradient of y reaches the logits.", "and the mean probabilities"],
    both_sides=True,
)
def pull(answer, rng, device):
    x, z, experts = problem(rng, device)
    z.requires_grad_()
    y, got = answer.moe(x, z, experts, 2, 3)
    expect_true(got.requires_grad, "the balance loss has no gradient", hint="p.mean(0) has one.")
    (mine,) = torch.autograd.grad(got, z, retain_graph=True)
    w = z.detach().clone().requires_grad_()
    (right,) = torch.autograd.grad(wanted(x, w, experts, 2)[1], w)
    hint = "The shares are those before any choice was left out."
    expect_close(mine, right, name="the gradient of the balance loss", atol=1e-6, hint=hint)
    expect_true(y.requires_grad, "y has no graph")
    (mine,) = torch.autograd.grad(y.square().sum(), z, allow_unused=True)
    reached = mine is not None and bool(mine.any())
    expect_true(reached, "the output has no gradient to the scores", hint="Detach no weights.")


def body(
    x, logits, experts, k, capacity=None, norm=True, add=True, dense=False, late="rank",
    scaled=True, of_chosen=False, after=False, detach=False,
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
            part = weight[token, rank, None] * expert(x[token])
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
    return y, E * torch.dot(f, logits.softmax(-1).mean(0))


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
