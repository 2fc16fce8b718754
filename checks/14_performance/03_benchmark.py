"""Judges lessons/14_performance/03_benchmark.md."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "A search for nearest neighbours compares each query",
    "Do it with few calls and little memory.",
)

VALUES = (
    "Entry (i, j) is the sum over D of (a[i] - b[j])²: a·a + b·b - 2 a·b. Who moves the points "
    "moves a and b by the same vector, and to where they are near 0."
)
CALLS = "Every row or coordinate costs calls of its own. One product of matrices does all pairs."
MEMORY = "a[:, None] - b has one element for each pair and coordinate. Expand the square instead."
FAR = (
    "Far from 0 the squares are large, and their last digits are lost before they are subtracted. "
    "Distances do not change when all points are moved by the same vector."
)
NEAR = (
    "Two of the points are equal: their distance is 0, up to rounding. A lower bound is 0 as well."
)
NEGATIVE = (
    "Rounding leaves small numbers of either sign where 0 should be. Give them a lower bound."
)


class Count(TorchDispatchMode):
    """Counts the operations that run, and the elements of the largest result."""

    calls = largest = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **(kwargs or {}))
        self.calls += 1
        if isinstance(result, torch.Tensor):
            self.largest = max(self.largest, result.numel())
        return result


def points(rng, device, rows=None, columns=None):
    rows, columns = rows or rng.randint(3, 40), columns or rng.randint(2, 64)
    return torch.randn(rows, columns).to(device)


def compare(answer, a, b, hint=VALUES, atol=1e-3):
    right = (a.double()[:, None] - b.double()).square().sum(2).float()
    got = answer.pairwise_sq(a, b)
    expect_close(
        got,
        right,
        rtol=1e-4,
        atol=atol,
        hint=hint,
        shape_hint="Rows: a. Columns: b.",
        dtype_hint="The result is float32 again, whatever you compute in.",
    )
    return got


@check(
    "every pair has its squared distance",
    holds="the squared distance of each row of a to each row of b",
    both_sides=True,
)
def values(answer, rng, device):
    d = rng.randint(2, 16)
    n, m = rng.sample(range(3, 30), 2)
    compare(answer, points(rng, device, n, d), points(rng, device, m, d))
    compare(answer, points(rng, device, m, d), points(rng, device, m, d))
    a = points(rng, device, n, d)
    compare(answer, a, torch.cat([a[:2], points(rng, device, m, d)]), NEAR)


@check(
    "the operations are PyTorch's",
    holds="The operations are PyTorch's.",
    counts_calls=True,
)
def tensors(answer, rng, device):
    compare(answer, points(rng, device, 5, 4), points(rng, device, 6, 4))
    left = answer.calls["numpy"] + answer.calls["__array__"] + answer.calls["tolist"]
    hint = "What NumPy makes is a result on the way as well, and NumPy reads no GPU. Use tensors."
    expect_true(not left, "the numbers leave PyTorch", hint=hint)


@check(
    "one row, one column, any layout",
    holds="N, M and D are 1 or more.",
    both_sides=True,
)
def small(answer, rng, device):
    for n, m, d in ((1, 4, 3), (4, 1, 3), (5, 2, 1), (1, 1, 1)):
        compare(answer, points(rng, device, n, d), points(rng, device, m, d))
    compare(answer, points(rng, device, 5, 7).T, points(rng, device, 6, 10)[:, ::2])


def counted(answer, rng, device, n, m, d):
    a, b = points(rng, device, n, d), points(rng, device, m, d)
    with Count() as count:
        answer.pairwise_sq(a, b)
    return count, max(a.numel(), b.numel(), n * m)


@check(
    "few operations",
    holds="At most 50 of them run, as counted above, however many rows and coordinates there are.",
    both_sides=True,
)
def few(answer, rng, device):
    n, m = rng.sample(range(200, 300), 2)
    for rows, columns, d in ((n, 3, 5), (3, m, 5), (n, m, 5), (8, 9, 64)):
        count, _ = counted(answer, rng, device, rows, columns, d)
        text = f"{rows} and {columns} rows of {d} coordinates take {count.calls} operations"
        expect_true(count.calls <= 50, text, hint=CALLS)


@check(
    "no large result on the way",
    holds="No result on the way has more than three times the elements of a, of b or of the",
    both_sides=True,
)
def little(answer, rng, device):
    n, m = rng.sample(range(50, 80), 2)
    for rows, columns, d in ((n, m, 30), (2, m, 60), (n, 2, 60)):
        count, most = counted(answer, rng, device, rows, columns, d)
        text = f"{rows} and {columns} points in {d} dimensions: a result has {count.largest:,} "
        text += f"elements, and {3 * most:,} are allowed"
        expect_true(count.largest <= 3 * most, text, hint=MEMORY)


@check("no entry is below 0", holds="No entry is below 0.")
def positive(answer, rng, device):
    a = points(rng, device, rng.randint(100, 150), 64)
    got = compare(answer, a, a.clone())
    lowest = got.min().item()
    expect_true(lowest >= 0, f"the smallest entry is {lowest:.1e}", hint=NEGATIVE)


@check(
    "points far from 0 keep their digits",
    holds=[
        "Points may lie around 1000 in every coordinate, a few units apart, and errors stay below",
        "D is at most 64.",
    ],
    both_sides=True,
)
def far(answer, rng, device):
    for d in (rng.randint(2, 30), 64):
        shift = 1000 * torch.tensor([rng.choice((-1.0, 1.0)) for _ in range(d)], device=device)
        a, b = points(rng, device, 30, d) + shift, points(rng, device, 40, d) + shift
        compare(answer, a, b, FAR, atol=0.01)


@check("the inputs keep their values", holds="The inputs keep their values.")
def untouched(answer, rng, device):
    a, b = points(rng, device, 7, 5), points(rng, device, 6, 5)
    with expect_unchanged(a, b):
        answer.pairwise_sq(a, b)


@mutant("goes row by row", caught_by=few)
def pairwise_sq(a, b):
    return torch.stack([(b - row).square().sum(1) for row in a])


@mutant("goes through the points of b", caught_by=few)
def pairwise_sq(a, b):
    return torch.stack([(a - row).square().sum(1) for row in b], dim=1)


@mutant("goes through the coordinates", caught_by=few)
def pairwise_sq(a, b):
    out = torch.zeros(len(a), len(b), device=a.device)
    for k in range(a.shape[1]):
        out += (a[:, k, None] - b[:, k]).square()
    return out


@mutant("leaves it to NumPy", caught_by=tensors)
def pairwise_sq(a, b):
    x, y = a.cpu().numpy(), b.cpu().numpy()
    return torch.from_numpy(((x[:, None] - y) ** 2).sum(2)).to(a.device)


@mutant("broadcasts block by block", caught_by=little)
def pairwise_sq(a, b):
    return torch.cat([(x[:, None] - b).square().sum(2) for x in a.split(100)])


@mutant("bounds the entries by more than 0", caught_by=values)
def pairwise_sq(a, b):
    centre = b.mean(0)
    a, b = a - centre, b - centre
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)).clamp(min=0.01)


@mutant("returns float64", caught_by=values)
def pairwise_sq(a, b):
    a, b = a.double(), b.double()
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)).clamp(min=0)


@mutant("broadcasts to all pairs and coordinates", caught_by=little)
def pairwise_sq(a, b):
    return (a[:, None] - b).square().sum(2)


@mutant("has no lower bound", caught_by=positive)
def pairwise_sq(a, b):
    centre = b.mean(0)
    a, b = a - centre, b - centre
    return (a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)


@mutant("does not move the points", caught_by=far)
def pairwise_sq(a, b):
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)).clamp(min=0)


@mutant("moves a and b by vectors of their own", caught_by=values)
def pairwise_sq(a, b):
    a, b = a - a.mean(0), b - b.mean(0)
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)).clamp(min=0)


@mutant("leaves cdist its product, far from 0", caught_by=far)
def pairwise_sq(a, b):
    return torch.cdist(a, b, compute_mode="use_mm_for_euclid_dist").square()


@mutant("forgets the 2", caught_by=values)
def pairwise_sq(a, b):
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - a @ b.T).clamp(min=0)


@mutant("swaps rows and columns", caught_by=values)
def pairwise_sq(a, b):
    return ((b * b).sum(1)[:, None] + (a * a).sum(1) - 2 * (b @ a.T)).clamp(min=0)


@mutant("takes the root", caught_by=values)
def pairwise_sq(a, b):
    return torch.cdist(a, b)


@mutant("takes absolute values of what is no rounding error", caught_by=values)
def pairwise_sq(a, b):
    return ((a * a).sum(1)[:, None] - (b * b).sum(1) - 2 * (a @ b.T)).abs()


@mutant("moves the inputs in place", caught_by=untouched)
def pairwise_sq(a, b):
    centre = b.mean(0)
    a -= centre
    b -= centre
    return ((a * a).sum(1)[:, None] + (b * b).sum(1) - 2 * (a @ b.T)).clamp(min=0)


@hinted(1, reaches=little)
def pairwise_sq(a, b):
    return (a * a).sum(1)[:, None] + (b * b).sum(1)[None] - 2 * (a @ b.T)


@accepted("works in float64")
def pairwise_sq(a, b):
    a, b = a.double(), b.double()
    squares = a.square().sum(1, keepdim=True) + b.square().sum(1)
    return torch.relu(squares - 2 * torch.einsum("nd,md->nm", a, b)).float()


@accepted("forbids cdist its product")
def pairwise_sq(a, b):
    return torch.cdist(a, b, compute_mode="donot_use_mm_for_euclid_dist") ** 2


@accepted("moves by the first point")
def pairwise_sq(a, b):
    a, b = a - b[0], b - b[0]
    out = torch.addmm((a**2).sum(-1).unsqueeze(1), a, b.mT, alpha=-2) + (b**2).sum(-1)
    return out.maximum(torch.zeros((), device=out.device))


@accepted("writes sums as einsum")
def pairwise_sq(a, b):
    centre = b.mean(dim=0, keepdim=True)
    a, b = a.sub(centre), b.sub(centre)
    squares = torch.einsum("nd,nd->n", a, a).unsqueeze(1) + torch.einsum("md,md->m", b, b)
    return (squares - 2 * torch.einsum("nd,md->nm", a, b)).clamp(min=0)


@accepted("puts the squares into one product")
def pairwise_sq(a, b):
    centre = a.mean(0)
    a, b = a - centre, b - centre
    left = torch.cat([a, a.square().sum(1, keepdim=True), torch.ones_like(a[:, :1])], 1)
    right = torch.cat([-2 * b, torch.ones_like(b[:, :1]), b.square().sum(1, keepdim=True)], 1)
    return (left @ right.T).clamp(min=0)


@accepted("takes the sign away instead of a bound")
def pairwise_sq(a, b):
    a, b = a - a[:1], b - a[:1]
    return (a.square().sum(1).view(-1, 1) + b.square().sum(1).view(1, -1) - 2 * a.mm(b.mT)).abs()
