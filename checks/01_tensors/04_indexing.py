"""Judges lessons/01_tensors/04_indexing.md."""

import torch

from tensortutor.checking import (
    accepted,
    check,
    expect_equal,
    expect_unchanged,
    expect_view,
    hinted,
    mutant,
)

LEAD = "`x[a:b, c:d]` cuts the first two dimensions. Height and width are the last two."


def numbered(device, *shape):
    """A tensor in which no two values are equal."""
    count = torch.Size(shape).numel()
    return torch.arange(count, device=device).reshape(shape)


def inside(size, part):
    """The places of the middle `part` of `size`, the odd one left over at the end."""
    start = (size - part) // 2
    return list(range(start, start + part))


def middle(x, h, w):
    """The crop, row by row and column by column."""
    rows = inside(x.shape[-2], h)
    columns = inside(x.shape[-1], w)
    return x.index_select(-2, x.new_tensor(rows, dtype=torch.long)).index_select(
        -1, x.new_tensor(columns, dtype=torch.long)
    )


def compare(answer, x, h, w, hint, shape_hint=""):
    with expect_unchanged(x, hint="Cropping reads. Only erase_center writes."):
        got = answer.crop_center(x, h, w)
    name = f"{h} by {w} of {list(x.shape)}"
    expect_equal(got, middle(x, h, w), name=name, hint=hint, shape_hint=shape_hint or hint)


@check(
    "the crop is the middle of the image",
    holds=[
        "The middle h by w of the last two dimensions.",
        "`x` may be one image (H, W)",
        "no value changes",
        "with any leading dimensions, or none",
    ],
    side="no leading dimension",
)
def centre(answer, rng, device):
    h, w = rng.sample(range(1, 6), 2)
    down, right = 2 * rng.randrange(1, 4), 2 * rng.randrange(1, 4)
    compare(
        answer,
        numbered(device, h + down, w + right),
        h,
        w,
        hint="Half of what is left over belongs above the crop, and half of it to the left.",
        shape_hint="h counts rows, dimension -2, and w columns, dimension -1.",
    )


@check(
    "an odd margin leaves the extra row and column at the end",
    holds="When the margin is odd, the row or column too many stays at the bottom or at the right",
    both_sides=True,
)
def odd_margin(answer, rng, device):
    h, w = rng.randrange(1, 6), rng.randrange(1, 6)
    hint = "The start is half the margin, rounded down, and the end is the start plus the size."
    compare(answer, numbered(device, h + 1, w + 3), h, w, hint)
    compare(answer, numbered(device, h + 5, w + 2), h, w, hint)
    compare(answer, numbered(device, 8, 8), 3, 5, hint)


@check("no margin gives everything", holds="h, w: from 0 to H and W")
def no_margin(answer, rng, device):
    h, w = rng.randrange(2, 6), rng.randrange(2, 6)
    hint = "Counted from the end, a margin of 0 is `-0`, which is 0: the slice `0:-0` is empty."
    compare(answer, numbered(device, h, w), h, w, hint)
    compare(answer, numbered(device, h + 2, w), h, w, hint)
    compare(answer, numbered(device, h, w + 4), h, w, hint)


@check(
    "leading dimensions stay whole",
    holds=[
        "one with channels (C, H, W), a batch (N, C, H, W), or anything else that ends in height",
        "with any leading dimensions, or none",
    ],
    side="leading dimensions",
)
def leading(answer, rng, device):
    n, c = rng.randrange(2, 5), rng.randrange(2, 5)
    h, w = rng.randrange(4, 8), rng.randrange(4, 8)
    compare(answer, numbered(device, c, h, w), 2, 3, hint=LEAD)
    compare(answer, numbered(device, n, c, h, w), 3, 2, hint=LEAD)
    compare(answer, numbered(device, 2, 1, 3, h, w), 1, 4, hint=LEAD)


@check("sizes 0 and 1 work", holds="h, w: from 0 to H and W")
def small(answer, rng, device):
    h, w = rng.randrange(3, 8), rng.randrange(3, 8)
    compare(answer, numbered(device, 2, h, w), 1, 1, hint="A crop of 1 by 1 keeps its rank.")
    compare(answer, numbered(device, 2, h, w), 0, 2, hint="A crop of height 0 is empty.")
    compare(answer, numbered(device, 0, h, w), 2, 2, hint="A batch of 0 images is a batch.")
    compare(answer, numbered(device, 1, 1, h, w), 2, w, hint="A batch of 1 image is a batch.")
    compare(answer, numbered(device, h, 0), 2, 0, hint="An image may have no columns.")


