"""Judges lessons/06_autograd_advanced/02_gradcheck.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_dtype,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background("You review a fused kernel.", "All that you can do is call the forward.")

FRESH = "x belongs to the caller. Move a float64 copy, or add a step to it."


def normal(device, *shape, dtype=torch.float64):
    return torch.randn(shape, dtype=dtype).to(device)


PLACES = (
    "x may be transposed. view(-1) refuses such a tensor, and what is written into a reshape(-1) "
    "of it may be written into a copy."
)
SHAPE = "The result has x's shape: () for a single number, (0, 3) for nothing."


def ask(answer, fn, x):
    """The answer's gradient."""
    with (
        advising(RuntimeError, saying="view size", hint=PLACES),
        advising(RuntimeError, saying="leaf", hint=FRESH),
    ):
        return answer.numeric_grad(fn, x)


def compare(answer, fn, x, right, hint, atol=1e-6):
    """Within 1e-6, which central differences reach with every step from 1e-4 to 1e-8."""
    got = ask(answer, fn, x)
    expect_close(got, right, name="the gradient", hint=hint, shape_hint=SHAPE, rtol=1e-6, atol=atol)


def weighted(weight):
    """fn(t) = sum of weight * sin(t), and its gradient."""
    return lambda t: (weight * t.sin()).sum(), lambda t: weight * t.cos()


@check(
    "each element has its own derivative",
    holds=[
        "the gradient of a scalar function by central differences",
        "The gradient of fn at x, measured by central differences.",
        "leaves it alone, returns a 0-d tensor",
    ],
)
def elements(answer, rng, device):
    m, n = rng.sample(range(2, 6), 2)
    x = normal(device, m, n)
    fn, right = weighted(normal(device, m, n))
    hint = "Element i of the gradient comes from moving x's element i, and no other."
    types = set()

    def watched(t):
        types.add(t.dtype)
        return fn(t)

    ask(answer, watched, x)
    wrong = types - {torch.float64}
    message = f"x is float64, and fn was called with {', '.join(map(str, wrong))}"
    expect_true(not wrong, message, hint="Measure in float64: fewer digits leave hardly one right.")
    compare(answer, fn, x, right(x), hint)


@check(
    "the differences are central: at a minimum they are zero",
    holds=["by central differences", "h: the step, to either side"],
    side="one side as the other",
)
def central(answer, rng, device):
    n = rng.randint(2, 6)
    x = normal(device, n)
    bottom = x.clone()
    hint = "fn rises on both sides of x, so its derivative is 0. A step to one side sees only the "
    hint += "rise: its error follows h, times the bending of the curve."
    zeros = torch.zeros_like(x)
    compare(answer, lambda t: (5000 * (t - bottom) ** 2).sum(), x, zeros, hint)


@check(
    "each derivative is measured at x itself",
    holds="The gradient of fn at x, measured by central differences.",
)
def at_x(answer, rng, device):
    m, n = rng.sample(range(2, 5), 2)
    x = normal(device, m, n)
    bottom = x.clone()
    hint = "All elements meet in this fn. One that is still moved when the next is measured shifts "
    hint += "every later derivative."
    zeros = torch.zeros_like(x)
    compare(answer, lambda t: 5000 * (t - bottom).sum() ** 2, x, zeros, hint)


@check(
    "x stays as it is",
    holds=[
        "if it is that already, it is x itself and no copy",
        "stays as it is, all the time",
        "x may require grad too",
    ],
)
def untouched(answer, rng, device):
    n = rng.randint(2, 6)
    x = normal(device, n, 3)
    weight = normal(device, n, 3)
    fn, right = weighted(weight)
    seen = []

    def watched(t):
        seen.append(bool((x == before).all()))
        return fn(t)

    before = x.clone()
    with expect_unchanged(x, hint=FRESH):
        compare(answer, watched, x, right(before), FRESH)
    expect_true(all(seen), "x was changed while fn ran, and put back later", hint=FRESH)
    x.requires_grad_()
    x.grad = torch.full_like(x, 7.0)
    compare(answer, fn, x, right(before), FRESH)
    expect_true(x.requires_grad, "x requires grad no longer", hint=FRESH)
    got = ask(answer, fn, x)
    hint = (
        "x requires grad here, and what is computed from it is recorded. Numbers have no history."
    )
    expect_true(not got.requires_grad, "the gradient requires grad", hint=hint)
    y = x * 1
    compare(answer, fn, y, right(before), FRESH)
    expect_true(y.grad_fn is not None, "x has lost its history", hint=FRESH)
    expect_equal(x.grad, torch.full_like(before, 7.0), name="x.grad, full of 7,", hint=FRESH)


