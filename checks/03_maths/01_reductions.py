"""Judges lessons/03_maths/01_reductions.md."""

import warnings

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_unchanged,
    hinted,
    mutant,
)

shows = ["memory/broadcasting"]

background(
    "One feature counts dollars",
    "A model sees little but the dollars",
    "Write standardize once for all uses.",
)

EPS = 1e-5
KEEP = (
    "One mean per row has the shape (rows,), and broadcasting lays it along the columns. "
    "On a square table nothing complains. Keep the dimension."
)
SAMPLE = (
    "`std` divides by N - 1 unless `correction` says otherwise. With few samples the difference "
    "is large."
)
IN_PLACE = "`-=`, `/=` and functions that end in _ write into x itself."
SEVERAL = (
    "All dimensions in `dim` are reduced together, into one mean and one deviation. The rest "
    "of the shape says how many of them there are."
)


def wanted(x, dim, eps=EPS):
    """Mean and deviation from their definitions, in float64."""
    x = x.double()
    centred = x - x.mean(dim, keepdim=True)
    return centred / (centred.square().mean(dim, keepdim=True).sqrt() + eps)


def compare(
    got, x, dim, hint="", eps=EPS, dtype=torch.float32, name="the result", tolerance=1e-4, **hints
):
    expect_dtype(got, dtype, name=name, hint=hints.get("dtype_hint", ""))
    right = wanted(x, dim, eps)
    if tuple(got.shape) == tuple(x.shape) and by_the_sample(got, x, dim, eps):
        hint = SAMPLE
    expect_close(
        got, right, dtype=dtype, rtol=tolerance, atol=tolerance, name=name, hint=hint, **hints
    )


def by_the_sample(got, x, dim, eps):
    """The values are those that a deviation with N - 1 gives, which no other hint speaks of."""
    centred = x.double() - x.double().mean(dim, keepdim=True)
    other = centred / (centred.std(dim, keepdim=True) + eps)
    return bool(torch.isclose(got.double(), other, rtol=1e-3, atol=1e-3).all())


def table(rng, device, rows, columns):
    """Columns of different means and deviations."""
    scale = torch.arange(1, columns + 1, device=device)
    return torch.randn(rows, columns, device=device) * scale - 3 * scale + rng.random()


def spread(device, *shape):
    """No two values lie close together: a tiny deviation would magnify rounding."""
    count = torch.Size(shape).numel()
    return ((torch.randperm(count) - count / 2) / 4).reshape(shape).to(device)


@check(
    "each column of a table gets mean 0 and deviation 1",
    holds=["0 for the features of a table", "Mean 0 and population deviation 1 along dim."],
    side="the features of a table",
)
def columns(answer, rng, device):
    x = table(rng, device, rng.randrange(20, 40), rng.randrange(2, 6))
    with expect_unchanged(x, hint=IN_PLACE):
        got = answer.standardize(x, 0)
    compare(
        got,
        x,
        0,
        hint="Along dim 0 there is one mean and one deviation for each column, made from "
        "that column alone.",
    )


@check("the deviation divides by N", holds="The deviation is the population's, which divides by N.")
def population(answer, rng, device):
    x = spread(device, rng.randrange(2, 5), 3)
    compare(
        answer.standardize(x, 0),
        x,
        0,
        hint="The deviation is the root of the mean of the squares: their sum divided by N.",
    )


@check("one sample gives zeros", holds="A batch of one sample is allowed.")
def one_sample(answer, rng, device):
    x = torch.randn(1, rng.randrange(2, 6), device=device)
    nan = "N - 1 is 0 for one sample, and 0/0 is nan. The population's deviation is 0."
    hint = "One sample is its own mean: nothing is left of it."
    compare(answer.standardize(x, 0), x, 0, hint=hint, nan_hint=nan)
    compare(answer.standardize(x[0, :1], -1), x[0, :1], -1, hint=hint, nan_hint=nan)


