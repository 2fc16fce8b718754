"""Judges lessons/01_tensors/05_masks.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Sentences differ in length",
    "Write `masked_mean`.",
    "Two names may help.",
    "`mask.any()` tells",
    "`t.clamp(min=a)` raises",
)

NAN, INF = float("nan"), float("inf")
SHAPE = "(B, D) is wanted, also for one sentence and for vectors of one entry. Drop the dimension "
SHAPE += "that you added or summed over, and no other."
HIDES = "A kept value was {}. Sweeping such values out hides broken data: let the mask decide, "
HIDES += "not the value."


def values(shape, device, dtype=torch.float32):
    """Random x of shape (B, T, D)."""
    return torch.randn(shape).to(device, dtype)


def mask(rng, b, t, device):
    """Each row keeps at least one place and drops at least one; the first row keeps just one."""
    keep = torch.zeros(b, t, dtype=torch.bool)
    for row in range(b):
        count = 1 if row == 0 else rng.randint(1, t - 1)
        keep[row, rng.sample(range(t), count)] = True
    return keep.to(device)


def wanted(x, keep):
    """The mean of each row's kept places, one row at a time, in float64."""
    rows = [x[i, keep[i]].double() for i in range(len(x))]
    return torch.stack([row.mean(0) if len(row) else row.sum(0) for row in rows])


def compare(answer, x, keep, hint="", **more):
    mean = wanted(x, keep)  # before the call: it might change what it is given
    got = answer.masked_mean(x, keep)
    expect_close(got, mean, dtype=x.dtype, hint=hint, shape_hint=SHAPE, **more)


@check(
    "every row divides by its own count",
    holds="one vector per sentence by averaging over the tokens",
)
def own_count(answer, rng, device):
    b, t = rng.randint(2, 5), rng.randint(3, 7)
    keep = mask(rng, b, t, device)
    keep[1] = True
    for size in (b, 1):
        x = values((size, t, rng.randint(1, 4)), device)
        x[~keep[:size]] = 0
        compare(
            answer,
            x,
            keep[:size],
            hint="Padding is zeros here, so the sums are easy. Divide each row by the number "
            "of its own kept places: not by T, and not by one count for all rows.",
        )


@check("numbers in the padding do not count", holds="may hold anything")
def numbers_in_padding(answer, rng, device):
    b, t = rng.randint(1, 4), rng.randint(2, 7)
    keep = mask(rng, b, t, device)
    x = values((b, t, rng.randint(1, 4)), device)
    x[~keep] = 1000.0
    compare(
        answer,
        x,
        keep,
        hint="Padding held 1000 everywhere. It belongs neither in the sum nor in the count.",
    )


@check(
    "NaN and infinity in the padding stay out",
    holds="Where `keep` is False, it may hold NaN or infinity.",
    both_sides=True,
)
def nan_in_padding(answer, rng, device):
    b, t = rng.randint(2, 5), rng.randint(2, 6)
    keep = mask(rng, b, t, device)
    x = values((b, t, rng.randint(1, 4)), device)
    for bad in (NAN, INF, -INF):
        x[~keep] = bad
        compare(
            answer,
            x,
            keep,
            nan_hint="NaN times 0 is NaN, and so is infinity times 0. Do not compute with "
            "padding: choose something else in its place.",
        )


@check(
    "padding may stand anywhere in a row",
    holds="at the beginning of a row or anywhere else",
    both_sides=True,
)
def anywhere(answer, rng, device):
    b, t, d = rng.randint(3, 5), rng.randint(4, 7), rng.randint(1, 4)
    x = values((b, t, d), device)
    for first in (0, 1, t - 2):
        keep = torch.zeros(b, t, dtype=torch.bool, device=device)
        keep[:, first : first + 2] = True
        keep[0] = ~keep[0]
        compare(
            answer,
            x,
            keep,
            hint="The places that count do not all stand at the beginning. Read the mask place "
            "by place, not as a length.",
        )


