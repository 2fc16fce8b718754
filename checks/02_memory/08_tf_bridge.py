"""Judges lessons/02_memory/08_tf_bridge.md."""

import torch
from torch.nn import functional

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_unchanged,
    hinted,
    mutant,
)

shows = ["tensors/permute_join"]

background(
    "Write the three functions that carry a convolutional network over",
    "The starter runs, and each shape that it prints is right.",
    "None of its three functions is.",
    "unflatten(0, (a, b, -1)) splits dimension 0 into three.",
    "x.movedim(2, 0) takes dimension 2 out",
    "F.linear(x, weight) is what a dense layer computes",
)

SAME = "Porting moves numbers. It does not convert them."
CHANNELS = (
    "The maps may have any height and width. C is not given: it is the number of rows divided by "
)
CHANNELS += "height * width."
ROWS = "Row (h * W + w) * C + c of Keras's weight belongs to column c * H * W + h * W + w here."


def numbered(device, *shape, dtype=torch.float32):
    """A tensor in which no two values are equal."""
    count = torch.Size(shape).numel()
    return torch.arange(count, device=device).reshape(shape).to(dtype)


def right_images(images):
    """Channel by channel."""
    return torch.stack([images[..., c] for c in range(images.shape[-1])], dim=-3)


def right_kernel(kernel):
    """Output by output, input by input."""
    ins, outs = kernel.shape[-2:]
    rows = [torch.stack([kernel[..., i, o] for i in range(ins)]) for o in range(outs)]
    return torch.stack(rows)


def right_dense(dense, height, width):
    """Column by column."""
    channels = dense.shape[0] // (height * width)
    columns = [
        dense[(h * width + w) * channels + c]
        for c in range(channels)
        for h in range(height)
        for w in range(width)
    ]
    return torch.stack(columns, dim=1)


def expect_images(answer, images, hint):
    with expect_unchanged(images), advising(RuntimeError, saying="number of dim", hint=hint):
        got = answer.images_to_torch(images)
    name = "the batch of images"
    expect_equal(got, right_images(images), name=name, hint=hint, shape_hint=hint, dtype_hint=SAME)


def expect_kernel(answer, kernel, hint):
    with expect_unchanged(kernel), advising(RuntimeError, saying="number of dim", hint=hint):
        got = answer.kernel_to_torch(kernel)
    right = right_kernel(kernel)
    expect_equal(got, right, name="the kernel", hint=hint, shape_hint=hint, dtype_hint=SAME)


def expect_dense(answer, dense, height, width, hint):
    with expect_unchanged(dense), advising(RuntimeError, saying="size", hint=CHANNELS):
        got = answer.dense_to_torch(dense, height, width)
    right = right_dense(dense, height, width)
    units = "PyTorch stores (out, in): each row holds the weights of one unit."
    name = "the dense weight"
    expect_equal(got, right, name=name, hint=hint, shape_hint=units, dtype_hint=SAME)


def keras(images, kernel, dense):
    """What Keras computes: a convolution without padding, a flatten, a dense layer."""
    (n, h, w, _), (kh, kw, _, out) = images.shape, kernel.shape
    maps = images.new_zeros(n, h - kh + 1, w - kw + 1, out)
    for row in range(h - kh + 1):
        for column in range(w - kw + 1):
            patch = images[:, row : row + kh, column : column + kw]
            maps[:, row, column] = torch.einsum("nhwi,hwio->no", patch, kernel)
    return maps.flatten(1) @ dense


@check("every channel of an image stays a picture", holds="(..., H, W, C) to (..., C, H, W)")
def pictures(answer, rng, device):
    n, h, w, c = rng.sample(range(2, 8), 4)
    hint = "C comes to stand right before H. All others keep their order: height stays in front of "
    hint += "width. reshape cannot do that: it reads on in the old order."
    expect_images(answer, numbered(device, n, h, w, c), hint)
    expect_images(answer, numbered(device, n, h, h, h), hint)
    expect_images(answer, numbered(device, n, c, w, h).transpose(1, 3), hint)


@check(
    "a kernel keeps height and width, and its outputs come first",
    holds="(..., in, out) to (out, in, ...)",
)
def kernels(answer, rng, device):
    kh, kw, i, o = rng.sample(range(2, 8), 4)
    hint = "Old positions, in their new order: out is 3, in is 2, kh is 0, kw is 1."
    expect_kernel(answer, numbered(device, kh, kw, i, o), hint)


