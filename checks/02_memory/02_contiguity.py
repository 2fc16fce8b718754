"""Judges lessons/02_memory/02_contiguity.md."""

from itertools import pairwise

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

shows = ["memory/strides"]

background(
    "An operation runs as a kernel",
    "Contiguous: one loop",
    "Not contiguous, but one stride does for all dimensions",
    "Neither: a loop for each dimension",
)


def block(rng, device, rank=3):
    """A fresh tensor with different sizes from 3 on."""
    return torch.zeros(rng.sample(range(3, 9), rank), device=device)


def flattens(x):
    """What view(-1) says."""
    try:
        x.view(-1)
    except RuntimeError:
        return False
    return True


def label(x):
    return tuple(x.shape), x.stride()


def compare_contig(answer, views, hint):
    for x in views:
        name = f"is_contig{label(x)}"
        expect_equal(answer.is_contig(*label(x)), x.is_contiguous(), name=name, hint=hint)


def compare_flatten(answer, views, hint):
    for x in views:
        name = f"can_flatten{label(x)}"
        expect_equal(answer.can_flatten(*label(x)), flattens(x), name=name, hint=hint)


def gapped(x):
    """Views of x in which memory between elements is left out."""
    return x[:, ::2], x[:, 1:], x[..., :2], x[::2], x[0, :, ::2], x[:, 1, 1:], x[:, 0, 0]


def turned(x):
    """Views of x that are read in another order than memory's."""
    orders = (0, 2, 1), (2, 0, 1), (1, 0, 2), (1, 2, 0)
    inner = x.unflatten(2, (1, -1)).expand(-1, -1, 3, -1).clone().transpose(1, 2)
    return *(x.permute(order) for order in orders), x[0].T, inner


def with_ones(x):
    """Views of x with sizes of 1, whose strides are free."""
    one = x[:1, :1]
    return (
        x[:, None], x[0].flatten()[:, None].T, x[:1], one, x[:, :1].transpose(0, 1),
        one.permute(2, 0, 1), one.permute(2, 1, 0), x[0, :, :1].T, x[:1, ..., :1], x[..., :1],
        x[1:, :1], x[:, :1, ::2].permute(1, 2, 0),
        x.as_strided((1, 2, 1), (7, 1, 0)), x.as_strided((2, 1), (1, 9)),
    )  # fmt: skip


def stretched(x):
    """Views of x in which a dimension has stride 0."""
    n = x.shape[2]
    return (
        x[..., :1].expand(-1, -1, 5), x[0, 0].expand(3, n), x[0, 0, :1].expand(6),
        x[0, :1, :1].expand(4, 5), x[0, 0, 0].expand(2, 3, 4), x[:, :1].expand(-1, 2, -1),
    )  # fmt: skip


def small(x):
    """Views of x with no element, or one."""
    return (
        x[:0], x[:, :0], x[..., :0].transpose(0, 1), x[:, ::2][..., :0],
        x[:, 1:1].expand(-1, 0, -1), x[0, 0, 0], x[1:2, 2:, 1:2][:, :1], x[:0, :1, ::2],
    )  # fmt: skip


PLAIN = "Shape and stride are tuples of ints, and a comparison of ints is all that is needed."
FRESH = "Fresh tensors are contiguous and flatten, and so do slices along the first dimension."


@check(
    "is_contig: fresh tensors and their leading slices are",
    holds="bool, what is_contiguous() says",
    forbid=("torch.Tensor.is_contiguous", "torch.Tensor.view"),
)
def contig_fresh(answer, rng, device):
    x = block(rng, device)
    compare_contig(answer, (x, x[1], x[1:], x[0, 2], x[0, 0, 1:], block(rng, device, 4)), FRESH)


@check("is_contig: gaps count", holds="Whether a tensor with this label is contiguous.", side="no")
def contig_gaps(answer, rng, device):
    hint = "The strides fall in the right order, but a step is longer than what it passes. Every "
    hint += "stride must be the product of the sizes to its right, the last one 1."
    compare_contig(answer, gapped(block(rng, device)), hint)


@check("is_contig: the order counts")
def contig_order(answer, rng, device):
    hint = "Memory is full, but it is walked in another order. Every dimension must be checked, "
    hint += "not only the last."
    compare_contig(answer, turned(block(rng, device)), hint)