@check(
    "the crop shares the image's memory",
    holds=[
        "Write `crop_center` so that nothing is copied",
        "in x's memory, whatever x's strides",
    ],
)
def shares(answer, rng, device):
    hint = "Ints, slices and ... make views. Lists, index tensors and clone() copy, and reshape "
    hint += "copies where leading dimensions cannot be merged."
    x = torch.randn(2, 7, 6, device=device)
    batch = torch.randn(3, 2, 7, 6, device=device)
    apart = (batch.transpose(0, 1), batch.permute(2, 0, 3, 1), batch[:, :1].expand(3, 4, 7, 6))
    for image in (x, x.transpose(1, 2), x[:, 1:, ::2], *apart):
        h, w = image.shape[-2] - 2, image.shape[-1] - 1
        got = answer.crop_center(image, h, w)
        expect_view(got, image, name="the crop", hint=hint)
        apart_hint = "x may be a view itself: its rows lie elsewhere than its shape tells."
        expect_equal(got, middle(image, h, w), name="the crop of a view", hint=apart_hint)


@check(
    "erasing changes the middle",
    holds=[
        "`erase_center`, which paints the same region of the caller's tensor",
        "Write value into the middle h by w of x, in place.",
    ],
)
def erases(answer, rng, device):
    h, w = rng.randrange(1, 4), rng.randrange(1, 4)
    H, W = h + rng.randrange(1, 4), w + rng.randrange(1, 4)
    for shape in ((2, H, W), (H, W), (2, 1, 3, H, W), (2, h, w)):
        x = numbered(device, *shape) + 1
        answer.erase_center(x, h, w, 0)
        nothing = "`middle = value` gives the name to something else and writes nothing. And what "
        nothing += "is written into a copy does not reach x."
        elsewhere = "x was written into, and not in the whole of its middle. Each image of a batch "
        elsewhere += "has a middle."
        expect_equal(
            middle(x, h, w),
            torch.zeros_like(middle(x, h, w)),
            name=f"the middle of {list(shape)} after erase_center",
            hint=elsewhere if bool((x == 0).any()) else nothing,
        )


@check("what was there is gone, NaN and bools too", holds="x may be bool, and may hold NaN")
def any_content(answer, rng, device):
    hint = "Write the value. What is computed from the old content keeps its NaN."
    for bad in (float("nan"), float("inf")):
        x = torch.full((2, 5, 6), bad, device=device)
        answer.erase_center(x, 3, 2, 1.5)
        got = middle(x, 3, 2)
        expect_equal(got, torch.full_like(got, 1.5), name=f"the middle, which was {bad},",
                     hint=hint)  # fmt: skip
    for dtype, value in ((torch.bool, True), (torch.uint8, 200), (torch.float16, 0.5)):
        x = torch.zeros(2, 5, 6, dtype=dtype, device=device)
        answer.erase_center(x, 3, 2, value)
        got = middle(x, 3, 2)
        expect_equal(got, torch.full_like(got, value), name=f"the middle in {str(dtype)[6:]}",
                     hint=hint)  # fmt: skip


@check("erasing leaves the border alone", holds="leaves the rest as it was")
def border(answer, rng, device):
    value = rng.randrange(2, 9) + 0.5
    x = torch.randn(3, 2, 6, 7, device=device).permute(2, 1, 0, 3)  # (6, 2, 3, 7), not contiguous
    for h, w in ((1, 2), (2, 7), (3, 3), (0, 4), (3, 7)):
        before, inner = x.clone(), torch.zeros_like(x, dtype=torch.bool)
        for row in inside(3, h):
            for column in inside(7, w):
                inner[..., row, column] = True
        answer.erase_center(x, h, w, value)
        outer = "Write to the middle of height and width, in every image, and to nothing else."
        written = bool((x == before).logical_or(inner).all())
        lost = "reshape and flatten copy where the layout asks for it, and a copy is thrown away."
        chosen = "What is written is the caller's value, as it is."
        expect_equal(
            x,
            before.masked_fill(inner, value),
            name=f"x after erasing {h} by {w} of {list(x.shape)}",
            hint=(lost if torch.equal(x, before) else chosen) if written else outer,
        )


@mutant("copies the crop", caught_by=shares)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[..., top : top + h, left : left + w].clone()


@mutant("selects with index tensors", caught_by=shares)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    rows = torch.arange(top, top + h, device=x.device)
    columns = torch.arange(left, left + w, device=x.device)
    return x[..., rows[:, None], columns]


@mutant("makes the crop contiguous", caught_by=shares)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[..., top : top + h, left : left + w].contiguous()


@mutant("cuts the first two dimensions", caught_by=leading)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[top : top + h, left : left + w]


@mutant("counts the end from behind", caught_by=no_margin)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[..., top:-top, left:-left]


@mutant("takes the same margin off both sides", caught_by=odd_margin)
def crop_center(x, h, w):
    H, W = x.shape[-2:]
    top, left = (H - h) // 2, (W - w) // 2
    return x[..., top : H - top, left : W - left]


@mutant("rounds the margin up", caught_by=odd_margin)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h + 1) // 2, (x.shape[-1] - w + 1) // 2
    return x[..., top : top + h, left : left + w]


@mutant("takes the top left corner", caught_by=centre)
def crop_center(x, h, w):
    return x[..., :h, :w]


@mutant("rounds half the margin as torchvision does", caught_by=odd_margin)
def crop_center(x, h, w):
    top, left = round((x.shape[-2] - h) / 2), round((x.shape[-1] - w) / 2)
    return x[..., top : top + h, left : left + w]