@check("a constant column gives zeros", holds="A feature may be constant")
def constant(answer, rng, device):
    x = table(rng, device, 8, 4)
    x[:, rng.randrange(4)] = float(rng.randrange(-9, 10))
    compare(
        answer.standardize(x, 0),
        x,
        0,
        nan_hint="The deviation of a constant column is 0, and 0/0 is nan. That is what eps "
        "is for.",
    )


@check("the rows of a square table are no exception", holds="any shape")
def square(answer, rng, device):
    n = rng.randrange(3, 8)
    x = spread(device, n, n)
    compare(answer.standardize(x, 1), x, 1, hint=KEEP)
    compare(answer.standardize(x, 0), x, 0, hint=KEEP)


@check(
    "dim may be negative",
    holds=[
        "-1 for the entries of each vector",
        "an int or a tuple of ints, negative ones allowed",
    ],
    side="the entries of each vector",
)
def negative(answer, rng, device):
    a, b, c = rng.sample(range(2, 8), 3)
    x = spread(device, c, b, a).permute(2, 1, 0)
    for dim in (-1, -2, -3):
        compare(
            answer.standardize(x, dim),
            x,
            dim,
            name=f"standardize(x, {dim})",
            hint="The caller chooses the dimension. `-1` is the last, whatever the rank.",
        )


@check(
    "dim may name several dimensions",
    holds=[
        "(0, 2, 3) for the channels of images",
        "an int or a tuple of ints, negative ones allowed",
    ],
    side="the channels of images",
)
def several(answer, rng, device):
    n, c, h, w = rng.sample(range(2, 8), 4)
    x = spread(device, n, c, h, w)
    for dim in ((0, 2, 3), (-2, -1), (1,), (0, 1, 2, 3)):
        got = answer.standardize(x, dim)
        compare(got, x, dim, name=f"standardize(x, {dim})", hint=SEVERAL)


@check(
    "eps is added to the deviation",
    holds=[
        "eps, added to the deviation, keeps the division finite",
        "added to the standard deviation",
    ],
)
def eps_added(answer, rng, device):
    x = torch.randn(9, 3, device=device)
    eps = rng.uniform(0.3, 0.9)
    compare(
        answer.standardize(x, 0, eps),
        x,
        0,
        eps=eps,
        hint="Divide by std + eps, with the caller's eps: not by sqrt(var + eps), and not by the "
        "larger of the two.",
    )


@check("eps is 1e-5 unless the caller says otherwise", holds="1e-5 if left out")
def default_eps(answer, rng, device):
    x = torch.randn(9, 3, device=device) * 1e-5
    compare(
        answer.standardize(x, 0),
        x,
        0,
        hint="These columns deviate by about 1e-5, as much as eps. They shrink to about half.",
    )


@check(
    "integers are standardized in float32",
    holds=[
        "Images arrive as integers, and integers have no mean",
        "floating point or integers",
        "float32 if x is of integers",
    ],
    side="integers",
)
def integers(answer, rng, device):
    for dtype in (torch.uint8, torch.int64):
        x = torch.randint(0, 256, (7, 3), device=device).to(dtype)
        compare(
            answer.standardize(x, 0),
            x,
            0,
            name=f"the result for {dtype}",
            dtype_hint="Integers have no room for a result between -3 and 3: float32 has.",
            hint="Convert x before anything is subtracted: a mean that is cut to an integer is "
            "another mean, and uint8 has no negative numbers.",
        )


@check(
    "floating point keeps its dtype and precision",
    holds=["the shape, dtype and precision of x", "floating point or integers"],
    side="floating point",
)
def same_dtype(answer, rng, device):
    hint = "Only integers become float32. Somewhere a fixed dtype got in."
    x = torch.randn(6, 4, dtype=torch.float64, device=device)
    got = answer.standardize(x, 0)
    compare(got, x, 0, dtype=torch.float64, tolerance=1e-9, dtype_hint=hint)
    for dtype in (torch.float16, torch.bfloat16):
        x = torch.randn(6, 4, device=device).to(dtype)
        expect_dtype(answer.standardize(x, 0), dtype, hint=hint)


