"""Judges lessons/08_losses/04_bce_logits.md."""

import torch
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

shows = ["maths/special_stable", "memory/silent_broadcast"]

background("Write the loss from the score.")

FORMULA = "y * log sigmoid(z) + (1 - y) * log sigmoid(-z), a minus, and the mean of all elements."
BOUND = (
    "A sigmoid that was rounded to 0 or 1 cannot be mended later. Compute its log from the score: "
    "logsigmoid, or softplus."
)
SLOPE = (
    "The gradient is (sigmoid(z) - y) / N everywhere. Where it is 0, a bound cut it off, and at "
    "z = 0 a clamp or an abs has a kink."
)
WEIGHT = "pos_weight is a factor of the term with y, and of no other. Divide by the elements alone."


def scores(rng, device, *shape, dtype=torch.float32):
    """Half of the time not contiguous."""
    z = 3 * torch.randn(shape)
    if rng.random() < 0.5:
        z = 3 * torch.randn(shape[::-1]).permute(tuple(range(len(shape)))[::-1])
    return z.to(device, dtype)


def labels(z):
    """0 and 1, both of them if there is room."""
    y = torch.rand(z.shape) > 0.5
    if y.numel() > 1:
        y.view(-1)[0], y.view(-1)[1] = True, False
    return y.to(z.device, z.dtype)


def right(z, y, pos_weight=None):
    """In float64, by torch."""
    if pos_weight is not None:
        pos_weight = torch.as_tensor(pos_weight, dtype=torch.float64, device=z.device)
    return F.binary_cross_entropy_with_logits(z.double(), y.double(), pos_weight=pos_weight)


def compare(answer, z, y, hint, **options):
    got = answer.bce_logits(z, y, **options)
    wanted = right(z.detach(), y, **options)
    expect_close(got, wanted, dtype=z.dtype, name="bce_logits", hint=hint)


def basic(answer, rng, device):
    """Scores of usual size, hard labels, no weight: what all other checks build on."""
    z = scores(rng, device, 4, 3)
    compare(answer, z, labels(z), FORMULA)


def gradient(answer, z, y, **options):
    leaf = z.detach().clone().requires_grad_()
    loss = answer.bce_logits(leaf, y, **options)
    hint = "Compute with torch's operations alone, and detach nothing."
    expect_true(
        isinstance(loss, torch.Tensor) and loss.requires_grad, "the loss has no graph", hint=hint
    )
    return torch.autograd.grad(loss, leaf)[0]


@check(
    "the mean over all elements",
    holds=[
        "torch's two binary cross-entropies are off limits",
        "The mean binary cross-entropy over all elements.",
        "N elements",
    ],
    both_sides=True,
    forbid=(
        "torch.nn.functional.binary_cross_entropy",
        "torch.nn.functional.binary_cross_entropy_with_logits",
    ),
)
def values(answer, rng, device):
    for shape in ((rng.randint(20, 40),), (4, 5)):
        z = scores(rng, device, *shape)
        compare(answer, z, labels(z), FORMULA)


@check(
    "scores of 200 and 10000 keep their loss",
    holds="Scores may be as large as 1e4, either sign.",
    both_sides=True,
)
def far(answer, rng, device):
    size = rng.uniform(150, 250)
    for z, y in ((-size, 1.0), (size, 0.0), (-size, 0.0), (size, 1.0), (-1e4, 1.0), (1e4, 0.0)):
        z, y = torch.tensor([z], device=device), torch.tensor([y], device=device)
        compare(answer, z, y, BOUND)


@check(
    "far out, the gradient is still the error",
    holds=["everywhere: far out, and at z = 0", "part of the graph"],
    side="far out",
)
def far_gradient(answer, rng, device):
    size = rng.uniform(150, 250)
    z = torch.tensor([-size, size, -size, size, -30.0, 20.0, 1e4], device=device)
    y = torch.tensor([1.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0], device=device)
    wanted = (z.double().sigmoid() - y) / len(z)
    got = gradient(answer, z, y)
    expect_close(got, wanted, dtype=z.dtype, name="the gradient", hint=SLOPE)


@check(
    "near 0 and at 0, the gradient is the error",
    holds="everywhere: far out, and at z = 0",
    side="at 0",
)
def near_gradient(answer, rng, device):
    z = scores(rng, device, 6, 5).contiguous()
    z[0] = 0
    y = labels(z)
    wanted = (z.double().sigmoid() - y) / z.numel()
    got = gradient(answer, z, y)
    expect_close(got, wanted, dtype=z.dtype, name="the gradient", hint=SLOPE)


@check(
    "pos_weight: a number, 0 and 1 among them",
    holds=[
        "None, a number from 0, or a tensor of z's dtype",
        "The mean still divides by the number of elements",
    ],
    side="a number",
)
def number(answer, rng, device):
    basic(answer, rng, device)
    z = scores(rng, device, 40)
    y = labels(z)
    for weight in (rng.uniform(2, 6), 0.25, 3, 1, 0):
        compare(answer, z, y, WEIGHT, pos_weight=weight)
    error = z.double().sigmoid()
    wanted = torch.where(y == 1, 3 * (error - 1), error) / 40
    got = gradient(answer, z, y, pos_weight=3.0)
    expect_close(got, wanted, dtype=z.dtype, name="the gradient", hint=WEIGHT)


