"""Judges lessons/17_deployment/03_onnx_aoti.md."""

import copy
from types import SimpleNamespace

import numpy as np
import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background("The session is used as ONNX Runtime's.")
torch.set_num_threads(
    1
)  # the tensors are tiny: a second thread would only wait, and keep a core busy

NAME = "The name of the input is session.get_inputs()[0].name."
EVAL = "Compare with copy.deepcopy(model).eval(): dropout and batch norm act otherwise in training."
SHAPE = "allclose broadcasts: an answer of another shape can pass. assert_close compares shapes."
NEAR = "torch.testing.assert_close(answer, right) has a tolerance for each dtype."
DTYPE = "An answer of another dtype is a difference. Do not convert it before you compare."
NAN = "assert_close takes equal_nan=True."
RAISES = "A session that raises has not given the model's answer: return the position."
COPY = "x.numpy() shares the memory of x: give the session a copy."
GRAD = "x.detach().cpu().numpy() works for a tensor that requires grad."
FIRST = (
    "Go through batches with enumerate, and return at the first difference: an iterator has no "
    "length, and list() takes all of it."
)
ZERO = "Positions count from 0."
NONE = "Return None where no batch differs."
KEPT = "The model counts its answers in a buffer, in eval mode, too: let a copy of it answer."
INPUT = "The model writes into its input: give it x.clone()."
NUMBERS = "The same numbers in another shape are another answer: assert_close compares shapes."


class Refused(Exception):
    """What a runtime raises of its own."""


class Session:
    """A runtime that computes as model does in eval mode, and then changes its answer."""

    def __init__(self, rng, model, change=None, sees=None, writes=False):
        self.name = rng.choice(["features", "x_1", "tokens", "image", "arg0_1"])
        self.model = copy.deepcopy(model).eval()
        self.change, self.sees, self.writes = change, sees, writes
        self.misnamed = False

    def get_inputs(self):
        return [SimpleNamespace(name=self.name)]

    def run(self, names, feed):
        if names is not None or list(feed) != [self.name]:
            self.misnamed = True
            raise ValueError(f"Required inputs (['{self.name}']) are missing from input feed.")
        array = feed[self.name]
        if not isinstance(array, np.ndarray):
            raise RuntimeError("Input must be a single numpy array.")
        device = next((p.device for p in self.model.parameters()), "cpu")
        x = torch.from_numpy(array.copy()).to(device)
        if self.sees is not None:
            x = x[: self.sees]
        with torch.no_grad():
            y = self.model(x).cpu().numpy().copy()
        if self.writes:
            array[...] = 0
        return [self.change(y, len(array)) if self.change else y]


def network(rng, device):
    d, h = rng.randint(3, 7), rng.randint(3, 7)
    layers = [nn.Linear(d, h), nn.BatchNorm1d(h), nn.ReLU(), nn.Dropout(0.5), nn.Linear(h, 3)]
    model = nn.Sequential(*layers).to(device)
    model(torch.randn(16, d, device=device) * 9 + 4)  # statistics unlike those of a batch
    return model, lambda n: torch.randn(n, d, device=device)


class Counted(nn.Module):
    """Counts its answers, in buffers of both kinds, in each mode."""

    def __init__(self, inner):
        super().__init__()
        self.inner = inner
        device = next(inner.parameters()).device
        zero = torch.zeros((), dtype=torch.int64, device=device)
        self.register_buffer("answers", zero.clone())
        self.register_buffer("rows", zero.clone(), persistent=False)

    def forward(self, x):
        self.answers += 1
        self.rows += len(x)
        return self.inner(x)


class Doubling(nn.Module):
    """Writes into its input."""

    def forward(self, x):
        return x.mul_(2.0) + 1


class Large(nn.Module):
    """Answers between 100 and 200, of the input's dtype; NaN for NaN."""

    def forward(self, x):
        return x.abs() % 100 + 100


def ask(answer, session, model, batches, right, hint):
    try:
        got = answer.first_difference(session, model, batches)
    except Exception:
        with advising(Exception, hint=NAME if session.misnamed else hint):
            raise
    if session.misnamed:
        hint = NAME
    elif right is None and (got is False or got == -1):
        hint = NONE
    elif right is not None and type(got) is int and got == right + 1:
        hint = f"{ZERO} {hint}"
    expect_equal(got, right, name="first_difference", hint=hint)