@check("a mean far from 0 costs no digits", holds="the shape, dtype and precision of x")
def far_from_zero(answer, rng, device):
    x = spread(device, 12, 3) + rng.choice((-1, 1)) * rng.randrange(9000, 20000)
    compare(
        answer.standardize(x, 0),
        x,
        0,
        tolerance=1e-2,
        hint="The mean of the squares less the square of the mean: both are large here, and what "
        "is left of them is rounding. Subtract the mean first, then square.",
    )


@check(
    "a NaN spoils the numbers of its own mean alone",
    holds="A NaN makes NaN of the numbers that share its mean, and of no others.",
)
def gaps(answer, rng, device):
    x = table(rng, device, 6, 4)
    x[rng.randrange(6), rng.randrange(4)] = torch.nan
    for dim in (0, 1):
        name = f"standardize(x, {dim}), with a NaN in x,"
        hint = "A mean with a NaN in it is NaN. To step over it would hide a gap in the data."
        compare(answer.standardize(x, dim), x, dim, name=name, hint=hint, nan_hint=hint)
    one = x[:1].clone()
    one[0, 2] = torch.nan
    hint = "One sample is no exception: NaN less NaN is NaN, not 0."
    name = "standardize(x, 0), of one sample with a NaN,"
    compare(answer.standardize(one, 0), one, 0, name=name, hint=hint, nan_hint=hint)