@check(
    "transposed and strided inputs keep their places",
    holds="not always contiguous",
    both_sides=True,
)
def strided(answer, rng, device):
    m, n = rng.sample(range(2, 5), 2)
    for x in (
        normal(device, m, n).T,
        normal(device, m, 3, n)[:, 1],
        normal(device, n, 6)[:, ::2],
        normal(device, 2, m, 3, 2).transpose(0, 2),
        normal(device, m, 1).expand(m, n),
    ):
        fn, right = weighted(normal(device, *x.shape))
        compare(answer, fn, x, right(x.double()), PLACES)


@check(
    "inputs of less precision are measured in float64",
    holds=[
        "in float64, whatever dtype the input has",
        "takes a float64 tensor of x's shape",
        "x: floating point",
        "returns: float64",
    ],
)
def dtypes(answer, rng, device):
    m, n = rng.sample(range(2, 5), 2)
    hint = (
        "float32 keeps 7 digits: with a step of 1e-6 hardly one of them is right. Convert first, "
    )
    hint += "measure then."
    for dtype in (torch.float32, torch.float16, torch.bfloat16):
        x = normal(device, n, m, dtype=dtype).T
        fn, right = weighted(normal(device, m, n))
        types = set()

        def watched(t, fn=fn, types=types):
            types.add(t.dtype)
            return fn(t)

        got = ask(answer, watched, x)
        expect_dtype(got, torch.float64, name="the gradient", hint=hint)
        wrong = types - {torch.float64}
        expect_true(not wrong, f"fn was called with {', '.join(map(str, wrong))}", hint=hint)
        expect_close(got, right(x.double()), name="the gradient", hint=hint, rtol=1e-6, atol=1e-6)
    x, weight = normal(device, m, n), normal(device, m, n)
    got = answer.numeric_grad(lambda t: (weight * t * t).sum(), x, 0.5)
    digits = "Nearly right: a float32 tensor on the way keeps 7 digits of a number. Torch's "
    digits += "factories make float32 unless they are told a dtype."
    right = 2 * weight * x
    expect_close(got, right, name="the gradient", hint=digits, rtol=1e-10, atol=1e-10)


@check(
    "one element, none, and no dimension at all",
    holds=["any shape, with 0 or 1 elements too", "of x's shape, on x's device"],
    both_sides=True,
)
def small(answer, rng, device):
    hint = "Each element is moved by itself, be there one or none."
    for shape in ((), (1,), (1, 1, 1), (0,), (0, 3)):
        x = normal(device, *shape)
        fn, right = weighted(normal(device, *shape))
        shapes = set()

        def watched(t, fn=fn, shapes=shapes):
            shapes.add(tuple(t.shape))
            return fn(t)

        compare(answer, watched, x, right(x), hint)
        expect_true(shapes <= {shape}, f"fn was called with {shapes}, x is {shape}", hint=SHAPE)


@check(
    "fn may return a part of its input",
    holds="`fn` may return a part of its input as it is, for example `t[0, 1]`.",
)
def part(answer, rng, device):
    m, n = rng.sample(range(2, 5), 2)
    i, j = rng.randrange(m), rng.randrange(n)
    x = normal(device, m, n)
    right = torch.zeros_like(x)
    right[i, j] = 1
    hint = "t[i, j] is a view: it changes with t after fn has returned. Take the number out with "
    hint += ".item() before you move anything."
    compare(answer, lambda t: t[i, j], x, right, hint)
    one = normal(device)
    compare(answer, lambda t: t, one, torch.ones_like(one), hint)


@check(
    "the backward on trial is not asked",
    holds="Its backward is on trial, so nothing may ask it.",
)
def independent(answer, rng, device):
    asked = 0

    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, t):
            ctx.save_for_backward(t)
            return t**3

        @staticmethod
        def backward(ctx, g):
            nonlocal asked
            asked += 1
            return g * ctx.saved_tensors[0] ** 2

    x = normal(device, rng.randint(2, 6))
    hint = "This fn has a wrong backward. What you measure must not depend on it: only call fn."
    with advising(RuntimeError, saying="setup_context", hint=hint):
        compare(answer, lambda t: Wrong.apply(t).sum(), x, 3 * x**2, hint)
    compare(answer, lambda t: Wrong.apply(t).sum(), x.clone().requires_grad_(), 3 * x**2, hint)
    expect_true(asked == 0, f"the backward of fn was run {asked} times", hint=hint)


