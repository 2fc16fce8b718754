"""Judges lessons/10_training/01_loop_by_hand.md."""

import torch

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_equal,
    expect_true,
    expect_unchanged,
    hinted,
    mutant,
)

background(
    "Some samples count more than others",
)


def points(rng, device, n=None, dtype=torch.float32):
    """Points near a line that is nowhere flat; x is not contiguous, and not centred."""
    n = n or rng.randrange(5, 40)
    x = (torch.rand(n, 2, dtype=torch.float64) * 2 - 0.5).to(device, dtype)[:, 0]
    slope, start = rng.choice((-1, 1)) * rng.uniform(2, 4), rng.choice((-1, 1)) * rng.uniform(5, 7)
    return x, slope * x + start + 0.3 * torch.randn_like(x)


def alike(rng, x):
    """The same weight for each sample."""
    return torch.full_like(x, rng.choice((0.5, 2.0, 7.0)))


def unlike(x):
    """Weights from 0 to 5, the first of them 0, the last one large."""
    weight = torch.rand(2, len(x), dtype=torch.float64).to(x.device, x.dtype).T[:, 0] * 3
    weight[0], weight[-1] = 0.0, 5.0
    return weight


def wanted(x, y, weight, lr, steps):
    """w, b and the losses before each update, in float64."""
    x, y, weight = x.double(), y.double(), weight.double()
    w = b = torch.zeros((), dtype=torch.float64, device=x.device)
    losses = []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((weight @ e.square() / weight.sum()).item())
        w, b = (
            w - lr * 2 * (weight @ (e * x)) / weight.sum(),
            b - lr * 2 * (weight @ e) / weight.sum(),
        )
    return w.item(), b.item(), losses


def fit(answer, *arguments):
    """w, b, losses as fit_line returns them, each of its type."""
    got = answer.fit_line(*arguments)
    expect_true(
        isinstance(got, tuple | list) and len(got) == 3,
        "the result is not w, b, losses",
        hint="return w, b, losses",
    )
    for name, value in zip("wb", got[:2], strict=True):
        hint = "item() makes a float of a tensor with one element."
        kind = type(value).__name__
        expect_true(isinstance(value, float), f"{name} is of type {kind}, not float", hint=hint)
    expect_true(isinstance(got[2], list), "losses is not a list", hint="Start with [] and append.")
    return got


def near(value, right, name, hint):
    message = f"{name} is {value:.6g}, not {right:.6g}"
    expect_true(abs(value - right) <= 1e-4 * (1 + abs(right)), message, hint=hint)


@check("the first step goes downhill", holds="It starts at w = 0 and b = 0")
def downhill(answer, rng, device):
    for _ in range(3):
        x, y = points(rng, device)
        weight = alike(rng, x)
        right = wanted(x, y, weight, 0.05, 1)
        got = fit(answer, x, y, weight, 0.05, 1)
        message = f"b is {got[1]:.4g} after one step from 0, and the best b is "
        message += "above 0" if right[1] > 0 else "below 0"
        hint = "The gradient points uphill: it is taken off, lr times. And w, b start at 0."
        expect_true(got[1] * right[1] > 0, message, hint=hint)


@check(
    "w moves by lr times its gradient, where all samples weigh the same",
    holds="takes steps steps of gradient descent on L",
)
def step_of_w(answer, rng, device):
    for n in (None, None, 1):
        x, y = points(rng, device, n)
        lr, weight = rng.uniform(0.02, 0.1), alike(rng, x)
        got, right = fit(answer, x, y, weight, lr, 1), wanted(x, y, weight, lr, 1)
        hint = "The derivative of e * e by w is 2 * e * x, and of a weighted mean it is the "
        hint += "weighted mean of these: divided by sum(weight), and not by N."
        near(got[0], right[0], "w after one step", hint)


@check(
    "b moves at the same residual as w",
    holds="Both gradients of a step come from the same w and b.",
    both_sides=True,
)
def same_residual(answer, rng, device):
    for n in (None, None, 1):
        x, y = points(rng, device, n)
        lr, weight = rng.uniform(0.02, 0.1), alike(rng, x)
        got, right = fit(answer, x, y, weight, lr, 1), wanted(x, y, weight, lr, 1)
        hint = "Both gradients are mean(2 * e * ...) of one e, from before either of them moved."
        near(got[1], right[1], "b after one step", hint)


