"""Judges lessons/02_memory/05_broadcasting.md."""

import sys
from pathlib import Path

import numpy as np
import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "A program that checks shapes before it starts",
    "Write the two things that PyTorch decides before every",
    "The starter lines the sizes up on the wrong side.",
    "(1,) * n + t puts n ones in front of a tuple.",
    "expand, in the last line, stretches a tensor",
)

LIBRARIES = tuple(str(Path(library.__file__).parent) for library in (torch, np))
RIGHT = "The shapes stand flush right: the last sizes meet, and what is missing is in front."


def expect_both_ways(answer, a, b, hint):
    """The shape of a with b and of b with a, as PyTorch adds them."""
    wanted = tuple((torch.zeros(a) + torch.zeros(b)).shape)
    for p, q in ((a, b), (b, a)):
        try:
            got = answer.broadcast_shape(p, q)
        except ValueError:
            fail(f"{p} with {q} is refused, they make {wanted}", hint=hint)
        expect_equal(got, wanted, name=f"the shape of {p} with {q}", hint=hint)


def expect_refusal(answer, a, b, hint):
    """ValueError, either way round."""
    for p, q in ((a, b), (b, a)):
        try:
            got = answer.broadcast_shape(p, q)
        except ValueError:
            continue
        except Exception as error:
            fail(f"{p} with {q} raises {type(error).__name__}, ValueError is wanted", hint=hint)
        fail(f"{p} with {q} gives {got}, they do not fit", hint=hint)


def expect_reading(answer, x, out, hint):
    """The strides for x, where they matter: a dimension of size 1 or 0 never takes a step."""
    shape, stride = tuple(x.shape), x.stride()
    wanted = x.expand(out).stride()
    got = answer.stretched_strides(shape, stride, out)
    name = f"the reading of {shape}, {stride} as {out}"
    kind = f"{name} is {got!r}, a tuple of strides is wanted"
    expect_true(isinstance(got, tuple), kind, hint="`tuple(...)` makes a tuple of a list.")
    expect_true(
        len(got) == len(out),
        f"{name} has the strides {got!r}, {len(out)} of them are wanted",
        hint="One stride for each dimension of the result, the new ones in front too.",
    )
    steps = tuple(g if n > 1 else w for g, w, n in zip(got, wanted, out))
    if any(g != w != 0 for g, w in zip(steps, wanted)):
        hint += " A dimension that keeps its size keeps its stride, as the tensor's label says it."
    expect_equal(steps, wanted, name=name, hint=hint)


def fitting(rng):
    """Two shapes that fit, with sizes from 2 to 6 and ones, of up to four dimensions."""
    out = [rng.randint(2, 6) for _ in range(rng.randint(1, 4))]
    shapes = []
    for _ in range(2):
        sizes = [n if rng.random() < 0.6 else 1 for n in out]
        shapes.append(tuple(sizes[rng.randint(0, len(out)) :]))
    return shapes


def library_calls(call):
    """How many functions that torch or NumPy has written in Python run during `call`.

    call: calls the program once; whatever traces it is switched off when it returns.
    """
    seen = []

    def profiler(frame, event, arg):
        if event == "call" and frame.f_code.co_filename.startswith(LIBRARIES):
            seen.append(frame.f_code.co_name)

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        call()
    finally:
        sys.setprofile(before)
    return len(seen)


@check(
    "missing sizes are in front",
    holds=["The shape that a and b make together.", "() is a single number"],
)
def aligned(answer, rng, device):
    m, n, k = rng.sample(range(2, 9), 3)
    expect_both_ways(answer, (m, n), (n,), RIGHT)
    expect_both_ways(answer, (k, m, n), (m, n), RIGHT)
    expect_both_ways(answer, (n, n, m), (n, 1), RIGHT)
    for shape in ((m, n), ()):
        expect_both_ways(answer, shape, (), "() has no size at all: it fits everything.")


@check(
    "a 1 takes the other's size, on either side",
    holds="The shape that a and b make together.",
)
def ones_stretch(answer, rng, device):
    m, n = rng.sample(range(2, 9), 2)
    hint = "Go through the pairs of sizes one by one: the first shape may stretch in one of "
    hint += "them and the second in another."
    expect_both_ways(answer, (m, 1), (1, n), hint)
    expect_both_ways(answer, (m, 1), (n,), hint)
    expect_both_ways(answer, (m, 1, n), (n, 1), hint)
    expect_both_ways(answer, (1,), (m,), hint)
    expect_both_ways(answer, (1, 1), (1,), "Two ones make a 1.")
    expect_both_ways(answer, *fitting(rng), hint)
    expect_both_ways(answer, *map(torch.Size, fitting(rng)), hint)
    expect_both_ways(answer, (m, n), (m, n), "Equal shapes stay as they are.")


