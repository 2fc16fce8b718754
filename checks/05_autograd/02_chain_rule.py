"""Judges lessons/05_autograd/02_chain_rule.md."""

import math

import torch
from torch.nn.functional import binary_cross_entropy_with_logits as cross_entropy
from torch.utils._python_dispatch import TorchDispatchMode

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_true,
    hinted,
    mutant,
)

background("There is no need to derive everything again.")

LARGE = (
    "For a z far from 0, exp(-z) overflows or a is exactly 0 or 1, and log(0) is no number. The "
    "`sigmoid` of the starter takes any z, and a - y needs no logarithm."
)
DIGITS = (
    "Nearly right: digits were lost on the way. Python's floats have 16 of them, float32 has 7, "
    "and a difference divided by a small step fewer still."
)


def sigmoid(z):
    """1 / (1 + exp(-z)), without overflow."""
    return (1 + math.tanh(z / 2)) / 2


def right_one(x, w, b, y):
    """dL/dw and dL/db of one neuron, by autograd in float64."""
    w, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (w, b))
    loss = cross_entropy(w * x + b, torch.tensor(y, dtype=torch.float64))
    return [g.item() for g in torch.autograd.grad(loss, (w, b))]


def right_two(x, w1, b1, w2, b2, y):
    """The four gradients of two neurons, by autograd in float64."""
    leaves = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (w1, b1, w2, b2)]
    w1, b1, w2, b2 = leaves
    h = (w1 * x + b1).sigmoid()
    loss = cross_entropy(w2 * h + b2, torch.tensor(y, dtype=torch.float64))
    return [g.item() for g in torch.autograd.grad(loss, leaves)]


def ask(function, names, numbers):
    """The gradients by name; each must be a float."""
    hint = "If a neuron is very sure, a * (1 - a) can be exactly 0. So can h. On paper they cancel."
    with (
        advising(ZeroDivisionError, hint=hint),
        advising(OverflowError, hint=LARGE),
        advising(ValueError, saying="domain", hint=LARGE),
    ):
        got = function(*numbers)
    count = len(got) if isinstance(got, (tuple, list)) else 0
    expect_true(count == len(names), f"{len(names)} numbers are wanted, in a tuple")
    for name, value in zip(names, got, strict=True):
        kind = type(value).__name__
        expect_true(isinstance(value, float), f"{name} is of type {kind}, a float is wanted")
    return dict(zip(names, got, strict=True))


def expect_grad(name, got, wanted, numbers, hint):
    """`got` is the gradient, to nine digits."""
    said = ", ".join(f"{n:.4g}" for n in numbers)
    close = math.isclose(got, wanted, rel_tol=1e-5, abs_tol=1e-7)
    digits = 12 if close else 6
    expect_true(
        math.isclose(got, wanted, rel_tol=1e-8, abs_tol=1e-9),
        f"for ({said}), {name} is {got:.{digits}g} and should be {wanted:.{digits}g}",
        hint=DIGITS if close else hint,
    )


def one(answer, numbers):
    return ask(answer.neuron_grads, ("dw", "db"), numbers)


def two(answer, numbers):
    return ask(answer.two_neurons, ("dw1", "db1", "dw2", "db2"), numbers)


def some(rng, count, size=2.0):
    """Numbers that are not close to 0 or to one another's opposites."""
    return [rng.choice([-1, 1]) * rng.uniform(0.3, size) for _ in range(count)]


@check(
    "the gradient of b is the error",
    holds=["`neuron_grads` is what you have just derived.", "(dL/dw, dL/db), floats"],
)
def error(answer, rng, device):
    for y in (0.0, 1.0):
        x, w, b = some(rng, 3)
        numbers = (x, w, b, y)
        got, right = one(answer, numbers)["db"], right_one(*numbers)[1]
        hint = "First a from z = w * x + b. The slope of the sigmoid then cancels against the "
        hint += "cross-entropy: no a * (1 - a) is left."
        if math.isclose(got, -right, rel_tol=1e-6):
            hint = "The other way round: the loss falls when a moves towards y."
        expect_grad("dL/db", got, right, numbers, hint)


@check("the gradient of w is the error times x")
def weight(answer, rng, device):
    for y in (0.0, 1.0):
        x, w, b = some(rng, 3)
        numbers = (x, w, b, y)
        expect_grad(
            "dL/dw",
            one(answer, numbers)["dw"],
            right_one(*numbers)[0],
            numbers,
            hint="z = w * x + b. When w grows by a little, z grows by x times as much.",
        )
    w, b = some(rng, 2)
    numbers = (0.0, w, b, 1.0)
    hint = "An x of 0 hides w from the loss. It does not hide b."
    got = one(answer, numbers)
    expect_grad("dL/dw", got["dw"], 0.0, numbers, hint)
    expect_grad("dL/db", got["db"], right_one(*numbers)[1], numbers, hint)