@check(
    "a sample counts as often as its weight says",
    holds="sample i counts weight[i] times",
)
def weights(answer, rng, device):
    for n in (None, None, 2):
        x, y = points(rng, device, n)
        lr, weight = rng.uniform(0.02, 0.1), unlike(x)
        got, right = fit(answer, x, y, weight, lr, 1), wanted(x, y, weight, lr, 1)
        hint = (
            "sum(weight * values) / sum(weight), with 2 * e * x as values for w, and 2 * e for b."
        )
        near(got[0], right[0], "w after one step with different weights", hint)
        near(got[1], right[1], "b after one step with different weights", hint)


@check(
    "many steps follow the formulas",
    holds=[
        "Follow them one by one: to end near the right line is not enough.",
        "of one dtype, float32 or float64",
    ],
    both_sides=True,
)
def many(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        x, y = points(rng, device, dtype=dtype)
        steps, weight = rng.randrange(6, 14), unlike(x)
        got, right = fit(answer, x, y, weight, 0.1, steps), wanted(x, y, weight, 0.1, steps)
        hint = "Each step starts from the w and b of the step before, with a residual of its own."
        near(got[0], right[0], f"w after {steps} steps", hint)
        near(got[1], right[1], f"b after {steps} steps", hint)


@check(
    "losses holds the loss before each update",
    holds=["The losses are those before each update.", "a list of one Python float per step"],
    both_sides=True,
)
def losses(answer, rng, device):
    x, y = points(rng, device)
    steps, weight = rng.randrange(4, 9), unlike(x)
    got, right = fit(answer, x, y, weight, 0.1, steps)[2], wanted(x, y, weight, 0.1, steps)[2]
    expect_equal(len(got), steps, name="the number of losses", hint="One for each step.")
    for i, (value, true) in enumerate(zip(got, right, strict=True)):
        kind = type(value).__name__
        hint = "A tensor in a list stays on its device. item() makes a float."
        expect_true(isinstance(value, float), f"losses[{i}] is of type {kind}", hint=hint)
        hint = "The weighted mean of e * e, of the e that the gradients are made of. The first is "
        hint += "that of y * y."
        near(value, true, f"losses[{i}]", hint)
    got = fit(answer, x, torch.zeros_like(y), weight, 0.1, steps)[2]
    name = f"the number of losses for {steps} steps on a line that fits from the start"
    expect_equal(len(got), steps, name=name, hint="`steps` decides, and not how good the fit is.")


@check("no steps leave the line at 0", holds="how many steps, 0 or more", both_sides=True)
def none(answer, rng, device):
    x, y = points(rng, device)
    got = list(fit(answer, x, y, unlike(x), 0.1, 0))
    expect_equal(got, [0.0, 0.0, []], name="[w, b, losses] for 0 steps")
    steps = rng.randrange(1, 4)
    got = fit(answer, x, y, unlike(x), 0.1, steps)
    expect_equal(len(got[2]), steps, name=f"the number of losses for {steps} steps")


@check(
    "plain arithmetic",
    holds="Autograd is off limits.",
    forbid=(
        "torch.Tensor.backward",
        "torch.autograd.grad",
        "torch.autograd.backward",
    ),
)
def plain(answer, rng, device):
    x, y = points(rng, device)
    fit(answer, x, y, unlike(x), 0.1, 3)


@check("x, y and weight are as they were", holds="x, y and weight keep their values.")
def untouched(answer, rng, device):
    x, y = points(rng, device)
    weight = unlike(x)
    with expect_unchanged(x, y, weight):
        fit(answer, x, y, weight, 0.1, 3)


@hinted(1, reaches=same_residual)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        gw = (2 * e * x).mean().item()
        gb = (2 * e).mean().item()
        w -= lr * gw
        b -= lr * gb
        losses.append(e.abs().mean().item())
    return w, b, losses


@hinted(2, reaches=many)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        gw = ((weight * 2 * e * x).sum() / weight.sum()).item()
        gb = ((weight * 2 * e).sum() / weight.sum()).item()
        w -= lr * gw
        b -= lr * gb
        losses.append(((weight * e.abs()).sum() / weight.sum()).item())
    return w, b, losses


def mean(weight, values):
    return ((weight * values).sum() / weight.sum()).item()


@mutant("weighs all samples the same", caught_by=weights)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean().item())
        w, b = w - lr * (2 * e * x).mean().item(), b - lr * (2 * e).mean().item()
    return w, b, losses