def sizes(rng):
    """The third is the only one above 6."""
    return [rng.randint(2, 6), 1, rng.randint(7, 12)]


@check(
    "a session that answers as the model does",
    holds=[
        "of the first batch on which the session and the model differ, or None",
        "session.get_inputs()[0].name is the name of its one input.",
        "session.run(None, {name: array}) takes a NumPy array of the batch's dtype",
        "The model answers as in eval mode.",
    ],
)
def same(answer, rng, device):
    model, make = network(rng, device)
    for training in (True, False):
        model.train(training)
        session = Session(rng, model)
        ask(answer, session, model, [make(n) for n in sizes(rng)], None, EVAL)
    ask(answer, session, model, [], None, FIRST)
    table = nn.Sequential(nn.Embedding(9, 4), nn.Linear(4, 2)).to(device)
    tokens = [torch.randint(9, (n, 5), device=device) for n in sizes(rng)]
    ask(answer, Session(rng, table), table, tokens, None, NAME)


@check(
    "a session for a fixed number of rows",
    holds=[
        "of the first batch on which the session and the model differ, or None",
        "An answer is right if it has the shape and the dtype of the model's.",
    ],
    both_sides=True,
)
def fixed(answer, rng, device):
    model, make = network(rng, device)
    seen = rng.randint(2, 3)
    batches = [make(n) for n in (seen, 1, seen + rng.randint(1, 9), seen, seen + 1)]
    ask(answer, Session(rng, model, sees=seen), model, batches, 2, SHAPE)
    constant = nn.Linear(3, 2).to(device)
    nn.init.zeros_(constant.weight)
    rows = [torch.randn(n, 3, device=device) for n in (1, 1, 1, 5)]
    ask(answer, Session(rng, constant, sees=1), constant, rows, 3, SHAPE)
    batches = [make(n) for n in (2, 3, 4)]
    for other in (lambda y: y.ravel(), lambda y: y[None], lambda y: y.reshape(3, -1)):

        def reshape(y, n, other=other):
            return other(y) if n == 4 else y

        ask(answer, Session(rng, model, reshape), model, batches, 2, NUMBERS)


@check(
    "an answer of another dtype",
    holds="An answer is right if it has the shape and the dtype of the model's.",
    both_sides=True,
)
def dtype(answer, rng, device):
    model, make = network(rng, device)
    bad = rng.randint(1, 5)

    def widen(y, n):
        return y.astype(np.float64) if n == bad else y

    batches = [make(n) for n in range(1, 6)]
    ask(answer, Session(rng, model, widen), model, batches, bad - 1, DTYPE)


@check(
    "rounding is no difference, more is",
    holds=(
        "Each number is as near to the model's as torch.testing.assert_close wants by default; NaN "
        "is right where the model has NaN."
    ),
    side="rounding",
)
def rounding(answer, rng, device):
    batches = [torch.rand(n, 4, device=device) * 99 for n in sizes(rng)]
    for kind, small, large in (
        (torch.float64, 3e-8, 1e-6),
        (torch.float32, 8e-7, 6e-6),
        (torch.float16, None, 6e-3),
    ):
        given = [x.to(kind) for x in batches]

        def slight(y, n, small=small):
            if small is None:
                return np.nextafter(y, y.dtype.type(np.inf))
            return (y * (1 + small)).astype(y.dtype)

        def much(y, n, large=large):
            return (y * (1 + large)).astype(y.dtype) if n > 6 else y  # the third

        ask(answer, Session(rng, Large(), slight), Large(), given, None, NEAR)
        ask(answer, Session(rng, Large(), much), Large(), given, 2, NEAR)


@check(
    "NaN",
    holds=(
        "Each number is as near to the model's as torch.testing.assert_close wants by default; NaN "
        "is right where the model has NaN."
    ),
    side="NaN",
)
def nan(answer, rng, device):
    batches = [torch.rand(n, 4, device=device) for n in sizes(rng)]
    batches[1][0, rng.randrange(4)] = float("nan")
    ask(answer, Session(rng, Large()), Large(), batches, None, NAN)

    def zeros(y, n):
        return np.nan_to_num(y, nan=0.0)

    ask(answer, Session(rng, Large(), zeros), Large(), batches, 1, NAN)

    def spoil(y, n):
        if n > 6:  # the third
            y[-1, -1] = float("nan")
        return y

    ask(answer, Session(rng, Large(), spoil), Large(), batches, 2, NAN)


