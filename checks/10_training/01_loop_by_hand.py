"""Judges lessons/10_training/01_loop_by_hand.md."""

import torch

from tensortutor.checking import (
    accepted,
    check,
    expect_equal,
    expect_true,
    expect_unchanged,
    mutant,
)


def points(rng, device, n=None, dtype=torch.float32):
    """Points near a line that is nowhere flat; x is not contiguous, and not centred."""
    n = n or rng.randrange(5, 40)
    x = (torch.rand(n, 2, dtype=torch.float64) * 2 - 0.5).to(device, dtype)[:, 0]
    slope, start = rng.choice((-1, 1)) * rng.uniform(2, 4), rng.choice((-1, 1)) * rng.uniform(5, 7)
    return x, slope * x + start + 0.3 * torch.randn_like(x)


def wanted(x, y, lr, steps):
    """w, b and the losses before each update, in float64."""
    x, y = x.double(), y.double()
    w = b = torch.zeros((), dtype=torch.float64, device=x.device)
    losses = []
    for _ in range(steps):
        e = w * x + b - y
        losses.append(e.square().mean().item())
        w, b = w - lr * 2 * (e * x).mean(), b - lr * 2 * e.mean()
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


@check("the first step goes downhill")
def downhill(answer, rng, device):
    for _ in range(3):
        x, y = points(rng, device)
        right = wanted(x, y, 0.05, 1)
        got = fit(answer, x, y, 0.05, 1)
        message = f"b is {got[1]:.4g} after one step from 0, and the best b is "
        message += "above 0" if right[1] > 0 else "below 0"
        hint = "The gradient points uphill: it is taken off, lr times. And w, b start at 0."
        expect_true(got[1] * right[1] > 0, message, hint=hint)


@check("w moves by lr times its gradient")
def step_of_w(answer, rng, device):
    for n in (None, None, 1):
        x, y = points(rng, device, n)
        lr = rng.uniform(0.02, 0.1)
        got, right = fit(answer, x, y, lr, 1), wanted(x, y, lr, 1)
        hint = "The derivative of e * e by w is 2 * e * x, and of a mean it is the mean of these."
        near(got[0], right[0], "w after one step", hint)


@check("b moves at the same residual as w")
def same_residual(answer, rng, device):
    for n in (None, None, 1):
        x, y = points(rng, device, n)
        lr = rng.uniform(0.02, 0.1)
        got, right = fit(answer, x, y, lr, 1), wanted(x, y, lr, 1)
        hint = "Both gradients are mean(2 * e * ...) of one e, from before either of them moved."
        near(got[1], right[1], "b after one step", hint)


@check("many steps follow the formulas")
def many(answer, rng, device):
    for dtype in (torch.float32, torch.float64):
        x, y = points(rng, device, dtype=dtype)
        steps = rng.randrange(6, 14)
        got, right = fit(answer, x, y, 0.1, steps), wanted(x, y, 0.1, steps)
        hint = "Each step starts from the w and b of the step before, with a residual of its own."
        near(got[0], right[0], f"w after {steps} steps", hint)
        near(got[1], right[1], f"b after {steps} steps", hint)


@check("losses holds the loss before each update")
def losses(answer, rng, device):
    x, y = points(rng, device)
    steps = rng.randrange(4, 9)
    got, right = fit(answer, x, y, 0.1, steps)[2], wanted(x, y, 0.1, steps)[2]
    expect_equal(len(got), steps, name="the number of losses", hint="One for each step.")
    for i, (value, true) in enumerate(zip(got, right, strict=True)):
        kind = type(value).__name__
        hint = "A tensor in a list stays on its device. item() makes a float."
        expect_true(isinstance(value, float), f"losses[{i}] is of type {kind}", hint=hint)
        hint = "mean(e * e), of the e that the gradients are made of. The first is mean(y * y)."
        near(value, true, f"losses[{i}]", hint)


@check("no steps leave the line at 0")
def none(answer, rng, device):
    x, y = points(rng, device)
    expect_equal(list(fit(answer, x, y, 0.1, 0)), [0.0, 0.0, []], name="[w, b, losses] for 0 steps")


