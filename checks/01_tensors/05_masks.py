"""Judges lessons/01_tensors/05_masks.md."""

import torch

from tensortutor.checking import accepted, check, expect_close, expect_unchanged, mutant

NAN, INF = float("nan"), float("inf")


def values(rng, shape, device, dtype=torch.float32):
    """Random x of shape (B, T, D), half of the time not contiguous."""
    b, t, d = shape
    if rng.random() < 0.5:
        return torch.randn(b, d, t).transpose(1, 2).to(device, dtype)
    return torch.randn(b, t, d).to(device, dtype)


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
    got = answer.masked_mean(x, keep)
    expect_close(got, wanted(x, keep), dtype=x.dtype, hint=hint, **more)


@check("every row divides by its own count")
def own_count(answer, rng, device):
    b, t = rng.randint(2, 5), rng.randint(3, 7)
    keep = mask(rng, b, t, device)
    keep[1] = True
    x = values(rng, (b, t, rng.randint(1, 4)), device)
    x[~keep] = 0
    compare(
        answer,
        x,
        keep,
        hint="Padding is zeros here, so the sums are easy. Divide each row by the number "
        "of its own kept places: not by T, and not by one count for all rows.",
    )


@check("numbers in the padding do not count")
def numbers_in_padding(answer, rng, device):
    b, t = rng.randint(1, 4), rng.randint(2, 7)
    keep = mask(rng, b, t, device)
    x = values(rng, (b, t, rng.randint(1, 4)), device)
    x[~keep] = 1000.0
    compare(
        answer,
        x,
        keep,
        hint="Padding held 1000 everywhere. It belongs neither in the sum nor in the count.",
    )


@check("NaN and infinity in the padding stay out")
def nan_in_padding(answer, rng, device):
    b, t = rng.randint(2, 5), rng.randint(2, 6)
    keep = mask(rng, b, t, device)
    x = values(rng, (b, t, rng.randint(1, 4)), device)
    for bad in (NAN, INF, -INF):
        x[~keep] = bad
        compare(
            answer,
            x,
            keep,
            nan_hint="NaN times 0 is NaN, and so is infinity times 0. Do not compute with "
            "padding: choose something else in its place.",
        )


@check("a row with nothing kept gives zeros")
def empty_row(answer, rng, device):
    b, t, d = rng.randint(2, 4), rng.randint(2, 5), rng.randint(1, 4)
    hint = "The count of such a row is 0, and 0/0 is NaN."
    keep = mask(rng, b, t, device)
    keep[rng.randrange(b)] = False
    x = values(rng, (b, t, d), device)
    x[~keep] = 0
    compare(answer, x, keep, nan_hint=hint)
    nothing = torch.zeros(b, 0, dtype=torch.bool, device=device)
    empty = torch.randn(b, 0, d, device=device)
    compare(answer, empty, nothing, nan_hint=hint + " Here T itself is 0.")


@check("a NaN that is kept still shows")
def kept_nan(answer, rng, device):
    b, t, d = rng.randint(2, 4), rng.randint(3, 6), rng.randint(2, 4)
    keep = mask(rng, b, t, device)
    x = values(rng, (b, t, d), device)
    x[~keep] = 0
    row = rng.randrange(b)
    place = int(keep[row].nonzero()[0])
    x[row, place, rng.randrange(d)] = NAN
    compare(
        answer,
        x,
        keep,
        hint="One kept value was NaN. Sweeping out every NaN hides broken data: let the "
        "mask decide, not the value.",
    )


@check("the mask runs along T, also when all sizes are equal")
def equal_sizes(answer, rng, device):
    n = rng.randint(3, 5)
    keep = mask(rng, n, n, device)
    keep[1] = True
    x = values(rng, (n, n, n), device)
    compare(
        answer,
        x,
        keep,
        hint="B, T and D are equal here, so a mask along the wrong dimension fits without "
        "an error. A mask of shape (B, T, 1) stretches over D; (B, 1, T) masks channels.",
    )


@check("the result has the dtype of x")
def same_dtype(answer, rng, device):
    keep = mask(rng, 3, 5, device)
    hint = "A mask turned into float32 decides the dtype of everything that it touches."
    compare(answer, values(rng, (3, 5, 2), device, torch.float64), keep, dtype_hint=hint)
    small = values(rng, (3, 5, 2), device, torch.bfloat16)
    compare(answer, small, keep, dtype_hint=hint, rtol=0.05, atol=0.05)


@check("x and keep are left as they were")
def leaves_input(answer, rng, device):
    keep = mask(rng, 3, 4, device)
    x = values(rng, (3, 4, 2), device)
    x[~keep] = NAN
    with expect_unchanged(x, keep, hint="`x[mask] = v` writes into the caller's tensor."):
        answer.masked_mean(x, keep)


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


@mutant("lays the mask along D", caught_by=equal_sizes)
def masked_mean(x, keep):
    return torch.where(keep[:, None], x, 0).sum(1) / keep.sum(1)[:, None].clamp(min=1)


@mutant("weighs with a float32 mask", caught_by=same_dtype)
def masked_mean(x, keep):
    weight = keep[..., None].float()
    clean = x.masked_fill(~keep[..., None], 0)
    return (clean * weight).sum(1) / weight.sum(1).clamp(min=1)


@mutant("cleans the caller's tensor", caught_by=leaves_input)
def masked_mean(x, keep):
    x[~keep] = 0
    return x.sum(1) / keep.sum(1)[:, None].clamp(min=1)


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
