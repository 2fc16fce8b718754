"""Judges lessons/10_training/09_early_stopping.md."""

import copy
import gc
import math
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_equal,
    expect_raises,
    expect_true,
    hinted,
    mutant,
)

background("Write `EarlyStop`.", "It will be used like this")

shows = ["modules/state_dict"]

NAN = float("nan")
ROW = "Each value that is better sets the count back to 0. The end is reached when the last "
ROW += "`patience` values were all no better; the same value is no better."
DELTA = "Better means val < best - min_delta. A value that is not better leaves `best` where it is."
NANS = "Ask `val < best - min_delta`: that is False for NaN. Its opposite is False for NaN too."
COPY = "The tensors of state_dict() share the model's memory, and train on. "
COPY += "copy.deepcopy makes others."
BEST = "After restore the model is what it was when the best value was handed in."
INTO = "load_state_dict copies numbers into the tensors that the model has; so does copy_()."
CACHE = "This buffer is persistent=False: state_dict() leaves it out. named_buffers() has it."


class Cached(nn.Linear):
    """A layer with a buffer that state_dict() leaves out."""

    def __init__(self, inputs, outputs):
        super().__init__(inputs, outputs)
        self.register_buffer("cache", torch.zeros(outputs), persistent=False)


def tensors_of(model):
    """All parameters and buffers by name, those that state_dict() leaves out as well."""
    return {**dict(model.named_parameters()), **dict(model.named_buffers())}


def model_of(number, device):
    """A model with parameters and buffers, all of them filled with a number."""
    model = nn.Sequential(Cached(3, 2), nn.BatchNorm1d(2)).to(device)
    fill(model, number)
    return model


def fill(model, number):
    with torch.no_grad():
        for t in tensors_of(model).values():
            t.fill_(number)


def expect_filled(model, number, when, hint):
    """All parameters and buffers hold this number."""
    for name, t in tensors_of(model).items():
        wanted = torch.full_like(t, number, requires_grad=False)
        said = CACHE if name == "0.cache" else hint
        expect_equal(t.detach(), wanted, name=f"{name} {when}", hint=said)


def walk(answer, values, device, hint, patience, *min_delta):
    """Hand in the values one by one, and compare each answer with the rule of the task."""
    stop = answer.EarlyStop(patience, *min_delta)
    delta = min_delta[0] if min_delta else 0.0
    model, best, bad = model_of(0, device), math.inf, 0
    for n, val in enumerate(values, 1):
        fill(model, n)
        ends = stop.step(val, model)
        better = val < best - delta
        best, bad = (val, 0) if better else (best, bad + 1)
        shown = ", ".join(f"{v:.4g}" for v in values[:n])
        where = f"after {shown} with patience {patience} and min_delta {delta}"
        kind = type(ends).__name__
        expect_true(isinstance(ends, bool), f"step returns an object of type {kind}, not a bool")
        expect_true(ends == (bad >= patience), f"{where}, step returns {ends}", hint=hint)
        expect_true(stop.best == best, f"{where}, best is {stop.best}, not {best}", hint=hint)


@check(
    "it ends after `patience` values in a row that are no better",
    holds="True if the last `patience` values, or more, in a row were no better, else False",
    both_sides=True,
)
def patient(answer, rng, device):
    walk(answer, [1.0, 0.9, 0.95, 0.5, 0.6, 0.55, 0.4, 0.7], device, ROW, 2)
    walk(answer, [0.5, 0.6], device, ROW, 1)
    walk(answer, [-1.0, -2.0, -1.5, -1.6, -2.5, -1.0, -1.0, -1.0, -1.0], device, ROW, 3)
    walk(answer, [0.7, 0.7, 0.7], device, ROW, 2)  # the same is not better
    values = [rng.random() for _ in range(12)]
    walk(answer, values, device, ROW, rng.randint(1, 4))


