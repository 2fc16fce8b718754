"""Judges lessons/13_language_models/02_vocabulary.md."""

import torch
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.checkpoint import checkpoint

from tensortutor.checking import (
    accepted,
    advising,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

equivalent(
    "part = h[i:i + rows].detach().requires_grad_()",
    "part = h[i:i + rows].requires_grad_()",
    because="autograd.grad stops at the slice, and a slice of a plain tensor is another tensor",
)

equivalent(
    "dh, dw = torch.zeros_like(h), torch.zeros_like(weight)",
    "dh, dw = torch.ones_like(h), torch.zeros_like(weight)",
    because="the pieces overwrite each row of dh",
)

WHOLE = "The mean over all rows; each piece adds its share to the gradient of the weight."
UNEVEN = (
    "Each row counts once, those of a smaller last piece too. A mean of means weighs them more."
)
IGNORED = "Divide by the number of targets that count, of all pieces; a piece may have none."
PIECES = "Compute at most `rows` rows of scores at a time."
PILED = "Go back from each piece before the next, and keep no scores: then they are let go of."
WIDE = "Stay in float64. Two whole numbers, or a bool and a whole number, divide to float32."
ALONE = "Return the gradients; the caller decides where they go."
GRAPH = "h and weight may belong to a graph: work on h.detach() and weight.detach()."
NEAR = {"rtol": 1e-4, "atol": 1e-5}


class Scores(TorchDispatchMode):
    """Rows of scores: the most in one tensor, and the most alive at once."""

    def __init__(self, weight):
        super().__init__()
        self.shape, self.alive = weight.shape, {}
        self.largest = self.most = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        size, width = self.shape
        for t in tree_leaves(out):
            if isinstance(t, torch.Tensor) and size in t.shape and width not in t.shape:
                rows = t.numel() // size
                self.largest = max(self.largest, rows)
                ref = StorageWeakRef(t.untyped_storage())
                self.alive[ref.cdata] = (ref, rows)
        self.alive = {key: pair for key, pair in self.alive.items() if not pair[0].expired()}
        self.most = max(self.most, sum(rows for _, rows in self.alive.values()))
        return out


def problem(rng, device, n, dtype=torch.float32, ignored=0.0):
    width, size = rng.choice([5, 6]), rng.randint(30, 50)
    h = torch.randn(n, width, device=device, dtype=dtype)
    w = torch.randn(size, width, device=device, dtype=dtype)
    y = torch.randint(size, (n,), device=device)
    y[torch.rand(n, device=device) < ignored] = -100
    y[0] = 3
    return h, w, y


def wanted(h, w, y):
    """In float64, all rows at once."""
    h2, w2 = h.detach().double().requires_grad_(), w.detach().double().requires_grad_()
    loss = F.cross_entropy(h2 @ w2.T, y)
    dh, dw = torch.autograd.grad(loss, (h2, w2))
    return loss.item(), dh.to(h.dtype), dw.to(w.dtype)


def compare(answer, h, w, y, rows, hint):
    right, right_h, right_w = wanted(h, w, y)  # before the answer can change an argument
    loss, dh, dw = answer.head_loss(h, w, y, rows)
    expect_true(type(loss) is float, "the loss is not a Python float", hint="Use `.item()`.")
    expect_close(torch.tensor(loss), torch.tensor(right), name="the loss", hint=hint, **NEAR)
    expect_close(dh, right_h, name="dh", hint=hint, **NEAR)
    expect_close(dw, right_w, name="dw", hint=hint, **NEAR)
    expect_true(not (dh.requires_grad or dw.requires_grad), "a gradient has a graph", hint=ALONE)


@check(
    "loss and gradients are those of all rows at once",
    holds=[
        "which returns the loss",
        "and its gradients with respect",
        "The loss is a Python float",
    ],
)
def whole(answer, rng, device):
    compare(answer, *problem(rng, device, 12), rng.choice([3, 4]), WHOLE)


@check("the last piece may be smaller", holds="rows: int, may be larger than N")
def uneven(answer, rng, device):
    n = rng.choice([13, 17])
    h, w, y = problem(rng, device, n)
    for rows in (5, n + 3):
        compare(answer, h, w, y, rows, UNEVEN)


@check(
    "targets of -100 do not count",
    holds=["the mean over all targets that are not -100", "At least one target counts"],
    both_sides=True,
)
def ignored(answer, rng, device):
    h, w, y = problem(rng, device, 16, ignored=0.4)
    y[8:12] = -100  # a piece without any target
    compare(answer, h, w, y, 4, IGNORED)
    y[1:] = -100
    compare(answer, h, w, y, 4, IGNORED)


@check(
    "no tensor has more rows of scores than it may",
    holds="At most `rows` rows of scores are in one tensor.",
    both_sides=True,
)
def small(answer, rng, device):
    h, w, y = problem(rng, device, 20)
    for rows in (4, 9):
        with Scores(w) as seen:
            answer.head_loss(h, w, y, rows)
        message = f"with rows = {rows}, a tensor had {seen.largest} rows of scores"
        expect_true(seen.largest <= rows, message, hint=PIECES)


@check(
    "the scores of a piece are gone before long",
    holds="The scores of finished pieces do not pile up in memory.",
)
def piled(answer, rng, device):
    h, w, y = problem(rng, device, 48)
    with Scores(w) as seen:
        answer.head_loss(h, w, y, 2)
    message = f"with rows = 2, {seen.most} rows of scores were in memory at once"
    expect_true(seen.most <= 32, message, hint=PILED)


@check(
    "dtypes and layouts",
    holds=[
        "The gradients have the shape and dtype of `h` and `weight`",
        "nothing in between has a smaller dtype",
    ],
)
def dtypes(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        h, w, y = problem(rng, device, 9, dtype)
        y[rng.sample(range(1, 9), 2)] = -100  # 7 are left: 1 / 7 is rounded in float32
        h, w = h.T.contiguous().T, w.repeat(1, 2)[:, : w.shape[1]]
        _, dh, dw = answer.head_loss(h, w, y, 4)
        expect_dtype(dh, dtype, name="dh")
        expect_dtype(dw, dtype, name="dw")
        compare(answer, h, w, y, 4, WHOLE)
    tight = {"rtol": 1e-9, "atol": 1e-11}
    expect_close(dw, wanted(h, w, y)[2], name="dw in float64", hint=WIDE, **tight)


@check(
    "the arguments and their .grad are left alone",
    holds="The arguments and their `.grad` stay as they are",
    both_sides=True,
)
def clean(answer, rng, device):
    h, w, y = problem(rng, device, 9, ignored=0.3)
    y[1] = -100
    with expect_unchanged(h, w, y):
        answer.head_loss(h, w, y, 4)
    still = not h.requires_grad and not w.requires_grad
    expect_true(still, "an argument requires a gradient now", hint="detach() gives a new tensor.")
    for held in (None, torch.ones_like(w)):
        leaf = h.clone().requires_grad_()
        table = torch.nn.Parameter(w.clone())
        table.grad = held
        hidden = leaf * 2  # h comes out of a model
        with advising(RuntimeError, saying="through the graph a second time", hint=GRAPH):
            compare(answer, hidden, table, y, 4, ALONE)
        expect_true(table.grad is held, "weight.grad is another one now", hint=ALONE)
        expect_true(leaf.grad is None, "a gradient went on into the model of h", hint=ALONE)
        if held is not None:
            kept = torch.ones_like(w)
            expect_close(held, kept, name="weight.grad after the call", hint=ALONE)
        hidden.sum().backward()  # its graph is still there
        expect_equal(leaf.grad.unique().tolist(), [2.0], name="the gradient through h")


def pieces(h, weight, targets, rows, of="all", mean=False, last=False, keep=False):
    """The answer, with one mistake at a time."""
    counts = (targets != -100).sum()
    counts = len(targets) if of == "rows" else counts
    w = weight.detach().requires_grad_()
    dh, dw, total, held = torch.zeros_like(h), torch.zeros_like(weight), 0.0, []
    for i in range(0, len(h), rows):
        part, y = h[i : i + rows].detach().requires_grad_(), targets[i : i + rows]
        scores = part @ w.T
        if mean:
            loss = F.cross_entropy(scores, y) * (y != -100).sum() / counts
        else:
            n = counts if of != "pieces" else (y != -100).sum() * -(-len(h) // rows)
            loss = F.cross_entropy(scores, y, reduction="sum") / n
        a, b = torch.autograd.grad(loss, (part, w))
        dh[i : i + rows] = a
        dw = b if last else dw + b
        total += loss.item()
        if keep:
            held.append(scores.detach())
    return total, dh, dw


@mutant("mean of the pieces' means", caught_by=uneven)
def head_loss(*a):
    return pieces(*a, of="pieces")


@mutant("divides by all rows", caught_by=ignored)
def head_loss(*a):
    return pieces(*a, of="rows")


@mutant("a mean times its count: a piece without targets is NaN", caught_by=ignored)
def head_loss(*a):
    return pieces(*a, mean=True)


@mutant("gradient of the weight from the last piece alone", caught_by=whole)
def head_loss(*a):
    return pieces(*a, last=True)


@mutant("returns the sum", caught_by=whole)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h, weight, targets, rows)
    n = (targets != -100).sum().item()
    return loss * n, dh * n, dw * n


@mutant("returns the loss as a tensor", caught_by=whole)
def head_loss(*a):
    loss, dh, dw = pieces(*a)
    return torch.tensor(loss), dh, dw


@mutant("all scores at once", caught_by=small)
def head_loss(h, weight, targets, rows):
    h, w = h.detach().requires_grad_(), weight.detach().requires_grad_()
    loss = F.cross_entropy(h @ w.T, targets)
    return loss.item(), *torch.autograd.grad(loss, (h, w))


@mutant("pieces for the loss, all scores for the gradient", caught_by=small)
def head_loss(h, weight, targets, rows):
    loss = pieces(h, weight, targets, rows)[0]
    p = (h.detach() @ weight.detach().T).softmax(1)
    on = targets >= 0
    p[torch.arange(len(h), device=h.device)[on], targets[on]] -= 1
    p *= on[:, None] / on.sum()
    return loss, p @ weight.detach(), p.T @ h.detach()


@mutant("pieces, but one backward at the end", caught_by=piled)
def head_loss(h, weight, targets, rows):
    h, w = h.detach().requires_grad_(), weight.detach().requires_grad_()
    n = (targets != -100).sum()
    both = zip(h.split(rows), targets.split(rows))
    loss = sum(F.cross_entropy(p @ w.T, t, reduction="sum") for p, t in both) / n
    return loss.item(), *torch.autograd.grad(loss, (h, w))


@mutant("keeps the scores in a list", caught_by=piled)
def head_loss(*a):
    return pieces(*a, keep=True)


@mutant("float32 inside", caught_by=dtypes)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h.float(), weight.float(), targets, rows)
    return loss, dh.to(h), dw.to(h)


@mutant("returns float32", caught_by=dtypes)
def head_loss(*a):
    loss, dh, dw = pieces(*a)
    return loss, dh.float(), dw.float()


@mutant("collects in the .grad of the weight", caught_by=clean)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h, weight, targets, rows)
    weight.grad = dw
    return loss, dh, dw


