"""Judges lessons/14_performance/11_roofline.md."""

import torch
from torch.utils.flop_counter import FlopCounterMode

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "You have a data sheet with two rates",
    "Write roofline(op, inputs, out, peak, bandwidth).",
    "Count flops so:",
)

FLOPS = "Multiply the elements of the output by the operations that each of them takes."
PRODUCT = (
    "An element of a product takes as many multiplications as a row of the first input is long."
)
FILTER = "An element of the output takes one multiplication for each number of one filter."
BYTES = "numel() · element_size(), summed over the inputs and the output, each with its own dtype."
RATE = "The rate is min(peak, intensity · bandwidth), with intensity = flops / bytes."
SIDE = "Left of the ridge memory decides; at the ridge and right of it arithmetic does."
DTYPES = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


def make(rng, *shape, dtype=None):
    return torch.empty(shape, dtype=dtype or rng.choice(DTYPES), device="meta")


def ask(answer, op, inputs, out, peak=1e12, bandwidth=1e11):
    got = answer.roofline(op, inputs, out, peak, bandwidth)
    good = isinstance(got, tuple) and len(got) == 4
    expect_true(good, "roofline does not return four things", hint="(flops, bytes, rate, side)")
    return got


def size(*tensors):
    return sum(t.nbytes for t in tensors)


def compare(answer, op, inputs, out, flops, hint):
    got = ask(answer, op, inputs, out)
    expect_equal(got[0], flops, name=f'the flops of "{op}"', hint=hint)
    expect_equal(got[1], size(*inputs, out), name=f'the bytes of "{op}"', hint=BYTES)


@check(
    "sums and softmax",
    holds=[
        '"add": one for each element of the output.',
        '"softmax": five for each element of the output.',
        "They are maximum, subtraction, exponential, sum and division.",
        'op: "add", "softmax", "matmul" or "conv"',
        "each input is read once and the output is written once",
        "inputs: list of tensors; out: the tensor that comes of them",
    ],
    both_sides=True,
)
def elementwise(answer, rng, device):
    n, m = rng.randint(2, 90), rng.randint(2, 90)
    dtype = rng.choice(DTYPES)
    x, row = make(rng, n, m, dtype=dtype), make(rng, m, dtype=dtype)
    compare(answer, "add", [x, x.clone()], x + x, n * m, FLOPS)
    compare(answer, "add", [row, x], row + x, n * m, FLOPS)
    compare(answer, "softmax", [x], x.softmax(-1), 5 * n * m, FLOPS)


@check(
    "products of matrices, with and without a batch",
    holds=[
        '"matmul": two for each multiplication with its addition.',
        "Both inputs have two dimensions or more, the last two are multiplied, and the others are",
    ],
    both_sides=True,
)
def products(answer, rng, device):
    m, k, n = rng.sample(range(2, 60), 3)
    dtype = rng.choice(DTYPES)
    a, b = make(rng, m, k, dtype=dtype), make(rng, k, n, dtype=dtype)
    compare(answer, "matmul", [a, b], a @ b, 2 * m * k * n, PRODUCT)
    compare(answer, "matmul", [a[:1], b], a[:1] @ b, 2 * k * n, PRODUCT)
    batch, heads = rng.sample(range(2, 9), 2)
    c, d = make(rng, batch, heads, m, k, dtype=dtype), make(rng, heads, k, n, dtype=dtype)
    compare(answer, "matmul", [c, d], c @ d, 2 * batch * heads * m * k * n, PRODUCT)
    compare(answer, "matmul", [a, d], a @ d, 2 * heads * m * k * n, PRODUCT)


