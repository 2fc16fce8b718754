"""Judges lessons/05_autograd/04_vjp.md."""

import sys

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background("A controller for a robot", "To work with a leaf of your own")

shows = ["autograd/accumulation"]

READY_MADE = {"jacobian", "jacrev", "jacfwd", "wrapper_fn"}
ROWS = "Rows are outputs, columns are inputs: row i is what a single 1 at output i brings back."


def vector(device, n, dtype=torch.float32):
    return torch.randn(n, dtype=dtype).to(device)


def matrix(device, m, n, dtype=torch.float32):
    return torch.randn(m, n, dtype=dtype).to(device)


def mixed(a):
    """fn(x) = a @ sin(x), and its Jacobian a * cos(x)."""
    return lambda x: a @ x.sin(), lambda x: a * x.cos()


AGAIN = "Every row after the first walks the same graph again. Who keeps it alive?"
UNUSED = (
    "An output that does not change with an input has the derivative 0 by it, and maybe no path."
)
SHAPE = "J is (m, n), one row for each output, also where m or n is 1."


def ask(answer, fn, x):
    """The answer's Jacobian."""
    with (
        advising(RuntimeError, saying="second time", hint=AGAIN),
        advising(RuntimeError, saying="not have been used", hint=UNUSED),
        advising(RuntimeError, saying="does not require grad", hint=UNUSED),
    ):
        return answer.jacobian(fn, x)


def compare(answer, fn, x, right, hint, name="J", **hints):
    expect_close(ask(answer, fn, x), right, name=name, hint=hint, shape_hint=SHAPE, **hints)


@check(
    "each output has its row, each input its column",
    holds=["backward hands it out row by row", "J[i, j]: the derivative of fn(x)[i] by x[j]."],
)
def rows(answer, rng, device):
    m, n = rng.sample(range(2, 8), 2)
    x = vector(device, n)
    fn, right = mixed(matrix(device, m, n))
    compare(answer, fn, x, right(x), ROWS)


@check("a square Jacobian is not transposed")
def square(answer, rng, device):
    n = rng.randint(3, 6)
    x = vector(device, n)
    fn, right = mixed(matrix(device, n, n))
    compare(answer, fn, x, right(x), ROWS)


@check("no row holds a part of another")
def alone(answer, rng, device):
    n = rng.randint(3, 6)
    x = vector(device, n)
    hint = "Output i is the square of x[i] alone, so J is a diagonal. `.grad` adds up from pass to "
    hint += "pass, and a sum over the outputs mixes all rows."
    compare(answer, lambda x: x**2, x, torch.diag(2 * x), hint)


@check(
    "outputs that do not depend on an input have zeros there",
    holds="some outputs may not depend on it",
)
def partly(answer, rng, device):
    x = vector(device, 3)
    number = torch.tensor(rng.random(), device=device)
    right = torch.zeros(3, 3, device=device)
    right[0, 0], right[0, 1], right[2, 2] = x[1], x[0], 1
    compare(answer, lambda v: torch.stack([v[0] * v[1], number, v[2]]), x, right, UNUSED)


@check(
    "one output, one input, and outputs that are all the same",
    holds="m and n are 1 or more.",
    both_sides=True,
)
def single(answer, rng, device):
    n = rng.randint(2, 6)
    for m, k in ((1, n), (n, 1), (1, 1)):
        x = vector(device, k)
        fn, right = mixed(matrix(device, m, k))
        compare(answer, fn, x, right(x), ROWS)
    ones = torch.ones(n, 3, device=device)
    compare(answer, lambda x: x.sum().expand(n), vector(device, 3), ones, ROWS)
    eye = torch.eye(n, device=device)
    compare(answer, lambda x: x, vector(device, n), eye, ROWS, name="J of fn(x) = x")


@check("fn is called once", holds=["`fn` may be a large model", "fn is called once."])
def once(answer, rng, device):
    m, n = rng.randint(3, 6), rng.randint(2, 6)
    calls = 0

    def fn(x):
        nonlocal calls
        calls += 1
        return torch.outer(torch.arange(1.0, m + 1, device=device), x).sin().sum(1)

    ask(answer, fn, vector(device, n))
    expect_true(
        calls == 1,
        f"fn was called {calls} times for {m} outputs",
        hint="fn may be a large model. One run of it makes one graph, and retain_graph=True lets "
        "you walk it as often as you like.",
    )