@check(
    "plain arithmetic, and x and y as they were",
    forbid=(
        "torch.Tensor.backward",
        "torch.autograd.grad",
        "torch.autograd.backward",
    ),
)
def plain(answer, rng, device):
    x, y = points(rng, device)
    with expect_unchanged(x, y):
        fit(answer, x, y, 0.1, 3)


@mutant("moves w before it looks at b", caught_by=same_residual)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean().item())
        w -= lr * (2 * e * x).mean().item()
        b -= lr * (2 * (w * x + b - y)).mean().item()
    return w, b, losses


@mutant("forgets the 2 of the derivative by w", caught_by=step_of_w)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean().item())
        w -= lr * (e * x).mean().item()
        b -= lr * (2 * e).mean().item()
    return w, b, losses


@mutant("goes uphill", caught_by=downhill)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean().item())
        w += lr * (2 * e * x).mean().item()
        b += lr * (2 * e).mean().item()
    return w, b, losses


@mutant("adds up the gradients of the samples", caught_by=step_of_w)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean().item())
        w, b = w - lr * (2 * e * x).sum().item(), b - lr * (2 * e).sum().item()
    return w, b, losses


@mutant("computes the residual once for all steps", caught_by=many)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    e = w * x + b - y
    for _ in range(steps):
        losses.append((e * e).mean().item())
        w, b = w - lr * (2 * e * x).mean().item(), b - lr * (2 * e).mean().item()
    return w, b, losses


@mutant("notes the loss after the update", caught_by=losses)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        w, b = w - lr * (2 * e * x).mean().item(), b - lr * (2 * e).mean().item()
        losses.append((w * x + b - y).square().mean().item())
    return w, b, losses


@mutant("collects tensors", caught_by=losses)
def fit_line(x, y, lr, steps):
    w, b, losses = 0.0, 0.0, []
    for _ in range(steps):
        e = w * x + b - y
        losses.append((e * e).mean())
        w, b = w - lr * (2 * e * x).mean().item(), b - lr * (2 * e).mean().item()
    return w, b, losses


@mutant("asks autograd", caught_by=plain)
def fit_line(x, y, lr, steps):
    p, losses = torch.zeros(2, device=x.device, dtype=x.dtype, requires_grad=True), []
    for _ in range(steps):
        loss = (p[0] * x + p[1] - y).square().mean()
        losses.append(loss.item())
        (g,) = torch.autograd.grad(loss, p)
        p = (p - lr * g).detach().requires_grad_()
    return p[0].item(), p[1].item(), losses


@mutant("takes the best line at once", caught_by=step_of_w)
def fit_line(x, y, lr, steps):
    dx = x - x.mean()
    w = ((dx * y).sum() / (dx * dx).sum().clamp(min=1e-9)).item() if steps else 0.0
    b = (y.mean() - w * x.mean()).item() if steps else 0.0
    return w, b, [(w * x + b - y).square().mean().item()] * steps


@accepted("keeps w and b in one tensor, and multiplies by a matrix")
def fit_line(x, y, lr, steps):
    columns = torch.stack([x, torch.ones_like(x)], dim=1)
    p = torch.zeros(2, device=x.device, dtype=x.dtype)
    losses = []
    for _ in range(steps):
        e = columns @ p - y
        losses.append((e @ e).item() / len(x))
        p = p - lr * 2 / len(x) * (e @ columns)
    return p[0].item(), p[1].item(), losses


@accepted("walks the samples in plain Python")
def fit_line(x, y, lr, steps):
    pairs = list(zip(x.tolist(), y.tolist(), strict=True))
    w, b, n, losses = 0.0, 0.0, len(pairs), []
    for _ in range(steps):
        es = [w * s + b - t for s, t in pairs]
        losses.append(sum(e * e for e in es) / n)
        w -= lr * sum(2 * e * s for e, (s, _) in zip(es, pairs, strict=True)) / n
        b -= lr * sum(2 * e for e in es) / n
    return w, b, losses