@check("the mask runs along T, also when all sizes are equal")
def equal_sizes(answer, rng, device):
    n = rng.randint(3, 5)
    keep = mask(rng, n, n, device)
    keep[1] = True
    x = values((n, n, n), device)
    compare(
        answer,
        x,
        keep,
        hint="B, T and D are equal here, so a mask along the wrong dimension fits without "
        "an error. A mask of shape (B, T, 1) stretches over D; (B, 1, T) masks channels.",
    )


@check("transposed arguments are as good as any", holds="x and keep may be transposed.")
def transposed(answer, rng, device):
    b, t, d = rng.randint(2, 4), rng.randint(3, 5), rng.randint(2, 4)
    x = torch.randn(d, t, b, device=device).permute(2, 1, 0)
    keep = torch.rand(t, b, device=device).T < 0.5
    keep[:, 0] = True
    hint = "A transposed tensor has its numbers in another order in memory. `view` cannot flatten "
    hint += "it, `reshape` can."
    with advising(RuntimeError, saying="view size is not compatible", hint=hint):
        compare(answer, x, keep)
        compare(answer, x, keep.contiguous())


@check("sizes of 1 stay", holds="returns: (B, D)")
def ones(answer, rng, device):
    for b, t, d in ((1, 3, 2), (3, 1, 2), (2, 3, 1), (1, 1, 1)):
        keep = torch.ones(b, t, dtype=torch.bool, device=device)
        keep[:, 0] = t == 1
        compare(
            answer,
            values((b, t, d), device),
            keep,
        )


def spoilt(rng, device, value):
    """(x, keep) with one kept entry of this value, and zeros in the padding."""
    b, t, d = rng.randint(2, 4), rng.randint(3, 6), rng.randint(2, 4)
    keep = mask(rng, b, t, device)
    keep[1, :2] = True
    x = values((b, t, d), device)
    x[~keep] = 0
    x[1, rng.randrange(2), rng.randrange(d)] = value
    return x, keep


@check(
    "a NaN that is kept still shows",
    holds="In a kept place NaN or infinity is real, and must show in the result",
    side="NaN",
)
def kept_nan(answer, rng, device):
    compare(answer, *spoilt(rng, device, NAN), hint=HIDES.format("NaN"))


@check(
    "an infinity that is kept still shows",
    holds="In a kept place NaN or infinity is real, and must show in the result",
    side="infinity",
)
def kept_infinity(answer, rng, device):
    for value in (INF, -INF):
        x, keep = spoilt(rng, device, value)
        x[~keep] = rng.choice([0.0, NAN])
        compare(
            answer,
            x,
            keep,
            hint=HIDES.format("infinite"),
            nan_hint="A kept value was infinite, so the mean is infinite, and NaN in the padding "
            "does not count.",
        )


@check(
    "the result has the dtype of x",
    holds=["any floating dtype that holds its sums", "dtype and precision of x"],
)
def same_dtype(answer, rng, device):
    keep = mask(rng, 3, 5, device)
    hint = "A mask turned into float32 decides the dtype of everything that it touches."
    digits = "float64 keeps about 16 digits, and a detour over float32 leaves 7 of them."
    double = values((3, 5, 2), device, torch.float64) / 3
    compare(answer, double, keep, dtype_hint=hint, hint=digits, rtol=1e-12, atol=1e-14)
    for dtype in (torch.float16, torch.bfloat16):
        small = values((3, 5, 2), device, dtype)
        compare(answer, small, keep, dtype_hint=hint, rtol=0.05, atol=0.05)


