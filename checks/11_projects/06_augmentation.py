"""Judges lessons/11_projects/06_augmentation.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Write `shift(x, limit, generator)`",
    "It moves images by whole",
    "Calls that may help",
    "`z.movedim(-1, 1)`",
)

equivalent(
    "rows = torch.arange(H, device=x.device) + limit - dy",
    "rows = torch.arange(H, device=x.device) + limit + dy",
    because="The numbers are as frequent with the other sign.",
)
equivalent(
    "cols = torch.arange(W, device=x.device) + limit - dx",
    "cols = torch.arange(W, device=x.device) + limit + dx",
    because="The numbers are as frequent with the other sign.",
)
equivalent(
    "dy, dx = torch.randint(-limit, limit + 1, (2, B, 1), generator=generator, device=x.device)",
    "dy, dx = torch.randint(-limit, limit + 1, (2, B, 1), generator=generator)",
    because="Only an input on a GPU tells them apart.",
)
equivalent(
    "rows = torch.arange(H, device=x.device) + limit - dy",
    "rows = torch.arange(H) + limit - dy",
    because="Only an input on a GPU tells them apart.",
)
equivalent(
    "cols = torch.arange(W, device=x.device) + limit - dx",
    "cols = torch.arange(W) + limit - dx",
    because="Only an input on a GPU tells them apart.",
)
equivalent(
    "b = torch.arange(B, device=x.device)",
    "b = torch.arange(B)",
    because="Only an input on a GPU tells them apart.",
)

DTYPES = (torch.float32, torch.float16, torch.float64, torch.uint8)


def generator(device, seed):
    return torch.Generator(device).manual_seed(seed)


def batch(rng, device, size, height=None, width=None, channels=None):
    """No pixel is 0 and none is like another of its image, so that a shift can be recognised."""
    c = channels or rng.randint(1, 3)
    h, w = height or rng.randint(4, 7), width or rng.randint(5, 9)
    order = torch.stack([torch.randperm(c * h * w) for _ in range(size)])
    x = (order.view(size, c, h, w) + 1).to(rng.choice(DTYPES))
    if rng.random() < 0.5:
        x = x.mT.contiguous().mT
    return x.to(device)


def moved(x, dy, dx):
    """(..., H, W), all alike, by slices."""
    h, w = x.shape[-2:]
    out = torch.zeros_like(x)
    out[..., max(dy, 0) : h + min(dy, 0), max(dx, 0) : w + min(dx, 0)] = x[
        ..., max(-dy, 0) : h - max(dy, 0), max(-dx, 0) : w - max(dx, 0)
    ]
    return out


def rolled(x, dy, dx):
    return x.roll((dy, dx), (2, 3))


def matches(x, out, limit, way=moved):
    """{(dy, dx): which images of `out` are those of `x`, moved so}."""
    numbers = range(-limit, limit + 1)
    return {(dy, dx): (way(x, dy, dx) == out).flatten(1).all(1) for dy in numbers for dx in numbers}


def of_all(found):
    return torch.stack(list(found.values())).any(0)


def shifted(answer, x, limit, seed):
    with expect_unchanged(x, hint="Write into a new tensor."):
        out = answer.shift(x, limit, generator(x.device, seed))
    expect_shape(out, x.shape, name="the batch", hint="The channels are dimension 1.")
    return out


@check(
    "each image is its original, moved, with zeros",
    holds=[
        "An image is moved down by a number of its own from -limit to limit, and to the right by "
        "another one.",
        "What leaves the image is gone, and 0 comes in.",
        "A negative number moves up",
    ],
    both_sides=True,
)
def whole_pixels(answer, rng, device):
    for limit in (1, 2):
        x = batch(rng, device, 24)
        out = shifted(answer, x, limit, rng.randrange(2**31))
        good = of_all(matches(x, out, limit))
        if good.all():
            continue
        back = of_all(matches(x, out, limit, rolled))[~good].any()
        hint = "roll brings it back. Read from a padded batch instead."
        expect_true(not back, "what left on one side came back on the other", hint=hint)
        far = of_all(matches(x, out, limit + 1))[~good].any()
        hint = "The numbers go from -limit to limit."
        expect_true(not far, f"an image moved by more than {limit}", hint=hint)
        each = [of_all(matches(x[:, [c]], out[:, [c]], limit)) for c in range(x.shape[1])]
        hint = "One pair of numbers for an image, whatever its channels."
        expect_true(
            not torch.stack(each).all(), "the channels of an image moved differently", hint=hint
        )
        message = "an image is not its original, moved by whole pixels, with 0 where nothing was"
        expect_true(False, message, hint="Pad with zeros: neither the edge nor another image.")


@check("all channels move together", holds="All channels of an image move together.")
def channels(answer, rng, device):
    x = batch(rng, device, 12, channels=3)
    out = shifted(answer, x, 1, rng.randrange(2**31))
    each = [torch.stack(list(matches(x[:, [c]], out[:, [c]], 1).values())) for c in range(3)]
    same = torch.equal(each[0], each[1]) and torch.equal(each[0], each[2])
    hint = "One pair of numbers for an image, whatever its channels."
    expect_true(same, "the channels of an image moved differently", hint=hint)


@check("each image has its own shift", holds="An image is moved down by a number of its own")
def its_own(answer, rng, device):
    x = batch(rng, device, 24, 5, 6)
    found = matches(x, shifted(answer, x, 1, rng.randrange(2**31)), 1)
    kinds = sum(bool(which.any()) for which in found.values())
    hint = "Draw as many numbers as there are images: (2, B) or (B, 2)."
    expect_true(kinds > 1, "the whole batch was moved alike", hint=hint)


@check(
    "every pair of numbers is as frequent",
    holds="Every pair of numbers is as frequent as any other.",
    both_sides=True,
)
def frequencies(answer, rng, device):
    x = batch(rng, device, 720, 4, 5, 1)
    found = matches(x, shifted(answer, x, 1, rng.randrange(2**31)), 1)
    for (dy, dx), which in found.items():
        n = int(which.sum())
        message = f"of 720 images {n} moved by ({dy}, {dx}), and 80 are expected"
        # 80 +- 8.4: six and a half standard deviations.
        hint = "randint leaves out its upper end, and down and right are two draws."
        expect_true(25 < n < 135, message, hint=hint)


@check(
    "shape, dtype and device are kept",
    holds="The result has the shape, dtype and device of `x`, also for a `limit` of 0.",
)
def kept(answer, rng, device):
    for limit, size in ((1, 3), (0, 2), (2, 1), (4, 5)):
        x = batch(rng, device, size, 4, 7)
        out = shifted(answer, x, limit, rng.randrange(2**31))
        expect_dtype(out, x.dtype, name="the batch")
        expect_true(out.device == x.device, "the batch changed its device")
        if not limit:
            expect_equal(out, x, name="a batch with limit 0")


@check(
    "the batch keeps its values",
    holds="The batch that came in keeps its values, also when the result is written to later",
)
def untouched(answer, rng, device):
    x = batch(rng, device, 8)
    with expect_unchanged(x, hint="Write into a new tensor."):
        out = answer.shift(x, 2, generator(x.device, rng.randrange(2**31)))
    with expect_unchanged(x, hint="The result shares memory with the batch."):
        out.zero_()
    out = answer.shift(x, 0, generator(x.device, rng.randrange(2**31)))
    hint = "With a limit of 0 too, the result is a new tensor. clone() copies."
    with expect_unchanged(x, hint=hint):
        out.zero_()


@check(
    "the seed decides, and nothing else",
    holds="Randomness comes from `generator` alone, which is on the device of `x`, and the same "
    "seed gives the same shifts.",
)
def seeded(answer, rng, device):
    x, seed = batch(rng, device, 16), rng.randrange(2**31)
    state = torch.get_rng_state()
    first = shifted(answer, x, 2, seed)
    hint = "torch.randint(..., generator=generator, device=x.device)"
    for _ in range(3):
        same = torch.equal(shifted(answer, x, 2, seed), first)
        expect_true(same, "the same seed gives other shifts", hint=hint)
    untouched = torch.equal(torch.get_rng_state(), state)
    expect_true(untouched, "the global generator was used", hint=hint)


@check(
    "each call draws anew",
    holds="The next call with the same generator draws anew.",
)
def anew(answer, rng, device):
    x = batch(rng, device, 16)
    g = generator(x.device, rng.randrange(2**31))
    first, second = answer.shift(x, 2, g), answer.shift(x, 2, g)
    hint = "Draw from the generator as it is: neither a seed nor a state is set."
    expect_true(not torch.equal(first, second), "two calls shift alike", hint=hint)


def numbers(x, limit, generator):
    return torch.randint(
        -limit, limit + 1, (len(x), 2), generator=generator, device=x.device
    ).tolist()


def one_by_one(x, pairs):
    return torch.stack([moved(image, dy, dx) for image, (dy, dx) in zip(x, pairs, strict=True)])


def windows(x, limit, tops, **pad):
    """Images cut out of the padded batch. tops: (top, left) of each."""
    h, w = x.shape[2:]
    p = F.pad(x, (limit,) * 4, **pad)
    return torch.stack([p[i, :, a : a + h, b : b + w] for i, (a, b) in enumerate(tops)])


@mutant("rolls", caught_by=whole_pixels)
def shift(x, limit, generator):
    pairs = numbers(x, limit, generator)
    return torch.stack([image.roll(n, (1, 2)) for image, n in zip(x, pairs, strict=True)])


@mutant("repeats the edge", caught_by=whole_pixels)
def shift(x, limit, generator):
    pairs = numbers(x, limit, generator)
    tops = [(limit + a, limit + b) for a, b in pairs]
    return windows(x.double(), limit, tops, mode="replicate").to(x.dtype)


@mutant("moves by up to limit + 1", caught_by=whole_pixels)
def shift(x, limit, generator):
    return one_by_one(x, numbers(x, limit + 1, generator))


@mutant("moves each channel on its own", caught_by=channels)
def shift(x, limit, generator):
    each = x.flatten(0, 1)[:, None]
    return one_by_one(each, numbers(each, limit, generator)).view_as(x)


@mutant("one shift for the whole batch", caught_by=its_own)
def shift(x, limit, generator):
    return moved(x, *numbers(x[:1], limit, generator)[0])


@mutant("randint without its upper end", caught_by=frequencies)
def shift(x, limit, generator):
    d = torch.randint(
        -limit, max(limit, 1 - limit), (len(x), 2), generator=generator, device=x.device
    )
    return one_by_one(x, d.tolist())


@mutant("the same number down and to the right", caught_by=frequencies)
def shift(x, limit, generator):
    return one_by_one(x, [(a, a) for a, _ in numbers(x, limit, generator)])


@mutant("returns float32", caught_by=kept)
def shift(x, limit, generator):
    return one_by_one(x, numbers(x, limit, generator)).float()


@mutant("writes into the batch", caught_by=untouched)
def shift(x, limit, generator):
    return x.copy_(one_by_one(x, numbers(x, limit, generator)))


@mutant("ignores the generator", caught_by=seeded)
def shift(x, limit, generator):
    return one_by_one(x, numbers(x, limit, None))


@mutant("hands the batch back where nothing moves", caught_by=untouched)
def shift(x, limit, generator):
    pairs = numbers(x, limit, generator)
    x[:1] = moved(x[:1], *pairs[0])
    return one_by_one(x, pairs)


@mutant("hands the batch itself out where the limit is 0", caught_by=untouched)
def shift(x, limit, generator):
    return one_by_one(x, numbers(x, limit, generator)) if limit else x


@mutant("seeds the generator in each call", caught_by=anew)
def shift(x, limit, generator):
    return one_by_one(x, numbers(x, limit, generator.manual_seed(generator.initial_seed())))


@hinted(1, reaches=seeded)
def shift(x, limit, generator):
    pairs = numbers(x, limit, generator)
    return windows(x, limit, [(limit - a, limit - b) for a, b in pairs])


@accepted("gathers twice")
def shift(x, limit, generator):
    b, c, h, w = x.shape
    top, left = torch.randint(2 * limit + 1, (2, b, 1), generator=generator, device=x.device)
    p = F.pad(x, (limit,) * 4)
    rows = (top + torch.arange(h, device=x.device))[:, None, :, None]
    cols = (left + torch.arange(w, device=x.device))[:, None, None]
    p = p.gather(2, rows.expand(b, c, h, w + 2 * limit))
    return p.gather(3, cols.expand(b, c, h, w))


@accepted("cuts windows out of the padded batch")
def shift(x, limit, generator):
    top = torch.randint(2 * limit + 1, (len(x), 2), generator=generator, device=x.device)
    return windows(x, limit, top.tolist())


@accepted("picks one of all shifts by a mask")
def shift(x, limit, generator):
    n = 2 * limit + 1
    which = torch.randint(n * n, (len(x), 1, 1, 1), generator=generator, device=x.device)
    out = torch.zeros_like(x)
    for k in range(n * n):
        out = torch.where(which == k, moved(x, k // n - limit, k % n - limit), out)
    return out
