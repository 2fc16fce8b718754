"""Judges lessons/14_performance/02_gradscaler.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("Write the class Scaler.", "A call that may help")

DIVIDE = "The gradients are as many times too long as the scale says. Divide them, then step."
SKIP = "One infinite or NaN gradient anywhere, and the optimizer does not step at all."
GROUPS = "The second group is divided as well: for group in opt.param_groups, its params."
BACK = "A skipped step multiplies the scale by backoff, as the caller gave it."
EARLY = (
    "It grew too early: after interval good steps in a row. The count begins again after a skipped "
    "step, and after the scale has grown."
)
LATE = (
    "Too small: the good step that makes the count equal to interval multiplies the scale by "
    "growth, and both are the caller's."
)
GRAPH = "Return loss * self.value, a new tensor: backward() goes through the product."
LATER = "step() leaves the scale as it is. update() changes it."
NONE = "A parameter that took no part has .grad None. Leave it out."
ALL = "Every gradient is divided, also where another one is infinite or NaN."
BAD = (float("inf"), float("-inf"), float("nan"))


def problem(device, n=3):
    """(two parameters in groups of their own, an optimizer)."""
    w = torch.randn(n).to(device).requires_grad_()
    v = torch.randn(2, n).to(device).requires_grad_()
    groups = [{"params": [w]}, {"params": [v], "lr": 0.05}]
    return (w, v), torch.optim.SGD(groups, lr=0.1, momentum=0.9)


def backward(scaler, opt, params, value=None, place=0):
    opt.zero_grad()
    scaler.scale(sum((p * p).sum() for p in params)).backward()
    if value is not None:
        params[place].grad.view(-1)[0] = value


def follow(answer, rng, device, pattern, **options):
    """Runs the answer beside torch's scaler. pattern: for each step, is it bad."""
    init = float(2 ** rng.randint(2, 6))
    theirs, opt = problem(device)
    right = torch.amp.GradScaler(
        device.type,
        init_scale=init,
        growth_factor=options.get("growth", 2.0),
        backoff_factor=options.get("backoff", 0.5),
        growth_interval=options.get("interval", 2000),
    )
    mine = tuple(p.detach().clone().requires_grad_() for p in theirs)
    groups = [{"params": [mine[0]]}, {"params": [mine[1]], "lr": 0.05}]
    own = torch.optim.SGD(groups, lr=0.1, momentum=0.9)
    scaler = answer.Scaler(init, **options)
    for number, bad in enumerate(pattern):
        value, place = (rng.choice(BAD), rng.randint(0, 1)) if bad else (None, 0)
        backward(right, opt, theirs, value, place)
        right.step(opt)
        right.update()
        backward(scaler, own, mine, value, place)
        scaler.step(own)
        scaler.update()
        for place, (p, q) in enumerate(zip(mine, theirs, strict=True)):
            hint = SKIP if bad or not p.isfinite().all() else GROUPS if place else DIVIDE
            name = f"a parameter after step {number}"
            expect_close(p.detach(), q.detach(), name=name, hint=hint, nan_hint=SKIP)
        given = "".join(f", {key} {value}" for key, value in options.items())
        name = f"the scale after step {number}{given}"
        now, wanted = float(scaler.value), right.get_scale()
        expect_equal(now, wanted, name=name, hint=BACK if bad else EARLY if now > wanted else LATE)


@check("the loss is multiplied", holds="scale(loss) returns the loss times the scale.")
def scaled(answer, rng, device):
    loss = torch.tensor(3.0, device=device, requires_grad=True)
    init = float(2 ** rng.randint(2, 9))
    got = answer.Scaler(init).scale(loss)
    expect_close(got.detach(), 3.0 * init * torch.ones((), device=device), name="the scaled loss")
    expect_equal(float(answer.Scaler().value), 65536.0, name="the scale that a new Scaler has")
    expect_true(got.requires_grad, "the scaled loss has no graph", hint=GRAPH)
    got.backward()
    expect_equal(loss.item(), 3.0, name="the caller's loss", hint=GRAPH)
    expect_true(loss.grad is not None, "backward() does not reach the loss", hint=GRAPH)
    expect_equal(loss.grad.item(), init, name="the gradient of the loss", hint=GRAPH)


@check(
    "good steps are those without a scaler",
    holds="step(opt) divides the gradients of the optimizer's parameters by the scale, in place.",
)
def good(answer, rng, device):
    follow(answer, rng, device, [False] * 4)
    params, opt = problem(device)
    scaler = answer.Scaler(16.0)
    backward(scaler, opt, params)
    held, wanted = params[0].grad, 2 * params[0].detach().clone()
    scaler.step(opt)
    expect_close(held, wanted, name="p.grad after step", hint="Divide in place, by div_.")


