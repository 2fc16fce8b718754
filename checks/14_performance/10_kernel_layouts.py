"""Judges lessons/14_performance/10_kernel_layouts.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_shape,
    expect_true,
    expect_unchanged,
    expect_view,
    hinted,
    mutant,
)

background(
    "A vision transformer takes an image as a sequence of pixels",
    "Between two of its layers the sequence is an image again.",
    "Write tokens(x) and image(t, height).",
)

ORDER = "Row h · W + w of the result is the pixel x[:, :, h, w], with all of its channels."
BACK = "Split the long dimension into height rows: row h · W + w becomes pixel (h, w)."
SHARE = "permute, movedim, transpose and unflatten copy nothing. clone and contiguous() do."
LAST = "Do not reorder: the order in memory is the one that is asked for already."
GRAD = "Use operations of PyTorch on the input itself: no detach(), no .data, no no_grad()."
VIEW = "view refuses strides that it cannot describe. flatten and reshape copy there."
KEEP = "What ends in an underscore changes its tensor. Without it there is a new one."
START = "A part begins later in the memory, with strides of its own. Views take over both."
LASTS = torch.channels_last


def sizes(rng):
    n, c, h, w = rng.sample(range(2, 9), 4)
    return n, c, h, w


def pixels(rng, device, *shape, dtype=torch.float32):
    return torch.randn(shape or sizes(rng), device=device).to(dtype)


def rows(x):
    """(N, H * W, C), pixel by pixel."""
    places = [x[:, :, h, w] for h in range(x.shape[2]) for w in range(x.shape[3])]
    return torch.stack(places, 1)


def pixel_rows(t, height):
    """The image of a sequence, row by row."""
    w = t.shape[1] // height
    return torch.stack([t[:, i * w : (i + 1) * w] for i in range(height)], 1).movedim(3, 1)


def both_ways(answer, x):
    wanted = rows(x)
    with advising(RuntimeError, saying="view size is not compatible", hint=VIEW):
        got = answer.tokens(x)
    expect_shape(got, wanted.shape, name="tokens(x)", hint=ORDER)
    expect_close(got, wanted, name="tokens(x)", hint=ORDER)
    back = answer.image(wanted, x.shape[2])
    expect_shape(back, x.shape, name="image(t, height)", hint=BACK)
    expect_close(back, x, name="image(t, height)", hint=BACK)


@check(
    "a sequence of pixels",
    holds=[
        "tokens takes (N, C, H, W) and returns (N, H·W, C)",
        "the pixels of a row side by side, row after row",
        "x: (N, C, H, W) -> (N, H * W, C).",
    ],
)
def order(answer, rng, device):
    x = pixels(rng, device)
    wanted = rows(x)
    got = answer.tokens(x)
    expect_shape(got, wanted.shape, name="tokens(x)", hint=ORDER)
    expect_close(got, wanted, name="tokens(x)", hint=ORDER)


@check("the input stays as it is", holds="Neither changes its input.", both_sides=True)
def untouched(answer, rng, device):
    x = pixels(rng, device)
    t = rows(x)
    for tensor, call in ((x, lambda: answer.tokens(x)), (t, lambda: answer.image(t, x.shape[2]))):
        was = tensor.shape, tensor.stride()
        with expect_unchanged(tensor, hint=KEEP):
            call()
        text = "the input has another shape, or other strides, after the call"
        expect_true((tensor.shape, tensor.stride()) == was, text, hint=KEEP)


@check(
    "the way back",
    holds=[
        "image is the way back, from (N, H·W, C) to (N, C, H, W).",
        "t: (N, H * W, C) -> (N, C, H, W) with H = height.",
    ],
)
def back(answer, rng, device):
    for shape in (sizes(rng), (1, 4, 1, 6), (2, 1, 7, 1), (1, 1, 3, 5)):
        both_ways(answer, pixels(rng, device, *shape))


@check(
    "tokens shares memory in both formats",
    holds="The result shares the memory of x, if x is contiguous in one format or the other.",
    both_sides=True,
)
def shared(answer, rng, device):
    x = pixels(rng, device)
    expect_view(answer.tokens(x), x, name="tokens of a contiguous x", hint=SHARE)
    y = x.to(memory_format=LASTS)
    expect_view(answer.tokens(y), y, name="tokens of a channels_last x", hint=SHARE)
    expect_close(answer.tokens(y), rows(y), name="tokens of a channels_last x", hint=ORDER)


@check(
    "tokens of channels_last are contiguous",
    holds="For a channels_last x it is contiguous itself.",
)
def in_order(answer, rng, device):
    y = pixels(rng, device).to(memory_format=LASTS)
    expect_true(answer.tokens(y).is_contiguous(), "tokens(x) is not contiguous", hint=LAST)


@check(
    "image shares the memory of its input",
    holds="Its result always shares the memory of t.",
    both_sides=True,
)
def image_shares(answer, rng, device):
    n, c, h, w = sizes(rng)
    t = pixels(rng, device, n, h * w, c)
    expect_view(answer.image(t, h), t, name="image(t, height)", hint=SHARE)
    turned = pixels(rng, device, n, c, h * w).transpose(1, 2)
    expect_view(answer.image(turned, h), turned, name="image of a transposed t", hint=SHARE)
    part = pixels(rng, device, n, h * w + 2, 2 * c)[:, 1:-1, ::2]
    expect_view(answer.image(part, h), part, name="image of a part", hint=SHARE)
    expect_close(answer.image(part, h), pixel_rows(part, h), name="image of a part", hint=START)


@check(
    "image of a contiguous sequence is channels_last",
    holds="For a contiguous t it is contiguous in channels_last.",
)
def image_last(answer, rng, device):
    n, c, h, w = sizes(rng)
    got = answer.image(pixels(rng, device, n, h * w, c), h)
    text = f"image(t, height) has the strides {got.stride()}, which are not channels_last"
    expect_true(got.is_contiguous(memory_format=LASTS), text, hint=LAST)


@check(
    "any strides, any dtype",
    holds="x and t may have any strides and any dtype",
    both_sides=True,
)
def layouts(answer, rng, device):
    n, c, h, w = sizes(rng)
    for dtype in (torch.float16, torch.bfloat16, torch.int64, torch.bool):
        both_ways(answer, pixels(rng, device, n, c, h, w, dtype=dtype))
    x = pixels(rng, device, n, c, 2 * h, w + 3)
    both_ways(answer, x[:, :, ::2, 1:-2])
    both_ways(answer, x.transpose(2, 3))
    both_ways(answer, x[:1].expand(3, -1, -1, -1))
    t = pixels(rng, device, n, c, h * w).transpose(1, 2)
    expect_close(answer.image(t, h), pixel_rows(t, h), name="image of a transposed t", hint=BACK)


@check(
    "gradients flow", holds="and gradients flow through both functions", both_sides=True, hint=GRAD
)
def gradients(answer, rng, device):
    x = pixels(rng, device).requires_grad_()
    weight = torch.randn(rows(x).shape, device=device)
    t = answer.tokens(x)
    expect_true(t.grad_fn is not None, "tokens(x) has no graph", hint=GRAD)
    wanted = torch.autograd.grad((rows(x) * weight).sum(), x)[0]
    with advising(RuntimeError, hint=GRAD):
        got = torch.autograd.grad((t * weight).sum(), x)[0]
    expect_close(got, wanted, name="the gradient of x", hint=GRAD)
    t = rows(x).detach().requires_grad_()
    y = answer.image(t, x.shape[2])
    expect_true(y.grad_fn is not None, "image(t, height) has no graph", hint=GRAD)
    weight = torch.randn(x.shape, device=device)
    with advising(RuntimeError, hint=GRAD):
        got = torch.autograd.grad((y * weight).sum(), t)[0]
    expect_close(got, rows(weight), name="the gradient of t", hint=GRAD)


@mutant("gives the elements a new shape, in their order", caught_by=order)
def tokens(x):
    return x.reshape(x.shape[0], -1, x.shape[1])


@mutant("goes down the columns", caught_by=order)
def tokens(x):
    return x.permute(0, 3, 2, 1).flatten(1, 2)


@mutant("copies", caught_by=shared)
def tokens(x):
    return x.permute(0, 2, 3, 1).flatten(1, 2).clone()


@mutant("makes the input contiguous first", caught_by=shared)
def tokens(x):
    return x.contiguous().permute(0, 2, 3, 1).flatten(1, 2)


@mutant("makes the input channels_last first", caught_by=shared)
def tokens(x):
    return x.contiguous(memory_format=torch.channels_last).permute(0, 2, 3, 1).flatten(1, 2)


@mutant("refuses what cannot be viewed", caught_by=layouts)
def tokens(x):
    n, c, h, w = x.shape
    return x.permute(0, 2, 3, 1).view(n, h * w, c)


@mutant("cuts the graph", caught_by=gradients)
def tokens(x):
    return x.detach().permute(0, 2, 3, 1).flatten(1, 2)


@mutant("gives the elements of the sequence a new shape", caught_by=back)
def image(t, height):
    n, length, c = t.shape
    return t.reshape(n, c, height, length // height)


@mutant("takes the height for the width", caught_by=back)
def image(t, height):
    return t.unflatten(1, (-1, height)).permute(0, 3, 1, 2)


@mutant("swaps rows and columns", caught_by=back)
def image(t, height):
    return t.unflatten(1, (-1, height)).permute(0, 3, 2, 1)


@mutant("returns a contiguous image", caught_by=image_shares)
def image(t, height):
    return t.unflatten(1, (height, -1)).permute(0, 3, 1, 2).contiguous()


@mutant("makes the sequence contiguous first", caught_by=image_shares)
def image(t, height):
    return t.contiguous().unflatten(1, (height, -1)).permute(0, 3, 1, 2)


@mutant("moves the channels of the input itself", caught_by=untouched)
def tokens(x):
    n, c, h, w = x.shape
    return x.transpose_(1, 2).transpose_(2, 3).reshape(n, h * w, c)


@mutant("computes strides as if the input were contiguous", caught_by=shared)
def tokens(x):
    n, c, h, w = x.shape
    return x.as_strided((n, h * w, c), (c * h * w, 1, h * w))


@mutant("takes rows for joined that are not", caught_by=layouts)
def tokens(x):
    n, c, h, w = x.shape
    first, second, _, fourth = x.stride()
    return x.as_strided((n, h * w, c), (first, fourth, second), x.storage_offset())


@mutant("records no graph", caught_by=gradients)
@torch.no_grad()
def tokens(x):
    return x.permute(0, 2, 3, 1).flatten(1, 2)


@mutant("makes the result contiguous in both formats", caught_by=shared)
def tokens(x):
    return x.permute(0, 2, 3, 1).flatten(1, 2).contiguous()


@mutant("begins a part at the start of the memory", caught_by=image_shares)
def image(t, height):
    n, length, c = t.shape
    first, second, third = t.stride()
    width = length // height
    return t.as_strided((n, c, height, width), (first, third, width * second, second), 0)


@mutant("takes the sequence for contiguous", caught_by=image_shares)
def image(t, height):
    n, length, c = t.shape
    w = length // height
    return t.as_strided((n, c, height, w), (length * c, 1, w * c, c), t.storage_offset())


@mutant("copies the image into channels_last", caught_by=image_shares)
def image(t, height):
    y = t.unflatten(1, (height, -1)).permute(0, 3, 1, 2)
    return y.contiguous(memory_format=torch.channels_last)


@mutant("computes in float32", caught_by=layouts)
def image(t, height):
    return t.float().unflatten(1, (height, -1)).permute(0, 3, 1, 2)


@hinted(1, reaches=order)
def tokens(x):
    n, c, h, w = x.shape
    return x.movedim(1, 3).reshape(n, h * w, c)


@accepted("flattens the pixels first")
def tokens(x):
    return x.flatten(2).transpose(1, 2)


@accepted("reshapes after movedim")
def tokens(x):
    return x.movedim(1, -1).reshape(x.shape[0], -1, x.shape[1])


@accepted("turns the sequence first")
def image(t, height):
    return t.mT.unflatten(-1, (height, -1))


@accepted("views with all sizes")
def image(t, height):
    n, length, c = t.shape
    return t.view(n, height, length // height, c).movedim(-1, 1)


@accepted("computes the strides of the image from those of the sequence")
def image(t, height):
    n, length, c = t.shape
    first, second, third = t.stride()
    w = length // height
    strides = (first, third, w * second, second)
    return t.as_strided((n, c, height, w), strides, t.storage_offset())