@check(
    "pos_weight: one number per label",
    holds="None, a number from 0, or a tensor of z's dtype",
    side="a tensor",
)
def per_label(answer, rng, device):
    basic(answer, rng, device)
    n, count = rng.sample(range(3, 8), 2)
    z = scores(rng, device, n, count)
    hint = f"z is {[n, count]} and pos_weight {[count]}: broadcasting lines them up as they are."
    compare(answer, z, labels(z), hint, pos_weight=3 * torch.rand(count).to(device))
    z = scores(rng, device, count, count)
    hint = "As many samples as labels: pos_weight belongs to the last dimension, the labels."
    compare(answer, z, labels(z), hint, pos_weight=3 * torch.rand(count).to(device))
    one = torch.tensor(2.5, device=device)
    compare(answer, z, labels(z), "A tensor of rank 0 is a weight, too.", pos_weight=one)


@check(
    "soft labels are between the two",
    holds=["`y` may be anything from 0 to 1", "a factor of the term with y"],
    both_sides=True,
)
def soft(answer, rng, device):
    basic(answer, rng, device)
    z = scores(rng, device, 30)
    y = torch.rand(30).to(device)
    compare(answer, z, y, "A label of 0.3 is 0.3 of a yes and 0.7 of a no: weigh both terms.")
    hint = "With soft labels too, pos_weight is a factor of the term with y alone."
    compare(answer, z, y, hint, pos_weight=rng.uniform(2, 6))


@check(
    "shapes that differ are a ValueError that names both",
    holds=["`z` and `y` must have equal shapes.", "a ValueError whose text names both"],
    both_sides=True,
)
def shapes(answer, rng, device):
    n = rng.randint(3, 6)
    hint = "Compare the shapes before anything else: broadcasting would make (N, N) of (N, 1)."
    for one, other in (((n, 1), (n,)), ((n,), (n, 1)), ((n,), (1,)), ((n,), ()), ((n, 1), (1, n))):
        z, y = torch.zeros(one, device=device), torch.zeros(other, device=device)
        said = ""
        try:
            answer.bce_logits(z, y)
        except ValueError as error:
            said = str(error)
        except RuntimeError as error:
            fail(f"z {list(one)} with y {list(other)} is a RuntimeError: {error}", hint=hint)
        expect_true(said, f"z {list(one)} with y {list(other)} is no ValueError", hint=hint)
        named = all(str(list(shape)) in said or str(shape) in said for shape in (one, other))
        message = f"the error does not name {list(one)} and {list(other)}"
        expect_true(named, message, hint=f"It says: {said}")


@check(
    "any shape and layout, float64, inputs left alone",
    holds=["one element or more, float32 or float64", "All inputs keep their values."],
    both_sides=True,
)
def edges(answer, rng, device):
    basic(answer, rng, device)
    for shape in ((), (1,), (1, 1), (2, 3, 4)):
        z = scores(rng, device, *shape)
        compare(answer, z, labels(z), "Element by element, then one mean over all of them.")
    z = scores(rng, device, 5, 4, dtype=torch.float64)
    z = z + 1e-6 * torch.rand_like(z)  # digits that float32 does not have
    y, weight = labels(z), 3 * torch.rand(4, dtype=torch.float64).to(device)
    with expect_unchanged(z, y, weight):
        got = answer.bce_logits(z, y, weight)
    wanted = right(z, y, weight)
    hint = "float64 in, float64 out, with its digits."
    expect_close(got, wanted, rtol=1e-10, atol=1e-11, name="bce_logits", hint=hint)


def paired(z, y):
    """What the wrong answers do first."""
    if z.shape != y.shape:
        raise ValueError(f"{z.shape} and {y.shape}")


def factor(pos_weight):
    return 1 if pos_weight is None else pos_weight


@mutant("takes the sigmoid, and bounds the logs as torch does", caught_by=far)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    p = z.sigmoid()
    yes, no = p.log().clamp(min=-100), (1 - p).log().clamp(min=-100)
    return -(factor(pos_weight) * y * yes + (1 - y) * no).mean()


@mutant("writes the logs out", caught_by=far)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    p = z.sigmoid()
    return -(factor(pos_weight) * y * p.log() + (1 - y) * (1 - p).log()).mean()


@mutant("adds a small number to the shares", caught_by=far)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    yes, no = (z.sigmoid() + 1e-7).log(), ((-z).sigmoid() + 1e-7).log()
    return -(factor(pos_weight) * y * yes + (1 - y) * no).mean()


@mutant("leaves it to torch", caught_by=values)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = None if pos_weight is None else torch.as_tensor(pos_weight, dtype=z.dtype, device=z.device)
    return F.binary_cross_entropy_with_logits(z, y, pos_weight=w)