@check(
    "is_contig: the stride of a size of 1 is free",
    holds=["Whether a tensor with this label is contiguous.", "sizes may be 0 or 1"],
    side="yes",
)
def contig_ones(answer, rng, device):
    hint = "Nobody takes a step along a dimension of size 1, so its stride may be anything. The "
    hint += "other dimensions still count."
    compare_contig(answer, with_ones(block(rng, device)), hint)


@check("is_contig: expanded tensors are not", holds="strides are 0 or more", both_sides=True)
def contig_stretched(answer, rng, device):
    hint = "A stride of 0 reads the same place again. Only a size of 1 makes up for that."
    compare_contig(answer, stretched(block(rng, device)), hint)


@check(
    "is_contig: no element or one element is",
    holds=["A tensor without elements passes both.", "So does one with a single element."],
    side="contiguous",
)
def contig_small(answer, rng, device):
    hint = "Where there is no element, no order can be wrong. A shape of () has one element."
    compare_contig(answer, small(block(rng, device)), hint)


@check(
    "can_flatten: fresh tensors and their leading slices do",
    holds="Whether .view(-1) works on a tensor with this label.",
    side="yes",
    forbid=("torch.Tensor.view", "torch.Tensor.reshape"),
)
def flatten_fresh(answer, rng, device):
    x = block(rng, device)
    compare_flatten(answer, (x, x[1], x[1:], x[0, 2], x[0, 0, 1:], block(rng, device, 4)), FRESH)


@check(
    "can_flatten: gaps may be there if they are even",
    holds="Whether .view(-1) works on a tensor with this label.",
    side="no",
)
def flatten_gaps(answer, rng, device):
    x = block(rng, device)
    last = x[..., 1]  # (a, b): strides (b * c, c)
    hint = "view does not want memory without gaps. It wants one step that fits everywhere: each "
    hint += "stride is the next one times the next size."
    compare_flatten(answer, (*gapped(x), last, last.T, last[:, 1:], last[1:]), hint)


@check("can_flatten: the order counts")
def flatten_order(answer, rng, device):
    hint = "No single step walks through a transposed tensor. Every pair of neighbours counts."
    compare_flatten(answer, turned(block(rng, device)), hint)


@check("can_flatten: a size of 1 is passed over")
def flatten_ones(answer, rng, device):
    hint = "The stride of a size of 1 plays no part. Its neighbours on both sides meet instead."
    compare_flatten(answer, with_ones(block(rng, device)), hint)


@check("can_flatten: expanded tensors follow the same rule")
def flatten_stretched(answer, rng, device):
    hint = "0 == 0 * n holds: one element, repeated along all dimensions, is one long row of "
    hint += "itself. With any other stride beside it, it is not."
    compare_flatten(answer, stretched(block(rng, device)), hint)


@check(
    "can_flatten: no element or one element does",
    holds=[
        "A tensor without elements passes both.",
        "So does one with a single element.",
        "sizes may be 0 or 1",
    ],
    side="flattens",
)
def flatten_small(answer, rng, device):
    hint = (
        "An empty tensor flattens to an empty row, and one element to a row of one, whatever the "
    )
    hint += "strides say."
    compare_flatten(answer, small(block(rng, device)), hint)


@check(
    "both work with plain numbers: no tensor is made",
    holds="Write both tests with plain numbers, without a tensor.",
    both_sides=True,
    counts_calls=True,
)
def plain_numbers(answer, rng, device):
    x = block(rng, device)
    labels = [label(view) for view in (x, x[:, ::2], x.transpose(1, 2))]
    for shape, stride in labels:
        answer.is_contig(shape, stride)
        answer.can_flatten(shape, stride)
    asked = sum(answer.calls.values())
    expect_true(asked == 0, f"PyTorch is asked {asked} times", hint=PLAIN)


@mutant("asks for a contiguous tensor", caught_by=plain_numbers)
def is_contig(shape, stride):
    x = torch.empty_strided(shape, stride)
    return x.contiguous() is x


@mutant("flattens a tensor", caught_by=plain_numbers)
def can_flatten(shape, stride):
    x = torch.empty_strided(shape, stride)
    return x.flatten().data_ptr() == x.data_ptr()