@check(
    "labels between 0 and 1 count as they are", holds="y: a float from 0 to 1, also between them"
)
def soft(answer, rng, device):
    x, w, b = some(rng, 3)
    numbers = (x, w, b, rng.uniform(0.1, 0.9))
    got, wanted = one(answer, numbers), right_one(*numbers)
    hint = "a - y holds for every y. With a soft label, the gradient is 0 where a is y."
    expect_grad("dL/dw", got["dw"], wanted[0], numbers, hint)
    expect_grad("dL/db", got["db"], wanted[1], numbers, hint)


@check(
    "a neuron that is sure gets its gradient, too",
    holds=["The numbers may be large.", "A z of 800 gives an a of exactly 1.0"],
)
def sure(answer, rng, device):
    for z in (800.0, -800.0, 30.0, -30.0):
        for y in (0.0, 1.0, 0.5):
            numbers = (rng.choice([-2.0, 2.0]), 0.0, z, y)
            got = one(answer, numbers)
            error = (1.0 if z > 0 else 0.0) - y
            hint = "The error a - y arrives in full, however sure the neuron is."
            expect_grad("dL/db", got["db"], error, numbers, hint)
            expect_grad("dL/dw", got["dw"], error * numbers[0], numbers, hint)


@check(
    "the second neuron learns from what it is fed",
    holds="what the second one takes as its input is the output of the first",
)
def second(answer, rng, device):
    for y in (0.0, 1.0, 0.3):
        numbers = (*some(rng, 5), y)
        got, wanted = two(answer, numbers), right_two(*numbers)
        hint = "It is one neuron, whose input is not x but h."
        expect_grad("dL/dw2", got["dw2"], wanted[2], numbers, hint)
        expect_grad("dL/db2", got["db2"], wanted[3], numbers, hint)


@check(
    "the first neuron gets its share through the second",
    holds="goes on to its input, by one factor, and from there through the first",
)
def first(answer, rng, device):
    for y in (0.0, 1.0, 0.3):
        numbers = (*some(rng, 5), y)
        got, wanted = two(answer, numbers), right_two(*numbers)
        hint = (
            "From the second z to h it is a factor of w2, from h to the first z the slope of "
            "the first sigmoid at its own output, and then z = w1 * x + b1."
        )
        expect_grad("dL/db1", got["db1"], wanted[1], numbers, hint)
        expect_grad("dL/dw1", got["dw1"], wanted[0], numbers, hint)


@check(
    "a weight of 0 lets nothing through",
    holds="goes on to its input, by one factor, and from there through the first",
)
def closed(answer, rng, device):
    x, w1, b1, b2 = some(rng, 4)
    numbers = (x, w1, b1, 0.0, b2, 1.0)
    got = two(answer, numbers)
    hint = "With w2 = 0, the loss does not depend on the first neuron at all."
    expect_grad("dL/dw1", got["dw1"], 0.0, numbers, hint)
    expect_grad("dL/db1", got["db1"], 0.0, numbers, hint)
    expect_true(got["dw2"] != 0, "dL/dw2 is 0, and w2 could still grow", hint=hint)


@check("two sure neurons stay finite", holds="and there the slope is 0")
def two_sure(answer, rng, device):
    for numbers in (
        (1.0, 900.0, 0.0, -900.0, 0.0, 1.0),
        (1.0, 0.5, 0.0, 900.0, 0.0, 0.0),
        (1.0, -900.0, 0.0, 2.0, 0.5, 1.0),  # h is exactly 0
    ):
        got, wanted = two(answer, numbers), right_two(*numbers)
        hint = (
            "The slope of the first sigmoid is one of the factors. It may be 0, and is never "
            "divided by."
        )
        for name, value in zip(("dw1", "db1", "dw2", "db2"), wanted, strict=True):
            expect_grad(f"dL/{name}", got[name], value, numbers, hint)


class Seen(TorchDispatchMode):
    """Notes the operations of torch that run."""

    def __init__(self):
        super().__init__()
        self.names = set()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.add(func.__name__.partition(".")[0])
        return func(*args, **(kwargs or {}))


@check(
    "torch is not asked",
    holds="Do without autograd, and without torch.",
    both_sides=True,
    forbid=("torch.autograd.grad", "torch.Tensor.backward"),
)
def by_hand(answer, rng, device):
    numbers = some(rng, 5)
    with Seen() as seen:
        one(answer, (*numbers[:3], 1.0))
        two(answer, (*numbers, 0.0))
    names = ", ".join(sorted(seen.names))
    hint = "Python's floats and `math` are enough. The starter has a sigmoid."
    expect_true(not seen.names, f"torch runs on the way: {names}", hint=hint)