@check("square kernels hide no mistake", holds="give the numbers that Keras gave")
def square_kernels(answer, rng, device):
    k, i = rng.sample(range(2, 6), 2)
    hint = "With kh = kw or in = out, a wrong permute gives the right shape. Look at the numbers."
    for shape in ((k, k, i, i + 1), (k, k + 1, i, i), (k, k, k, k)):
        expect_kernel(answer, numbered(device, *shape), hint)


@check("the dense weight has a row for each unit", holds="(units, C * H * W)")
def dense_shape(answer, rng, device):
    h, w, c, units = rng.sample(range(2, 8), 4)
    with advising(RuntimeError, saying="size", hint=CHANNELS):
        got = answer.dense_to_torch(numbered(device, h * w * c, units), h, w)
    expect_shape(
        got,
        (units, c * h * w),
        name="the dense weight",
        hint="PyTorch stores (out, in): each row holds the weights of one unit.",
    )


@check(
    "each weight of the dense layer meets its own pixel and channel",
    holds=["its rows in the order (h, w, c)", "for maps flattened in the order (c, h, w)"],
)
def dense_order(answer, rng, device):
    h, w, c, units = rng.sample(range(2, 8), 4)
    expect_dense(answer, numbered(device, h * w * c, units), h, w, ROWS)
    expect_dense(answer, numbered(device, units, h * w * c).T, h, w, ROWS)


@check(
    "one image and clips, kernels of every Conv layer",
    holds=[
        "An image comes alone, in a batch or in a batch of clips.",
        "Kernels come from Conv1D, Conv2D and Conv3D.",
        "for 1 to 3 sizes",
    ],
    both_sides=True,
)
def ranks(answer, rng, device):
    a, b, c, i, o = rng.sample(range(2, 7), 5)
    hint = "Count from the end: the last three dimensions are H, W and C, however many come before."
    for shape in ((a, b, c), (1, b, b), (i, o, a, b, c), (2, 2, 3, a, b, 3)):
        expect_images(answer, numbered(device, *shape), hint)
    hint = "The last two dimensions are in and out, however many sizes come before."
    for shape in ((a, i, o), (a, b, c, i, o), (a, a, a, i, i), (a, i, i)):
        expect_kernel(answer, numbered(device, *shape), hint)


@check("square maps hide no mistake", holds="give the numbers that Keras gave")
def square_maps(answer, rng, device):
    n = rng.randint(2, 5)
    hint = "H, W, C or the units are equal here, so every shape fits. " + ROWS
    expect_dense(answer, numbered(device, n * n * n, n), n, n, hint)
    expect_dense(answer, numbered(device, n * n * 2, n * n * 2), n, n, hint)


@check("sizes of 1 stay, and a batch may be empty", holds="A batch may be empty.")
def ones(answer, rng, device):
    n = rng.randint(2, 5)
    hint = "One channel, one pixel, one unit: each is still a dimension."
    for shape in ((1, n, n + 1, 3), (n, 3, 2, 1), (1, 1, 1, 1), (0, 4, 5, 3)):
        expect_images(answer, numbered(device, *shape), hint)
    for shape in ((1, 1, n, n + 1), (n, 2, 1, 1), (1, n, 1, 3)):
        expect_kernel(answer, numbered(device, *shape), hint)
    for h, w, c, units in ((1, 1, n, 3), (n, 1, 2, 1), (1, n, 1, 2), (n, n + 1, 1, 1)):
        expect_dense(answer, numbered(device, h * w * c, units), h, w, hint)


@check("dtypes stay", holds="No value and no dtype changes.")
def dtypes(answer, rng, device):
    hint = "The values move, whatever their dtype is."
    for dtype in (torch.float64, torch.float16, torch.uint8):
        expect_images(answer, numbered(device, 2, 3, 4, 2, dtype=dtype), hint)
        expect_kernel(answer, numbered(device, 2, 3, 4, 2, dtype=dtype), hint)
        expect_dense(answer, numbered(device, 12, 4, dtype=dtype), 2, 3, hint)