@check(
    "a bad step is skipped",
    holds="If one of them is infinite or NaN, it does not step.",
    both_sides=True,
)
def skips(answer, rng, device):
    for place in (0, 1):
        for value in BAD:
            params, opt = problem(device)
            scaler = answer.Scaler(8.0)
            backward(scaler, opt, params, value, place)
            before = [p.detach().clone() for p in params]
            scaler.step(opt)
            expect_equal(float(scaler.value), 8.0, name="the scale before update()", hint=LATER)
            scaler.update()
            for p, old in zip(params, before, strict=True):
                expect_equal(p.detach(), old, name=f"a parameter, {value} in a gradient", hint=SKIP)
            other = 1 - place
            name = f"the gradient of the other parameter, {value} in one"
            expect_true(params[other].grad is not None, f"{name} is gone", hint=ALL)
            expect_close(params[other].grad, 2 * before[other], name=name, hint=ALL)
            now = float(scaler.value)
            expect_equal(now, 4.0, name="the scale after the skipped step", hint=BACK)
            backward(scaler, opt, params)
            scaler.step(opt)
            moved = not torch.equal(params[0].detach(), before[0])
            expect_true(moved, "the good step after it is skipped, too", hint="Forget the bad one.")


@check(
    "large gradients that are finite are a good step",
    holds="If one of them is infinite or NaN, it does not step.",
    side="none of them is",
)
def large(answer, rng, device):
    w = torch.zeros(4, device=device, requires_grad=True)
    opt = torch.optim.SGD([w], lr=1e-38)
    scaler = answer.Scaler(rng.choice((1.0, 2.0)), interval=1)
    begun = float(scaler.value)
    w.grad = torch.full_like(w, 3e38)  # twice this is more than float32 holds
    scaler.step(opt)
    hint = "Each number for itself is finite here. Their sum, or their norm, is not."
    moved = bool((w.detach() != 0).all())
    expect_true(moved, "finite gradients of 3e38: the step is skipped", hint=hint)
    expect_equal(float(scaler.value), begun, name="the scale before update()", hint=LATER)
    scaler.update()
    expect_equal(float(scaler.value), 2 * begun, name="the scale after 1 good step", hint=LATE)


@check(
    "the scale falls and grows as torch's does",
    holds=[
        "a skipped step multiplies the scale by backoff, and interval good steps in a row multiply",
        "Afterwards the count begins again.",
        "update() comes after it",
    ],
)
def grows(answer, rng, device):
    follow(answer, rng, device, [False, False, True, False, False, False, True, False], interval=3)
    follow(answer, rng, device, [False] * 7, interval=2)
    follow(answer, rng, device, [rng.random() < 0.4 for _ in range(12)], interval=2)
    options = {"growth": 8.0, "backoff": 0.25, "interval": 1}  # backoff is not 1 / growth
    follow(answer, rng, device, [False, True, True, False, False], **options)
    still = torch.ones(1, device=device, requires_grad=True)
    still.grad = torch.zeros_like(still)
    idle = torch.optim.SGD([still], lr=0.1)
    scaler, values = answer.Scaler(8.0), []
    for _ in range(2000):
        scaler.step(idle)
        scaler.update()
        values.append(scaler.value)
    expect_equal(values[-2:], [8.0, 16.0], name="the scale after 1,999 and 2,000 good steps",
                 hint="interval is 2000 where the caller does not say it.")  # fmt: skip


@check(
    "parameters without a gradient, several groups",
    holds=["Parameters without a gradient are left alone.", "perhaps with several groups"],
)
def without(answer, rng, device):
    (w, v), opt = problem(device)
    idle = torch.ones(2, device=device, requires_grad=True)
    opt.add_param_group({"params": [idle]})
    scaler = answer.Scaler(4.0)
    backward(scaler, opt, (w, v))
    expected = (w - 0.1 * 2 * w).detach()
    with advising(AttributeError, saying="NoneType", hint=NONE):
        scaler.step(opt)
    expect_close(w.detach(), expected, name="a parameter", hint=DIVIDE)
    expect_true(idle.grad is None, "a parameter got a gradient", hint=NONE)
    expect_equal(idle.detach(), torch.ones(2, device=device), name="a parameter without a gradient")


class Base:
    """The solution in parts, for wrong answers to change one of."""

    def __init__(self, init=65536.0, growth=2.0, backoff=0.5, interval=2000):
        self.value, self.growth, self.backoff, self.interval = init, growth, backoff, interval
        self.good, self.skipped = 0, False

    def scale(self, loss):
        return loss * self.value

    def grads(self, opt):
        return [p.grad for g in opt.param_groups for p in g["params"] if p.grad is not None]

    def unscale(self, opt):
        for grad in self.grads(opt):
            grad.div_(self.value)

    def step(self, opt):
        self.unscale(opt)
        self.skipped = any(not grad.isfinite().all() for grad in self.grads(opt))
        if not self.skipped:
            opt.step()

    def update(self):
        if self.skipped:
            self.value, self.good = self.value * self.backoff, 0
            return
        self.good += 1
        if self.good == self.interval:
            self.value, self.good = self.value * self.growth, 0


@mutant("never divides", caught_by=good)
class Scaler(Base):
    def unscale(self, opt):
        pass