@mutant("cuts images, and images with channels, and no batches", caught_by=leading)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    if x.ndim == 2:
        return x[top : top + h, left : left + w]
    return x[:, top : top + h, left : left + w]


@mutant("takes the strides of a fresh tensor", caught_by=shares)
def crop_center(x, h, w):
    W = x.shape[-1]
    top, left = (x.shape[-2] - h) // 2, (W - w) // 2
    steps = torch.empty(x.shape, device="meta").stride()
    start = x.storage_offset() + top * W + left
    return x.as_strided((*x.shape[:-2], h, w), steps, start if x.numel() else 0)


@mutant("forgets that a view begins elsewhere", caught_by=shares)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    start = top * x.stride(-2) + left * x.stride(-1)
    return x.as_strided((*x.shape[:-2], h, w), x.stride(), start if x.numel() else 0)


@mutant("counts the end from behind when it erases", caught_by=erases)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    x[..., top:-top, left:-left] = value


@mutant("leaves the odd row and column at the start", caught_by=odd_margin)
def crop_center(x, h, w):
    bottom, right = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    top, left = x.shape[-2] - h - bottom, x.shape[-1] - w - right
    return x[..., top : top + h, left : left + w]


@mutant("erases in the first image of a batch", caught_by=erases)
def erase_center(x, h, w, value):
    while x.ndim > 2:
        x = x[0]
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    x[top : top + h, left : left + w] = value


@mutant("paints around the middle", caught_by=erases)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    kept = x[..., top : top + h, left : left + w].clone()
    x[:] = value
    x[..., top : top + h, left : left + w] = kept


@mutant("gives back a copy that is erased", caught_by=erases)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    erased = x.clone()
    erased[..., top : top + h, left : left + w] = value
    return erased


@hinted(1, reaches=no_margin)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[top : top + h, left : left + w]


@mutant("drops dimensions of size 1", caught_by=small)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    return x[..., top : top + h, left : left + w].squeeze()


@mutant("gives the name to the value", caught_by=erases)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    middle = x[..., top : top + h, left : left + w]
    middle = value  # noqa: F841


@mutant("writes into a copy", caught_by=erases)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    rows = torch.arange(top, top + h, device=x.device)
    x[..., rows, :][..., left : left + w] = value


@mutant("erases in a list of images, which may be a copy", caught_by=border)
def erase_center(x, h, w, value):
    images = x.reshape(-1, *x.shape[-2:])
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    images[:, top : top + h, left : left + w] = value


@mutant("crops a list of images, which may be a copy", caught_by=shares)
def crop_center(x, h, w):
    images = x.reshape(-1, *x.shape[-2:]) if x.numel() else x
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    part = images[..., top : top + h, left : left + w]
    return part.reshape(*x.shape[:-2], h, w)


@mutant("takes the old content away and adds the value", caught_by=any_content)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    part = x[..., top : top + h, left : left + w]
    part *= 0
    part += value


@mutant("cuts the value to an int", caught_by=border)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    x[..., top : top + h, left : left + w] = int(value)


@mutant("swaps height and width", caught_by=centre)
def crop_center(x, h, w):
    top, left = (x.shape[-2] - w) // 2, (x.shape[-1] - h) // 2
    return x[..., top : top + w, left : left + h]


@mutant("erases whole rows", caught_by=border)
def erase_center(x, h, w, value):
    top = (x.shape[-2] - h) // 2
    x[..., top : top + h, :] = value


@mutant("erases rows and columns one after the other", caught_by=border)
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    x[..., top : top + h, :] = value
    x[..., left : left + w] = value


@accepted("narrows each dimension")
def crop_center(x, h, w):
    rows = x.narrow(-2, (x.shape[-2] - h) // 2, h)
    return rows.narrow(-1, (x.shape[-1] - w) // 2, w)


@accepted("builds the tuple of slices itself")
def crop_center(x, h, w):
    index = [slice(None)] * x.ndim
    for dim, size in ((-2, h), (-1, w)):
        start = (x.shape[dim] - size) // 2
        index[dim] = slice(start, start + size)
    return x[tuple(index)]


@accepted("moves height and width to the front and back")
def crop_center(x, h, w):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    images = x.movedim((-2, -1), (0, 1))
    return images[top : top + h, left : left + w].movedim((0, 1), (-2, -1))


@accepted("assigns through a mask of the middle")
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    mask = torch.zeros(x.shape[-2:], dtype=torch.bool, device=x.device)
    mask[top : top + h, left : left + w] = True
    x[..., mask] = value


@accepted("fills the view")
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    x[..., top : top + h, left : left + w].fill_(value)


@accepted("assigns through index tensors")
def erase_center(x, h, w, value):
    top, left = (x.shape[-2] - h) // 2, (x.shape[-1] - w) // 2
    rows = torch.arange(top, top + h, device=x.device)
    columns = torch.arange(left, left + w, device=x.device)
    x[..., rows[:, None], columns] = value