@check(
    "a session that raises",
    holds="A call of the session that raises is a difference.",
    both_sides=True,
)
def raises(answer, rng, device):
    model, make = network(rng, device)
    for kind in (RuntimeError, ValueError, Refused):
        bad = rng.randint(1, 5)

        def refuse(y, n, bad=bad, kind=kind):
            if n == bad:
                raise kind("INVALID_ARGUMENT")
            return y

        batches = [make(n) for n in range(1, 6)]
        ask(answer, Session(rng, model, refuse), model, batches, bad - 1, RAISES)


@check(
    "model and batches stay as they are",
    holds=[
        "It may write into the array that it gets.",
        "It keeps the mode of each of its modules, and its buffers.",
        "A batch is a tensor on the model's device, and may require grad.",
        "It stays as it is, also if the model writes into its input.",
    ],
    both_sides=True,
)
def untouched(answer, rng, device):
    model, make = network(rng, device)
    for training in (True, False):
        model.train(training)
        model[1].train(not training)
        counted = Counted(model)
        modes = [m.training for m in counted.modules()]
        state = {k: v.clone() for k, v in counted.state_dict(keep_vars=False).items()}
        state.update((k, v.clone()) for k, v in counted.named_buffers())
        for wanted in (None, 2):
            batches = [make(n) for n in sizes(rng)]
            batches[0].requires_grad_()
            batches[2] = batches[2].repeat_interleave(2, 0)[::2]
            before = [x.detach().clone() for x in batches]
            session = Session(rng, model, writes=True, sees=None if wanted is None else 6)
            with advising(Exception, hint=GRAD):
                got = answer.first_difference(session, counted, batches)
            for x, old in zip(batches, before):
                expect_true(torch.equal(x.detach(), old), "a batch has changed", hint=COPY)
            expect_equal(got, wanted, name="first_difference", hint=GRAD)
            grads = [x.requires_grad for x in batches]
            expect_equal(
                grads, [True, False, False], name="requires_grad of the batches", hint=GRAD
            )
            when = "no difference" if wanted is None else "a difference"
            now = [m.training for m in counted.modules()]
            expect_equal(now, modes, name=f"the modes of the modules after {when}", hint=EVAL)
            for name, value in {**counted.state_dict(), **dict(counted.named_buffers())}.items():
                kept = torch.equal(value, state[name])
                expect_true(kept, f"{name} has changed", hint=KEPT)


@check(
    "a model that writes into its input",
    holds="It stays as it is, also if the model writes into its input.",
    both_sides=True,
)
def written(answer, rng, device):
    model = Doubling()
    batches = [torch.randn(n, 3, device=device) for n in sizes(rng)]
    batches[1].requires_grad_()
    before = [x.detach().clone() for x in batches]
    with advising(Exception, hint=INPUT):
        got = answer.first_difference(Session(rng, model), model, batches)
    for x, old in zip(batches, before):
        expect_true(torch.equal(x.detach(), old), "a batch has changed", hint=INPUT)
    expect_equal(got, None, name="first_difference", hint=INPUT)


@check(
    "an iterator is left at the first difference",
    holds=("batches may be an iterator, and no batch is taken from it after the first difference."),
    both_sides=True,
)
def iterator(answer, rng, device):
    model, make = network(rng, device)
    taken = []

    def endless():
        while True:
            taken.append(1)
            if len(taken) > 50:
                raise AssertionError("more batches were taken than needed")
            yield make(len(taken))

    bad = rng.randint(2, 6)
    ask(answer, Session(rng, model, sees=bad), model, endless(), bad, FIRST)
    expect_equal(len(taken), bad + 1, name="batches taken", hint=FIRST)
    whole = (make(n) for n in sizes(rng))
    ask(answer, Session(rng, model), model, whole, None, FIRST)


def strict(y, right):
    torch.testing.assert_close(y, right, equal_nan=True)


def want(good):
    if not good:
        raise AssertionError