@mutant("steps on infinite gradients", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        super().step(opt)
        if self.skipped:
            opt.step()


@mutant("stops to divide at the first bad gradient", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        self.skipped = False
        for grad in self.grads(opt):
            grad.div_(self.value)
            if not grad.isfinite().all():
                self.skipped = True
                return
        opt.step()


@mutant("looks for NaN alone", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        self.unscale(opt)
        self.skipped = any(grad.isnan().any() for grad in self.grads(opt))
        if not self.skipped:
            opt.step()


@mutant("looks at the first group alone", caught_by=good)
class Scaler(Base):
    def grads(self, opt):
        return [p.grad for p in opt.param_groups[0]["params"] if p.grad is not None]


@mutant("asks whether all gradients are bad", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        self.unscale(opt)
        self.skipped = all(not grad.isfinite().all() for grad in self.grads(opt))
        if not self.skipped:
            opt.step()


@mutant("asks whether the sum is finite", caught_by=large)
class Scaler(Base):
    def step(self, opt):
        self.unscale(opt)
        self.skipped = any(not grad.sum().isfinite() for grad in self.grads(opt))
        if not self.skipped:
            opt.step()


@mutant("changes the scale in step", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        super().step(opt)
        super().update()

    def update(self):
        pass


@mutant("divides by growth after a skipped step", caught_by=grows)
class Scaler(Base):
    def update(self):
        if self.skipped:
            self.value, self.good = self.value / self.growth, 0
            return
        super().update()


@mutant("multiplies the caller's loss in place", caught_by=scaled)
class Scaler(Base):
    def scale(self, loss):
        with torch.no_grad():
            return loss.mul_(self.value)


@mutant("makes a leaf of the scaled loss", caught_by=scaled)
class Scaler(Base):
    def scale(self, loss):
        return torch.tensor(loss.item() * self.value, requires_grad=True)


@mutant("clears the gradients of a skipped step", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        super().step(opt)
        if self.skipped:
            opt.zero_grad()


@mutant("counts one step more", caught_by=grows)
class Scaler(Base):
    def update(self):
        if self.skipped:
            self.value, self.good = self.value * self.backoff, 0
            return
        self.good += 1
        if self.good > self.interval:
            self.value, self.good = self.value * self.growth, 0


@mutant("goes on counting after a skipped step", caught_by=grows)
class Scaler(Base):
    def update(self):
        if self.skipped:
            self.value *= self.backoff
            return
        super().update()


@mutant("goes on growing once it has grown", caught_by=grows)
class Scaler(Base):
    def update(self):
        if self.skipped:
            self.value, self.good = self.value * self.backoff, 0
            return
        self.good += 1
        if self.good >= self.interval:
            self.value *= self.growth


@mutant("never forgets a bad step", caught_by=skips)
class Scaler(Base):
    def step(self, opt):
        self.unscale(opt)
        if any(not grad.isfinite().all() for grad in self.grads(opt)):
            self.skipped = True
        if not self.skipped:
            opt.step()


@mutant("replaces .grad instead of changing it", caught_by=good)
class Scaler(Base):
    def unscale(self, opt):
        for group in opt.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad = p.grad / self.value


@mutant("expects a gradient everywhere", caught_by=without)
class Scaler(Base):
    def grads(self, opt):
        return [p.grad for g in opt.param_groups for p in g["params"]]


@hinted(1, reaches=good)
class Scaler(Base):
    def step(self, opt):
        self.unscale(opt)
        opt.step()

    def update(self):
        pass


@accepted("asks the sum of all gradients")
class Scaler:
    def __init__(self, init=65536.0, growth=2.0, backoff=0.5, interval=2000):
        self.value, self.factors, self.interval = init, (growth, backoff), interval
        self.streak, self.finite = 0, True

    def scale(self, loss):
        return self.value * loss

    def step(self, opt):
        grads = [p.grad for g in opt.param_groups for p in g["params"] if p.grad is not None]
        torch._foreach_mul_(grads, 1 / self.value)
        self.finite = bool(torch.stack([g.double().abs().sum() for g in grads]).sum().isfinite())
        if self.finite:
            opt.step()

    def update(self):
        self.streak = self.streak + 1 if self.finite else 0
        if not self.finite:
            self.value *= self.factors[1]
        elif self.streak % self.interval == 0:
            self.value *= self.factors[0]


@accepted("looks before it divides")
class Scaler(Base):
    def step(self, opt):
        self.skipped = any(not grad.isfinite().all() for grad in self.grads(opt))
        self.unscale(opt)
        if not self.skipped:
            opt.step()


@accepted("counts down")
class Scaler(Base):
    def update(self):
        self.left = self.interval if self.skipped else getattr(self, "left", self.interval) - 1
        if self.skipped:
            self.value *= self.backoff
        elif self.left == 0:
            self.value *= self.growth
            self.left = self.interval


equivalent(
    "self.good, self.skipped = 0, False",
    "self.good, self.skipped = 0, True",
    because="step() sets it before update() reads it.",
)