@check(
    "a row with nothing kept gives zeros",
    holds=["Of a sentence without a single token the mean is 0", "zeros where nothing is kept"],
)
def empty_row(answer, rng, device):
    b, t, d = rng.randint(2, 4), rng.randint(2, 5), rng.randint(1, 4)
    hint = "The count of such a row is 0, and 0/0 is NaN."
    keep = mask(rng, b, t, device)
    keep[rng.randrange(b)] = False
    x = values((b, t, d), device)
    for padding in (0.0, NAN):
        x[~keep] = padding
        others = "The row without tokens gives zeros, and the other rows give their means as ever."
        compare(answer, x, keep, nan_hint=hint, hint=others)
    keep[:] = False
    more = "Here it is so for all rows, and the dtype is that of x as ever."
    compare(answer, x.double(), keep, nan_hint=f"{hint} {more}", dtype_hint=more)


@check("a batch without any place gives zeros", holds="T may be 0")
def no_places(answer, rng, device):
    b, d = rng.randint(1, 4), rng.randint(1, 4)
    nothing = torch.zeros(b, 0, dtype=torch.bool, device=device)
    compare(
        answer,
        torch.randn(b, 0, d, device=device),
        nothing,
        nan_hint="T is 0 here, and so is each count: 0/0 is NaN.",
    )


@check(
    "x and keep are left as they were",
    holds="The caller needs both arguments afterwards: they keep their values.",
    both_sides=True,
)
def leaves_input(answer, rng, device):
    keep = mask(rng, 3, 4, device)
    keep[rng.randrange(3)] = False
    x = values((3, 4, 2), device)
    x[~keep] = NAN
    with expect_unchanged(x, keep, hint="`x[mask] = v` writes into the caller's tensor."):
        answer.masked_mean(x, keep)


@mutant("computes in float32 and converts", caught_by=same_dtype)
def masked_mean(x, keep):
    total = torch.where(keep[..., None], x, 0).float().sum(1)
    return (total / keep.sum(1)[:, None].clamp(min=1)).to(x.dtype)


@mutant("gives up on the batch where one row keeps nothing", caught_by=empty_row)
def masked_mean(x, keep):
    if not keep.any(1).all():
        return x.new_zeros(len(x), x.shape[2])
    return torch.where(keep[..., None], x, 0).sum(1) / keep.sum(1)[:, None]


@mutant("multiplies by the mask", caught_by=nan_in_padding)
def masked_mean(x, keep):
    return (x * keep[..., None]).sum(1) / keep.sum(1, keepdim=True).clamp(min=1)


@mutant("divides by T", caught_by=own_count)
def masked_mean(x, keep):
    return torch.where(keep[..., None], x, 0).mean(1)


@mutant("takes one mean over the whole batch", caught_by=own_count)
def masked_mean(x, keep):
    return x[keep].mean(0).expand(len(x), x.shape[2])


@mutant("counts right but sums the padding too", caught_by=numbers_in_padding)
def masked_mean(x, keep):
    return x.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("divides 0 by 0", caught_by=empty_row)
def masked_mean(x, keep):
    return torch.where(keep[..., None], x, 0).sum(1) / keep.sum(1)[:, None]


@mutant("replaces every NaN", caught_by=kept_nan)
def masked_mean(x, keep):
    clean = torch.where(x.isfinite() & keep[..., None], x, 0)
    return clean.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("lets nanmean find the padding", caught_by=kept_nan)
def masked_mean(x, keep):
    mean = x.masked_fill(~keep[..., None], NAN).nanmean(1)
    return torch.where(keep.any(1)[:, None], mean, 0)


@mutant("turns every NaN of the result into 0", caught_by=kept_nan)
def masked_mean(x, keep):
    mean = torch.where(keep[..., None], x, 0).sum(1) / keep.sum(1)[:, None]
    return mean.masked_fill(mean.isnan(), 0)


@mutant("leaves out infinite values, kept or not", caught_by=kept_infinity)
def masked_mean(x, keep):
    clean = torch.where(keep[..., None] & ~x.isinf(), x, 0)
    return clean.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("reads the mask as a length", caught_by=anywhere)
def masked_mean(x, keep):
    count = keep.sum(1)[:, None]
    first = torch.arange(x.shape[1], device=x.device) < count
    return torch.where(first[..., None], x, 0).sum(1) / count.clamp(min=1)