@check(
    "the ported network gives the numbers of the old one",
    holds="The result must work with PyTorch's own order, `flatten(1)` of (N, C, H, W)",
)
def whole(answer, rng, device):
    n, h, w = rng.randint(1, 3), rng.randint(4, 6), rng.randint(7, 9)
    kh, kw, c, out, units = 2, 3, rng.randint(1, 3), rng.randint(2, 4), rng.randint(2, 5)
    images = torch.randn(n, h, w, c, dtype=torch.float64, device=device)
    kernel = torch.randn(kh, kw, c, out, dtype=torch.float64, device=device)
    height, width = h - kh + 1, w - kw + 1
    dense = torch.randn(height * width * out, units, dtype=torch.float64, device=device)
    hint = "One of the three is out of order. The other checks look at them one by one."

    x = answer.images_to_torch(images)
    expect_shape(x, (n, c, h, w), name="the batch of images")
    k = answer.kernel_to_torch(kernel)
    expect_shape(k, (out, c, kh, kw), name="the kernel")
    weight = answer.dense_to_torch(dense, height, width)
    expect_shape(weight, (units, out * height * width), name="the dense weight")
    got = functional.linear(functional.conv2d(x, k).flatten(1), weight)
    expect_close(got, keras(images, kernel, dense), name="the network's output", hint=hint)


@mutant(
    "reshapes the images",
    caught_by=pictures,
    misconception="tensors/permute_join",
    like="reshapes without permute",
)
def images_to_torch(images):
    *lead, h, w, c = images.shape
    return images.reshape(*lead, c, h, w)


@mutant("swaps channels and height", caught_by=pictures)
def images_to_torch(images):
    return images.transpose(-1, -3)


@mutant("drops sizes of 1", caught_by=ones)
def images_to_torch(images):
    return images.movedim(-1, -3).squeeze()


@mutant("works in float32", caught_by=dtypes)
def images_to_torch(images):
    return images.movedim(-1, -3).float()


@mutant("knows a batch of images and nothing else", caught_by=ranks)
def images_to_torch(images):
    return images.permute(0, 3, 1, 2)


@mutant("knows the kernels of Conv2D and no others", caught_by=ranks)
def kernel_to_torch(kernel):
    return kernel.permute(3, 2, 0, 1)


@mutant("puts the channels behind the first dimension", caught_by=ranks)
def images_to_torch(images):
    return images.movedim(-1, 1)


@mutant("puts the inputs first", caught_by=kernels)
def kernel_to_torch(kernel):
    return kernel.movedim((-2, -1), (0, 1))


@mutant("reverses all dimensions of the kernel", caught_by=square_kernels)
def kernel_to_torch(kernel):
    return kernel.permute(*reversed(range(kernel.ndim)))


@mutant("turns the kernel round", caught_by=whole)
def kernel_to_torch(kernel):
    return kernel.movedim((-1, -2), (0, 1)).flip(-2, -1)


@mutant("transposes the dense weight and no more", caught_by=dense_order)
def dense_to_torch(dense, height, width):
    return dense.T


@mutant("reorders the rows and forgets to transpose", caught_by=dense_shape)
def dense_to_torch(dense, height, width):
    maps = dense.reshape(height, width, -1, dense.shape[1])
    return maps.permute(2, 0, 1, 3).flatten(0, 2)


@mutant("splits the rows in PyTorch's order", caught_by=dense_order)
def dense_to_torch(dense, height, width):
    maps = dense.reshape(-1, height, width, dense.shape[1])
    return maps.permute(3, 1, 2, 0).flatten(1)


@mutant("swaps height and width", caught_by=square_maps)
def dense_to_torch(dense, height, width):
    maps = dense.reshape(height, width, -1, dense.shape[1])
    return maps.permute(3, 2, 1, 0).flatten(1)


@hinted(1, reaches=pictures)
def images_to_torch(images):
    return images.movedim(-1, -3)


@accepted("permutes, whatever comes before")
def images_to_torch(images):
    n = images.ndim
    return images.permute(*range(n - 3), n - 1, n - 3, n - 2).contiguous()


@accepted("swaps twice")
def images_to_torch(images):
    return images.mT.transpose(-2, -3)


@accepted("names the two from the end, then the sizes")
def kernel_to_torch(kernel):
    return kernel.permute(-1, -2, *range(kernel.ndim - 2))


@accepted("looks the rows up")
def dense_to_torch(dense, height, width):
    order = torch.arange(len(dense), device=dense.device)
    order = order.reshape(height * width, -1).T.flatten()
    return dense[order].T


@accepted("takes width and height in the other order, for a pixel is a pixel")
def dense_to_torch(dense, height, width):
    maps = dense.reshape(width, height, -1, dense.shape[1])
    return maps.permute(3, 2, 0, 1).flatten(1)


@accepted("moves the channel in the transposed weight")
def dense_to_torch(dense, height, width):
    units = dense.shape[1]
    maps = dense.T.reshape(units, height * width, -1)
    return maps.transpose(1, 2).reshape(units, -1)
