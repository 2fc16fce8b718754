"""Judges lessons/01_tensors/07_reshape.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_shape,
    expect_view,
    hinted,
    mutant,
)

background(
    "Write the way there and the way back.",
    "`x.transpose(i, j)` swaps",
    "The starter's two functions",
    "A round trip does not test the middle.",
)


def numbers(rng, device, *shape):
    """Different whole numbers in random order, floats or integers."""
    count = torch.Size(shape).numel()
    dtype = rng.choice([torch.float32, torch.float64, torch.int64])
    return (torch.randperm(count) - count // 2).to(device, dtype).reshape(shape)


def laid_out(rng, device, *shape):
    """The same in another order in memory: reversed, and with gaps."""
    back = range(len(shape) - 1, -1, -1)
    turned = numbers(rng, device, *shape[::-1]).permute(*back)
    wide = numbers(rng, device, *shape[:-1], 2 * shape[-1])
    return turned, wide[..., ::2]


def heads_of(x, H):
    """What splitting gives, head by head."""
    D = x.shape[2] // H
    return torch.stack([x[:, :, h * D : (h + 1) * D] for h in range(H)], 1)


def tokens_of(y):
    """What merging gives: the heads side by side."""
    return torch.cat([y[:, h] for h in range(y.shape[1])], -1)


def sizes(rng):
    """B, H, T and D: different, from 2 on."""
    return rng.sample(range(2, 7), 4)


LAYOUT = "A tensor may be laid out in memory in another order than its dimensions. Where the "
LAYOUT += "numbers are not in the order of the result, they have to be copied."
MERGED = (
    "Entry [b, t, h*D + d] is y[b, h, t, d]. H and D can be merged once they are neighbours, "
    "in this order."
)


def compare_split(answer, x, H, **hints):
    expect_equal(answer.split_heads(x, H), heads_of(x, H), name="split_heads", **hints)


def compare_merge(answer, y, **hints):
    with advising(RuntimeError, saying="view size is not compatible", hint=LAYOUT):
        expect_equal(answer.merge_heads(y), tokens_of(y), name="merge_heads", **hints)


@check("split_heads gives (B, H, T, D)", holds="returns: (B, H, T, D)")
def split_shape(answer, rng, device):
    B, H, T, D = sizes(rng)
    x = numbers(rng, device, B, T, H * D)
    expect_shape(
        answer.split_heads(x, H),
        (B, H, T, D),
        name="split_heads",
        hint="After the channels are cut, T still stands before H.",
    )


@check(
    "a head holds neighbouring channels of every token",
    holds=[
        "are cut into H neighbouring groups of D, a group for a head",
        "Cut the channels into heads.",
        "Head h holds the channels h * D to (h + 1) * D of every token",
    ],
)
def split_values(answer, rng, device):
    B, H, T, D = sizes(rng)
    x = torch.arange(B * T * H * D, device=device).reshape(B, T, H * D)
    compare_split(
        answer,
        x,
        H,
        hint="Head h is x[:, :, h*D : (h+1)*D]. If its rows mix tokens, T was regrouped "
        "together with C. If its channels are H apart, C was cut into (D, H).",
    )


@check("equal sizes hide no mistake in split_heads")
def split_equal_sizes(answer, rng, device):
    n = rng.randint(2, 4)
    x = numbers(rng, device, n, n, n * n)
    compare_split(
        answer,
        x,
        n,
        hint="H, T and D are equal here, so a wrong order of dimensions has the right "
        "shape. Entry [b, h, t, d] is x[b, t, h*D + d].",
    )


@check("split_heads copies nothing", holds="a view of x")
def split_is_view(answer, rng, device):
    B, H, T, D = sizes(rng)
    x = numbers(rng, device, B, T, H * D)
    expect_view(
        answer.split_heads(x, H),
        x,
        name="split_heads",
        hint="Cutting a dimension and swapping two only change how memory is read. "
        "Some call in your answer puts the numbers into new memory.",
    )


@check(
    "merge_heads puts the heads of a token side by side",
    holds=["Put a token's heads side by side again.", "returns: (B, T, H * D)"],
)
def merge_values(answer, rng, device):
    B, H, T, D = sizes(rng)
    y = torch.arange(B * H * T * D, device=device).reshape(B, H, T, D)
    compare_merge(answer, y, hint=MERGED)


@check("equal sizes hide no mistake in merge_heads")
def merge_equal_sizes(answer, rng, device):
    n = rng.randint(2, 4)
    compare_merge(answer, numbers(rng, device, n, n, n, n), hint=MERGED)


@check("split_heads takes any layout in memory", holds="any dtype, any layout in memory")
def split_layouts(answer, rng, device):
    B, H, T, D = sizes(rng)
    hint = "No layout makes a copy necessary: cut C where it stands. `contiguous()` copies, and so "
    hint += "does merging B and T first."
    strides = "The numbers of x lie in another order in memory here, and with gaps. Strides that "
    strides += "you write down come from x.stride(), and the offset from x."
    with advising(RuntimeError, saying="view size is not compatible", hint=hint):
        for x in laid_out(rng, device, B, T, H * D):
            compare_split(answer, x, H, hint=strides)
            expect_view(answer.split_heads(x, H), x, name="split_heads", hint=hint)


@check("merge_heads takes any layout in memory", holds="laid out in memory in any way")
def merge_layouts(answer, rng, device):
    B, H, T, D = sizes(rng)
    for y in (
        numbers(rng, device, B, T, H, D).transpose(1, 2),
        *laid_out(rng, device, B, H, T, D),
        numbers(rng, device, B, H, T, D),
        numbers(rng, device, B, H, 1, D).expand(B, H, T, D),
    ):
        compare_merge(answer, y, hint=MERGED)


@check("any dtype goes", holds="any dtype, laid out")
def dtypes(answer, rng, device):
    hint = "Rearranging needs no arithmetic, so the dtype stays what it was."
    x = torch.arange(48, device=device).reshape(2, 4, 6) % 5
    for dtype in (torch.bool, torch.uint8, torch.bfloat16, torch.float16, torch.complex64):
        compare_split(answer, x.to(dtype), 3, dtype_hint=hint)
        compare_merge(answer, x.to(dtype).reshape(1, 2, 4, 6), dtype_hint=hint)


@check("sizes of 1 stay", holds="Sizes may be 1")
def ones(answer, rng, device):
    hint = "A batch of one, a text of one token, one head or one channel: still a dimension."
    for B, H, T, D in ((1, 2, 3, 2), (2, 1, 3, 2), (2, 3, 1, 2), (2, 3, 2, 1), (1, 1, 1, 1)):
        compare_split(answer, numbers(rng, device, B, T, H * D), H, shape_hint=hint)
        compare_merge(answer, numbers(rng, device, B, H, T, D), shape_hint=hint)


@check("an empty text stays empty", holds="and T may be 0")
def empty_text(answer, rng, device):
    B, H, _, D = sizes(rng)
    keeps = "T is 0 here, while B, H and D keep their sizes."
    hint = "-1 cannot be worked out from 0 elements, but each size can, from the shape."
    with advising(RuntimeError, saying="-1", hint=f"{keeps} {hint}"):
        compare_split(answer, torch.zeros(B, 0, H * D, device=device), H, shape_hint=keeps)
        compare_merge(answer, torch.zeros(B, H, 0, D, device=device), shape_hint=keeps)


@mutant("regroups T together with the channels", caught_by=split_values)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, H, T, C // H)


@mutant("deals the channels out in turn", caught_by=split_values)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, C // H, H).permute(0, 3, 1, 2)


@mutant("forgets the transpose", caught_by=split_shape)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H)


@mutant("swaps the last two dimensions", caught_by=split_equal_sizes)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(-1, -2)


@mutant("makes the result contiguous", caught_by=split_is_view)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(1, 2).contiguous()


@mutant("stacks slices", caught_by=split_is_view)
def split_heads(x, H):
    return torch.stack(x.chunk(H, dim=-1), 1)


@mutant("merges B and T before it cuts", caught_by=split_layouts)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B * T, H, C // H).unflatten(0, (B, T)).transpose(1, 2)


@mutant("puts the groups into a new float tensor", caught_by=split_is_view)
def split_heads(x, H):
    B, T, C = x.shape
    out = x.new_empty(B, H, T, C // H)
    for h in range(H):
        out[:, h] = x[..., h * C // H : (h + 1) * C // H]
    return out


@mutant("squeezes the result", caught_by=ones)
def split_heads(x, H):
    B, T, C = x.shape
    return x.reshape(B, T, H, C // H).transpose(1, 2).squeeze()


@mutant("leaves the last size to -1", caught_by=empty_text)
def split_heads(x, H):
    B, T, _ = x.shape
    return x.reshape(B, T, H, -1).transpose(1, 2)


@mutant("merges without transposing back", caught_by=merge_values)
def merge_heads(y):
    B, H, T, D = y.shape
    return y.reshape(B, T, H * D)


@mutant("merges with the heads inside", caught_by=merge_values)
def merge_heads(y):
    B, H, T, D = y.shape
    return y.permute(0, 2, 3, 1).reshape(B, T, H * D)


@mutant("moves the channels of a head in front of the tokens", caught_by=merge_equal_sizes)
def merge_heads(y):
    return y.permute(0, 3, 1, 2).flatten(2)


@mutant("fills a float32 tensor", caught_by=dtypes)
def merge_heads(y):
    B, H, T, D = y.shape
    out = torch.empty(B, T, H * D, device=y.device)
    for h in range(H):
        out[..., h * D : (h + 1) * D] = y[:, h]
    return out


@mutant("leaves the merged size to -1", caught_by=empty_text)
def merge_heads(y):
    return y.transpose(1, 2).reshape(y.shape[0], y.shape[2], -1)


@mutant("squeezes what it has merged", caught_by=ones)
def merge_heads(y):
    B, H, T, D = y.shape
    return y.transpose(1, 2).reshape(B, T, H * D).squeeze(0)


@mutant("views what is out of order", caught_by=merge_layouts)
def merge_heads(y):
    B, H, T, D = y.shape
    return y.transpose(1, 2).view(B, T, H * D)


@accepted("names the split with unflatten")
def split_heads(x, H):
    return x.unflatten(-1, (H, x.shape[-1] // H)).movedim(2, 1)


@accepted("permutes, and reshapes instead of view")
def split_heads(x, H):
    B, T, C = x.shape
    return torch.reshape(x, (B, T, H, C // H)).permute(0, 2, 1, 3)


@accepted("flattens two neighbours")
def merge_heads(y):
    return y.permute(0, 2, 1, 3).flatten(2)


@accepted("joins the heads along the last dimension")
def merge_heads(y):
    return torch.cat(y.unbind(1), dim=-1)


@hinted(1, reaches=split_layouts)
def split_heads(x, H):
    B, T, C = x.shape
    x = x.view(B, T, H, C // H)
    return x.transpose(1, 2)


@accepted("says the strides itself")
def split_heads(x, H):
    D = x.shape[2] // H
    step = x.stride()
    return x.as_strided(
        (x.shape[0], H, x.shape[1], D),
        (step[0], step[2] * D, step[1], step[2]),
        x.storage_offset(),
    )


@accepted("copies head by head into a tensor of the same dtype")
def merge_heads(y):
    B, H, T, D = y.shape
    out = torch.empty(B, T, H * D, dtype=y.dtype, device=y.device)
    for h in range(H):
        out[..., h * D : (h + 1) * D] = y[:, h]
    return out


@accepted("makes the swapped dimensions contiguous, and views them")
def merge_heads(y):
    B, H, T, D = y.shape
    return y.transpose(1, 2).contiguous().view(B, T, H * D)
