"""Judges lessons/10_training/05_schedulers.md."""

import math
import warnings

import torch
from torch import nn
from torch.optim import lr_scheduler

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_true,
    hinted,
    mutant,
)

background("So there is no state to lose.")

UP = "In the warm-up, step s has hi * (s + 1) / warmup: the first is not 0, and the last is hi."
DOWN = "The cosine runs over the steps after the warm-up: t = (step - warmup) / (total - warmup)."
END = "From step total on the rate is lo. A cosine without a stop climbs again."
NO_WARMUP = "With warmup 0, the cosine starts in step 0, with hi."
NO_COSINE = "With warmup == total the line ends at hi in step total - 1, and lo comes next."
TORCH = "LinearLR up and CosineAnnealingLR down, one after the other, have the same rates."


def numbers(rng):
    """total, warmup, hi and lo, with both parts at least two steps long."""
    warmup = rng.randint(3, 9)
    total = warmup + rng.randint(5, 20)
    hi = rng.uniform(0.5, 2.0)
    return total, warmup, hi, hi * rng.uniform(0.05, 0.3)


def expect_rate(answer, step, total, warmup, hi, lo, wanted, hint):
    got = answer.lr_at(step, total, warmup, hi, lo)
    call = f"lr_at({step}, {total}, {warmup}, {hi:.4g}, {lo:.4g})"
    number = isinstance(got, (int, float)) and not isinstance(got, bool)
    expect_true(number, f"{call} is a {type(got).__name__}, not a number", hint="Return a float.")
    close = math.isclose(got, wanted, rel_tol=1e-6, abs_tol=1e-9)
    expect_true(close, f"{call} is {got:.6g}, and {wanted:.6g} is right", hint=hint)


def torch_rates(make, lr, steps, device):
    """The rate of each step under torch's own schedule."""
    opt = torch.optim.SGD([nn.Parameter(torch.zeros(1, device=device))], lr=lr)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sched, seen = make(opt), []
        for _ in range(steps):
            seen.append(opt.param_groups[0]["lr"])
            opt.step()
            sched.step()
    return seen


@check(
    "the same step has the same rate in any order of calls",
    holds="the same step always has the same rate, in any order of calls",
    both_sides=True,
)
def stateless(answer, rng, device):
    total, warmup, hi, lo = numbers(rng)
    hint = "The step is an argument. Compute from it alone, and count nothing."
    steps = list(range(total + 2))
    first = [answer.lr_at(step, total, warmup, hi, lo) for step in steps]
    rng.shuffle(steps)
    for step in steps:
        expect_rate(answer, step, total, warmup, hi, lo, first[step], hint)
    other = numbers(rng)
    answer.lr_at(0, *other)
    expect_rate(answer, warmup, total, warmup, hi, lo, first[warmup], hint)


@check(
    "the warm-up goes from hi / warmup to hi",
    holds="climb a straight line: hi / warmup in the first step, hi in the last one.",
)
def warms(answer, rng, device):
    total, warmup, hi, lo = numbers(rng)
    for step in range(warmup):
        wanted = hi * (step + 1) / warmup
        expect_rate(answer, step, total, warmup, hi, lo, wanted, UP)
    expect_rate(answer, 0, total, 1, hi, lo, hi, UP)


@check(
    "after the warm-up it is torch's cosine, step by step",
    holds="are half a cosine: hi at step warmup, on its way to lo at step total.",
)
def cools(answer, rng, device):
    total, warmup, hi, lo = numbers(rng)

    def make(opt):
        return lr_scheduler.CosineAnnealingLR(opt, T_max=total - warmup, eta_min=lo)

    for i, wanted in enumerate(torch_rates(make, hi, total - warmup, device)):
        expect_rate(answer, warmup + i, total, warmup, hi, lo, wanted, DOWN)


@check(
    "from step total on the rate is lo",
    holds=["From step total on the rate is lo.", "perhaps beyond total"],
)
def ends(answer, rng, device):
    total, warmup, hi, lo = numbers(rng)
    for step in (total, total + 1, 2 * total - warmup, 2 * total, 10 * total + 3):
        expect_rate(answer, step, total, warmup, hi, lo, lo, END)


@check(
    "a warmup of 0 starts with the cosine",
    holds="With warmup 0 there is no line.",
)
def no_warmup(answer, rng, device):
    total, _, hi, lo = numbers(rng)

    def make(opt):
        return lr_scheduler.CosineAnnealingLR(opt, T_max=total, eta_min=lo)

    for step, wanted in enumerate(torch_rates(make, hi, total, device)):
        expect_rate(answer, step, total, 0, hi, lo, wanted, NO_WARMUP)
    expect_rate(answer, 0, 1, 0, hi, lo, hi, NO_WARMUP)


@check(
    "a warmup of all steps has no cosine",
    holds="With warmup == total there is no cosine.",
)
def no_cosine(answer, rng, device):
    _, warmup, hi, lo = numbers(rng)
    for n in (1, warmup):
        for step in range(n):
            expect_rate(answer, step, n, n, hi, lo, hi * (step + 1) / n, NO_COSINE)
        expect_rate(answer, n, n, n, hi, lo, lo, NO_COSINE)