@check(
    "weights of fn leave no history in the result",
    holds=[
        "It may use weights that require grad",
        "The result is plain numbers.",
        "without history",
    ],
)
def plain(answer, rng, device):
    m, n = rng.sample(range(2, 5), 2)
    weight = normal(device, m, n).requires_grad_()
    x = normal(device, m, n)
    hint = "fn's value hangs on the graph of its weights. Numbers do not."
    got = ask(answer, lambda t: (weight * t.sin()).sum(), x)
    expect_shape(got, (m, n), name="the gradient", hint=SHAPE)
    expect_true(not got.requires_grad, "the gradient requires grad", hint=hint)
    expect_true(weight.grad is None, "a weight of fn has a .grad now", hint=hint)


@check(
    "the step is the caller's choice",
    holds="h: the step, to either side",
    side="of the size given",
)
def steps(answer, rng, device):
    n, h = rng.randint(2, 5), rng.choice([0.5, 0.25, 1.0])
    x = normal(device, n)
    hint = "For t³ the central difference is 3t² + h². h goes to either side: the distance is 2h."
    got = answer.numeric_grad(lambda t: (t**3).sum(), x, h)
    expect_close(got, 3 * x**2 + h**2, name=f"the gradient with h = {h}", hint=hint, atol=1e-8)


@hinted(1, reaches=untouched)
def numeric_grad(fn, x, h=1e-6):
    grad = torch.zeros(x.numel(), dtype=torch.float64, device=x.device)
    for i in range(x.numel()):
        up, down = x.detach().double().clone(), x.detach().double().clone()
        up.view(-1)[i] += h
        down.view(-1)[i] -= h
        grad[i] = (fn(up) - fn(down)).item() / (2 * h)
    return grad.view(x.shape)


@mutant("steps to one side", caught_by=central)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double()
    steps = h * torch.eye(x.numel(), dtype=base.dtype, device=x.device)
    down = fn(base).item()
    grad = [(fn(base + step.reshape(x.shape)).item() - down) / h for step in steps]
    return torch.tensor(grad, dtype=base.dtype, device=x.device).reshape(x.shape)


@mutant("steps to one side, and by very little", caught_by=central)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double()
    h = h / 100
    steps = h * torch.eye(x.numel(), dtype=base.dtype, device=x.device)
    down = fn(base).item()
    grad = [(fn(base + step.reshape(x.shape)).item() - down) / h for step in steps]
    return torch.tensor(grad, dtype=base.dtype, device=x.device).reshape(x.shape)


def moved(fn, base, h):
    """Moves and restores one element of base after the other, for the mutants."""
    grad = torch.zeros_like(base)
    flat, out = base.view(-1), grad.view(-1)
    for i in range(base.numel()):
        old = flat[i].item()
        flat[i] = old + h
        up = fn(base).item()
        flat[i] = old - h
        down = fn(base).item()
        flat[i] = old
        out[i] = (up - down) / (2 * h)
    return grad


@mutant("measures in x's dtype", caught_by=dtypes)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().clone(memory_format=torch.contiguous_format)
    return moved(fn, base, h).double()


@mutant("collects in float32", caught_by=dtypes)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double()
    grad = torch.zeros(x.numel(), device=x.device)
    for i in range(x.numel()):
        step = torch.zeros(x.numel(), dtype=base.dtype, device=x.device)
        step[i] = h
        step = step.reshape(x.shape)
        grad[i] = (fn(base + step).item() - fn(base - step).item()) / (2 * h)
    return grad.double().reshape(x.shape)


@mutant("returns x's dtype", caught_by=dtypes)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().clone(memory_format=torch.contiguous_format).double()
    return moved(fn, base, h).to(x.dtype)


@mutant("does not move back", caught_by=at_x)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    grad = torch.zeros_like(base)
    flat, out = base.view(-1), grad.view(-1)
    for i in range(base.numel()):
        flat[i] += h
        up = fn(base).item()
        flat[i] -= 2 * h
        out[i] = (up - fn(base).item()) / (2 * h)
    return grad


@mutant("moves the caller's numbers", caught_by=untouched)
def numeric_grad(fn, x, h=1e-6):
    return moved(fn, x.detach().double().contiguous(), h)


@mutant("flattens with view", caught_by=strided)
def numeric_grad(fn, x, h=1e-6):
    return moved(fn, x.detach().double().clone(), h)


