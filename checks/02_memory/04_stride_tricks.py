"""Judges lessons/02_memory/04_stride_tricks.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_unchanged,
    expect_view,
    hinted,
    mutant,
)

shows = ["memory/strides"]

background(
    "Write windows, and patches for two dimensions.",
    "A convolution is a weighted sum over each patch",
    "The starter works on fresh tensors only.",
)


def row(rng, device, n):
    """The first n of a row of different numbers of some dtype.

    The storage goes on, so that a wrong label shows wrong numbers rather than an error.
    """
    dtype = rng.choice([torch.float32, torch.float64, torch.int64, torch.float16])
    return torch.randperm(n + 200).to(device, dtype)[:n]


def cut(x, size, step):
    """The windows, copied one by one."""
    starts = range(0, len(x) - size + 1, step)
    return torch.stack([x[i : i + size] for i in starts]) if starts else x.new_empty(0, size)


def squares(image, size):
    """The patches, copied one by one."""
    H, W = image.shape[-2:]
    rows = [
        torch.stack([image[..., i : i + size, j : j + size] for j in range(W - size + 1)], -3)
        for i in range(H - size + 1)
    ]
    return torch.stack(rows, -4)


COUNT = "A window that starts at N - size is the last that fits. Whatever the storage holds behind "
COUNT += "x does not belong to it, and as_strided will not tell."
STEPS = "From one window to the next it is `step` elements, from one element of a window to the "
STEPS += "next it is 1."
PLACES = "Along a side of H there are H - size + 1 places for a patch: all H for size 1, and one "
PLACES += "for size H."
SQUARE = "[i, j, a, b] is image[i + a, j + b]: i and a both go down, j and b both go right."


def compare_windows(answer, x, size, step, hint=STEPS, shape_hint=COUNT):
    with expect_unchanged(x):
        got = answer.windows(x, size, step)
    name = f"windows(x, {size}, {step})"
    expect_equal(got, cut(x, size, step), name=name, hint=hint, shape_hint=shape_hint)


def compare_patches(answer, image, size, hint=SQUARE, shape_hint=PLACES):
    both = "The image has any number of dimensions: its height and width are the last two."
    with (
        expect_unchanged(image),
        advising(ValueError, saying="values to unpack", hint=both),
    ):
        got = answer.patches(image, size)
    name = f"patches(image, {size})"
    expect_equal(got, squares(image, size), name=name, hint=hint, shape_hint=shape_hint)


@check(
    "a window starts every step elements",
    holds=[
        "`unfold` is refused here: write the label yourself",
        "Windows of `size` neighbours, one every `step` elements.",
        "size, step: at least 1",
    ],
    both_sides=True,
    forbid=("torch.nn.functional.unfold",),
)
def starts(answer, rng, device):
    some = rng.randint(2, 5), rng.randint(2, 5)
    for size, step in ((3, 1), (4, 2), (1, 3), (5, 5), (2, 4), some):
        n = size + step * rng.randint(1, 4)  # the last window ends where the row does
        compare_windows(answer, row(rng, device, n), size, step)


@check(
    "no window reads beyond x, and none is left out",
    holds="only windows that lie wholly inside x",
)
def last(answer, rng, device):
    x = row(rng, device, 60)
    for size, step in ((3, 1), (4, 3), (3, 5), (rng.randint(2, 6), rng.randint(2, 6))):
        for n in range(size, size + 2 * step + 1):
            compare_windows(answer, x[:n], size, step)


@check(
    "x may have a stride of its own",
    holds=["What comes in may be a view, with strides", "any stride and offset"],
)
def strided(answer, rng, device):
    hint = "A view's neighbours need not be neighbours in memory. `x.stride(0)` says how far apart "
    hint += "they are."
    x = row(rng, device, 60)
    table = x.reshape(12, 5)
    for view in (x[: 8 * 3 : 3], table[:, 0], table.diagonal(), x[:1].expand(8)):
        compare_windows(answer, view, rng.randint(2, 3), rng.randint(1, 2), hint)


@check(
    "x may begin in the middle of a storage",
    holds=["What comes in may be a view, with strides and an offset of its own."],
)
def offset(answer, rng, device):
    hint = "as_strided begins at the tensor's own offset, unless it is told another."
    x = row(rng, device, 60)
    start = rng.randint(1, 20)
    for view in (x[start : start + 9], x[start:][1:8], x.reshape(12, 5)[:, 3]):
        compare_windows(answer, view, 3, rng.randint(1, 2), hint)


@check("the windows live in x's memory", holds="(windows, size), in x's memory")
def windows_view(answer, rng, device):
    hint = "stack, clone and index lists copy: with windows of 512 that is 512 times the data."
    x = row(rng, device, 30)
    for view in (x, x[3::2]):
        expect_view(answer.windows(view, 3, 2), view, name="windows(x, 3, 2)", hint=hint)


@check(
    "a row that is too short has no windows",
    holds=["so there may be 0", "N may be 0"],
)
def short(answer, rng, device):
    x = row(rng, device, 40)
    hint = "With size 5 and N = 3 the count comes out below 0. The answer is no window: (0, 5)."
    for n, size, step in ((3, 5, 1), (0, 2, 1), (2, 9, 2), (4, 5, 3), (1, rng.randint(3, 9), 1)):
        with advising(Exception, hint=hint):
            got = answer.windows(x[:n], size, step)
        name = f"windows(x, {size}, {step})"
        expect_equal(got, x.new_empty(0, size), name=name, shape_hint=hint)


@check(
    "a patch is a square of neighbours",
    holds=[
        "`unfold` is refused here: write the label yourself",
        "All squares of size by size neighbours, as they slide.",
        "[..., i, j] has its corner at (i, j)",
    ],
    forbid=("torch.nn.functional.unfold",),
)
def neighbours(answer, rng, device):
    H, W = rng.sample(range(4, 8), 2)
    for size in (2, 3):
        compare_patches(answer, row(rng, device, H * W).reshape(H, W), size)


@check(
    "patches slide up to the edge, and no further",
    holds=["size: from 1 to min(H, W)", "W - size + 1, size, size)"],
)
def edges(answer, rng, device):
    H, W = rng.randint(3, 5), rng.randint(6, 7)
    image = row(rng, device, H * W).reshape(H, W)
    for size in (1, H):
        compare_patches(answer, image, size)
    compare_patches(answer, image[:, :H], H, SQUARE + " One step down is image.stride(-2) places.")
    compare_patches(answer, image[:1, :1], 1)


@check(
    "the image may be any view",
    holds=["What comes in may be a view, with strides and an offset of its own.", "any layout"],
)
def layouts(answer, rng, device):
    hint = "The strides and the offset of a crop or a transpose are not those of a fresh image."
    H, W = rng.sample(range(6, 9), 2)
    image = row(rng, device, H * W).reshape(H, W)
    for view in (image[:, 1:], image.T, image[::2, 1::2], image[1:, :1].expand(-1, 4)):
        compare_patches(answer, view, 2, hint)


@check("leading dimensions stay", holds="image: (..., H, W)")
def leading(answer, rng, device):
    hint = "Channels and batches come first and keep their strides. Only H and W are cut up."
    for lead in ((rng.randint(2, 4),), (3, 2), (1, 1), (0, 2)):
        shape = (*lead, 4, 5)
        images = row(rng, device, torch.Size(shape).numel()).reshape(shape)
        compare_patches(answer, images, rng.randint(2, 3), hint, hint)
    colours = row(rng, device, 90).reshape(5, 6, 3).permute(2, 0, 1)  # (C, H, W) out of (H, W, C)
    compare_patches(answer, colours, 2, hint, hint)


@check("the patches live in the image's memory", holds="in the image's memory")
def patches_view(answer, rng, device):
    hint = "Patches of 3 by 3 hold each pixel nine times. As a view they cost nothing."
    image = row(rng, device, 60).reshape(2, 5, 6)
    for view in (image, image[0, 1:, ::2]):
        expect_view(answer.patches(view, 2), view, name="patches(image, 2)", hint=hint)


def count_of(n, size, step):
    return max((n - size) // step + 1, 0)


@mutant("takes x for contiguous", caught_by=strided)
def windows(x, size, step):
    return x.as_strided((count_of(len(x), size, step), size), (step, 1))


@mutant("begins at place 0", caught_by=offset)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((count_of(len(x), size, step), size), (step * s, s), 0)


@mutant("stacks slices", caught_by=windows_view)
def windows(x, size, step):
    return cut(x, size, step)


@mutant("makes N / step windows", caught_by=last)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((len(x) // step, size), (step * s, s))


@mutant("forgets the last window", caught_by=last)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((max(0, (len(x) - size) // step), size), (step * s, s))


@mutant("rounds the count up", caught_by=last)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((max(0, -(-(len(x) - size) // step) + 1), size), (step * s, s))


@mutant("swaps the strides", caught_by=starts)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((count_of(len(x), size, step), size), (s, step * s))


@mutant("cuts without overlap", caught_by=starts)
def windows(x, size, step):
    n = count_of(len(x), size, size)
    return x[: n * size].reshape(n, size)


@mutant("lets the count go below 0", caught_by=short)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided(((len(x) - size) // step + 1, size), (step * s, s))


@mutant("always has one window", caught_by=short)
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((max(1, (len(x) - size) // step + 1), size), (step * s, s))


@mutant("transposes the patches", caught_by=neighbours)
def patches(image, size):
    *lead, H, W = image.shape
    stride = image.stride()
    shape = (*lead, H - size + 1, W - size + 1, size, size)
    return image.as_strided(shape, (*stride, stride[-1], stride[-2]))


@mutant("takes strips instead of squares", caught_by=neighbours)
def patches(image, size):
    *lead, H, W = image.shape
    stride = image.stride()
    shape = (*lead, H - size + 1, W - size + 1, size, size)
    return image.as_strided(shape, (*stride, size * stride[-1], stride[-1]))


@mutant("goes over the edge", caught_by=edges)
def patches(image, size):
    *lead, H, W = image.shape
    stride = image.stride()
    return image.as_strided((*lead, H, W, size, size), (*stride, *stride[-2:]))


@mutant("leaves out the last row and column", caught_by=edges)
def patches(image, size):
    *lead, H, W = image.shape
    stride = image.stride()
    shape = (*lead, max(H - size, 1), max(W - size, 1), size, size)
    return image.as_strided(shape, (*stride, *stride[-2:]))


@mutant("takes the image for fresh", caught_by=layouts)
def patches(image, size):
    *lead, H, W = image.shape
    stride = torch.empty(image.shape).stride()
    shape = (*lead, H - size + 1, W - size + 1, size, size)
    return image.as_strided(shape, (*stride, *stride[-2:]))


@mutant(
    "begins with the storage instead of the image",
    caught_by=layouts,
    misconception="memory/strides",
    like="forgets the offset",
)
def patches(image, size):
    *lead, H, W = image.shape
    stride = image.stride()
    shape = (*lead, H - size + 1, W - size + 1, size, size)
    return image.as_strided(shape, (*stride, *stride[-2:]), 0)


@mutant("forgets the strides of the batch", caught_by=leading)
def patches(image, size):
    *lead, H, W = image.shape
    down, right = image.stride()[-2:]
    stride = (*torch.empty((*lead, H, W)).stride()[:-2], down, right, down, right)
    return image.as_strided((*lead, H - size + 1, W - size + 1, size, size), stride)


@mutant("stacks squares", caught_by=patches_view)
def patches(image, size):
    return squares(image, size)


@hinted(1, reaches=last)
def windows(x, size, step):
    return x.as_strided(((len(x) - size) // step + 1, size), (step, 1))


@accepted("gives all of the label")
def windows(x, size, step):
    n = len(range(0, len(x) - size + 1, step))
    return torch.as_strided(x, [n, size], [x.stride()[0] * step, x.stride()[0]], x.storage_offset())


@accepted("makes all windows, then takes every step-th")
def windows(x, size, step):
    s = x.stride(0)
    return x.as_strided((max(0, len(x) - size + 1), size), (s, s))[::step]


@accepted("labels the storage directly")
def windows(x, size, step):
    rows = max(0, 1 + (len(x) - size) // step)
    stride = (x.stride(0) * step, x.stride(0))
    return x.new_empty(0).set_(x.untyped_storage(), x.storage_offset(), (rows, size), stride)


@accepted("slides down first, then to the right")
def patches(image, size):
    for dim in (image.ndim - 2, image.ndim - 1):
        shape, stride = list(image.shape), list(image.stride())
        shape[dim] -= size - 1
        image = image.as_strided((*shape, size), (*stride, stride[dim]))
    return image


@accepted("takes the corner view and its strides")
def patches(image, size):
    H, W = image.shape[-2:]
    corners = image[..., : H - size + 1, : W - size + 1]
    stride = (*corners.stride(), image.stride(-2), image.stride(-1))
    return corners.as_strided((*corners.shape, size, size), stride)


equivalent(
    "s = x.stride(0)",
    "s = x.stride(-1)",
    because="x has one dimension: 0 and -1 name the same one.",
)
