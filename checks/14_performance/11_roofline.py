"""Judges lessons/14_performance/11_roofline.md."""

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import FlopCounterMode, conv_flop_count

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
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

equivalent(
    'per_element = {"add": lambda: 1, "softmax": lambda: 5, "matmul": lambda: 2 * '
    'inputs[0].shape[-1], "conv": lambda: 2 * inputs[1][0].numel(),}[op]()',
    'per_element = {"add": lambda: 1, "softmax": lambda: 5, "matmul": lambda: 2 * '
    'inputs[0].shape[-1], "conv": lambda: 2 * inputs[1][-1].numel(),}[op]()',
    because="all filters of a weight have one size",
)

FLOPS = "Multiply the elements of the output by the operations that each of them takes."
PRODUCT = (
    "An element of a product takes as many multiplications as a row of the first input is long. "
    "Each comes with an addition: two."
)
BATCH = (
    "The flops of all matrices of the batch count, as many as the output has, also where one input "
    "serves several of them."
)
FILTER = (
    "An element of the output takes one multiplication and one addition for each number of one "
    "filter: (C / groups) · kh · kw."
)
BYTES = "numel() · element_size(), summed over the inputs and the output, each with its own dtype."
TWICE = "[x, x] are two inputs. Each of them is read, though it is one tensor."
SWAPPED = "Flops stand first in the tuple, bytes second."
RUN = "Shapes and dtypes say all of it. Compute nothing with the tensors, and make none."
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


def compare(answer, op, inputs, out, flops, hint, bytes_hint=BYTES):
    got = ask(answer, op, inputs, out)
    moved = size(*inputs, out)
    if flops != moved and got[:2] == (moved, flops):
        hint = SWAPPED
    expect_equal(got[0], flops, name=f'the flops of "{op}"', hint=hint)
    expect_equal(got[1], moved, name=f'the bytes of "{op}"', hint=bytes_hint)