@check(
    "a gain must be larger than min_delta",
    holds="by more than that a value must lie below the best to be better",
)
def large_enough(answer, rng, device):
    walk(answer, [1.0, 0.95, 0.9, 0.85, 0.7, 0.65], device, DELTA, 3, 0.2)
    walk(answer, [2.0, 1.5, 1.0, 0.6], device, DELTA, 2, 0.5)  # exactly min_delta is not more
    walk(answer, [1.0, 0.9999, 0.9998], device, DELTA, 2, 0.01)
    walk(answer, [rng.random() for _ in range(9)], device, DELTA, 3, 0.1)


@check("NaN is never better", holds="NaN is never better", both_sides=True)
def not_a_number(answer, rng, device):
    walk(answer, [1.0, 0.5, NAN, 0.7, 0.4, NAN, NAN], device, NANS, 3)
    walk(answer, [NAN, NAN, 3.0, NAN, 2.0], device, NANS, 4)
    walk(answer, [0.3, NAN], device, NANS, 1)
    walk(answer, [NAN, NAN], device, NANS, 2)


@check(
    "restore brings the best parameters and buffers back",
    holds=["its parameters and all its buffers are kept", "buffers that state_dict() leaves out"],
    both_sides=True,
)
def restored(answer, rng, device):
    stop = answer.EarlyStop(3)
    model = model_of(0, device)
    for n, val in enumerate((0.9, 0.5, 0.7, NAN), 1):
        fill(model, n)
        stop.step(val, model)
        expect_filled(model, n, "after step", "step only looks at the model.")
    stop.restore(model)
    expect_filled(model, 2, "of the best, after more training", COPY)
    other = model_of(9, device)
    stop.restore(other)
    expect_filled(other, 2, "of another model", "restore fills the model that it is given.")


@check(
    "it can be restored again after more training",
    holds="Can be called several times, with training in between.",
)
def again(answer, rng, device):
    stop = answer.EarlyStop(3)
    model = model_of(1, device)
    stop.step(0.5, model)
    for n in (2, 3):
        fill(model, n)
        stop.restore(model)
        expect_filled(
            model, 1, "after another restore", "What is kept must not become the model's."
        )
    fill(model, 4)
    stop.step(0.4, model)
    fill(model, 5)
    stop.restore(model)
    expect_filled(model, 4, "after a new best", "A better value takes the place of the old one.")


@check(
    "the model's Parameters stay the objects that they are",
    holds="The model's Parameters stay the objects that they are.",
)
def same_objects(answer, rng, device):
    stop = answer.EarlyStop(2)
    model = model_of(1, device)
    held = [*model.parameters(), *model.buffers()]
    model.eval()
    stop.step(0.5, model)
    fill(model, 2)
    stop.restore(model)
    now = [*model.parameters(), *model.buffers()]
    same = all(a is b for a, b in zip(held, now, strict=True))
    expect_true(same, "a Parameter or buffer is another object after restore", hint=INTO)
    expect_true(
        all(p.requires_grad for p in model.parameters()),
        "a Parameter does not require grad any more",
        hint=INTO,
    )
    expect_true(
        not model.training, "the model is in another mode", hint="That is not its business."
    )


@check(
    "a tensor will do, and its graph is let go",
    holds=["a float or a 0-d tensor", "No graph stays alive because of this call."],
    both_sides=True,
)
def no_graph(answer, rng, device):
    stop = answer.EarlyStop(2)
    model = model_of(1, device)
    for number, is_best in ((0.5, True), (0.75, False)):
        leaf = torch.tensor([number], device=device, requires_grad=True)
        part = leaf * 1
        loss = (part * part / part).sum()  # the graph has saved `part`
        alive = weakref.ref(part)
        ends = stop.step(loss, model)
        expect_true(isinstance(ends, bool), "step does not return a bool for a tensor")
        kind = type(stop.best).__name__
        hint = "item() makes a number of a 0-d tensor."
        expect_true(isinstance(stop.best, float), f"best is of type {kind}, not float", hint=hint)
        del part, loss
        if alive() is not None:
            gc.collect()
        message = "the graph of a validation loss that was " + (
            "the best" if is_best else "no better"
        )
        expect_true(alive() is None, f"{message} is still alive", hint=hint)
    expect_true(stop.best == 0.5, f"best is {stop.best} after tensors of 0.5 and 0.75")


