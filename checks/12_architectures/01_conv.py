"""Judges lessons/12_architectures/01_conv.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_dtype,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("Calls of PyTorch's own convolutions are refused.")

SIZE = "Each side has (size + 2 * pad - k) // stride + 1 places, with its own size and its own k."
CHANNELS = "w is (O, C, kh, kw): each of the O kernels is summed over all C input channels."
FLIP = (
    "The kernel meets the patch as it stands, upper left with upper left. And rows are rows: "
    "kh goes with H, kw with W."
)
BIAS = "One number of b for each output channel, at every place; none if b is None."
STRIDE = "The next patch begins `stride` further on, in both directions."
PAD = "`pad` zeros on each of the four sides, before patches are taken."
OWN = "The tensors belong to the caller: write into none of them."


def problem(rng, device, size, k, dtype=torch.float32, n=None, grad=False, c=None):
    """Images, kernels, bias of these sizes, with fresh numbers of images and channels."""
    n = rng.randint(2, 4) if n is None else n
    c = rng.randint(1, 4) if c is None else c
    o = rng.choice([m for m in range(1, 6) if m != c])
    x = torch.randn(n, c, *size, device=device).to(dtype)
    w = (torch.randn(o, c, *k, device=device) / (c * k[0] * k[1]) ** 0.5).to(dtype)
    b = torch.randn(o, device=device).to(dtype)
    return tuple(t.requires_grad_(grad) for t in (x, w, b))


def wanted(x, w, b, stride=1, pad=0):
    """The same in float64."""
    b = None if b is None else b.double()
    return F.conv2d(x.double(), w.double(), b, stride=stride, padding=pad)


def compare(answer, x, w, b, stride, pad, hint, **near):
    right = wanted(x, w, b, stride, pad)
    with expect_unchanged(*(t for t in (x, w, b) if t is not None), hint=OWN):
        got = answer.conv2d(x, w, b, stride, pad)
    expect_shape(got, right.shape, hint=SIZE)
    expect_close(got, right.to(got.device), dtype=x.dtype, hint=hint, **near)


@check(
    "one kernel, one channel: patch times kernel",
    forbid=("torch.conv2d", "torch.conv1d", "torch.conv3d", "torch.conv_transpose2d"),
    counts_calls=True,
    holds=["Write `conv2d`", "Cross-correlate images with kernels"],
)
def correlates(answer, rng, device):
    size, k = rng.choice([((6, 6), (3, 3)), ((5, 7), (2, 2)), ((4, 4), (4, 4))])
    x = torch.randn(1, 1, *size, device=device)
    w = torch.randn(1, 1, *k, device=device)
    right = wanted(x, w, None)
    got = answer.conv2d(x, w)  # the defaults: no bias, stride 1, no padding
    expect_shape(got, right.shape, hint=SIZE)
    expect_close(got, right, dtype=x.dtype, hint=FLIP)
    borrowed = [name for name in answer.calls if "conv" in name]
    message = f"the program calls torch's own {''.join(borrowed[:1])}"
    expect_true(not borrowed, message, hint="Windows and one product are all it takes.")


@check(
    "all channels, all kernels, all images of the batch",
    holds=["for batches", "x: (N, C, H, W), w: (O, C, kh, kw)"],
)
def channels(answer, rng, device):
    for n in (1, 3):
        x, w, _ = problem(rng, device, (6, 6), (3, 3), n=n)
        compare(answer, x, w, None, 1, 0, CHANNELS)
    x = torch.randn(3, 3, 5, 5, device=device)  # as many kernels as channels
    w = torch.randn(3, 3, 2, 2, device=device)
    compare(answer, x, w, None, 1, 0, CHANNELS)


@check(
    "images and kernels that are not square",
    holds="The numbers of rows and columns may differ, in the image as in the kernel",
)
def oblong(answer, rng, device):
    for size, k in (((7, 4), (2, 3)), ((5, 9), (4, 1)), ((4, 6), (1, 5)), ((6, 6), (3, 2))):
        x, w, _ = problem(rng, device, size, k)
        compare(answer, x, w, None, 1, 0, FLIP)


@check(
    "a bias for each output channel, or none",
    holds="b: (O,), or None for no bias",
    both_sides=True,
)
def bias(answer, rng, device):
    x, w, b = problem(rng, device, (5, 6), (2, 3), c=rng.randint(2, 4))
    hint = "Ask `b is not None`: a tensor of several numbers is neither true nor false."
    with advising(RuntimeError, saying="Boolean value of Tensor", hint=hint):
        compare(answer, x, w, b, 1, 0, BIAS)
        compare(answer, x, w, None, 1, 0, BIAS)


@check(
    "stride",
    holds=["with padding and stride", "the step between patches in both directions"],
    both_sides=True,
)
def strides(answer, rng, device):
    for size, k, stride in (((7, 8), (3, 2), 2), ((9, 9), (3, 3), 3), ((6, 5), (1, 1), 2)):
        x, w, b = problem(rng, device, size, k)
        compare(answer, x, w, b, stride, 0, STRIDE)


@check(
    "padding, alone and with a stride",
    holds=["with padding and stride", "rows and columns of zeros on each of the four sides"],
    both_sides=True,
)
def padding(answer, rng, device):
    for size, k, stride, pad in (
        ((5, 6), (3, 3), 1, 1),
        ((8, 7), (3, 5), 2, 2),
        ((2, 3), (3, 4), 1, 3),
    ):
        x, w, b = problem(rng, device, size, k)
        compare(answer, x, w, b, stride, pad, PAD)


@check(
    "views that are not contiguous",
    holds="Any of the tensors may be a view that is not contiguous",
    both_sides=True,
)
def strided(answer, rng, device):
    x, w, b = problem(rng, device, (6, 5), (2, 3), c=rng.randint(2, 4))
    x = x.permute(0, 2, 3, 1).contiguous().permute(0, 3, 1, 2)  # channels last
    w = w.mT.contiguous().mT
    b = b.repeat_interleave(2)[::2]
    hint = "The memory order of an input is not its meaning: reshape where view fails."
    compare(answer, x, w, b, 2, 1, hint)
    compare(answer, x, w, b, 1, 0, hint)


@check("the inputs stay as they are", holds="and none of them is changed")
def untouched(answer, rng, device):
    x, w, b = problem(rng, device, (6, 5), (3, 2))
    with expect_unchanged(x, w, b, hint=OWN):
        answer.conv2d(x, w, b, rng.randint(1, 2), 1)


@check(
    "the dtype and device of x",
    holds=["The result has the dtype of `x`, and lies on its device", "float64 keeps its digits"],
    both_sides=True,
)
def dtypes(answer, rng, device):
    hint = "Make new tensors with x.new_zeros(...) or zeros_like, and convert nothing."
    for dtype in (torch.float64, torch.bfloat16, torch.float32):
        near = {"rtol": 3e-2, "atol": 6e-2} if dtype == torch.bfloat16 else {}
        near = {"rtol": 1e-10, "atol": 1e-10} if dtype == torch.float64 else near
        x, w, b = problem(rng, device, (5, 4), (3, 2), dtype)
        got = answer.conv2d(x, w, b, 1, 1)
        expect_dtype(got, dtype, name=f"the result for {dtype}", hint=hint)
        compare(answer, x, w, b, 1, 1, hint, **near)


@check(
    "gradients flow to x, w and b",
    holds="Gradients flow to `x`, `w` and `b`",
    both_sides=True,
)
def gradients(answer, rng, device):
    x, w, b = problem(rng, device, (6, 7), (3, 2), torch.float64, grad=True)
    got = answer.conv2d(x, w, b, 2, 1)
    right = F.conv2d(x, w, b, stride=2, padding=1)
    hint = "Compute with the tensors themselves: no detach(), no .data, no item(), no no_grad()."
    expect_true(got.requires_grad, "the result has no graph", hint=hint)
    seed = torch.randn_like(right)
    mine = torch.autograd.grad(got, (x, w, b), seed, allow_unused=True)
    torchs = torch.autograd.grad(right, (x, w, b), seed)
    for name, g, t in zip("xwb", mine, torchs, strict=True):
        expect_true(g is not None, f"no gradient reaches {name}", hint=hint)
        expect_close(g, t, name=f"the gradient of {name}", hint=hint)


def by_windows(x, w, stride, pad, equation="nchwij,ocij->nohw"):
    x = F.pad(x, (pad, pad, pad, pad))
    windows = x.unfold(2, w.shape[2], stride).unfold(3, w.shape[3], stride)
    return torch.einsum(equation, windows, w)


@mutant("turns the kernel", caught_by=correlates)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w.flip(2, 3), stride, pad)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("sums a channel at a time into one map", caught_by=channels)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w.sum(1, keepdim=True).expand(w.shape), stride, pad)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("takes the weight for (C, O, kh, kw)", caught_by=channels)
def conv2d(x, w, b=None, stride=1, pad=0):
    w = w.transpose(0, 1).reshape(w.shape)
    y = by_windows(x, w, stride, pad)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("swaps the kernel's rows and columns", caught_by=oblong)
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad, pad, pad, pad))
    windows = x.unfold(2, w.shape[3], stride).unfold(3, w.shape[2], stride)
    y = torch.einsum("nchwji,ocij->nohw", windows, w)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("forgets the bias", caught_by=bias)
def conv2d(x, w, b=None, stride=1, pad=0):
    return by_windows(x, w, stride, pad)


@mutant("adds the bias along the last dimension", caught_by=bias)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w, stride, pad)
    return y if b is None else y + b.view(-1, 1, 1).sum() / len(b)


@mutant("ignores the stride", caught_by=strides)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w, 1, pad)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("strides along one side only", caught_by=strides)
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad, pad, pad, pad))
    windows = x.unfold(2, w.shape[2], stride).unfold(3, w.shape[3], 1)
    y = torch.einsum("nchwij,ocij->nohw", windows, w)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("pads after the product", caught_by=padding)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = F.pad(by_windows(x, w, stride, 0), (pad, pad, pad, pad))
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("pads the right and the bottom only", caught_by=padding)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(F.pad(x, (0, 2 * pad, 0, 2 * pad)), w, stride, 0)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("repeats the border in place of zeros", caught_by=padding)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(F.pad(x, (pad, pad, pad, pad), mode="replicate"), w, stride, 0)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("views the memory of the weight", caught_by=strided)
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad, pad, pad, pad))
    windows = x.unfold(2, w.shape[2], stride).unfold(3, w.shape[3], stride)
    rows = windows.permute(0, 2, 3, 1, 4, 5).flatten(3)
    y = (rows @ w.view(len(w), -1).T).permute(0, 3, 1, 2)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("takes the memory of x for contiguous", caught_by=strided)
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad,) * 4) if pad else x
    straight = torch.empty(x.shape).stride()
    y = by_windows(x.as_strided(x.shape, straight), w, stride, 0)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("fills a float32 result", caught_by=dtypes)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x.float(), w.float(), stride, pad)
    return y if b is None else y + b.float().view(-1, 1, 1)


@mutant("computes in float32, and converts at the end", caught_by=dtypes)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x.float(), w.float(), stride, pad)
    return (y if b is None else y + b.float().view(-1, 1, 1)).to(x.dtype)


@mutant("adds the bias once for each input channel", caught_by=bias)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w, stride, pad)
    return y if b is None else y + x.shape[1] * b.view(-1, 1, 1)


@mutant("asks whether the bias is true", caught_by=bias)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w, stride, pad)
    return y + b.view(-1, 1, 1) if b else y


@mutant("scales the caller's kernels", caught_by=untouched)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w.data.mul_(2), stride, pad) / 2
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("cuts the graph", caught_by=gradients)
def conv2d(x, w, b=None, stride=1, pad=0):
    y = by_windows(x, w.detach(), stride, pad)
    return y if b is None else y + b.view(-1, 1, 1)


@mutant("leaves it to torch", caught_by=correlates)
def conv2d(x, w, b=None, stride=1, pad=0):
    return F.conv2d(x, w, b, stride=stride, padding=pad)


@mutant("calls the convolution under its general name", caught_by=correlates)
def conv2d(x, w, b=None, stride=1, pad=0):
    both = [stride] * 2, [pad] * 2, [1, 1]
    return torch.ops.aten.convolution(x, w, b, *both, False, [0, 0], 1)


@accepted("windows by as_strided, F.linear over flat patches")
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad,) * 4).contiguous()
    n, c, height, width = x.shape
    kh, kw = w.shape[2:]
    h, v = (height - kh) // stride + 1, (width - kw) // stride + 1
    one, channel, row, column = x.stride()
    steps = (one, row * stride, column * stride, channel, row, column)
    patches = x.as_strided((n, h, v, c, kh, kw), steps).reshape(n, h, v, -1)
    return F.linear(patches, w.reshape(len(w), -1), b).permute(0, 3, 1, 2)


@accepted("columns of F.unfold, one matrix product")
def conv2d(x, w, b=None, stride=1, pad=0):
    n, _, height, width = x.shape
    o, _, kh, kw = w.shape
    h = (height + 2 * pad - kh) // stride + 1
    columns = F.unfold(x, (kh, kw), stride=stride, padding=pad)
    y = w.reshape(o, -1) @ columns
    if b is not None:
        y = y + b[:, None]
    return y.reshape(n, o, h, (width + 2 * pad - kw) // stride + 1)


@accepted("a loop over the places of the kernel")
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad,) * 4)
    o, _, kh, kw = w.shape
    h = (x.shape[2] - kh) // stride + 1
    v = (x.shape[3] - kw) // stride + 1
    y = x.new_zeros(x.shape[0], o, h, v)
    for i in range(kh):
        for j in range(kw):
            part = x[:, :, i : i + stride * h : stride, j : j + stride * v : stride]
            y = y + (part.movedim(1, -1) @ w[:, :, i, j].T).movedim(-1, 1)
    return y if b is None else y + b[None, :, None, None]


@accepted("a loop over the places of the output")
def conv2d(x, w, b=None, stride=1, pad=0):
    x = F.pad(x, (pad,) * 4)
    kh, kw = w.shape[2:]
    rows = []
    for i in range(0, x.shape[2] - kh + 1, stride):
        row = []
        for j in range(0, x.shape[3] - kw + 1, stride):
            patch = x[:, None, :, i : i + kh, j : j + kw]
            row.append((patch * w).sum((2, 3, 4)))
        rows.append(torch.stack(row, -1))
    y = torch.stack(rows, -2)
    return y if b is None else y + b.view(1, -1, 1, 1)


@hinted(1, reaches=correlates)
def conv2d(x, w, b=None, stride=1, pad=0):
    H, W = x.shape[2:]
    kh, kw = w.shape[2:]
    y = x.new_zeros(len(x), len(w), H - kh + 1, W - kw + 1)
    for i in range(H - kh + 1):
        for j in range(W - kw + 1):
            y[0, 0, i, j] = (x[0, 0, i : i + kh, j : j + kw] * w[0, 0]).sum()
    return y