@mutant("adds to the .grad of the weight", caught_by=clean)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h, weight, targets, rows)
    if weight.grad is not None:
        weight.grad += dw
    return loss, dh, dw


@mutant("makes the argument require a gradient", caught_by=clean)
def head_loss(h, weight, targets, rows):
    weight.requires_grad_()
    return pieces(h, weight, targets, rows)


@mutant("puts a token in the place of -100", caught_by=clean)
def head_loss(h, weight, targets, rows):
    result = pieces(h, weight, targets, rows)
    targets[targets == -100] = 0
    return result


@mutant("goes back from h itself", caught_by=clean)
def head_loss(h, weight, targets, rows):
    if not h.requires_grad:
        return pieces(h, weight, targets, rows)
    n = (targets != -100).sum()
    dw, total = torch.zeros_like(weight), 0.0
    h.retain_grad()
    for p, t in zip(h.split(rows), targets.split(rows)):
        w = weight.detach().requires_grad_()
        loss = F.cross_entropy(p @ w.T, t, reduction="sum") / n
        loss.backward()
        dw += w.grad
        total += loss.item()
    return total, h.grad, dw


@mutant("leaves out the last piece where it is smaller", caught_by=uneven)
def head_loss(h, weight, targets, rows):
    n = max(len(h) // rows, 1) * rows
    loss, dh, dw = pieces(h[:n], weight, targets[:n], rows)
    return loss, torch.cat([dh, torch.zeros_like(h[n:])]), dw


@mutant("divides whole numbers, in float32", caught_by=dtypes)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h, weight, targets, rows)
    n = (targets != -100).sum()
    return loss, dh * n * (1 / n), dw * n * (1 / n)


