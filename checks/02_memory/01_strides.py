"""Judges lessons/02_memory/01_strides.md."""

import itertools
import math

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_raises,
    expect_true,
    hinted,
    mutant,
)

background(
    "A *kernel* is the program that a GPU runs for one operation.",
    "One that you write yourself is not given a tensor.",
    "It is given an address, sizes and strides",
)


def row_major(answer, shape, hint):
    got = answer.row_major_strides(shape)
    expect_equal(got, torch.empty(shape).stride(), name=f"row_major_strides({shape})", hint=hint)


def numbered(rng, device, rank):
    """A fresh tensor that holds at each place the number of that place. Sizes from 3 to 5."""
    shape = [rng.randint(3, 5) for _ in range(rank)]
    return torch.arange(math.prod(shape), device=device).reshape(shape)


def asked(answer, x, index):
    return answer.place(index, tuple(x.shape), x.stride(), x.storage_offset())


def some(rng, indices):
    """The first, the last and up to 20 others."""
    first, *others = indices
    return [first, *rng.sample(others, min(20, len(others))), *others[-1:]]


def compare(answer, rng, x, hint):
    """`place` names the place of elements of x, which holds the places themselves."""
    for index in some(rng, itertools.product(*map(range, x.shape))):
        inside = "This index lies inside the shape. A place may lie anywhere in the storage."
        with advising(IndexError, hint=inside):
            got = asked(answer, x, index)
        expect_equal(got, x[index].item(), name=f"the place of {index}", hint=hint)


@check(
    "one step passes everything to its right",
    holds="The strides of a fresh tensor, such as torch.empty(shape).",
)
def products(answer, rng, device):
    hint = "The last dimension comes first: its steps are 1. The sizes to the left of a dimension "
    hint += "do not matter for it, and nor does its own. Elements are counted, not bytes."
    for rank in (2, 3, 4, 5):
        row_major(answer, tuple(rng.sample(range(2, 8), rank)), hint)


@check("strides count elements, not bytes", holds="tuple of ints, any length")
def elements(answer, rng, device):
    hint = "The last stride of a fresh tensor is 1, whatever its dtype weighs."
    row_major(answer, (rng.randint(2, 9),), hint)
    row_major(answer, (), hint="A single number has no dimensions and so no strides: ().")


@check("sizes of 1 are nothing special")
def ones(answer, rng, device):
    n = rng.randint(3, 9)
    hint = "Multiplying by 1 changes nothing. There is no rule for sizes of 1 but that."
    for shape in ((1, 1, n), (n, 1), (1, n, 1), (1,)):
        row_major(answer, shape, hint)


@check("a size of 0 counts as 1", holds="a size of 0 counts as 1")
def zeros(answer, rng, device):
    n = rng.randint(2, 9)
    hint = "Where a size is 0 the product is 0 from there on. PyTorch counts it as 1 instead."
    for shape in ((2, 0, n), (0,), (n, 0, 0), (0, n, 2)):
        row_major(answer, shape, hint)


@check(
    "place finds every element of a fresh tensor",
    holds="Where in its storage an element lives, counted in elements.",
)
def fresh(answer, rng, device):
    hint = "Start at the offset, and add index times stride for every dimension."
    for rank in (0, 1, 2, 3):
        compare(answer, rng, numbered(rng, device, rank), hint)


@check("place starts at the offset", holds="shape, stride, offset: the label of the tensor")
def offsets(answer, rng, device):
    x = numbered(rng, device, 3)
    hint = "The first element of a slice does not live at place 0. The label says where, and the "
    hint += "strides too: they are those of the whole tensor, not of the slice's shape."
    for view in (x[rng.randint(1, 2)], x[1:, :, 1:], x[-1, -1], x[1, 1, 2]):
        compare(answer, rng, view, hint)