@check(
    "x stays as it is",
    holds=[
        "Ask without leaving a trace, in `x` or in the weights.",
        "x stays as it is, flag, .grad and all",
        "is a constant, whether x requires grad or not",
    ],
    both_sides=True,
)
def untouched(answer, rng, device):
    n = rng.randint(3, 6)
    fn, right = mixed(matrix(device, 2, n))
    hint = "x belongs to the caller. Work with a leaf of your own that has x's numbers."
    for x in (vector(device, n), matrix(device, n, 3)[:, 1]):
        with expect_unchanged(x):
            compare(answer, fn, x, right(x), ROWS)
        twice = "This fn multiplies its argument by x, as a constant of its own. Only the argument "
        twice += "counts, so it must be another tensor than x: a leaf that has x's numbers."
        compare(answer, lambda t, x=x: t * x, x, torch.diag(x), twice)
        expect_true(not x.requires_grad, "x requires grad now, it did not before", hint=hint)
        expect_true(x.grad is None, "x has a .grad now", hint=hint)
        constant = x.detach().clone().requires_grad_()
        compare(answer, lambda t, x=constant: t * x, constant, torch.diag(x), twice)
    x = vector(device, n).requires_grad_()
    x.grad = torch.full_like(x, 7.0)
    compare(answer, fn, x, right(x.detach()), hint)
    seven = torch.full((n,), 7.0, device=device)
    expect_true(x.grad is not None, "x.grad was full of 7, and is None now", hint=hint)
    expect_equal(x.grad, seven, name="x.grad, which was full of 7,", hint=hint)
    expect_true(x.requires_grad, "x requires grad no longer", hint=hint)


@check("x may be part of the caller's graph", holds="may be part of a graph of the caller's")
def inside(answer, rng, device):
    n = rng.randint(3, 6)
    fn, right = mixed(matrix(device, 2, n))
    leaf = vector(device, n).requires_grad_()
    x = leaf.exp()
    hint = "J is about fn alone. What the caller did before, to get x, is not to be walked."
    compare(answer, fn, x, right(x.detach()), hint)
    expect_true(leaf.grad is None, "the leaf that x was computed from has a .grad now", hint=hint)
    message = "x has lost its history"
    expect_true(x.requires_grad and x.grad_fn is not None, message, hint=hint)
    try:
        x.sum().backward()
    except RuntimeError:
        fail("the caller cannot go back from x any more", hint=hint)


@check(
    "the weights that fn uses keep their .grad",
    holds=[
        "Ask without leaving a trace, in `x` or in the weights.",
        "no other leaf's .grad changes",
    ],
    side="the weights",
)
def weights(answer, rng, device):
    m, n = rng.sample(range(2, 7), 2)
    w, b = matrix(device, m, n).requires_grad_(), vector(device, m).requires_grad_()
    w.grad = torch.full_like(w, 5.0)
    x = vector(device, n)
    slope = 1 - (w @ x + b).detach().tanh() ** 2
    hint = "backward() adds to the .grad of every leaf that it reaches, the model's weights "
    hint += "included. Which call returns gradients instead?"
    compare(answer, lambda x: (w @ x + b).tanh(), x, slope[:, None] * w.detach(), hint)
    five = torch.full((m, n), 5.0, device=device)
    expect_equal(w.grad, five, name="the .grad of a weight, full of 5,", hint=hint)
    expect_true(b.grad is None, "a weight that had no .grad has one now", hint=hint)


@check("J has x's dtype and records nothing", holds="x's dtype, requires_grad False")
def plain(answer, rng, device):
    m, n = rng.sample(range(2, 6), 2)
    for dtype in (torch.float64, torch.float32):
        x = vector(device, n, dtype)
        fn, right = mixed(matrix(device, m, n, dtype))
        fixed = "The rows come in x's dtype. A fixed dtype got in."
        compare(answer, fn, x, right(x), "", dtype_hint=fixed)
    x = vector(device, n).requires_grad_()
    w = matrix(device, m, n).requires_grad_()
    got = ask(answer, lambda x: w @ x.sin(), x)
    expect_true(not got.requires_grad, "J requires grad itself", hint="J is numbers to look at.")


@check(
    "the rows come from backward passes of your own",
    holds="torch has Jacobians ready-made; build this one.",
)
def own_passes(answer, rng, device):
    m, n = rng.sample(range(2, 6), 2)
    fn, _ = mixed(matrix(device, m, n))
    called = []

    def watched(x):
        frame = sys._getframe(1)
        while frame is not None:
            home, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
            if home.startswith("torch.") and name in READY_MADE:
                called.append(home)
            frame = frame.f_back
        return fn(x)

    ask(answer, watched, vector(device, n))
    expect_true(
        not called,
        "the Jacobian comes ready-made from torch",
        hint="torch has functions that do this whole task. Here you build one of them, from "
        "torch.autograd.grad and vectors with a single 1.",
    )


def passes(y, x):
    """Row by row, for the mutants."""
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    return [torch.autograd.grad(y, x, v, retain_graph=True)[0] for v in eye]


@mutant("goes back from the sum of the outputs", caught_by=rows)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    return torch.autograd.grad(y.sum(), own)[0].repeat(len(y), 1)


@mutant("records on x itself where it requires grad", caught_by=untouched)
def jacobian(fn, x):
    own = x if x.requires_grad else x.detach().requires_grad_()
    y = fn(own)
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    rows = [
        torch.autograd.grad(y, own, v, retain_graph=True, materialize_grads=True)[0] for v in eye
    ]
    return torch.stack(rows).detach()