@mutant("goes back into the model of h", caught_by=clean)
def head_loss(h, weight, targets, rows):
    loss, dh, dw = pieces(h, weight, targets, rows)
    if h.requires_grad:
        h.backward(dh)
    return loss, dh, dw


@accepted("softmax minus one, by hand")
def head_loss(h, weight, targets, rows):
    with torch.no_grad():
        n = (targets != -100).sum().item()
        total, dh, dw = 0.0, [], torch.zeros_like(weight)
        for p, t in zip(h.split(rows), targets.split(rows)):
            counts = t != -100
            logp = (p @ weight.T).log_softmax(1)
            at = t.clamp(min=0)[:, None]
            total -= (logp.gather(1, at)[:, 0] * counts).sum().item() / n
            d = logp.exp()
            d.scatter_add_(1, at, -torch.ones_like(at, dtype=d.dtype))
            d *= counts[:, None]
            d /= n
            dh.append(d @ weight)
            dw += d.T @ p
        return total, torch.cat(dh), dw


@accepted("checkpoint for each piece")
def head_loss(h, weight, targets, rows):
    h, w = h.detach().requires_grad_(), weight.detach().requires_grad_()
    n = (targets != -100).sum()

    def part(p, w, t):
        return F.cross_entropy(F.linear(p, w), t, reduction="sum")

    both = zip(h.split(rows), targets.split(rows))
    loss = sum(checkpoint(part, p, w, t, use_reentrant=False) for p, t in both) / n
    return loss.item(), *torch.autograd.grad(loss, (h, w))


