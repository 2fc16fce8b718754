"""Judges lessons/01_tensors/07_reshape.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    check,
    expect_equal,
    expect_shape,
    expect_view,
    mutant,
)


def numbers(rng, device, *shape):
    """Different whole numbers in random order, floats or integers; at times not contiguous."""
    count = torch.Size(shape).numel()
    dtype = rng.choice([torch.float32, torch.float64, torch.int64])
    values = (torch.randperm(count) - count // 2).to(device, dtype)
    if rng.random() < 0.5:
        return values.reshape(shape)
    return values.reshape(shape[::-1]).permute(*range(len(shape) - 1, -1, -1))


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


MERGED = (
    "Entry [b, t, h*D + d] is y[b, h, t, d]. H and D can be merged once they are neighbours, "
    "in this order."
)


def compare_split(answer, x, H, **hints):
    expect_equal(answer.split_heads(x, H), heads_of(x, H), name="split_heads", **hints)


def compare_merge(answer, y, **hints):
    expect_equal(answer.merge_heads(y), tokens_of(y), name="merge_heads", **hints)


@check("split_heads gives (B, H, T, D)")
def split_shape(answer, rng, device):
    B, H, T, D = sizes(rng)
    x = numbers(rng, device, B, T, H * D)
    expect_shape(
        answer.split_heads(x, H),
        (B, H, T, D),
        name="split_heads",
        hint="After the channels are cut, T still stands before H.",
    )


@check("a head holds neighbouring channels of every token")
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


@check("split_heads copies nothing")
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


@check("merge_heads puts the heads of a token side by side")
def merge_values(answer, rng, device):
    B, H, T, D = sizes(rng)
    y = torch.arange(B * H * T * D, device=device).reshape(B, H, T, D)
    compare_merge(answer, y, hint=MERGED)


@check("merge_heads takes any layout in memory")
def merge_layouts(answer, rng, device):
    B, H, T, D = sizes(rng)
    hint = (
        "A tensor may be laid out in memory in another order than its dimensions. Where the "
        "numbers are not in the order of the result, they have to be copied."
    )
    with advising(RuntimeError, saying="view size is not compatible", hint=hint):
        for y in (
            numbers(rng, device, B, T, H, D).transpose(1, 2),
            numbers(rng, device, D, T, H, B).permute(3, 2, 1, 0),
            numbers(rng, device, B, H, T, D),
        ):
            compare_merge(answer, y, hint=MERGED)


@check("sizes of 1 stay")
def ones(answer, rng, device):
    hint = "A batch of one, a text of one token, one head or one channel: still a dimension."
    for B, H, T, D in ((1, 2, 3, 2), (2, 1, 3, 2), (2, 3, 1, 2), (2, 3, 2, 1), (1, 1, 1, 1)):
        compare_split(answer, numbers(rng, device, B, T, H * D), H, shape_hint=hint)
        compare_merge(answer, numbers(rng, device, B, H, T, D), shape_hint=hint)


@check("an empty text stays empty")
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