@mutant("writes into a flat copy", caught_by=strided)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone()
    grad = torch.zeros_like(base)
    flat = base.reshape(-1)
    for i in range(base.numel()):
        old = flat[i].item()
        flat[i] = old + h
        up = fn(base).item()
        flat[i] = old - h
        down = fn(base).item()
        flat[i] = old
        grad.reshape(-1)[i] = (up - down) / (2 * h)
    return grad


@mutant("returns the gradient flat", caught_by=small)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    return moved(fn, base, h).flatten()


@mutant("keeps tensors instead of numbers", caught_by=part)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    grad = torch.zeros_like(base)
    flat, out = base.view(-1), grad.view(-1)
    for i in range(base.numel()):
        old = flat[i].item()
        flat[i] = old + h
        up = fn(base)
        flat[i] = old - h
        down = fn(base)
        out[i] = ((up - down) / (2 * h)).detach()
        flat[i] = old
    return grad


@mutant("asks autograd", caught_by=independent)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().requires_grad_()
    return torch.autograd.grad(fn(base), base)[0]


@mutant("keeps the history of fn's weights", caught_by=plain)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double()
    grad = torch.zeros(x.numel(), dtype=base.dtype, device=x.device)
    for i, step in enumerate(h * torch.eye(x.numel(), dtype=base.dtype, device=x.device)):
        step = step.reshape(x.shape)
        grad[i] = (fn(base + step) - fn(base - step)) / (2 * h)
    return grad.reshape(x.shape)


@mutant("has a step of its own", caught_by=steps)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    return moved(fn, base, 1e-6)


@mutant("goes half of h to either side", caught_by=steps)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    return moved(fn, base, h / 2)


@mutant("scales the step with x", caught_by=steps)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double()
    grad = torch.zeros(x.numel(), dtype=base.dtype, device=x.device)
    for i, number in enumerate(base.reshape(-1).tolist()):
        step = torch.zeros_like(grad)
        step[i] = h * max(1 / 2, abs(number))
        up = fn(base + step.reshape(x.shape)).item()
        down = fn(base - step.reshape(x.shape)).item()
        grad[i] = (up - down) / (2 * step[i])
    return grad.reshape(x.shape)


@mutant("asks autograd, and then measures", caught_by=independent)
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    own = base.clone().requires_grad_()
    torch.autograd.grad(fn(own) + 0 * own.sum(), own)
    return moved(fn, base, h)


@accepted("moves one element of a copy at a time and puts it back")
def numeric_grad(fn, x, h=1e-6):
    base = x.detach().double().clone(memory_format=torch.contiguous_format)
    grad = torch.zeros_like(base)
    flat, out = base.view(-1), grad.view(-1)
    for i in range(flat.numel()):
        old = flat[i].item()
        flat[i] = old + h
        up = float(fn(base))
        flat[i] = old - h
        down = float(fn(base))
        flat[i] = old
        out[i] = (up - down) / (2 * h)
    return grad


@accepted("takes the steps from the rows of an identity")
@torch.no_grad()
def numeric_grad(fn, x, h=1e-6):
    base = x.to(torch.float64)
    steps = h * torch.eye(x.numel(), dtype=torch.float64, device=x.device)
    rows = [fn(base + s.reshape(x.shape)) - fn(base - s.reshape(x.shape)) for s in steps]
    empty = torch.zeros(0, dtype=torch.float64, device=x.device)
    return (torch.stack(rows) if rows else empty).reshape(x.shape) / (2 * h)


@accepted("moves two flat copies for each element")
def numeric_grad(fn, x, h=1e-6):
    flat = x.detach().double().flatten()
    grad = torch.zeros_like(flat)
    for i in range(len(flat)):
        up, down = flat.clone(), flat.clone()
        up[i] += h
        down[i] -= h
        grad[i] = (fn(up.view_as(x)) - fn(down.view_as(x))).item() / (2 * h)
    return grad.view_as(x)


@accepted("works its way through lists of numbers")
def numeric_grad(fn, x, h=1e-6):
    numbers = x.detach().reshape(-1).tolist()

    def value(values):
        t = torch.tensor(values, dtype=torch.float64, device=x.device)
        return fn(t.reshape(x.shape)).item()

    slopes = []
    for i, number in enumerate(numbers):
        up = [*numbers[:i], number + h, *numbers[i + 1 :]]
        down = [*numbers[:i], number - h, *numbers[i + 1 :]]
        slopes.append((value(up) - value(down)) / (2 * h))
    return torch.tensor(slopes, dtype=torch.float64, device=x.device).reshape(x.shape)


equivalent(
    "grad = torch.zeros_like(base.reshape(-1))",
    "grad = torch.ones_like(base.reshape(-1))",
    because="Every element is written before it is read.",
)