@check("a 1 with a 0 is 0", holds="tuples of ints from 0")
def nothing(answer, rng, device):
    n = rng.randint(2, 8)
    hint = "A 1 takes the other's size, be it smaller: against 0 it becomes 0."
    expect_both_ways(answer, (0,), (1,), hint)
    expect_both_ways(answer, (n, 1), (1, 0), hint)
    expect_both_ways(answer, (0, n), (n,), hint)
    expect_both_ways(answer, (0,), (), hint)


@check("sizes that clash are refused", holds="ValueError if they do not fit")
def clashes(answer, rng, device):
    m, n = rng.sample(range(2, 9), 2)
    hint = "Sizes fit if they are equal or one of them is 1. Everything else is a ValueError."
    expect_refusal(answer, (m, n), (m,), hint + " " + RIGHT)
    expect_refusal(answer, (m, n), (n, m), hint)
    expect_refusal(answer, (m, 5, 1), (n, 5, 1), hint)
    expect_refusal(answer, (n,), (2 * n,), hint + " A multiple does not fit.")
    expect_refusal(answer, (0,), (n,), hint + " That holds for 0 as well.")


@check(
    "the shape is found without making a tensor",
    holds=[
        "Work with the tuples alone, in plain Python.",
        "No tensor and no array is made, so the answer comes at once",
    ],
    counts_calls=True,
)
def tuples_alone(answer, rng, device):
    size = rng.randint(10**7, 10**8)  # a tensor of this shape fits into no machine
    hint = "The task is to find out what a library finds out. Shapes are tuples of ints: "
    hint += "compare them in plain Python."

    with advising(Exception, hint=hint):
        count = library_calls(lambda: answer.broadcast_shape((size, 1, size), (size, 1)))
        count += library_calls(lambda: answer.stretched_strides((size, 1), (1, 1), (3, size, 2)))
    count += sum(answer.calls.values())
    expect_true(count == 0, f"PyTorch or NumPy is asked {count} times", hint=hint)


@check("stretched dimensions have the stride 0", holds="0 where one number is read again and again")
def zeros(answer, rng, device):
    m, n, k = rng.sample(range(2, 7), 3)
    hint = "A stride of 0 stays at the same number. That is for sizes of 1 that became more."
    expect_reading(answer, torch.zeros(m, 1), (m, n), hint)
    expect_reading(answer, torch.zeros(1, m), (n, m), hint)
    expect_reading(answer, torch.zeros(m, 1, n), (m, k, n), hint)
    expect_reading(answer, torch.zeros(1, 1), (m, n), hint)


@check("new dimensions stand in front, with the stride 0", holds="a tuple as long as out")
def new_dimensions(answer, rng, device):
    m, n, k = rng.sample(range(2, 7), 3)
    hint = "out is longer than shape. What has no size yet stands in front, and each step along "
    hint += "it reads the same numbers again."
    expect_reading(answer, torch.zeros(n), (m, n), hint)
    expect_reading(answer, torch.zeros(m, n), (k, 2, m, n), hint)
    expect_reading(answer, torch.zeros(()), (m, n), hint)
    expect_reading(answer, torch.zeros(m, 1), (k, m, n), hint)


@check(
    "the other dimensions keep their own strides",
    holds="The strides with which a tensor is read as one of shape out.",
)
def own_strides(answer, rng, device):
    m, n = rng.sample(range(3, 7), 2)
    block = torch.zeros(2 * m, 3 * n)
    hint = "The tensor may be a transpose or a slice of a larger one. Where it is not stretched, "
    hint += "it is read with the strides it has."
    expect_reading(answer, block[::2, ::3], (m, n), hint)
    expect_reading(answer, block.T, (4, 3 * n, 2 * m), hint)
    expect_reading(answer, block[::2, :1], (2, m, n), hint)
    expect_reading(answer, torch.zeros(1).expand(m), (n, m), hint)
    expect_reading(answer, torch.zeros(m, 0, 1), (m, 0, n), hint)
    expect_reading(answer, torch.zeros(()), (), "A single number has no strides: ().")


@mutant("lines the shapes up on the left", caught_by=aligned)
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = tuple(a) + (1,) * (rank - len(a)), tuple(b) + (1,) * (rank - len(b))
    if any(p != q and 1 not in (p, q) for p, q in zip(a, b)):
        raise ValueError
    return tuple(q if p == 1 else p for p, q in zip(a, b))


@mutant("drops the sizes that only one shape has", caught_by=aligned)
def broadcast_shape(a, b):
    pairs = list(zip(reversed(a), reversed(b)))
    if any(p != q and 1 not in (p, q) for p, q in pairs):
        raise ValueError
    return tuple(q if p == 1 else p for p, q in reversed(pairs))


@mutant("takes the larger size", caught_by=nothing)
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    if any(p != q and 1 not in (p, q) for p, q in zip(a, b)):
        raise ValueError
    return tuple(max(p, q) for p, q in zip(a, b))