def compare(
    session, model, batches, close=strict, errors=Exception, frozen=None, own=True, mine=True
):
    """first_difference, with some of its parts exchanged."""
    frozen = copy.deepcopy(model).eval() if frozen is None else frozen
    for i, x in enumerate(batches):
        with torch.no_grad():
            right = frozen(x.clone() if mine else x).cpu()
        array = x.detach().cpu().numpy()
        try:
            (y,) = session.run(None, {session.get_inputs()[0].name: array.copy() if own else array})
            close(torch.from_numpy(y), right)
        except errors:
            return i
    return None


@mutant("compares with the training mode", caught_by=same)
def first_difference(session, model, batches):
    return compare(session, model, batches, frozen=copy.deepcopy(model).train())


@mutant("a name of its own for the input", caught_by=same)
def first_difference(session, model, batches):
    frozen = copy.deepcopy(model).eval()
    for i, x in enumerate(batches):
        try:
            (y,) = session.run(None, {"x": x.detach().cpu().numpy().copy()})
            with torch.no_grad():
                strict(torch.from_numpy(y), frozen(x.clone()).cpu())
        except Exception:
            return i
    return None


@mutant("wants the same bits", caught_by=rounding)
def first_difference(session, model, batches):
    def bits(y, right):
        want(y.dtype == right.dtype and y.shape == right.shape)
        want(torch.equal(y.nan_to_num(7.0), right.nan_to_num(7.0)))

    return compare(session, model, batches, close=bits)


@mutant("allclose, which broadcasts", caught_by=fixed)
def first_difference(session, model, batches):
    def near(y, right):
        want(y.dtype == right.dtype and torch.allclose(y, right, rtol=1.3e-6, equal_nan=True))

    return compare(session, model, batches, close=near)


@mutant("one tolerance for all dtypes", caught_by=rounding)
def first_difference(session, model, batches):
    def near(y, right):
        want(y.dtype == right.dtype and y.shape == right.shape)
        want(torch.allclose(y, right, equal_nan=True))

    return compare(session, model, batches, close=near)


@mutant("the tolerance of float32 for all dtypes", caught_by=rounding)
def first_difference(session, model, batches):
    def near(y, right):
        torch.testing.assert_close(y, right, rtol=1.3e-6, atol=1e-5, equal_nan=True)

    return compare(session, model, batches, close=near)


@mutant("converts the answer's dtype", caught_by=dtype)
def first_difference(session, model, batches):
    return compare(session, model, batches, close=lambda y, right: strict(y.to(right), right))


@mutant("NaN is never equal", caught_by=nan)
def first_difference(session, model, batches):
    return compare(session, model, batches, close=torch.testing.assert_close)


@mutant("looks past NaN in the model's answer", caught_by=nan)
def first_difference(session, model, batches):
    def near(y, right):
        want(y.dtype == right.dtype and y.shape == right.shape)
        strict(y[~right.isnan()], right[~right.isnan()])

    return compare(session, model, batches, close=near)


@mutant("lets the session's exceptions out", caught_by=raises)
def first_difference(session, model, batches):
    return compare(session, model, batches, errors=AssertionError)


@mutant("catches some of the session's exceptions", caught_by=raises)
def first_difference(session, model, batches):
    return compare(session, model, batches, errors=(AssertionError, RuntimeError, ValueError))


@mutant("hands out the batch's own memory", caught_by=untouched)
def first_difference(session, model, batches):
    return compare(session, model, batches, own=False)


@mutant("hands the batch itself to the model", caught_by=written)
def first_difference(session, model, batches):
    return compare(session, model, (x.detach() for x in batches), mine=False)


@mutant("compares the numbers alone", caught_by=fixed)
def first_difference(session, model, batches):
    return compare(
        session, model, batches, close=lambda y, right: strict(y.flatten(), right.flatten())
    )


@mutant("lets the model itself answer, and turns the modes back", caught_by=untouched)
def first_difference(session, model, batches):
    modes = [(m, m.training) for m in model.modules()]
    got = compare(session, model, batches, frozen=model.eval())
    for m, training in modes:
        m.training = training
    return got


@mutant("turns the modes back where nothing differs", caught_by=untouched)
def first_difference(session, model, batches):
    modes = [(m, m.training) for m in model.modules()]
    buffers = [(b, b.clone()) for b in model.buffers()]
    got = compare(session, model, batches, frozen=model.eval())
    for b, old in buffers:
        b.copy_(old)
    if got is None:
        for m, training in modes:
            m.training = training
    return got