def kept_by(value, seen):
    """The tensors that can be reached from an object: its attributes, dicts and lists."""
    if id(value) in seen:
        return
    seen.add(id(value))
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, dict):
        yield from kept_by(list(value.values()), seen)
    elif isinstance(value, list | tuple | set):
        for part in value:
            yield from kept_by(part, seen)
    elif type(value).__module__ not in ("builtins", "torch") and hasattr(value, "__dict__"):
        yield from kept_by(vars(value), seen)


@check("what is kept has no graph", holds="No graph stays alive because of this call.")
def kept_alone(answer, rng, device):
    stop = answer.EarlyStop(2)
    stop.step(0.5, model_of(1, device))
    graphs = sum(t.grad_fn is not None for t in kept_by(stop, set()))
    hint = "clone() of a parameter is recorded, as any operation is: detach() first."
    expect_true(
        graphs == 0, f"{graphs} of the tensors that EarlyStop keeps have a graph", hint=hint
    )


class Remembers(nn.Module):
    """Keeps an activation, with its graph, in an attribute."""

    def __init__(self):
        super().__init__()
        self.line = nn.Linear(3, 2)

    def forward(self, x):
        self.hidden = self.line(x)
        return self.hidden.sum()


@check(
    "the model stays as it is, an activation in an attribute included",
    holds=["It stays as it is, with its modes", "perhaps with an activation in an attribute"],
    both_sides=True,
)
def left_alone(answer, rng, device):
    model = Remembers().to(device)
    model(torch.ones(1, 3, device=device))
    hidden, hint = model.hidden, "Copy its parameters and buffers, not the model."
    stop = answer.EarlyStop(2)
    with advising(RuntimeError, hint=hint + " deepcopy stops at a tensor with a graph."):
        stop.step(0.5, model)
    expect_true(model.hidden is hidden, "an attribute of the model is another one", hint=hint)
    for mode in (True, False):
        model = model_of(1, device).train(mode)
        model[0].train()
        stop.step(0.25 if mode else 0.125, model)
        modes = [module.training for module in model.modules()]
        hint = "Nobody asked for another mode: the training goes on with this model."
        expect_equal(modes, [mode, True, mode], name="the modes after step", hint=hint)


@check(
    "without a best there is nothing to restore",
    holds="RuntimeError if no value was ever better.",
)
def nothing(answer, rng, device):
    for values in ((), (NAN,), (NAN, math.inf)):
        stop = answer.EarlyStop(5)
        model = model_of(3, device)
        for val in values:
            stop.step(val, model)
        message = f"restore after the values {list(values)} raises no RuntimeError"
        hint = "restore before any better value: RuntimeError. Ask first whether there is a best."
        with (
            advising(AttributeError, hint=hint),
            advising(TypeError, hint=hint),
            expect_raises(RuntimeError, message, hint=hint),
        ):
            stop.restore(model)
        expect_filled(model, 3, "after a restore that failed", "Raise before you load.")