@mutant("divides by the number of samples", caught_by=step_of_w)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((weight * e * e).mean().item())
        w -= lr * (weight * 2 * e * x).mean().item()
        b -= lr * (weight * 2 * e).mean().item()
    return w, b, losses


@mutant("multiplies the residual by its weight, and then squares", caught_by=weights)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    weight = weight * weight
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("divides the weights in place", caught_by=untouched)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    weight /= weight.sum()
    for _ in range(steps):
        e = w * x + b - y
        losses.append((weight * e * e).sum().item())
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("moves w before it looks at b", caught_by=same_residual)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w -= lr * mean(weight, 2 * e * x)
        b -= lr * mean(weight, 2 * (w * x + b - y))
    return w, b, losses


@mutant("forgets the 2 of the derivative by w", caught_by=step_of_w)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w -= lr * mean(weight, e * x)
        b -= lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("goes uphill", caught_by=downhill)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w += lr * mean(weight, 2 * e * x)
        b += lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("adds up the gradients of the samples", caught_by=step_of_w)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w, b = w - lr * (weight * 2 * e * x).sum().item(), b - lr * (weight * 2 * e).sum().item()
    return w, b, losses


@mutant("computes the residual once for all steps", caught_by=many)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    e = w * x + b - y
    for _ in range(steps):
        losses.append(mean(weight, e * e))
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("notes the loss after the update", caught_by=losses)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
        losses.append(mean(weight, (w * x + b - y).square()))
    return w, b, losses


@mutant("stops when the loss is small", caught_by=losses)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        if losses[-1] < 1e-6:
            break
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("collects tensors", caught_by=losses)
def fit_line(x, y, weight, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((weight * e * e).sum() / weight.sum())
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses


@mutant("asks autograd", caught_by=plain)
def fit_line(x, y, weight, lr, steps):
    p, losses = torch.zeros(2, device=x.device, dtype=x.dtype, requires_grad=True), []
    for _ in range(steps):
        loss = (weight * (p[0] * x + p[1] - y).square()).sum() / weight.sum()
        losses.append(loss.item())
        (g,) = torch.autograd.grad(loss, p)
        p = (p - lr * g).detach().requires_grad_()
    return p[0].item(), p[1].item(), losses


@mutant("takes the best line at once", caught_by=step_of_w)
def fit_line(x, y, weight, lr, steps):
    dx = x - mean(weight, x)
    w = mean(weight, dx * y) / max(mean(weight, dx * dx), 1e-9) if steps else 0.0
    b = mean(weight, y) - w * mean(weight, x) if steps else 0.0
    return w, b, [mean(weight, (w * x + b - y).square())] * steps


@accepted("keeps w and b in one tensor, and multiplies by a matrix")
def fit_line(x, y, weight, lr, steps):
    columns = torch.stack([x, torch.ones_like(x)], dim=1)
    p = torch.zeros(2, device=x.device, dtype=x.dtype)
    losses, total = [], weight.sum()
    for _ in range(steps):
        e = columns @ p - y
        losses.append((weight @ (e * e) / total).item())
        p = p - lr * 2 / total * ((weight * e) @ columns)
    return p[0].item(), p[1].item(), losses


@accepted("walks the samples in plain Python")
def fit_line(x, y, weight, lr, steps):
    rows = list(zip(x.tolist(), y.tolist(), weight.tolist(), strict=True))
    w, b, n, losses = 0.0, 0.0, sum(v for _, _, v in rows), []
    for _ in range(steps):
        es = [w * s + b - t for s, t, _ in rows]
        losses.append(sum(v * e * e for e, (_, _, v) in zip(es, rows, strict=True)) / n)
        w -= lr * sum(2 * v * e * s for e, (s, _, v) in zip(es, rows, strict=True)) / n
        b -= lr * sum(2 * v * e for e, (_, _, v) in zip(es, rows, strict=True)) / n
    return w, b, losses


@accepted("leaves out what weighs nothing")
def fit_line(x, y, weight, lr, steps):
    keep = weight > 0
    x, y, weight = x[keep], y[keep], weight[keep]
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(mean(weight, e * e))
        w, b = w - lr * mean(weight, 2 * e * x), b - lr * mean(weight, 2 * e)
    return w, b, losses