@check("a dimension may be empty", holds="sizes may be 0")
def empty(answer, rng, device):
    n = rng.randrange(2, 6)
    hint = "Nothing to standardize is standardized: the result is empty, and keeps its shape."
    for shape, dim in (((0, n), 1), ((n, 0), 0), ((2, 0, n), (0, 2)), ((0, n), 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a deviation of no number warns
            with advising(RuntimeError, hint=hint), advising(IndexError, hint=hint):
                got = answer.standardize(torch.ones(shape, device=device), dim)
        expect_shape(got, shape, name=f"standardize(x of {shape}, {dim})", hint=hint)


@check("the input is left as it was", holds="No value of x changes.")
def unchanged(answer, rng, device):
    whole = torch.randint(0, 256, (4, 3), dtype=torch.uint8, device=device)
    for x in (table(rng, device, 5, 3), table(rng, device, 5, 6)[1:, ::2].T, whole):
        with expect_unchanged(x, hint=IN_PLACE):
            answer.standardize(x, 0)


@mutant("takes the statistics of the whole tensor", caught_by=columns)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return (x - x.mean()) / (x.std(correction=0) + eps)


@mutant("centres and leaves the scale", caught_by=columns)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return x - x.mean(dim, keepdim=True)


@mutant("divides by the variance", caught_by=columns)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    var, mean = torch.var_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / (var + eps)


@mutant("uses the sample's deviation", caught_by=population)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return (x - x.mean(dim, keepdim=True)) / (x.std(dim, keepdim=True) + eps)


@mutant("hands one sample back as it is", caught_by=one_sample)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    if x.shape[0] == 1:
        return x
    return (x - x.mean(dim, keepdim=True)) / (x.std(dim, correction=0, keepdim=True) + eps)


@mutant("adds no eps", caught_by=constant)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return (x - x.mean(dim, keepdim=True)) / x.std(dim, correction=0, keepdim=True)


@mutant(
    "keeps no dimension",
    caught_by=square,
    misconception="memory/broadcasting",
    like="lines the shapes up on the left",
)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return (x - x.mean(dim)) / (x.std(dim, correction=0) + eps)


@mutant("always works down the columns", caught_by=negative)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    return (x - x.mean(0)) / (x.std(0, correction=0) + eps)


@mutant("takes one dimension after the other", caught_by=several)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    for d in dim if isinstance(dim, tuple) else (dim,):
        x = (x - x.mean(d, keepdim=True)) / (x.std(d, correction=0, keepdim=True) + eps)
    return x


@mutant("puts eps under the root", caught_by=eps_added)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    var, mean = torch.var_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / (var + eps).sqrt()


@mutant("takes the larger of deviation and eps", caught_by=eps_added)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / std.clamp(min=eps)


@mutant("ignores the caller's eps", caught_by=eps_added)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / (std + 1e-5)


@mutant("puts the dimension back in front", caught_by=square)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0)
    return (x - mean[None]) / (std[None] + eps)


@mutant("has another eps of its own", caught_by=default_eps)
def standardize(x, dim, eps=1e-8):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / (std + eps)


@mutant("cuts the mean to the dtype of x", caught_by=integers)
def standardize(x, dim, eps=EPS):
    std, mean = torch.std_mean(
        x if x.is_floating_point() else x.float(), dim, correction=0, keepdim=True
    )
    return (x - mean.to(x.dtype)) / (std + eps)


@mutant("turns everything into float32", caught_by=same_dtype)
def standardize(x, dim, eps=EPS):
    std, mean = torch.std_mean(x.float(), dim, correction=0, keepdim=True)
    return (x.float() - mean) / (std + eps)


@mutant("works in float32 and converts back", caught_by=same_dtype)
def standardize(x, dim, eps=EPS):
    std, mean = torch.std_mean(x.float(), dim, correction=0, keepdim=True)
    out = (x.float() - mean) / (std + eps)
    return out.to(x.dtype) if x.is_floating_point() else out


@mutant("takes the mean of the squares less the square of the mean", caught_by=far_from_zero)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    mean = x.mean(dim, keepdim=True)
    var = (x * x).mean(dim, keepdim=True) - mean * mean
    return (x - mean) / (var.clamp(min=0).sqrt() + eps)


@mutant("gives zeros for one sample, whatever it is", caught_by=gaps)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    if isinstance(dim, int) and x.shape[dim] == 1:
        return torch.zeros_like(x)
    return (x - x.mean(dim, keepdim=True)) / (x.std(dim, correction=0, keepdim=True) + eps)


@mutant("subtracts in place", caught_by=columns)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    x -= mean
    return x / (std + eps)


@mutant("steps over NaN", caught_by=gaps)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    mean = x.nanmean(dim, keepdim=True)
    std = (x - mean).square().nanmean(dim, keepdim=True).sqrt()
    return (x - mean) / (std + eps)


@mutant("writes zeros for NaN", caught_by=gaps)
def standardize(x, dim, eps=EPS):
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    return ((x - mean) / (std + eps)).nan_to_num()


@mutant("drops what is empty", caught_by=empty)
def standardize(x, dim, eps=EPS):
    if x.numel() == 0:
        return x.new_zeros(0)
    x = x if x.is_floating_point() else x.float()
    std, mean = torch.std_mean(x, dim, correction=0, keepdim=True)
    return (x - mean) / (std + eps)


@hinted(1, reaches=population)
def standardize(x, dim, eps=EPS):
    return (x - x.mean(dim, keepdim=True)) / x.std(dim, correction=0, keepdim=True)


@accepted("asks for both statistics at once")
def standardize(x, dim, eps=EPS):
    if x.dtype not in (torch.float64, torch.float32, torch.float16, torch.bfloat16):
        x = x.to(torch.float32)
    std, mean = torch.std_mean(x, dim, unbiased=False, keepdim=True)
    return (x - mean) / (std + eps)


@accepted("writes the deviation out")
def standardize(x, dim, eps=EPS):
    x = x * 1.0
    centred = x - x.mean(dim=dim, keepdim=True)
    return centred / ((centred**2).mean(dim=dim, keepdim=True).sqrt() + eps)


@accepted("takes the root of the variance and changes a copy")
def standardize(x, dim, eps=EPS):
    out = x.clone() if x.is_floating_point() else x.float()
    var = out.var(dim, correction=0, keepdim=True)
    out -= out.mean(dim, keepdim=True)
    out /= torch.sqrt(var) + eps
    return out