@check("a training run ends with the model that was best")
def run(answer, rng, device):
    x, y = torch.randn(8, 5, device=device), torch.randn(8, 1, device=device)
    vx, vy = torch.randn(30, 5, device=device), torch.randn(30, 1, device=device)
    model = nn.Sequential(nn.Linear(5, 16), nn.Tanh(), nn.Linear(16, 1)).to(device)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    stop, seen = answer.EarlyStop(4), []
    for _ in range(60):
        opt.zero_grad()
        F.mse_loss(model(x), y).backward()
        opt.step()
        val = F.mse_loss(model(vx), vy)
        seen.append((val.item(), copy.deepcopy(model.state_dict())))
        if stop.step(val, model):
            break
    stop.restore(model)
    best = min((val for val, _ in seen if not math.isnan(val)))
    wanted = next(state for val, state in seen if val == best)
    for name, t in model.state_dict().items():
        expect_equal(t, wanted[name], name=f"{name} after the run", hint=BEST)


class Right:
    """A right answer, for mutants to be wrong in one place."""

    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.bad, self.state = math.inf, 0, None

    def number(self, val):
        return val.item() if isinstance(val, torch.Tensor) else val

    def better(self, val):
        return val < self.best - self.min_delta

    def keep(self, model):
        self.state = {name: t.detach().clone() for name, t in tensors_of(model).items()}

    def step(self, val, model):
        val = self.number(val)
        if self.better(val):
            self.best, self.bad = val, 0
            self.keep(model)
        else:
            self.bad += 1
        return self.bad >= self.patience

    def restore(self, model):
        if self.state is None:
            raise RuntimeError("nothing kept")
        with torch.no_grad():
            for name, t in tensors_of(model).items():
                t.copy_(self.state[name])


class Loads(Right):
    """Goes by the state_dict, which has no buffers with persistent=False."""

    def keep(self, model):
        self.state = copy.deepcopy(model.state_dict())

    def restore(self, model):
        if self.state is None:
            raise RuntimeError("nothing kept")
        model.load_state_dict(self.state)


@mutant("keeps a deep copy of the state_dict alone", caught_by=restored)
class EarlyStop(Loads):
    pass


@mutant("keeps copies with a graph", caught_by=kept_alone)
class EarlyStop(Right):
    def keep(self, model):
        self.state = {name: t.clone() for name, t in tensors_of(model).items()}


@mutant("copies the whole model", caught_by=left_alone)
class EarlyStop(Right):
    def keep(self, model):
        self.state = tensors_of(copy.deepcopy(model))


@mutant("leaves the model in eval mode", caught_by=left_alone)
class EarlyStop(Right):
    def keep(self, model):
        super().keep(model.eval())


@mutant("keeps the model's own tensors", caught_by=restored)
class EarlyStop(Right):
    def keep(self, model):
        self.state = tensors_of(model)


@mutant("makes a new dict of the same tensors", caught_by=restored)
class EarlyStop(Loads):
    def keep(self, model):
        self.state = dict(model.state_dict())


@mutant("keeps parameters alone", caught_by=restored)
class EarlyStop(Right):
    def keep(self, model):
        self.state = {name: p.detach().clone() for name, p in model.named_parameters()}

    def restore(self, model):
        if self.state is None:
            raise RuntimeError("nothing kept")
        model.load_state_dict(self.state, strict=False)


@mutant("counts all bad values, in a row or not", caught_by=patient)
class EarlyStop(Right):
    def step(self, val, model):
        bad = self.bad
        ends = super().step(val, model)
        if not ends and self.bad == 0:
            self.bad = bad
        return self.bad >= self.patience


@mutant("ends one value too late", caught_by=patient)
class EarlyStop(Right):
    def step(self, val, model):
        super().step(val, model)
        return self.bad > self.patience


@mutant("takes the same value for a better one", caught_by=patient)
class EarlyStop(Right):
    def better(self, val):
        return val <= self.best - self.min_delta


@mutant("asks whether it is worse", caught_by=not_a_number)
class EarlyStop(Right):
    def better(self, val):
        return not val >= self.best - self.min_delta


@mutant("compares with the value before", caught_by=patient)
class EarlyStop(Right):
    def step(self, val, model):
        last, self.last = getattr(self, "last", math.inf), self.number(val)
        if self.last < last - self.min_delta:
            self.best, self.bad = self.last, 0
            self.keep(model)
        else:
            self.bad += 1
        return self.bad >= self.patience


