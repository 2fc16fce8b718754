"""Judges lessons/01_tensors/08_permute_join.md."""

import torch
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "You want to look at a batch of images",
    "`imgs.new_zeros(shape)` makes zeros",
    "In Python `-(-a // b)`",
)

shows = ["tensors/reshape"]


def images(device, n, c, h, w, dtype=torch.float32):
    """Random images without zeros; floats of either sign."""
    imgs = torch.randint(1, 200, (n, c, h, w))
    if dtype.is_floating_point:
        imgs = imgs - 100.5
    return imgs.to(device, dtype)


def numbered(device, n, c, h, w):
    """Image k is filled with k + 1."""
    return torch.arange(1.0, n + 1, device=device).reshape(n, 1, 1, 1).expand(n, c, h, w)


def wanted(imgs, nrow):
    """The grid, one image pasted after the other."""
    n, c, h, w = imgs.shape
    grid = imgs.new_zeros(c, -(-n // nrow) * h, nrow * w)
    for k in range(n):
        row, column = divmod(k, nrow)
        grid[:, row * h : (row + 1) * h, column * w : (column + 1) * w] = imgs[k]
    return grid


def full_grid(rng):
    """A grid without gaps: rows and nrow differ, and so do h and w."""
    rows, nrow = rng.sample(range(2, 5), 2)
    h, w = rng.sample(range(2, 6), 2)
    return rows, nrow, rng.randint(1, 3), h, w


@check(
    "each tile holds one image",
    holds=[
        "one large image, with `nrow` images side by side",
        "One picture of all images, nrow to a row.",
        "returns: (C, rows * H, nrow * W)",
    ],
)
def whole_tiles(answer, rng, device):
    rows, nrow, c, h, w = full_grid(rng)
    got = answer.make_grid(numbered(device, rows * nrow, c, h, w), nrow)
    expect_shape(
        got,
        (c, rows * h, nrow * w),
        hint=f"{rows * nrow} images, {nrow} of them side by side, are {rows} rows and no more. The "
        f"height is {rows} times H = {h}, the width {nrow} times W = {w}.",
    )
    for row in range(rows):
        for column in range(nrow):
            tile = got[:, row * h : (row + 1) * h, column * w : (column + 1) * w]
            found = len(tile.unique())
            expect_true(
                found == 1,
                f"the tile in row {row}, column {column} holds pixels of {found} images",
                hint="A line of the grid runs through nrow images. So in memory, H must "
                "stand before the column of the grid, and reshape cannot do that.",
            )


@check("the images fill the grid row by row", holds="filled row by row")
def row_by_row(answer, rng, device):
    rows, nrow, c, h, w = full_grid(rng)
    imgs = numbered(device, rows * nrow, c, h, w)
    expect_equal(
        answer.make_grid(imgs, nrow),
        wanted(imgs, nrow),
        hint="Image 1 stands to the right of image 0, not below it. Which of row and "
        "column is the slow one when N is split?",
    )


@check("every pixel keeps its place in its image", holds="imgs: (N, C, H, W)")
def pixels(answer, rng, device):
    n, c, side = rng.randint(2, 6), rng.randint(2, 4), rng.randint(2, 4)
    hint = "Height merges with height, width with width, and the channels stay in front."
    for h, w in ((side, side + 1), (side, side)):
        imgs = images(device, n, c, h, w)
        expect_equal(answer.make_grid(imgs, n), wanted(imgs, n), hint=hint, shape_hint=hint)


@check("any layout in memory goes", holds="laid out in memory in any way")
def layouts(answer, rng, device):
    rows, nrow, c, h, w = full_grid(rng)
    n = rows * nrow
    hint = "These numbers lie in memory in another order than that of the dimensions. Where they "
    hint += "have to be copied, `view` refuses and `reshape` copies."
    with advising(RuntimeError, saying="view size is not compatible", hint=hint):
        for imgs in (
            images(device, n, h, w, c).permute(0, 3, 1, 2),
            images(device, w, h, c, n).permute(3, 2, 1, 0),
            images(device, n, c, h, 2 * w)[..., ::2],
            images(device, n, 1, h, w).expand(n, c, h, w),
        ):
            expect_equal(answer.make_grid(imgs, nrow), wanted(imgs, nrow))


@check("sizes of 1 stay", holds=["sizes from 1 on", "nrow: images in a row, from 1 on"])
def ones(answer, rng, device):
    for n, c, h, w, nrow in ((1, 1, 1, 1, 1), (4, 1, 2, 3, 2), (3, 2, 1, 4, 1), (2, 3, 1, 1, 2)):
        imgs = images(device, n, c, h, w)
        expect_equal(
            answer.make_grid(imgs, nrow),
            wanted(imgs, nrow),
            shape_hint="One channel is still a dimension, and so is one line of pixels.",
        )


@check(
    "a last row with gaps is filled up with zeros",
    holds=[
        "Where the batch runs out, the grid is 0.",
        "rows = N / nrow rounded up, and 0 where no image is",
    ],
)
def gaps(answer, rng, device):
    nrow = rng.randint(2, 4)
    n = nrow * rng.randint(1, 3) + rng.randint(1, nrow - 1)
    imgs = images(device, n, rng.randint(1, 3), rng.randint(1, 3), rng.randint(2, 4))
    hint = (
        "N is not a multiple of nrow here. The last row is still a row: all images are "
        "shown, and where one is missing, the grid is 0."
    )
    with advising(RuntimeError, hint=hint):
        got = answer.make_grid(imgs, nrow)
    expect_equal(got, wanted(imgs, nrow), hint=hint, shape_hint=hint)


@check("a row is nrow wide even with fewer images", holds="may be larger than N")
def wide_row(answer, rng, device):
    n = rng.randint(1, 3)
    nrow = n + rng.randint(1, 3)
    imgs = images(device, n, rng.randint(1, 3), rng.randint(1, 3), rng.randint(1, 3))
    for size in (nrow, 2 * n + 1 + rng.randint(0, 5)):
        expect_equal(
            answer.make_grid(imgs, size),
            wanted(imgs, size),
            shape_hint="The width is nrow * W, whatever N is.",
        )


@check("the images stay as they were", holds="The images keep their values.")
def untouched(answer, rng, device):
    for n in (3, 4):
        imgs = images(device, n, rng.randint(1, 3), rng.randint(1, 3), rng.randint(2, 4))
        with expect_unchanged(imgs):
            answer.make_grid(imgs, 2)


@check("black, infinite and NaN pixels come through")
def zeros_inside(answer, rng, device):
    n, nrow = rng.randint(3, 5), 2
    imgs = images(device, n, 2, 2, 3)
    imgs[rng.randrange(n)] = 0
    imgs[rng.randrange(n), :, 0] = float("inf")
    imgs[0, 0, 0, 0] = float("nan")
    expect_equal(
        answer.make_grid(imgs, nrow),
        wanted(imgs, nrow),
        hint="Pixels may hold anything, NaN and infinity too: move them, and compute nothing.",
    )


@check(
    "the grid has the dtype of the images",
    holds=["any dtype", "the dtype of imgs"],
)
def same_dtype(answer, rng, device):
    for dtype in (torch.uint8, torch.bool, torch.int64, torch.float64, torch.float16):
        imgs = images(device, 3, 2, 2, 3, dtype)
        expect_equal(
            answer.make_grid(imgs, 2),
            wanted(imgs, 2),
            dtype_hint="`torch.zeros` makes float32 on the CPU. Joined with bytes, the whole "
            "grid turns into floats.",
        )


def padded(imgs, nrow):
    """The images and as many of zeros as fill the last row."""
    _, c, h, w = imgs.shape
    return torch.cat([imgs, imgs.new_zeros(-len(imgs) % nrow, c, h, w)])


@mutant(
    "reshapes without permute",
    caught_by=whole_tiles,
    misconception="tensors/reshape",
    like="regroups T together with the channels",
)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    return imgs.reshape(c, len(imgs) // nrow * h, nrow * w)


@mutant("merges column and height in the wrong order", caught_by=whole_tiles)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 4, 1)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("fills column by column", caught_by=row_by_row)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.reshape(nrow, rows, c, h, w).permute(2, 1, 3, 0, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("turns every image", caught_by=pixels)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 4, 1, 3)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("puts the channels last before it merges", caught_by=pixels)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(0, 3, 1, 4, 2)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("adds a row even where none is needed", caught_by=whole_tiles)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    rows = n // nrow + 1
    imgs = torch.cat([imgs, imgs.new_zeros(rows * nrow - n, c, h, w)])
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("shows full rows only", caught_by=gaps)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    rows = n // nrow
    grid = imgs[: rows * nrow].reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("fills up with the last image", caught_by=gaps)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    imgs = torch.cat([imgs, imgs[-1:].repeat(-n % nrow, 1, 1, 1)])
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("shrinks the row to the images there are", caught_by=wide_row)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    nrow = min(nrow, len(imgs))
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("views what is not in the order of the grid", caught_by=whole_tiles)
def make_grid(imgs, nrow):
    _, c, h, w = imgs.shape
    imgs = padded(imgs, nrow)
    rows = len(imgs) // nrow
    grid = imgs.view(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.view(c, rows * h, nrow * w)


@mutant("takes apart with view what the caller has permuted", caught_by=layouts)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    flat = imgs.view(n, c, h * w)
    missing = flat.new_zeros(-n % nrow, c, h * w)
    grid = torch.cat([flat, missing]).reshape(-1, nrow, c, h, w)
    rows = len(grid)
    return grid.permute(2, 0, 3, 1, 4).reshape(c, rows * h, nrow * w)


@mutant("weighs the images by 1 and the gaps by 0", caught_by=zeros_inside)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    rows = -(-n // nrow)
    place = torch.arange(rows * nrow, device=imgs.device).clamp(max=n - 1)
    weight = torch.arange(rows * nrow, device=imgs.device) < n
    imgs = imgs[place] * torch.where(weight, 1, 0).to(imgs.dtype)[:, None, None, None]
    grid = imgs.nan_to_num() if imgs.is_floating_point() else imgs
    grid = grid.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@mutant("clears the last image behind it", caught_by=untouched)
def make_grid(imgs, nrow):
    grid = wanted(imgs, nrow)
    imgs[-1] = 0
    return grid


@mutant("squeezes the result", caught_by=ones)
def make_grid(imgs, nrow):
    return wanted(imgs, nrow).squeeze()


@mutant("pads with float32 zeros", caught_by=same_dtype)
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    imgs = torch.cat([imgs, torch.zeros(-n % nrow, c, h, w)])
    rows = len(imgs) // nrow
    grid = imgs.reshape(rows, nrow, c, h, w).permute(2, 0, 3, 1, 4)
    return grid.reshape(c, rows * h, nrow * w)


@hinted(1, reaches=ones)
def make_grid(imgs, nrow):
    N, C, H, W = imgs.shape
    rows = -(-N // nrow)
    grid = imgs.reshape(rows, nrow, C, H, W).permute(2, 0, 3, 1, 4)
    return grid.reshape(C, rows * H, nrow * W)


@accepted("pastes one image after the other")
def make_grid(imgs, nrow):
    n, c, h, w = imgs.shape
    shape = c, (n + nrow - 1) // nrow * h, nrow * w
    grid = torch.zeros(shape, dtype=imgs.dtype, device=imgs.device)
    for k, img in enumerate(imgs):
        top, left = k // nrow * h, k % nrow * w
        grid[:, top : top + h, left : left + w] = img
    return grid


@accepted("joins rows of tiles with cat")
def make_grid(imgs, nrow):
    tiles = [*imgs, *[torch.zeros_like(imgs[0])] * (-len(imgs) % nrow)]
    rows = [torch.cat(tiles[i : i + nrow], -1) for i in range(0, len(tiles), nrow)]
    return torch.cat(rows, -2)


@accepted("pads with functional.pad, merges one dimension at a time")
def make_grid(imgs, nrow):
    imgs = functional.pad(imgs, (0, 0, 0, 0, 0, 0, 0, -len(imgs) % nrow))
    grid = imgs.unflatten(0, (-1, nrow))  # (row, column, C, H, W)
    grid = grid.movedim(2, 0).transpose(2, 3)  # (C, row, H, column, W)
    return grid.flatten(3).flatten(1, 2)