@mutant("leaves the probabilities to torch", caught_by=values)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = 1 + (factor(pos_weight) - 1) * y
    return F.binary_cross_entropy(z.sigmoid(), y, weight=w)


@mutant("applies the sigmoid twice", caught_by=values)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    p = z.sigmoid()
    return -(factor(pos_weight) * y * F.logsigmoid(p) + (1 - y) * F.logsigmoid(-p)).mean()


@mutant("adds the elements up", caught_by=values)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    return -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).sum()


@mutant("forgets what a no costs", caught_by=values)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    return -(factor(pos_weight) * y * F.logsigmoid(z)).mean()


@mutant("clamps the scores", caught_by=far)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    z = z.clamp(-50, 50)
    return -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant(
    "takes log(1 + exp) as it stands",
    caught_by=far,
    misconception="maths/special_stable",
    like="takes exp, sum and log as they stand",
)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    back = (1 + (-z).exp()).log()
    return ((1 - y) * z + (1 + (factor(pos_weight) - 1) * y) * back).mean()


@mutant("uses the formula with max and abs, kinks and all", caught_by=near_gradient)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = 1 + (factor(pos_weight) - 1) * y
    back = (-z).clamp(min=0) + torch.log1p((-z.abs()).exp())
    return ((1 - y) * z + w * back).mean()


@mutant("weighs every element", caught_by=number)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    return -(factor(pos_weight) * (y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z))).mean()


@mutant("weighs the negatives", caught_by=number)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    return -(y * F.logsigmoid(z) + factor(pos_weight) * (1 - y) * F.logsigmoid(-z)).mean()


@mutant("takes a weight of 0 for none", caught_by=number)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = pos_weight if isinstance(pos_weight, torch.Tensor) else pos_weight or 1
    return -(w * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant("divides by the sum of the weights", caught_by=number)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = 1 + (factor(pos_weight) - 1) * y
    each = -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z))
    return each.sum() / w.sum()


@mutant("takes the mean weight for every label", caught_by=per_label)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = pos_weight if not isinstance(pos_weight, torch.Tensor) else pos_weight.mean()
    return -(factor(w) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant("takes labels for yes from a half on", caught_by=soft)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    w = factor(pos_weight)
    return torch.where(y > 0.5, -w * F.logsigmoid(z), -F.logsigmoid(-z)).mean()


@mutant(
    "lets the shapes broadcast",
    caught_by=shapes,
    misconception="memory/silent_broadcast",
    like="takes whatever broadcasts to pred's shape",
)
def bce_logits(z, y, pos_weight=None):
    return -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant("compares the number of elements", caught_by=shapes)
def bce_logits(z, y, pos_weight=None):
    if z.numel() != y.numel():
        raise ValueError(f"{z.shape} and {y.shape}")
    y = y.reshape(z.shape)
    return -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant("says nothing about the shapes", caught_by=shapes)
def bce_logits(z, y, pos_weight=None):
    if z.shape != y.shape:
        raise ValueError("shapes differ")
    return -(factor(pos_weight) * y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@mutant("works in float32", caught_by=edges)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    yes, no = F.logsigmoid(z.float()), F.logsigmoid(-z.float())
    return -(factor(pos_weight) * y * yes + (1 - y) * no).mean()


@mutant("writes into the labels", caught_by=edges)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    no = (1 - y) * F.logsigmoid(-z)
    return -(y.mul_(factor(pos_weight)) * F.logsigmoid(z) + no).mean()


@mutant("lines pos_weight up with the rows where that fits", caught_by=per_label)
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    weight = factor(pos_weight)
    if isinstance(weight, torch.Tensor) and weight.shape == z.shape[:1]:
        weight = weight.view(-1, *[1] * (z.dim() - 1))
    return (weight * y * F.softplus(-z) + (1 - y) * F.softplus(z)).mean()


@hinted(1, reaches=near_gradient)
def bce_logits(z, y, pos_weight=None):
    return -(y * F.logsigmoid(z) + (1 - y) * F.logsigmoid(-z)).mean()


@accepted("uses softplus")
def bce_logits(z, y, pos_weight=None):
    if z.shape != y.shape:
        raise ValueError(f"z {list(z.shape)}, y {list(y.shape)}")
    w = 1 if pos_weight is None else 1 + (pos_weight - 1) * y
    return ((1 - y) * z + w * F.softplus(-z)).mean()


@accepted("asks the softmax of two scores")
def bce_logits(z, y, pos_weight=None):
    if tuple(z.shape) != tuple(y.shape):
        raise ValueError(f"{tuple(z.shape)} against {tuple(y.shape)}")
    no, yes = torch.stack([torch.zeros_like(z), z]).log_softmax(0)
    if pos_weight is not None:
        yes = yes * pos_weight
    return -(y * yes + (1 - y) * no).sum() / z.numel()


@accepted("adds exps in the log")
def bce_logits(z, y, pos_weight=None):
    paired(z, y)
    back = torch.logaddexp(torch.zeros_like(z), -z)
    return torch.mean(factor(pos_weight) * y * back + (1 - y) * (back + z))