@check(
    "place takes the strides as they are",
    holds="a stride may be 0 or negative",
    both_sides=True,
)
def strided(answer, rng, device):
    x = numbered(rng, device, 3)
    hint = "A view keeps the strides of its storage. They need not follow from its own shape."
    for view in (x.transpose(0, 2), x[:, ::2], x[0].T, x.diagonal(), x[:, :1].expand(-1, 3, -1)):
        compare(answer, rng, view, hint)
    rows, columns = rng.sample(range(3, 8), 2)
    last = rows * columns - 1
    for row, column in ((0, 0), (rows - 1, 0), (1, columns - 1)):
        got = answer.place((row, column), (rows, columns), (-columns, -1), last)
        name = f"the place of {(row, column)}, walking backwards from {last},"
        expect_equal(got, last - row * columns - column, name=name, hint=hint)


@check(
    "negative indices count from the end",
    holds="as in Python, -1 is the last element of a dimension",
)
def negative(answer, rng, device):
    x = numbered(rng, device, 3)[:, 1:].transpose(1, 2)
    for view in (x, x[1], x[1, 0]):
        every = itertools.product(*(range(-n, n) for n in view.shape))
        for index in some(rng, (index for index in every if min(index) < 0)):
            hint = "-1 is the last element of its own dimension and -size the first."
            with advising(IndexError, hint=hint):
                got = asked(answer, view, index)
            expect_equal(got, view[index].item(), name=f"the place of {index}", hint=hint)


@check(
    "an index outside of the shape is refused",
    holds=[
        "`place` also has a guard to write. Index 5 in a row of 4 has a place as well",
        "IndexError for an index outside of the shape",
    ],
)
def outside(answer, rng, device):
    x = numbered(rng, device, 2)[:2, :2]
    hint = "The storage goes on after the row ends, so the formula finds a place for any index. "
    hint += "Compare each index with its own size, from both sides."
    wrong = [(2, 0), (0, 2), (-3, 1), (1, -3), (0, rng.randint(3, 9)), (-rng.randint(4, 9), 0)]
    for index in wrong:
        no_element = f"index {index} of shape (2, 2) has no element"
        other = "Python says IndexError when a list has no such place, and the task asks for it."
        with (
            advising(ValueError, hint=other),
            expect_raises(IndexError, no_element, hint=hint),
        ):
            asked(answer, x, index)
    for index in ((0, 0), (-1, 1)):
        with expect_raises(IndexError, "a tensor of shape (2, 0) has no elements", hint=hint):
            asked(answer, x[:, :0], index)


@check(
    "torch is not asked",
    holds="Do it here once in plain Python: no function of torch is called.",
    counts_calls=True,
)
def plain_numbers(answer, rng, device):
    x = numbered(rng, device, 3)[:, ::2]
    shape, stride, offset = tuple(x.shape), x.stride(), x.storage_offset()
    answer.row_major_strides(shape)
    answer.place((1, -1, 0), shape, stride, offset)
    calls = ", ".join(answer.calls)
    hint = "Sizes, strides and indices are ints: sums, products and comparisons are all it takes."
    expect_true(not calls, f"torch is asked: {calls}", hint=hint)
    n = rng.randint(10**9, 10**10)  # no library makes an array of this shape
    with advising(Exception, hint=hint):
        got = answer.row_major_strides((n, n, 3))
    expect_equal(got, (3 * n, 3, 1), name=f"row_major_strides({(n, n, 3)})", hint=hint)


@mutant("multiplies from left to right", caught_by=products)
def row_major_strides(shape):
    strides, step = [], 1
    for size in shape:
        strides.append(step)
        step *= max(size, 1)
    return tuple(strides)


@mutant("multiplies the size in before writing it down", caught_by=products)
def row_major_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        step *= max(size, 1)
        strides.append(step)
    return tuple(reversed(strides))


@mutant("uses the size to the right alone", caught_by=products)
def row_major_strides(shape):
    return (*(max(size, 1) for size in shape[1:]), 1)[: len(shape)]


@mutant("asks NumPy", caught_by=plain_numbers)
def row_major_strides(shape):
    return np.empty([max(size, 1) for size in shape], dtype=np.uint8).strides


@mutant("counts bytes", caught_by=elements)
def row_major_strides(shape):
    strides, step = [], 4
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


@mutant("gives sizes of 1 a stride of 0", caught_by=ones)
def row_major_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step if size != 1 else 0)
        step *= max(size, 1)
    return tuple(reversed(strides))