@mutant("turns the sign round", caught_by=error)
def neuron_grads(x, w, b, y):
    dz = y - sigmoid(w * x + b)
    return dz * x, dz


@mutant("keeps the slope of the sigmoid", caught_by=error)
def neuron_grads(x, w, b, y):
    a = sigmoid(w * x + b)
    dz = (a - y) * a * (1 - a)
    return dz * x, dz


@mutant("takes the squared error", caught_by=error)
def neuron_grads(x, w, b, y):
    a = sigmoid(w * x + b)
    dz = 2 * (a - y) * a * (1 - a)
    return dz * x, dz


@mutant("multiplies by w", caught_by=weight)
def neuron_grads(x, w, b, y):
    dz = sigmoid(w * x + b) - y
    return dz * w, dz


@mutant("forgets the bias in the forward", caught_by=error)
def neuron_grads(x, w, b, y):
    dz = sigmoid(w * x) - y
    return dz * x, dz


@mutant("knows two labels only", caught_by=soft)
def neuron_grads(x, w, b, y):
    a = sigmoid(w * x + b)
    dz = a - 1 if y > 0.5 else a
    return dz * x, dz


@mutant("multiplies the factors without cancelling them", caught_by=sure)
def neuron_grads(x, w, b, y):
    a = sigmoid(w * x + b)
    dz = (a - y) / (a * (1 - a)) * (a * (1 - a))
    return dz * x, dz


@mutant("keeps a away from 0 and 1", caught_by=sure)
def neuron_grads(x, w, b, y):
    a = min(max(sigmoid(w * x + b), 1e-3), 1 - 1e-3)
    dz = (a - y) / (a * (1 - a)) * (a * (1 - a))
    return dz * x, dz


@mutant("feeds x to the second neuron", caught_by=second)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    dz2 = sigmoid(w2 * h + b2) - y
    dz1 = dz2 * w2 * h * (1 - h)
    return dz1 * x, dz1, dz2 * x, dz2


@mutant("cancels the first slope as well", caught_by=first)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    dz2 = sigmoid(w2 * h + b2) - y
    dz1 = dz2 * w2
    return dz1 * x, dz1, dz2 * h, dz2


@mutant("takes the slope of the second sigmoid", caught_by=first)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    a = sigmoid(w2 * h + b2)
    dz1 = (a - y) * w2 * a * (1 - a)
    return dz1 * x, dz1, (a - y) * h, a - y


@mutant("divides h out of a gradient that it multiplied in", caught_by=two_sure)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    dw2 = (sigmoid(w2 * h + b2) - y) * h
    dz1 = dw2 / h * w2 * h * (1 - h)
    return dz1 * x, dz1, dw2, dw2 / h


@mutant("goes back without the weight", caught_by=closed)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    dz2 = sigmoid(w2 * h + b2) - y
    dz1 = dz2 * h * (1 - h)
    return dz1 * x, dz1, dz2 * h, dz2


@mutant("goes back through the weight of the first", caught_by=first)
def two_neurons(x, w1, b1, w2, b2, y):
    h = sigmoid(w1 * x + b1)
    dz2 = sigmoid(w2 * h + b2) - y
    dz1 = dz2 * w1 * h * (1 - h)
    return dz1 * x, dz1, dz2 * h, dz2


@mutant("lets autograd do it", caught_by=by_hand)
def neuron_grads(x, w, b, y):
    w, b = (torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in (w, b))
    cross_entropy(w * x + b, torch.tensor(y, dtype=torch.float64)).backward()
    return w.grad.item(), b.grad.item()


@mutant("takes torch's sigmoid", caught_by=by_hand)
def neuron_grads(x, w, b, y):
    a = torch.sigmoid(torch.tensor(w * x + b, dtype=torch.float64)).item()
    return (a - y) * x, a - y


@hinted(1, reaches=sure)
def neuron_grads(x, w, b, y):
    dz = sigmoid(w * x + b) - y
    return dz * x, dz


@accepted("chooses the form of the sigmoid by the sign of z")
def neuron_grads(x, w, b, y):
    z = w * x + b
    small = math.exp(-abs(z))
    a = 1 / (1 + small) if z >= 0 else small / (1 + small)
    return [(a - y) * x, a - y]


@accepted("weighs the two labels by y")
def neuron_grads(x, w, b, y):
    a = sigmoid(w * x + b)
    return x * (y * (a - 1) + (1 - y) * a), y * (a - 1) + (1 - y) * a


@accepted("walks the chain from the loss, factor by factor")
def two_neurons(x, w1, b1, w2, b2, y):
    z1 = w1 * x + b1
    h = sigmoid(z1)
    z2 = w2 * h + b2
    grad = sigmoid(z2) - y
    dw2, db2 = grad * h, grad
    grad = grad * w2
    grad = grad * sigmoid(z1) * sigmoid(-z1)
    return grad * x, grad, dw2, db2