@check(
    "convolutions, grouped too",
    holds=[
        '"conv": the same rule.',
        "The inputs are x and a weight of shape (O, C / groups, kh, kw), without bias.",
    ],
    both_sides=True,
)
def convolutions(answer, rng, device):
    groups = rng.randint(2, 3)
    for g in (1, groups):
        c, o, kh, kw = g * rng.randint(2, 5), g * rng.randint(1, 4), rng.randint(1, 3), 5
        dtype = rng.choice(DTYPES)
        x = make(rng, rng.randint(1, 4), c, 16, rng.randint(9, 20), dtype=dtype)
        w = make(rng, o, c // g, kh, kw, dtype=dtype)
        y = torch.nn.functional.conv2d(x, w, stride=rng.randint(1, 2), padding=1, groups=g)
        compare(answer, "conv", [x, w], y, 2 * y.numel() * (c // g) * kh * kw, FILTER)


@check(
    "tensors of several dtypes",
    hint=BYTES,
    holds="Each tensor counts with its own dtype.",
    both_sides=True,
)
def mixed(answer, rng, device):
    n, m = rng.sample(range(2, 90), 2)
    small, large = rng.sample(DTYPES[1:], 2)
    x, y = make(rng, n, m, dtype=small), make(rng, n, m, dtype=large)
    compare(answer, "add", [x, y], x + y, n * m, FLOPS)
    wide = make(rng, n, m, dtype=torch.float64)
    compare(answer, "softmax", [x], wide, 5 * n * m, FLOPS)
    compare(answer, "softmax", [wide.t()], wide.t(), 5 * n * m, FLOPS)


@check(
    "the rate, and what decides it",
    holds=[
        "the rate that can be attained, and",
        "At the ridge itself it is",
        "peak: flop/s; bandwidth: bytes/s",
        "returns: (flops, bytes, rate in flop/s, what decides)",
    ],
    both_sides=True,
)
def roof(answer, rng, device):
    n = 2 ** rng.randint(4, 8)
    x = make(rng, n, n, dtype=torch.float32)
    out = x @ x
    flops, moved = 2 * n**3, 12 * n * n
    bandwidth = float(3 * 2 ** rng.randint(20, 30))
    ridge = flops * (bandwidth / moved)
    cases = ((ridge * 4, "memory"), (ridge / 4, "arithmetic"), (ridge * 1.25, "memory"))
    for peak, side in (*cases, (ridge, "arithmetic")):
        _, _, rate, got = ask(answer, "matmul", [x, x], out, peak, bandwidth)
        wanted = torch.tensor(min(peak, ridge), dtype=torch.float64)
        rate = torch.tensor(float(rate), dtype=torch.float64)
        expect_close(
            rate,
            wanted,
            name=f"the rate with the ridge at {peak / bandwidth:.1f} flop/B",
            hint=RATE,
        )
        expect_equal(got, side, name="what decides", hint=SIDE)
    vector = make(rng, n, 1, dtype=torch.float32)
    _, _, rate, got = ask(answer, "matmul", [x, vector], x @ vector, 1e15, bandwidth)
    wanted = 2 * n * n / (4 * (n * n + 2 * n)) * bandwidth
    rate = torch.tensor(float(rate), dtype=torch.float64)
    expect_close(rate, torch.tensor(wanted, dtype=torch.float64), name="the rate", hint=RATE)
    expect_equal(got, "memory", name="what decides", hint=SIDE)


@check("large shapes cost nothing", holds="Nothing is run.", hint="Read shapes and dtypes alone.")
def large(answer, rng, device):
    n = rng.randint(100_000, 200_000)
    x = make(rng, n, n, dtype=torch.bfloat16)
    compare(answer, "matmul", [x, x], x.clone(), 2 * n**3, PRODUCT)
    small = torch.ones(3, 3, device=device)
    before = torch.get_rng_state()
    compare(answer, "add", [small, small], small + small, 9, FLOPS)
    compare(answer, "softmax", [small], small.softmax(-1), 45, FLOPS)
    expect_true(torch.equal(before, torch.get_rng_state()), "random numbers were drawn")


def placed(flops, moved, peak, bandwidth):
    reach = flops / moved * bandwidth
    return flops, moved, min(peak, reach), "memory" if reach < peak else "arithmetic"


def per(op, inputs):
    if op == "matmul":
        return 2 * inputs[0].shape[-1]
    return {"add": 1, "softmax": 5}[op] if op != "conv" else 2 * inputs[1][0].numel()


@mutant("counts a multiplication with its addition once", caught_by=products)
def roofline(op, inputs, out, peak, bandwidth):
    each = per(op, inputs)
    flops = (each // 2 if op in ("matmul", "conv") else each) * out.numel()
    return placed(flops, size(*inputs, out), peak, bandwidth)


@mutant("leaves the output out", caught_by=elementwise)
def roofline(op, inputs, out, peak, bandwidth):
    return placed(per(op, inputs) * out.numel(), size(*inputs), peak, bandwidth)


@mutant("takes everything for float32", caught_by=mixed)
def roofline(op, inputs, out, peak, bandwidth):
    moved = sum(4 * t.numel() for t in [*inputs, out])
    return placed(per(op, inputs) * out.numel(), moved, peak, bandwidth)


@mutant("takes the output's dtype for all", caught_by=mixed)
def roofline(op, inputs, out, peak, bandwidth):
    moved = sum(out.element_size() * t.numel() for t in [*inputs, out])
    return placed(per(op, inputs) * out.numel(), moved, peak, bandwidth)


@mutant("multiplies the shapes of both inputs, and forgets a batch", caught_by=products)
def roofline(op, inputs, out, peak, bandwidth):
    flops = per(op, inputs) * out.numel()
    if op == "matmul":
        flops = 2 * inputs[0].shape[-2] * inputs[0].shape[-1] * inputs[1].shape[-1]
    return placed(flops, size(*inputs, out), peak, bandwidth)


@mutant("takes the channels of x instead of those of a filter", caught_by=convolutions)
def roofline(op, inputs, out, peak, bandwidth):
    each = per(op, inputs)
    if op == "conv":
        each = 2 * inputs[0].shape[1] * inputs[1].shape[2] * inputs[1].shape[3]
    return placed(each * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("takes a square kernel", caught_by=convolutions)
def roofline(op, inputs, out, peak, bandwidth):
    each = per(op, inputs)
    if op == "conv":
        each = 2 * inputs[1].shape[1] * inputs[1].shape[3] ** 2
    return placed(each * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("gives softmax one operation", caught_by=elementwise)
def roofline(op, inputs, out, peak, bandwidth):
    each = 1 if op == "softmax" else per(op, inputs)
    return placed(each * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("counts elements of the first input", caught_by=elementwise)
def roofline(op, inputs, out, peak, bandwidth):
    n = inputs[0].numel() if op == "add" else out.numel()
    return placed(per(op, inputs) * n, size(*inputs, out), peak, bandwidth)


@mutant("returns the peak as the rate", caught_by=roof)
def roofline(op, inputs, out, peak, bandwidth):
    flops, moved, _, side = placed(
        per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth
    )
    return flops, moved, peak, side


@mutant("calls the ridge itself memory", caught_by=roof)
def roofline(op, inputs, out, peak, bandwidth):
    flops, moved, rate, side = placed(
        per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth
    )
    return (
        flops,
        moved,
        rate,
        "memory" if rate < peak or rate * moved == flops * bandwidth else side,
    )


@mutant("compares intensity with 1", caught_by=roof)
def roofline(op, inputs, out, peak, bandwidth):
    flops, moved, rate, _ = placed(
        per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth
    )
    return flops, moved, rate, "memory" if flops < moved else "arithmetic"


@mutant("runs the product", caught_by=large)
def roofline(op, inputs, out, peak, bandwidth):
    for t in inputs:
        torch.randn(t.shape if t.numel() < 10**6 else 1)
    return placed(per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth)


@hinted(1, reaches=elementwise)
def roofline(op, inputs, out, peak, bandwidth):
    flops = {"add": 1, "softmax": 5}.get(op, 1) * out.numel()
    moved = sum(t.numel() * t.element_size() for t in [*inputs, out])
    return flops, moved, peak, "arithmetic"


@accepted("compares the two times")
def roofline(op, inputs, out, peak, bandwidth):
    if op == "matmul":
        flops = 2 * inputs[1].shape[-2] * out.numel()
    elif op == "conv":
        o, c, kh, kw = inputs[1].shape
        flops = 2 * out.shape[0] * o * out.shape[2] * out.shape[3] * c * kh * kw
    else:
        flops = out.numel() * (5 if op == "softmax" else 1)
    moved = out.nbytes
    for t in inputs:
        moved += t.nbytes
    by_memory, by_arithmetic = moved / bandwidth, flops / peak
    side = "memory" if by_memory > by_arithmetic * (1 + 1e-12) else "arithmetic"
    return flops, moved, flops / max(by_memory, by_arithmetic), side


@accepted("asks PyTorch's counter on meta tensors")
def roofline(op, inputs, out, peak, bandwidth):
    flops = {"add": 1, "softmax": 5}.get(op, 0) * out.numel()
    if op == "matmul":
        with FlopCounterMode(display=False) as counter:
            torch.empty(inputs[0].shape, device="meta") @ torch.empty(
                inputs[1].shape, device="meta"
            )
        flops = counter.get_total_flops()
    if op == "conv":
        flops = 2 * out.numel() * (inputs[1].numel() // inputs[1].shape[0])
    return placed(flops, size(*inputs, out), peak, bandwidth)