@mutant("lets tiny gains move the best", caught_by=large_enough)
class EarlyStop(Right):
    def step(self, val, model):
        val = self.number(val)
        ends = super().step(val, model)
        if val < self.best:
            self.best = val
        return ends


@mutant("ignores min_delta", caught_by=large_enough)
class EarlyStop(Right):
    def better(self, val):
        return val < self.best


@mutant("adds min_delta instead", caught_by=large_enough)
class EarlyStop(Right):
    def better(self, val):
        return val < self.best + self.min_delta


@mutant("keeps the tensor that it is given", caught_by=no_graph)
class EarlyStop(Right):
    def number(self, val):
        return val


@mutant("keeps a log of tensors", caught_by=no_graph)
class EarlyStop(Right):
    def step(self, val, model):
        self.log = [*getattr(self, "log", []), val]
        return super().step(val, model)


@mutant(
    "hands its own tensors to the model",
    caught_by=again,
    misconception="modules/state_dict",
    like="takes the tensors of state",
)
class EarlyStop(Right):
    def restore(self, model):
        if self.state is None:
            raise RuntimeError("nothing kept")
        for name, p in [*model.named_parameters(), *model.named_buffers()]:
            p.data = self.state[name]


@mutant("assigns new Parameters", caught_by=same_objects)
class EarlyStop(Right):
    def restore(self, model):
        if self.state is None:
            raise RuntimeError("nothing kept")
        model.load_state_dict(copy.deepcopy(self.state), assign=True, strict=False)


@mutant("does nothing where nothing was kept", caught_by=nothing)
class EarlyStop(Right):
    def restore(self, model):
        if self.state is not None:
            super().restore(model)


@mutant("keeps the last model", caught_by=restored)
class EarlyStop(Right):
    def step(self, val, model):
        ends = super().step(val, model)
        self.keep(model)
        return ends


@hinted(1, reaches=not_a_number)
class EarlyStop(Right):
    def step(self, val, model):
        if val < self.best - self.min_delta:
            self.best, self.bad = val, 0
            self.state = model.state_dict()
        else:
            self.bad += 1
        return self.bad >= self.patience


@accepted("keeps clones, and remembers when it was best")
class EarlyStop:
    def __init__(self, patience, min_delta=0.0):
        self.patience, self.min_delta = patience, min_delta
        self.best, self.seen, self.at, self.kept = math.inf, 0, 0, {}

    def step(self, val, model):
        val = float(val.detach()) if isinstance(val, torch.Tensor) else float(val)
        self.seen += 1
        if self.best - val > self.min_delta:
            self.best, self.at = val, self.seen
            self.kept = {k: v.detach().clone() for k, v in tensors_of(model).items()}
        return self.seen - self.at >= self.patience

    def restore(self, model):
        if not self.kept:
            raise RuntimeError("no best so far")
        with torch.no_grad():
            for name, t in tensors_of(model).items():
                t.copy_(self.kept[name])


@accepted("counts down, and refuses NaN by name")
class EarlyStop:
    def __init__(self, patience, min_delta=0.0):
        self.patience = self.left = patience
        self.min_delta = min_delta
        self.best = float("inf")

    def step(self, val, model):
        val = torch.as_tensor(val, dtype=torch.float64).item()
        if not math.isnan(val) and val + self.min_delta < self.best:
            self.best, self.left = val, self.patience
            tensors = (*model.parameters(), *model.buffers())
            self.kept = [t.detach().clone() for t in tensors]
        else:
            self.left -= 1
        return self.left <= 0

    def restore(self, model):
        if not hasattr(self, "kept"):
            raise RuntimeError("no best so far")
        for t, old in zip((*model.parameters(), *model.buffers()), self.kept, strict=True):
            t.detach().copy_(old)