@mutant("never refuses", caught_by=clashes)
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    return tuple(q if p == 1 else p for p, q in zip(a, b))


@mutant("repeats whole multiples", caught_by=clashes)
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    for p, q in zip(a, b):
        if 0 in (p, q) and 1 not in (p, q) and p != q:
            raise ValueError
        if p and q and max(p, q) % min(p, q):
            raise ValueError
    return tuple(q if p == 1 else p if q == 1 else max(p, q) for p, q in zip(a, b))


@mutant("lets 0 fit everything", caught_by=clashes)
def broadcast_shape(a, b):
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + tuple(a), (1,) * (rank - len(b)) + tuple(b)
    out = []
    for p, q in zip(a, b):
        if p != q and min(p, q) > 1:
            raise ValueError
        out.append(0 if 0 in (p, q) else max(p, q))
    return tuple(out)


@mutant("stretches the second shape only", caught_by=ones_stretch)
def broadcast_shape(a, b):
    a, b = (a, b) if len(a) >= len(b) else (b, a)
    b = (1,) * (len(a) - len(b)) + tuple(b)
    if any(p != q and 1 not in (p, q) for p, q in zip(a, b)):
        raise ValueError
    return tuple(a)


@mutant("lets PyTorch do it", caught_by=tuples_alone)
def broadcast_shape(a, b):
    try:
        return tuple(torch.broadcast_shapes(a, b))
    except RuntimeError as error:
        raise ValueError(str(error)) from None


@mutant("lets NumPy do it", caught_by=tuples_alone)
def broadcast_shape(a, b):
    return np.broadcast_shapes(a, b)


@mutant("makes arrays and looks", caught_by=tuples_alone)
def broadcast_shape(a, b):
    return np.broadcast(np.empty(a), np.empty(b)).shape


@mutant("reads the strides off an array", caught_by=tuples_alone)
def stretched_strides(shape, stride, out):
    view = np.lib.stride_tricks.as_strided(np.empty(1, np.int8), shape, stride)
    return np.broadcast_to(view, out).strides


@mutant("keeps the stride of a stretched 1", caught_by=zeros)
def stretched_strides(shape, stride, out):
    return (0,) * (len(out) - len(shape)) + tuple(stride)


@mutant("puts new dimensions behind", caught_by=new_dimensions)
def stretched_strides(shape, stride, out):
    own = tuple(0 if n == 1 else s for n, s in zip(shape, stride))
    return own + (0,) * (len(out) - len(shape))


@mutant("steps over the whole tensor in a new dimension", caught_by=new_dimensions)
def stretched_strides(shape, stride, out):
    own = tuple(0 if n == 1 else s for n, s in zip(shape, stride))
    size = torch.Size(shape).numel()
    return tuple(size for _ in range(len(out) - len(shape))) + own


@mutant("computes strides as if nothing lay between", caught_by=own_strides)
def stretched_strides(shape, stride, out):
    step, own = 1, []
    for n in reversed(shape):
        own.append(0 if n == 1 else step)
        step *= n
    return (0,) * (len(out) - len(shape)) + tuple(reversed(own))


@hinted(1, reaches=ones_stretch)
def broadcast_shape(a, b):
    n = max(len(a), len(b))
    a = (1,) * (n - len(a)) + a
    b = (1,) * (n - len(b)) + b
    return tuple(max(p, q) for p, q in zip(a, b))


@accepted("walks both shapes from the end")
def broadcast_shape(a, b):
    out = []
    for i in range(1, max(len(a), len(b)) + 1):
        p = a[-i] if i <= len(a) else 1
        q = b[-i] if i <= len(b) else 1
        if p == q or q == 1:
            out.insert(0, p)
        elif p == 1:
            out.insert(0, q)
        else:
            raise ValueError(f"{p} does not fit {q}")
    return tuple(out)


@accepted("collects the sizes other than 1")
def broadcast_shape(a, b):
    out = []
    while a or b:
        sizes = {*a[-1:], *b[-1:]} - {1} or {1}
        if len(sizes) > 1:
            raise ValueError(f"{sizes}")
        out = [sizes.pop(), *out]
        a, b = a[:-1], b[:-1]
    return tuple(out)


@accepted("asks where the sizes differ")
def stretched_strides(shape, stride, out):
    strides = [0] * len(out)
    for i in range(1, len(shape) + 1):
        if shape[-i] == out[-i]:
            strides[-i] = stride[-i]
    return tuple(strides)


equivalent(
    "if any(p != q and p != 1 and q != 1 for p, q in zip(a, b)):",
    "if any(p != q and p != 1 and q != 1 for p, q in zip(b, a)):",
    because="The condition treats the two sizes alike.",
)


equivalent(
    "return tuple(q if p == 1 else p for p, q in zip(a, b))",
    "return tuple(q if p == 1 else p for p, q in zip(b, a))",
    because="Of two sizes that fit, the one that is not 1 is taken either way.",
)