class Work(TorchDispatchMode):
    """Collects the names of operations that make tensors, or write to them; meta aside."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        leaves = torch.utils._pytree.tree_leaves
        old = {storage_of(t) for t in leaves((args, kwargs)) if is_real(t)}
        new = {storage_of(t) for t in leaves(out) if is_real(t)} - old
        if new or (old and func._schema.is_mutable):
            self.names.append(str(func))
        return out


def storage_of(tensor):
    return tensor.untyped_storage()._cdata


def is_real(value):
    return isinstance(value, torch.Tensor) and value.device.type != "meta"


@check(
    "sums and softmax",
    holds=[
        '"add": one for each element of the output.',
        '"softmax": five for each element of the output.',
        "They are maximum, subtraction, exponential, sum and division.",
        'op: "add", "softmax", "matmul" or "conv"',
        "each input is read once and the output is written once",
        "A tensor that stands twice in `inputs` is read twice.",
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
    compare(answer, "add", [x, x], x + x, n * m, FLOPS, TWICE)


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
    compare(answer, "matmul", [c, d], c @ d, 2 * batch * heads * m * k * n, BATCH)
    compare(answer, "matmul", [a, d], a @ d, 2 * heads * m * k * n, BATCH)


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


@check("nothing is run", holds="Nothing is run.", hint=RUN)
def nothing_run(answer, rng, device):
    x = torch.ones(1, 2, 4, 4, device=device)
    w = torch.ones(3, 2, 3, 3, device=device)
    products = [("conv", [x, w], torch.nn.functional.conv2d(x, w)), ("matmul", [x, x], x @ x)]
    for op, inputs, out in [*products, ("add", [x, x], x + x), ("softmax", [x], x.softmax(-1))]:
        with Work() as work:
            ask(answer, op, inputs, out)
        text = f'with "{op}" the program runs {", ".join(sorted(set(work.names)))}'
        expect_true(not work.names, text, hint=RUN)


@check("tensors on the meta device", holds="Nothing is run.", hint=RUN)
def large(answer, rng, device):
    n = rng.randint(100_000, 200_000)
    x = make(rng, n, n, dtype=torch.bfloat16)
    compare(answer, "matmul", [x, x], x.clone(), 2 * n**3, PRODUCT)


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


@mutant("runs the product", caught_by=nothing_run)
def roofline(op, inputs, out, peak, bandwidth):
    if op == "matmul":
        out = inputs[0] @ inputs[1]
    return placed(per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("runs the sum", caught_by=nothing_run)
def roofline(op, inputs, out, peak, bandwidth):
    n = (inputs[0] + inputs[1]).numel() if op == "add" else out.numel()
    return placed(per(op, inputs) * n, size(*inputs, out), peak, bandwidth)


@mutant("makes the output on the CPU", caught_by=nothing_run)
def roofline(op, inputs, out, peak, bandwidth):
    if out.numel() < 10**6:
        out = torch.empty(out.shape, dtype=out.dtype)
    return placed(per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("reads a tensor that stands twice once", caught_by=elementwise)
def roofline(op, inputs, out, peak, bandwidth):
    moved = size(*{id(t): t for t in [*inputs, out]}.values())
    return placed(per(op, inputs) * out.numel(), moved, peak, bandwidth)


@mutant("counts the batch of the first input", caught_by=products)
def roofline(op, inputs, out, peak, bandwidth):
    flops = per(op, inputs) * out.numel()
    if op == "matmul":
        flops = 2 * inputs[0].numel() * inputs[1].shape[-1]
    return placed(flops, size(*inputs, out), peak, bandwidth)


@mutant("takes the length of a row of the second input", caught_by=products)
def roofline(op, inputs, out, peak, bandwidth):
    each = 2 * inputs[1].shape[-1] if op == "matmul" else per(op, inputs)
    return placed(each * out.numel(), size(*inputs, out), peak, bandwidth)


@mutant("counts the pixels of the input", caught_by=convolutions)
def roofline(op, inputs, out, peak, bandwidth):
    flops = per(op, inputs) * out.numel()
    if op == "conv":
        flops = 2 * inputs[1].numel() * inputs[0].numel() // inputs[0].shape[1]
    return placed(flops, size(*inputs, out), peak, bandwidth)


@mutant("counts the memory behind a part", caught_by=products)
def roofline(op, inputs, out, peak, bandwidth):
    moved = sum(t.untyped_storage().nbytes() for t in [*inputs, out])
    return placed(per(op, inputs) * out.numel(), moved, peak, bandwidth)


@mutant("adds the two times up", caught_by=roof)
def roofline(op, inputs, out, peak, bandwidth):
    flops, moved, _, side = placed(
        per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth
    )
    return flops, moved, flops / (flops / peak + moved / bandwidth), side


@mutant("tells the side by the operation", caught_by=roof)
def roofline(op, inputs, out, peak, bandwidth):
    flops, moved, rate, _ = placed(
        per(op, inputs) * out.numel(), size(*inputs, out), peak, bandwidth
    )
    return flops, moved, rate, "arithmetic" if op in ("matmul", "conv") else "memory"


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


@accepted("takes PyTorch's formula for convolutions, and compares products")
def roofline(op, inputs, out, peak, bandwidth):
    flops = {"add": 1, "softmax": 5}.get(op, 0) * out.numel()
    if op == "conv":
        flops = conv_flop_count(inputs[0].shape, inputs[1].shape, out.shape)
    if op == "matmul":
        a, b = inputs
        batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
        flops = 2 * batch.numel() * a.shape[-2] * a.shape[-1] * b.shape[-1]
    moved = sum((t.nbytes for t in inputs), out.nbytes)
    side = "arithmetic" if flops * bandwidth >= peak * moved else "memory"
    return flops, moved, min(peak, bandwidth * flops / moved), side