@check(
    "lo is 0 unless it is given",
    holds="the schedule of the last text as a function",
)
def default(answer, rng, device):
    total, warmup, hi, _ = numbers(rng)
    got = answer.lr_at(total, total, warmup, hi)
    hint = "The last parameter has a default: lo=0.0."
    expect_true(abs(got) < 1e-9, f"without lo, the rate of step total is {got:.4g}", hint=hint)


@check("in LambdaLR it does what torch's two schedules do in a row")
def in_torch(answer, rng, device):
    total, warmup, hi, lo = numbers(rng)

    def theirs(opt):
        up = lr_scheduler.LinearLR(opt, start_factor=1 / warmup, total_iters=warmup - 1)
        down = lr_scheduler.CosineAnnealingLR(opt, T_max=total - warmup, eta_min=lo)
        return lr_scheduler.SequentialLR(opt, [up, down], milestones=[warmup])

    def yours(opt):
        return lr_scheduler.LambdaLR(opt, lambda s: answer.lr_at(s, total, warmup, hi, lo))

    wanted = torch_rates(theirs, hi, total + 1, device)
    got = torch_rates(yours, 1.0, total + 1, device)
    for step, (a, b) in enumerate(zip(got, wanted, strict=True)):
        close = math.isclose(a, b, rel_tol=1e-6, abs_tol=1e-9)
        if not close:
            answer.lr_at(step, total, warmup, hi, lo)  # the call that the report is to show
        text = f"step {step} of {total} with a warm-up of {warmup} has {a:.6g}, torch's {b:.6g}"
        expect_true(close, text, hint=TORCH)


@hinted(1, reaches=warms)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * (step + 1) / warmup
    wave = math.cos(math.pi * step / total)
    return lo + (hi - lo) * (1 + wave) / 2


@mutant("counts its calls", caught_by=stateless)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step == 0:
        lr_at.count = -1
    lr_at.count = getattr(lr_at, "count", step - 1) + 1
    step = lr_at.count
    if step < warmup:
        return hi * (step + 1) / warmup
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("remembers the rate of a step", caught_by=stateless)
def lr_at(step, total, warmup, hi, lo=0.0):
    lr_at.top = getattr(lr_at, "top", hi) if step else hi
    hi = lr_at.top
    if step < warmup:
        return hi * (step + 1) / warmup
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("starts at 0, the first step is wasted", caught_by=warms)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * step / warmup
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("warms up from lo", caught_by=warms)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return lo + (hi - lo) * (step + 1) / warmup
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("has no end, the rate rises again after total", caught_by=ends)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * (step + 1) / warmup
    t = (step - warmup) / max(1, total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("cosine over step / total, a jump at the end of the warm-up", caught_by=cools)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * (step + 1) / warmup
    t = min(1.0, step / total)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("a straight line down", caught_by=cools)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * (step + 1) / warmup
    if step >= total:
        return lo
    return hi + (lo - hi) * (step - warmup) / (total - warmup)


@mutant("lo as a floor, not as the end of the curve", caught_by=cools)
def lr_at(step, total, warmup, hi, lo=0.0):
    if step < warmup:
        return hi * (step + 1) / warmup
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return max(lo, hi * (1 + math.cos(math.pi * t)) / 2)


@mutant("divides by a warmup of 0", caught_by=no_warmup)
def lr_at(step, total, warmup, hi, lo=0.0):
    rise = (step + 1) / warmup
    if step < warmup:
        return hi * rise
    if step >= total:
        return lo
    t = (step - warmup) / (total - warmup)
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@mutant("divides by the length of no cosine", caught_by=no_cosine)
def lr_at(step, total, warmup, hi, lo=0.0):
    t = min(1.0, (step - warmup) / (total - warmup))
    if step < warmup:
        return hi * (step + 1) / warmup
    return lo + (hi - lo) * (1 + math.cos(math.pi * t)) / 2


@accepted("a clamped t, and a sine")
def lr_at(step, total, warmup, hi, lo=0.0):
    if warmup and step < warmup:
        return (step + 1) / warmup * hi
    left = max(0, total - step) / max(1, total - warmup)
    return lo + (hi - lo) * math.sin(math.pi / 2 * left) ** 2


@accepted("the end first, and a weighted mean")
def lr_at(step, total, warmup, hi, lo=0.0):
    if step >= total:
        return float(lo)
    if step + 1 <= warmup:
        return hi / warmup * (step + 1)
    share = 0.5 + 0.5 * math.cos(math.pi * (step - warmup) / (total - warmup))
    return share * hi + (1 - share) * lo


equivalent(
    "t = (step - warmup) / (total - warmup)",
    "t = (warmup - step) / (total - warmup)",
    because="cos(-x) is cos(x).",
)
equivalent(
    "t = (step - warmup) / (total - warmup)",
    "t = (step - warmup) / (warmup - total)",
    because="cos(-x) is cos(x).",
)