@accepted("leaves out the rows that do not count")
def head_loss(h, weight, targets, rows):
    counting = (targets != -100).nonzero()[:, 0]
    w = weight.detach().clone().requires_grad_()
    dh, total = torch.zeros_like(h, requires_grad=False), 0.0
    for at in counting.split(rows):
        p = h.detach()[at].requires_grad_()
        loss = F.cross_entropy(F.linear(p, w), targets[at], reduction="sum")
        loss.backward()
        dh[at] = p.grad
        total += loss.item()
    return total / len(counting), dh / len(counting), w.grad / len(counting)


@accepted("one row at a time")
def head_loss(h, weight, targets, rows):
    h, weight = h.detach(), weight.detach()
    n = int((targets != -100).sum())
    dh, dw, total = torch.zeros_like(h), torch.zeros_like(weight), 0.0
    for i, t in enumerate(targets.tolist()):
        if t != -100:
            logp = (weight @ h[i]).log_softmax(0)
            total -= logp[t].item() / n
            d = logp.exp()
            d[t] -= 1
            dh[i] = d @ weight / n
            dw += torch.outer(d, h[i]) / n
    return total, dh, dw


@accepted("backward on leaves of its own")
def head_loss(h, weight, targets, rows):
    h, w = h.detach().requires_grad_(), weight.detach().requires_grad_()
    n = torch.count_nonzero(targets + 100)
    losses = []
    for p, t in zip(h.split(rows), targets.split(rows)):
        if (t == -100).all():
            continue
        loss = F.nll_loss((p @ w.mT).log_softmax(-1), t, reduction="sum") / n
        loss.backward()
        losses.append(loss.item())
    return sum(losses), h.grad, w.grad


@hinted(1, reaches=small)
def head_loss(h, weight, targets, rows):
    h = h.detach().requires_grad_()
    w = weight.detach().requires_grad_()
    n = (targets != -100).sum()
    loss = 0.0
    for part, t in zip(h.split(rows), targets.split(rows)):
        loss = loss + F.cross_entropy(part @ w.T, t, reduction="sum") / n
    loss.backward()
    return loss.item(), h.grad, w.grad