@mutant("leaves the model in eval mode", caught_by=untouched)
def first_difference(session, model, batches):
    return compare(session, model, batches, frozen=model.eval())


@mutant("puts the whole model back into one mode", caught_by=untouched)
def first_difference(session, model, batches):
    training = model.training
    got = compare(session, model, batches, frozen=model.eval())
    model.train(training)
    return got


@mutant("runs every batch first", caught_by=iterator)
def first_difference(session, model, batches):
    return compare(session, model, list(batches))


@mutant("the last difference", caught_by=fixed)
def first_difference(session, model, batches):
    batches = list(batches)
    for i in reversed(range(len(batches))):
        if compare(session, model, [batches[i]]) is not None:
            return i
    return None


equivalent(
    "name = session.get_inputs()[0].name",
    "name = session.get_inputs()[-1].name",
    because="the session has one input: the first is the last",
)
equivalent(
    "with torch.no_grad():",
    "if True:",
    because="assert_close compares the values, whether they require grad or not",
)
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="assert_close compares the values, whether they require grad or not",
)
equivalent(
    "right = frozen(x.clone()).cpu()",
    "right = frozen(x.clone())",
    because="only a model on another device tells them apart",
)
equivalent(
    "array = x.detach().cpu().numpy().copy()",
    "array = x.detach().numpy().copy()",
    because="only a batch on another device tells them apart",
)
equivalent(
    "torch.testing.assert_close(torch.from_numpy(y), right, equal_nan=True)",
    "torch.testing.assert_close(right, torch.from_numpy(y), equal_nan=True)",
    because="the tolerance is relative to the second, which is as large as the first within it",
)


@hinted(1, reaches=same)
def first_difference(session, model, batches):
    frozen = copy.deepcopy(model).eval()
    name = session.get_inputs()[0].name
    for i, x in enumerate(batches):
        (y,) = session.run(None, {name: x.numpy().copy()})
        right = frozen(x.clone())
        if y.shape != right.shape or not torch.allclose(torch.from_numpy(y), right.cpu()):
            return i
    return None


@hinted(2, reaches=raises)
def first_difference(session, model, batches):
    frozen = copy.deepcopy(model).eval()
    for i, x in enumerate(batches):
        with torch.no_grad():
            right = frozen(x.clone()).cpu()
        try:
            array = x.detach().clone().cpu().numpy()
            (y,) = session.run(None, {session.get_inputs()[0].name: array})
            torch.testing.assert_close(torch.from_numpy(y), right, equal_nan=True)
        except Exception:
            return i
    return None


@accepted("turns the modes back by hand, and looks for a difference itself")
def first_difference(session, model, batches):
    modes = [(m, m.training) for m in model.modules()]
    buffers = [(b, b.clone()) for b in model.buffers()]
    name = session.get_inputs()[0].name
    try:
        for i, x in enumerate(batches):
            model.eval()
            right = model(x.detach().clone()).detach().cpu()
            try:
                outputs = session.run(None, {name: x.detach().clone().cpu().numpy()})
                y = torch.from_numpy(outputs[0])
            except Exception:
                return i
            rtol, atol = {
                torch.float16: (1e-3, 1e-5),
                torch.float32: (1.3e-6, 1e-5),
                torch.float64: (1e-7, 1e-7),
            }[right.dtype]
            if y.shape != right.shape or y.dtype != right.dtype:
                return i
            if not torch.allclose(y, right, rtol=rtol, atol=atol, equal_nan=True):
                return i
        return None
    finally:
        for m, training in modes:
            m.training = training
        for b, old in buffers:
            b.copy_(old)


@accepted("a generator of positions, and next")
def first_difference(session, model, batches):
    frozen = copy.deepcopy(model).eval().requires_grad_(False)
    (info,) = session.get_inputs()

    def differs(x):
        right = frozen(x.detach().clone()).cpu().numpy()
        try:
            y = session.run(None, {info.name: np.array(x.detach().cpu())})[0]
            torch.testing.assert_close(torch.as_tensor(y), torch.as_tensor(right), equal_nan=True)
        except Exception:
            return True
        return False

    return next((i for i, x in enumerate(batches) if differs(x)), None)