@mutant("compares the outermost stride alone", caught_by=flatten_order)
def can_flatten(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    if 0 in shape or len(dims) < 2:
        return True
    step = dims[-1][1]
    for n, _ in dims[1:]:
        step *= n
    return dims[0][1] == step


@mutant(
    "multiplies from the left",
    caught_by=contig_fresh,
    misconception="memory/strides",
    like="multiplies from left to right",
)
def is_contig(shape, stride):
    step = 1
    for size, s in zip(shape, stride):
        if size != 1 and s != step:
            return 0 in shape
        step *= size
    return True


@mutant("wants falling strides", caught_by=contig_gaps)
def is_contig(shape, stride):
    dims = [s for n, s in zip(shape, stride) if n != 1]
    return 0 in shape or all(a >= b for a, b in pairwise(dims))


@mutant("looks at the last stride alone", caught_by=contig_order)
def is_contig(shape, stride):
    dims = [s for n, s in zip(shape, stride) if n != 1]
    return 0 in shape or not dims or dims[-1] == 1


@mutant("takes a full memory for contiguous", caught_by=contig_order)
def is_contig(shape, stride):
    step = 1
    for s, n in sorted((s, n) for n, s in zip(shape, stride) if n != 1):
        if s != step:
            return 0 in shape
        step *= n
    return True


@mutant("compares with the strides of a fresh tensor", caught_by=contig_ones)
def is_contig(shape, stride):
    return tuple(stride) == torch.empty(shape).stride() or 0 in shape


@mutant("forgives everything once a size is 1", caught_by=contig_ones)
def is_contig(shape, stride):
    step = 1
    for size, s in zip(reversed(shape), reversed(stride)):
        if s != step:
            return 0 in shape or 1 in shape
        step *= size
    return True


@mutant("lets a stride of 0 pass", caught_by=contig_stretched)
def is_contig(shape, stride):
    step = 1
    for size, s in zip(reversed(shape), reversed(stride)):
        if size != 1 and s not in (step, 0):
            return 0 in shape
        step *= size
    return True


@mutant("wants empty tensors in order too", caught_by=contig_small)
def is_contig(shape, stride):
    step = 1
    for size, s in zip(reversed(shape), reversed(stride)):
        if size != 1 and s != step:
            return False
        step *= max(size, 1)
    return True


@mutant("wants contiguous memory", caught_by=flatten_gaps)
def can_flatten(shape, stride):
    step = 1
    for size, s in zip(reversed(shape), reversed(stride)):
        if size != 1 and s != step:
            return 0 in shape
        step *= size
    return True


@mutant("compares the first two dimensions alone", caught_by=flatten_order)
def can_flatten(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    return 0 in shape or len(dims) < 2 or dims[0][1] == dims[1][0] * dims[1][1]


@mutant("multiplies by its own size", caught_by=flatten_fresh)
def can_flatten(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    return 0 in shape or all(s == n * t for (n, s), (_, t) in pairwise(dims))


@mutant("compares the strides of sizes of 1", caught_by=flatten_ones)
def can_flatten(shape, stride):
    dims = list(zip(shape, stride))
    return 0 in shape or all(s == n * t for (_, s), (n, t) in pairwise(dims))


@mutant("refuses every stride of 0", caught_by=flatten_stretched)
def can_flatten(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    merges = all(s == n * t for (_, s), (n, t) in pairwise(dims))
    return 0 in shape or (merges and all(s for _, s in dims))


@mutant("checks the strides of empty tensors", caught_by=flatten_small)
def can_flatten(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    return all(s == n * t for (_, s), (n, t) in pairwise(dims))


@hinted(1, reaches=contig_order)
def is_contig(shape, stride):
    step = 1
    for size, s in zip(reversed(shape), reversed(stride)):
        if s != step:
            return False
        step *= size
    return True


@accepted("compares what counts with the products")
def is_contig(shape, stride):
    if 0 in shape:
        return True
    expected, step = [], 1
    for size in reversed(shape):
        expected.insert(0, step)
        step *= size
    return all(n == 1 or s == e for n, s, e in zip(shape, stride, expected))


@accepted("checks the merges, and that the last step is 1")
def is_contig(shape, stride):
    dims = [(n, s) for n, s in zip(shape, stride) if n != 1]
    chain = [*dims, (1, 1)]
    return 0 in shape or all(s == n * t for (_, s), (n, t) in pairwise(chain))


@accepted("lists the places that a row-major walk visits")
def can_flatten(shape, stride):
    places = [0]
    for size, s in zip(shape, stride):
        places = [place + i * s for place in places for i in range(size)]
    return len({b - a for a, b in pairwise(places)}) < 2


@accepted("walks from the left with the step that must follow")
def can_flatten(shape, stride):
    due = None
    for size, s in zip(shape, stride):
        if size == 0:
            return True
        if size > 1:
            if due is not None and due != size * s and 0 not in shape:
                return False
            due = s
    return True