@mutant("tests x for finite values, and not the mask", caught_by=numbers_in_padding)
def masked_mean(x, keep):
    clean = torch.where(x.isfinite(), x, 0)
    return clean.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("flattens with view", caught_by=transposed)
def masked_mean(x, keep):
    b, t, d = x.shape
    flat = torch.where(keep.view(b * t, 1), x.reshape(b * t, d), 0)
    return flat.view(b, t, d).sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("squeezes the sum", caught_by=ones)
def masked_mean(x, keep):
    count = keep.sum(1, keepdim=True).clamp(min=1)
    return torch.where(keep[..., None], x, 0).sum(1).squeeze() / count


@mutant("makes zeros of its own where nothing is kept at all", caught_by=empty_row)
def masked_mean(x, keep):
    if not keep.any():
        return torch.zeros(x.shape[0], x.shape[2], device=x.device)
    return torch.where(keep[..., None], x, 0).sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("lays the mask along D", caught_by=equal_sizes)
def masked_mean(x, keep):
    return torch.where(keep[:, None], x, 0).sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("weighs with a float32 mask", caught_by=same_dtype)
def masked_mean(x, keep):
    weight = keep[..., None].float()
    clean = x.masked_fill(~keep[..., None], 0)
    return (clean * weight).sum(1) / weight.sum(1).clamp(min=1)


@mutant("takes a mean over T, and divides by the share that is kept", caught_by=no_places)
def masked_mean(x, keep):
    clean = torch.where(keep[..., None], x, 0)
    share = keep.sum(1)[:, None] / x.shape[1]
    return clean.mean(1) / share.masked_fill(share == 0, 1).to(x.dtype)


@mutant("keeps a place of every empty row", caught_by=leaves_input)
def masked_mean(x, keep):
    kept = torch.where(keep[..., None], x, 0)
    if x.shape[1]:
        keep[~keep.any(1), 0] = True
    return kept.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("cleans the caller's tensor", caught_by=leaves_input)
def masked_mean(x, keep):
    x[~keep] = 0
    return x.sum(1) / keep.sum(1)[:, None].clamp(min=1)


@hinted(1, reaches=same_dtype)
def masked_mean(x, keep):
    chosen = torch.where(keep[..., None], x, 0.0)
    return chosen.sum(1) / keep.sum(1)[..., None]


@accepted("goes row by row with x[mask]")
def masked_mean(x, keep):
    out = torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype, device=x.device)
    for i in range(len(x)):
        if keep[i].any():
            out[i] = x[i, keep[i]].mean(0)
    return out


@accepted("fills a copy, then repairs the empty rows")
def masked_mean(x, keep):
    mean = x.masked_fill(~keep.unsqueeze(2), 0).sum(1) / keep.sum(1, keepdim=True)
    return torch.where(keep.any(1)[:, None], mean, 0)


@accepted("writes through the mask into a clone")
def masked_mean(x, keep):
    x = x.clone()
    x[~keep] = 0
    count = torch.maximum(keep.sum(1), torch.ones_like(keep.sum(1)))
    return x.sum(1) / count.reshape(-1, 1)


@accepted("sums by hand in float64, and turns back")
def masked_mean(x, keep):
    total = torch.zeros(x.shape[0], x.shape[2], dtype=torch.float64, device=x.device)
    count = torch.zeros(x.shape[0], dtype=torch.float64, device=x.device)
    for place in range(x.shape[1]):
        here = keep[:, place]
        total[here] += x[here, place].double()
        count += here
    count[count == 0] = 1
    return (total / count[:, None]).to(x.dtype)


@accepted("adds the kept places up by the number of their row")
def masked_mean(x, keep):
    rows = keep.nonzero()[:, 0]
    total = torch.zeros(x.shape[0], x.shape[2], dtype=x.dtype, device=x.device)
    count = keep.sum(1)
    return total.index_add(0, rows, x[keep]) / torch.where(count > 0, count, 1)[:, None]