@mutant("lets each row free the graph", caught_by=rows)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    return torch.stack([torch.autograd.grad(y, own, v)[0] for v in eye])


@mutant("makes the rows columns", caught_by=square)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    return torch.stack(passes(fn(own), own), 1)


@mutant("does not clear between the rows", caught_by=alone)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    rows = []
    for i in range(len(y)):
        y[i].backward(retain_graph=True)
        rows.append(own.grad.clone())
    return torch.stack(rows)


@mutant(
    "appends .grad itself",
    caught_by=alone,
    misconception="autograd/accumulation",
    like="appends p.grad after each backward",
)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    rows = []
    for i in range(len(y)):
        y[i].backward(retain_graph=True)
        rows.append(own.grad)
    return torch.stack(rows)


@mutant("squeezes", caught_by=single)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    return torch.stack(passes(fn(own), own)).squeeze()


@mutant("runs fn for every row", caught_by=once)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    m = len(fn(own))
    return torch.stack([torch.autograd.grad(fn(own)[i], own)[0] for i in range(m)])


@mutant("measures differences", caught_by=once)
def jacobian(fn, x):
    h = 1e-3
    steps = h * torch.eye(len(x), dtype=x.dtype, device=x.device)
    columns = [(fn(x + step) - fn(x - step)) / (2 * h) for step in steps]
    return torch.stack(columns, 1).detach()


@mutant("switches x on", caught_by=untouched)
def jacobian(fn, x):
    x.requires_grad_()
    return torch.stack(passes(fn(x), x))


@mutant("switches x on for a moment", caught_by=untouched)
def jacobian(fn, x):
    flag = x.requires_grad
    x.requires_grad_()
    y = fn(x)
    rows = passes(y, x)
    if x.is_leaf:
        x.requires_grad_(flag)
    return torch.stack(rows)


@mutant("clears x.grad for its own use", caught_by=untouched)
def jacobian(fn, x):
    own = x if x.requires_grad else x.detach().requires_grad_()
    y = fn(own)
    rows = []
    for i in range(len(y)):
        own.grad = None
        y[i].backward(retain_graph=True, inputs=[own])
        rows.append(own.grad.clone())
    own.grad = None
    return torch.stack(rows)


@mutant("walks on into the history of x", caught_by=inside)
def jacobian(fn, x):
    own = x * 1 if x.requires_grad else x.detach().requires_grad_()
    own.retain_grad()
    y = fn(own)
    rows = []
    for i in range(len(y)):
        own.grad = None
        y[i].backward(retain_graph=True)
        rows.append(own.grad.clone())
    return torch.stack(rows)


@mutant("fills the weights' .grad", caught_by=weights)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    rows = []
    for i in range(len(y)):
        own.grad = None
        y[i].backward(retain_graph=True)
        rows.append(own.grad)
    return torch.stack(rows)


@mutant("collects the rows in float32", caught_by=plain)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    return torch.stack([row.float() for row in passes(fn(own), own)])


@mutant("records the passes", caught_by=plain)
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    return torch.stack([torch.autograd.grad(y, own, v, create_graph=True)[0] for v in eye])


@mutant("asks torch for the Jacobian", caught_by=own_passes)
def jacobian(fn, x):
    return torch.autograd.functional.jacobian(fn, x.detach())


@mutant("asks torch.func for the Jacobian", caught_by=own_passes)
def jacobian(fn, x):
    return torch.func.jacrev(fn)(x.detach()).detach()


@hinted(1, reaches=once)
def jacobian(fn, x):
    x.requires_grad_()
    y = fn(x)
    rows = [torch.autograd.grad(y[i], x, retain_graph=True)[0] for i in range(len(y))]
    return torch.stack(rows)


@accepted("goes back from one output after the other")
def jacobian(fn, x):
    own = x.detach().clone().requires_grad_()
    outputs = fn(own).unbind()
    return torch.stack([torch.autograd.grad(y, own, retain_graph=True)[0] for y in outputs])


@accepted("sends the identity back as one batch")
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    eye = torch.eye(len(y), dtype=y.dtype, device=y.device)
    return torch.autograd.grad(y, own, eye, is_grads_batched=True)[0]


@accepted("fills the .grad of its own leaf, and no other")
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    result = own.new_zeros(len(y), len(own))
    for i in range(len(y)):
        own.grad = None
        y[i].backward(retain_graph=True, inputs=[own])
        result[i] = own.grad
    return result


@accepted("weighs the outputs and takes the sum")
def jacobian(fn, x):
    own = x.detach().requires_grad_()
    y = fn(own)
    rows = []
    for i in range(y.numel()):
        weight = torch.zeros(y.shape, dtype=y.dtype, device=y.device)
        weight[i] = 1
        rows.append(torch.autograd.grad((weight * y).sum(), [own], retain_graph=True)[0])
    return torch.stack(rows, dim=0)