@mutant("multiplies by 0", caught_by=zeros)
def row_major_strides(shape):
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def resolved(index, shape):
    """The index with negative numbers counted from the start; IndexError outside."""
    for i, size in zip(index, shape):
        if not -size <= i < size:
            raise IndexError(i)
    return [i % size for i, size in zip(index, shape)]


@mutant("multiplies by the sizes", caught_by=fresh)
def place(index, shape, stride, offset):
    return offset + sum(i * size for i, size in zip(resolved(index, shape), shape))


@mutant("forgets the offset", caught_by=offsets)
def place(index, shape, stride, offset):
    return sum(i * step for i, step in zip(resolved(index, shape), stride))


@mutant("works out row-major strides", caught_by=strided)
def place(index, shape, stride, offset):
    at = 0
    for i, size in zip(resolved(index, shape), shape):
        at = at * size + i
    return offset + at


@mutant("ignores the order of the strides", caught_by=strided)
def place(index, shape, stride, offset):
    steps = sorted(stride, reverse=True)
    return offset + sum(i * step for i, step in zip(resolved(index, shape), steps))


@mutant("takes negative indices literally", caught_by=negative)
def place(index, shape, stride, offset):
    resolved(index, shape)
    return offset + sum(i * step for i, step in zip(index, stride))


@mutant("counts negative indices one short", caught_by=negative)
def place(index, shape, stride, offset):
    resolved(index, shape)
    counted = (i if i >= 0 else i + n - 1 for i, n in zip(index, shape))
    return offset + sum(i * step for i, step in zip(counted, stride))


@mutant("checks no index", caught_by=outside)
def place(index, shape, stride, offset):
    counted = (i if i >= 0 else i + n for i, n in zip(index, shape))
    return offset + sum(i * step for i, step in zip(counted, stride))


@mutant("refuses the first element counted from the end", caught_by=negative)
def place(index, shape, stride, offset):
    at = offset
    for i, size, step in zip(index, shape, stride):
        if abs(i) >= size:
            raise IndexError(i)
        at += i % size * step
    return at


@mutant("wraps around", caught_by=outside)
def place(index, shape, stride, offset):
    return offset + sum(i % n * step for i, n, step in zip(index, shape, stride))


@mutant("lets the size itself pass", caught_by=outside)
def place(index, shape, stride, offset):
    at = offset
    for i, size, step in zip(index, shape, stride):
        if not -size <= i <= size:
            raise IndexError(i)
        at += (i if i >= 0 else i + size) * step
    return at


@mutant("checks the upper end alone", caught_by=outside)
def place(index, shape, stride, offset):
    at = offset
    for i, size, step in zip(index, shape, stride):
        if i >= size:
            raise IndexError(i)
        at += (i if i >= 0 else i + size) * step
    return at


@mutant("asks a fresh tensor", caught_by=plain_numbers)
def row_major_strides(shape):
    return torch.empty(shape).stride()


@mutant("labels a tensor of its own", caught_by=strided)
def place(index, shape, stride, offset):
    return torch.empty_strided(shape, stride)[index].storage_offset() + offset


@mutant("takes the distance of negative strides", caught_by=strided)
def place(index, shape, stride, offset):
    return offset + sum(i * abs(step) for i, step in zip(resolved(index, shape), stride))


@accepted("takes each product by itself")
def row_major_strides(shape):
    sizes = [size or 1 for size in shape]
    return tuple(math.prod(sizes[dim + 1 :]) for dim in range(len(sizes)))


@accepted("builds the strides from the front")
def row_major_strides(shape):
    strides = ()
    for size in reversed(shape[1:]):
        strides = (strides[0] * max(1, size) if strides else max(1, size), *strides)
    return (*strides, 1) if shape else ()


@accepted("accumulates the products")
def row_major_strides(shape):
    sizes = (size or 1 for size in reversed(shape[1:]))
    return tuple(itertools.accumulate(sizes, lambda a, b: a * b, initial=1))[::-1][: len(shape)]


@accepted("lets Python's range count from the end and refuse")
def place(index, shape, stride, offset):
    return offset + sum(range(n)[i] * step for i, n, step in zip(index, shape, stride))


@hinted(1, reaches=ones)
def row_major_strides(shape):
    return tuple(math.prod(shape[dim + 1 :]) for dim in range(len(shape)))
