"""Judges lessons/03_maths/06_float_numerics.md."""

import weakref

import torch
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "Three things are enough to keep from batch to batch",
    "Merge each batch into these three.",
    "The squares of two groups add up.",
    "float64 would hide the question",
)

READS = {
    "item", "tolist", "numpy", "__float__", "__int__", "__bool__", "__index__", "__array__",
    "__dlpack__", "__format__", "__repr__",
}  # fmt: skip
"""Methods that hand the numbers of a tensor to Python."""


class Makes(TorchDispatchMode):
    """Notes whether float64 tensors are made, and tensors on another device."""

    def __init__(self, device):
        super().__init__()
        self.device = device
        self.double = self.away = False

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        for t in out if isinstance(out, (list, tuple)) else [out]:
            if isinstance(t, torch.Tensor):
                self.double |= t.dtype in (torch.float64, torch.complex128)
                self.away |= t.device.type != self.device.type and t.ndim > 0
        return out


class Reads(TorchFunctionMode):
    """Notes the methods that read numbers back."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        name = getattr(func, "__name__", "")
        if name in READS:
            self.names.append(name)
        return func(*args, **(kwargs or {}))


def stream(device, sizes, features, offset=0.0):
    """Batches of the given sizes, every second one not contiguous."""
    batches = []
    for number, n in enumerate(sizes):
        x = torch.randn(n, features) if number % 2 else torch.randn(features, n).mT
        batches.append(x.to(device) + offset)
    return batches


IN_PLACE = "`-=` on a batch writes into the caller's data."
DEVIATION = "This is the deviation, the root of the variance."
SAMPLE = "This is the squares divided by N - 1."
NEW_GAP = (
    "This variance measures the gap to the new mean, which is a step nearer. Take the gap to the "
    "old one, before the mean moves."
)
MEAN = "The mean is the sum over the samples of all batches, divided by how many there are."
ROWS = "Samples are rows: dimension 0 disappears, and D numbers are left."


def compare(answer, batches, **more):
    expect_stats(answer.running_stats(batches), batches, **more)


def expect_stats(
    got, batches, tolerance=1e-4, mean_tolerance=1e-5, what="", mean_hint=MEAN, hint="", **hints
):
    """mean_hint: for a wrong mean; hint: for a wrong variance."""
    everything = torch.cat(batches).double()
    samples = len(everything)
    if not isinstance(got, (tuple, list)) or len(got) != 2:
        fail("running_stats returns two tensors, the mean and the variance")
    for name, value, right, rtol, said in (
        ("the mean", got[0], everything.mean(0), mean_tolerance, mean_hint),
        ("the variance", got[1], everything.var(0, correction=0), tolerance, hint),
    ):
        if isinstance(value, torch.Tensor) and value.shape == right.shape and right.any():
            others = [(right.sqrt(), DEVIATION), (with_new_gap(batches), NEW_GAP)]
            if samples > 1:
                others.append((right * samples / (samples - 1), SAMPLE))
            for other, meaning in others if name == "the variance" else ():
                if torch.allclose(value.double(), other, rtol=1e-4):
                    said = meaning
        expect_close(
            value, right, dtype=torch.float32, rtol=rtol, atol=1e-5, name=name + what, hint=said,
            shape_hint=ROWS, **hints,
        )  # fmt: skip


def with_new_gap(batches):
    """The variance, in float64, with the gaps measured to the means after each merge."""
    count, mean, squares = 0, 0.0, 0.0
    for x in (x.double() for x in batches if len(x)):
        n, own = len(x), x.mean(0)
        mean = mean + (own - mean) * (n / (count + n))
        squares = squares + ((x - own) ** 2).sum(0) + (own - mean) ** 2 * count * n / (count + n)
        count += n
    return squares / count


@check(
    "one batch: the variance divides by N",
    holds=[
        "You need the mean and the variance of each feature of a data set",
        "Mean and population variance of each feature",
        "The variance divides by the number of samples N, not by N - 1",
    ],
    both_sides=True,
)
def one_batch(answer, rng, device):
    batches = stream(device, [rng.randrange(2, 6)], rng.randrange(2, 5))
    with expect_unchanged(*batches, hint=IN_PLACE):
        got = answer.running_stats(batches)
    hint = "The sum of (x - mean)^2 over the samples, divided by their number."
    expect_stats(got, batches, hint=hint)


@check(
    "batches with different means: the distance between them counts",
    holds="If their means differ, that distance counts as well.",
)
def drifting(answer, rng, device):
    batches = stream(device, [6, 6, 6, 6], 3)
    batches = [x + 4 * i for i, x in enumerate(batches)]
    compare(
        answer,
        batches,
        hint="Inside each batch the values lie close together. The batches lie apart, and that "
        "is variance too: gap^2, for as many samples as the merge is about.",
    )


@check("a large batch counts for more than a small one", holds="in batches of unequal sizes")
def uneven(answer, rng, device):
    sizes = [rng.randrange(20, 40), rng.randrange(2, 4), rng.randrange(8, 14)]
    rng.shuffle(sizes)
    batches = [x + 3 * i for i, x in enumerate(stream(device, sizes, 3))]
    compare(
        answer,
        batches,
        mean_hint="The new mean lies between the two means, nearer to the one of more samples: at "
        "n / (count + n) of the way.",
    )


@check(
    "an offset does not eat the variance",
    holds=[
        "Features far from 0 keep their digits: temperatures in kelvin, timestamps, pixel counts."
    ],
)
def offset(answer, rng, device):
    for far, tolerance in ((100.0, 1e-3), (1e4, 1e-2), (1e5, 0.1)):
        compare(
            answer,
            stream(device, [rng.randrange(9, 20) for _ in range(5)], 3, far),
            hint="The squares of such values are so large that the variance is less than their "
            "rounding. Subtract a mean first and square what is left.",
            tolerance=tolerance,
            what=f" around {far:.0f}",
        )


@check(
    "batches of one sample work",
    holds="n differs, and may be 1 or 0, but not all are 0",
    side="1",
)
def singles(answer, rng, device):
    batches = stream(device, [1] * rng.randrange(5, 12), 3, 50.0)
    hint = "One sample is its own mean, and nothing is left to square. All variance is in the gaps."
    compare(answer, batches, hint=hint, tolerance=1e-3)
    compare(answer, batches[:1], hint=hint)


@check(
    "empty batches change nothing",
    holds="n differs, and may be 1 or 0, but not all are 0",
    side="0",
)
def empty(answer, rng, device):
    hint = "The mean of no samples is 0/0, nan, and nan stays in every sum."
    for sizes in ([4, 0, 3], [0, 5, 0, 0, 2], [3, 0]):
        compare(answer, stream(device, sizes, 2), nan_hint=hint)


@check(
    "a first batch near 0 does not eat the variance of what lies far away",
    holds="So do features whose first batch lies near 0 and whose other batches lie far away.",
)
def far_from_the_first(answer, rng, device):
    setups = ((rng.choice((1e5, -1e5)), 20, 300, 2e-4), (1e4, 200, 64, 2e-3))
    for far, number, n, tolerance in setups:
        batches = [*stream(device, [1], 3), *stream(device, [n] * number, 3, far)]
        compare(
            answer,
            batches,
            hint="A shift by the first sample, or the first batch, helps only where the others lie "
            "near it. Each batch needs its own mean before anything is squared.",
            tolerance=tolerance,
            mean_tolerance=1e-3,
            what=f" of one sample near 0 and {number} batches at {far:.0f}",
        )


@check("each feature has its own statistics", holds="returns: mean (D,) and variance (D,)")
def features(answer, rng, device):
    n = rng.randrange(3, 7)
    scale = torch.arange(1.0, n + 1, device=device)
    batches = [x * scale - 2 * scale for x in stream(device, [n, n], n)]
    compare(answer, batches, hint=ROWS, mean_hint=ROWS)
    compare(answer, stream(device, [4, 3], 1))


@check(
    "the variance of a constant is 0, and no variance is below 0",
    holds="and is 0 or more",
    both_sides=True,
)
def constant(answer, rng, device):
    value = rng.uniform(0.1, 20)
    batches = [torch.full((n, 2), value, device=device) for n in (7, 3, 1, 12)]
    hint = "Where all values are equal, what is squared must be 0 up to rounding."
    compare(answer, batches, hint=hint)
    for far in (1.0, 1e4, 1e6):
        got = answer.running_stats([x * far for x in batches])
        expect_true(bool((got[1] >= 0).all()), "a variance is below 0", hint=hint)


@check(
    "the batches are walked once, and none is kept",
    holds=[
        "It comes in batches of unequal sizes, once.",
        "Write running_stats.",
        "to be walked once",
        "No batch is kept once its successor is asked for.",
    ],
)
def streaming(answer, rng, device):
    copies = stream(device, [rng.randrange(2, 6) for _ in range(6)], 3)
    alive = weakref.WeakSet()
    most = walks = 0

    class Batches:
        """Can be walked once: a second walk is noted, and finds nothing."""

        def __iter__(self):
            nonlocal most, walks
            walks += 1
            for copy in copies if walks == 1 else ():
                most = max(most, len(alive))
                x = copy.clone()
                alive.add(x)
                yield x
                del x

    got = answer.running_stats(Batches())
    hint = "The batches can be walked once. A second loop over them finds nothing."
    expect_true(walks <= 1, f"the batches were walked {walks} times", hint=hint)
    expect_true(
        most <= 1,
        f"{most} batches were still in memory when the next was asked for",
        hint="The data set does not fit into memory. Three things are enough to remember: "
        "count, mean and squares. A row of a batch is a view, and keeps the whole batch.",
    )
    expect_stats(got, copies)


@check(
    "all arithmetic is in float32, on the device",
    holds=["Stay in float32 tensors on the batches' device.", "Read no number back from a tensor"],
)
def in_float32(answer, rng, device):
    batches = stream(device, [4, 3, 5], 3)
    with Makes(device) as makes:
        answer.running_stats(batches)
    expect_true(
        not makes.double,
        "a float64 tensor is made on the way",
        hint="With the right formula, float32 is enough.",
    )
    expect_true(
        not makes.away,
        f"a tensor is made on another device than {device}",
        hint="A copy to the CPU waits for the GPU. The arithmetic can stay where the batches are.",
    )
    with Reads() as reads:
        answer.running_stats(batches)
    hint = "Python's and NumPy's floats are float64, and reading one waits for the GPU. Only the "
    hint += "counts need to be Python numbers, and `len` gives those."
    read = "".join(reads.names[:1])
    expect_true(not read, f"numbers are read back from a tensor, by `{read}`", hint=hint)


@check("the batches are left as they were", holds="The batches keep their values.")
def unchanged(answer, rng, device):
    batches = stream(device, [4, 1, 5], 3)
    with expect_unchanged(*batches, hint=IN_PLACE):
        answer.running_stats(batches)


def merged(batches, square_gap=None, step=None):
    """The right answer, with the two formulas of the merge to be replaced."""
    square_gap = square_gap or (lambda gap, count, n: gap**2 * (count * n / (count + n)))
    step = step or (lambda count, n: n / (count + n))
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            gap = x.mean(0) - mean
            squares = squares + ((x - x.mean(0)) ** 2).sum(0) + square_gap(gap, count, n)
            mean = mean + gap * step(count, n)
            count += n
    return mean, squares / count


@mutant("takes the mean of the squares less the square of the mean", caught_by=offset)
def running_stats(batches):
    count, total, squares = 0, 0.0, 0.0
    for x in batches:
        count, total, squares = count + len(x), total + x.sum(0), squares + (x * x).sum(0)
    return total / count, squares / count - (total / count) ** 2


@mutant("hides a negative variance", caught_by=offset)
def running_stats(batches):
    count, total, squares = 0, 0.0, 0.0
    for x in batches:
        count, total, squares = count + len(x), total + x.sum(0), squares + (x * x).sum(0)
    return total / count, (squares / count - (total / count) ** 2).clamp(min=0)


@mutant("averages the variances of the batches", caught_by=drifting)
def running_stats(batches):
    return merged(batches, square_gap=lambda gap, count, n: 0 * gap)


@mutant("adds the squared gap once", caught_by=drifting)
def running_stats(batches):
    return merged(batches, square_gap=lambda gap, count, n: gap**2 * (count > 0))


@mutant("counts the gap for the new samples only", caught_by=drifting)
def running_stats(batches):
    return merged(batches, square_gap=lambda gap, count, n: gap**2 * n * (count > 0))


@mutant("measures the gap to the new mean", caught_by=drifting)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            own = x.mean(0)
            mean = mean + (own - mean) * (n / (count + n))
            gap = own - mean
            squares = squares + ((x - own) ** 2).sum(0) + gap**2 * (count * n / (count + n))
            count += n
    return mean, squares / count


@mutant("takes the mean of the batch means", caught_by=uneven)
def running_stats(batches):
    means, count, squares = [], 0, 0.0
    for x in batches:
        if len(x):
            means.append(x.mean(0))
            squares = squares + ((x - x.mean(0)) ** 2).sum(0)
            count += len(x)
    mean = sum(means) / len(means)
    return mean, squares / count


@mutant("goes half of the way", caught_by=uneven)
def running_stats(batches):
    return merged(batches, step=lambda count, n: 0.5 if count else 1.0)


@mutant("divides by N - 1", caught_by=one_batch)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            gap = x.mean(0) - mean
            squares = squares + ((x - x.mean(0)) ** 2).sum(0) + gap**2 * (count * n / (count + n))
            mean = mean + gap * (n / (count + n))
            count += n
    return mean, squares / (count - 1)


@mutant("returns the deviation", caught_by=one_batch)
def running_stats(batches):
    mean, variance = merged(batches)
    return mean, variance.sqrt()


@mutant("asks each batch for its sample variance", caught_by=singles)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            gap = x.mean(0) - mean
            squares = squares + x.var(0) * (n - 1) + gap**2 * (count * n / (count + n))
            mean = mean + gap * (n / (count + n))
            count += n
    return mean, squares / count


@mutant("Welford with the same deviation twice", caught_by=singles)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        for row in x:
            count += 1
            gap = row - mean
            mean = mean + gap / count
            squares = squares + gap * gap * (count > 1)
    return mean, squares / count


@mutant("takes the mean of empty batches", caught_by=empty)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n, own = len(x), x.mean(0)
        gap = own - mean
        total = max(count + n, 1)
        squares = squares + ((x - own) ** 2).sum(0) + gap**2 * (count * n / total)
        mean = mean + gap * (n / total)
        count += n
    return mean, squares / count


@mutant("one mean for all features", caught_by=features)
def running_stats(batches):
    return merged(x.mean(1, keepdim=True).expand_as(x) for x in batches)


@mutant("reduces the features", caught_by=features)
def running_stats(batches):
    return merged(x.mT for x in batches)


@mutant("works in float64", caught_by=in_float32)
def running_stats(batches):
    mean, variance = merged(x.double() for x in batches)
    return mean.float(), variance.float()


@mutant("adds up Python floats", caught_by=in_float32)
def running_stats(batches):
    count, total, squares, device = 0, [], [], None
    for x in batches:
        device, count = x.device, count + len(x)
        total.append([column.sum().item() for column in x.mT])
        squares.append([(column * column).sum().item() for column in x.mT])
    mean = [sum(column) / count for column in zip(*total, strict=True)]
    square = [sum(column) / count for column in zip(*squares, strict=True)]
    variance = [s - m * m for s, m in zip(square, mean, strict=True)]
    return torch.tensor(mean, device=device), torch.tensor(variance, device=device)


@mutant("adds up in NumPy", caught_by=in_float32)
def running_stats(batches):
    count, total, squares = 0, 0.0, 0.0
    like = None
    for x in batches:
        like, y = x, x.cpu().numpy().astype("float64")
        count, total, squares = count + len(x), total + y.sum(0), squares + (y * y).sum(0)
    mean = total / count
    variance = (squares / count - mean * mean).clip(0)
    made = [
        torch.tensor(list(v), dtype=torch.float32, device=like.device) for v in (mean, variance)
    ]
    return tuple(made)


@mutant("adds up lists", caught_by=in_float32)
def running_stats(batches):
    count, total, squares, like = 0, 0, 0, None
    for x in batches:
        like = x
        for row in x.tolist():
            total = [a + v for a, v in zip(total or [0] * len(row), row, strict=True)]
            squares = [a + v * v for a, v in zip(squares or [0] * len(row), row, strict=True)]
            count += 1
    mean = [v / count for v in total]
    variance = [max(0.0, a / count - m * m) for a, m in zip(squares, mean, strict=True)]
    return torch.tensor(mean, device=like.device), torch.tensor(variance, device=like.device)


@mutant("squares the means of the batches", caught_by=offset)
def running_stats(batches):
    count, total, inside, between = 0, 0.0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            own = x.mean(0)
            inside = inside + ((x - own) ** 2).sum(0)
            between = between + n * own**2
            count, total = count + n, total + n * own
    mean = total / count
    return mean, (inside + between) / count - mean**2


@mutant("shifts everything by the mean of the first batch", caught_by=far_from_the_first)
def running_stats(batches):
    count, shift, total, squares = 0, None, 0.0, 0.0
    for x in batches:
        if len(x):
            shift = x.mean(0) if shift is None else shift
            moved = x - shift
            count, total = count + len(x), total + moved.sum(0)
            squares = squares + moved.square().sum(0)
    mean = total / count
    return shift + mean, (squares / count - mean**2).clamp(min=0)


@mutant("puts the data set together first", caught_by=streaming)
def running_stats(batches):
    x = torch.cat(list(batches))
    return x.mean(0), x.var(0, correction=0)


@mutant("keeps a row of the first batch", caught_by=streaming)
def running_stats(batches):
    first, count, total, squares = None, 0, 0.0, 0.0
    for x in batches:
        if len(x):
            first = x[0] if first is None else first
            count, total = count + len(x), total + (x - first).sum(0)
            squares = squares + (x - first).square().sum(0)
    return first + total / count, squares / count - (total / count) ** 2


@mutant("walks twice, once for the mean", caught_by=streaming)
def running_stats(batches):
    count, total, squares = 0, 0.0, 0.0
    for x in batches:
        count, total = count + len(x), total + x.sum(0)
    mean = total / count
    for x in batches:
        squares = squares + ((x - mean) ** 2).sum(0)
    return mean, squares / count + torch.zeros_like(mean)


@mutant("adds something small, to be safe", caught_by=constant)
def running_stats(batches):
    mean, variance = merged(batches)
    return mean, variance + 1e-3


@mutant("centres each batch in place", caught_by=one_batch)
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        n = len(x)
        if n:
            own = x.mean(0)
            gap = own - mean
            x -= own
            squares = squares + (x**2).sum(0) + gap**2 * (count * n / (count + n))
            mean = mean + gap * (n / (count + n))
            count += n
    return mean, squares / count


@hinted(1, reaches=one_batch)
def running_stats(batches):
    count, total, squares = 0, 0.0, 0.0
    for x in batches:
        if len(x) == 0:
            continue
        count += len(x)
        total = total + x.sum(0)
        squares = squares + ((x - x.mean(0)) ** 2).sum(0)
    return total / count, squares / count


@accepted("moves the squares to the new mean at each batch")
def running_stats(batches):
    count, mean, squares = 0, None, None
    for x in batches:
        if x.shape[0] == 0:
            continue
        own = x.mean(dim=0)
        if mean is None:
            count, mean, squares = x.shape[0], own, (x - own).square().sum(0)
            continue
        new = mean + (own - mean) * (x.shape[0] / (count + x.shape[0]))
        squares = squares + count * (mean - new).square() + (x - new).square().sum(0)
        count, mean = count + x.shape[0], new
    return mean, squares / count


@accepted("keeps three tensors, the count too")
def running_stats(batches):
    state = None
    for x in batches:
        n = torch.tensor(x.size(0), device=x.device)
        if x.size(0):
            own = x.mean(0)
            mine = torch.einsum("nd,nd->d", x - own, x - own)
            if state is None:
                state = n, own, mine
            else:
                count, mean, squares = state
                both = count + n
                gap = own - mean
                mine = squares + mine + gap * gap * (count * n / both)
                state = both, mean + gap * (n / both), mine
    return state[1], state[2] / state[0]


@accepted("Welford's method, one sample at a time")
def running_stats(batches):
    count, mean, squares = 0, 0.0, 0.0
    for x in batches:
        for row in x:
            count += 1
            gap = row - mean
            mean = mean + gap / count
            squares = squares + gap * (row - mean)
    return mean, squares / count


@mutant("shifts everything by the first sample", caught_by=far_from_the_first)
def running_stats(batches):
    count, first = 0, None
    for x in batches:
        if first is None and len(x):
            first = x[0].clone()
            total, squares = torch.zeros_like(first), torch.zeros_like(first)
        if len(x):
            moved = x - first
            count += len(x)
            total += moved.sum(0)
            squares += moved.square().sum(0)
    mean = total / count
    return first + mean, squares / count - mean**2


@accepted("merges variances with var_mean")
def running_stats(batches):
    parts = ((len(x), *torch.var_mean(x, 0, correction=0)) for x in batches if len(x))
    count, variance, mean = next(parts)
    for n, var, own in parts:
        share = n / (count + n)
        variance = variance + (var - variance) * share + (own - mean) ** 2 * share * (1 - share)
        mean = torch.lerp(mean, own, share)
        count += n
    return mean, variance


equivalent(
    "count, mean, squares = 0, 0.0, 0.0",
    "count, mean, squares = 0, 1.0, 0.0",
    because="The first batch replaces the mean whatever it was: its share of the whole is 1.",
)
