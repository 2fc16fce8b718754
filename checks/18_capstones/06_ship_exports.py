"""Judges lessons/18_capstones/06_ship_exports.md."""

import contextlib
import functools
import inspect
import os
import tempfile

import torch
import torch.distributed as dist
from torch import nn
from torch.export import Dim, export
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_close,
    expect_true,
    fail,
    hinted,
    mutant,
)

equivalent(
    "two, rows = torch.zeros(2, 64), {0: torch.export.Dim.DYNAMIC}",
    "two, rows = torch.ones(2, 64), {0: torch.export.Dim.DYNAMIC}",
    because="an export looks at the example's shape and dtype, not at its numbers",
)
equivalent(
    "two, rows = torch.zeros(2, 64), {0: torch.export.Dim.DYNAMIC}",
    "two, rows = torch.zeros(3, 64), {0: torch.export.Dim.DYNAMIC}",
    because="the first dimension is free, and two rows or more say the same",
)

LOADED = (
    "The program loads the state, divides by 16 once, and returns what net() gives for each row: "
    "all ten scores, and nothing behind them."
)
SCALE = "The division by 16 belongs into the exported module's forward."
EVAL = "Put the module into eval mode before it is exported: the mode is in the graph."
ROWS = "dynamic_shapes=({0: torch.export.Dim.DYNAMIC},), and an example of two rows."


def on_rank_0(test):
    """Decorate a check: rank 0 alone ships and serves, and tries what it wrote."""

    @functools.wraps(test)
    def done(answer, rng, device):
        if dist.get_rank() == 0:
            test(answer, rng, device)

    return done


def scores(state, x):
    """Of the net in eval mode, for pixels from 0 to 16."""
    hidden = F.linear(x / 16, state["0.weight"], state["0.bias"]).relu()
    return F.linear(hidden, state["3.weight"], state["3.bias"])


def once(work):
    """Decorate work(...): what it made of an answer is kept for other checks and seeds."""
    results = {}

    @functools.wraps(work)
    def done(*told):
        key = tuple(inspect.unwrap(of) if callable(of) else of for of in told)
        if key not in results:
            results[key] = work(*told)
        return results[key]

    return done


@contextlib.contextmanager
def place(name):
    with tempfile.TemporaryDirectory() as folder:
        yield os.path.join(folder, name)


@once
def shipped(ship):
    """A state, and the program that the learner's ship makes of it."""
    torch.manual_seed(0)
    state = {name: t.detach().clone() * 2 for name, t in plain().state_dict().items()}
    with place("a.pt2") as path:
        given = {name: t.clone() for name, t in state.items()}
        ship(given, path)
        same = all(torch.equal(given[name], t) for name, t in state.items())
        hint = "Load the state into a net of your own, and change nothing in what was given."
        expect_true(same, "ship changes the numbers of `state`", hint=hint)
        hint = "Rank 0 calls ship here. The file is written to path, by the rank that calls."
        expect_true(os.path.exists(path), "ship wrote no file to path", hint=hint)
        try:
            return state, torch.export.load(path).module()
        except Exception as error:
            what = f"{type(error).__name__}: {str(error)[:80]}"
            fail(
                f"the file is no exported program: {what}", hint="torch.export.save(program, path)"
            )


def called(program, x):
    """The program's scores, without a graph. It leaves x alone, and takes as many rows."""
    given = x.clone()
    try:
        with torch.no_grad():
            got = program(given)
    except AssertionError as error:
        fail(f"the program refuses {len(x)} rows: {str(error)[:80]}", hint=ROWS)
    hint = "Make new numbers in forward: x / 16, and no x /= 16."
    expect_true(torch.equal(given, x), "the program changes the pixels in place", hint=hint)
    return got


def compare(got, state, x, name):
    """The scores are those of net() for pixels / 16."""
    raw = got.shape == (len(x), 10) and torch.allclose(got, scores(state, 16 * x), atol=1e-3)
    hint = SCALE if raw else LOADED
    expect_close(got, scores(state, x), atol=1e-4, name=name, hint=hint, shape_hint=LOADED)


@check(
    "the file takes raw pixels and answers in eval mode",
    holds=[
        "writes an exported program that takes raw pixels, from 0 to 16",
        "It gives the scores that `net()` has in eval mode for pixels / 16.",
        "`state` keeps its values.",
    ],
    hint=ROWS,
)
@on_rank_0
def raw(answer, rng, device):
    state, program = shipped(answer.ship)
    x = torch.rand(2, 64) * 16
    one, two = called(program, x), called(program, x)
    same = torch.equal(one, two)
    expect_true(same, "two calls of the program with the same rows differ", hint=EVAL)
    compare(one, state, x, "the program's scores")


@check("the file takes any number of rows", holds="It takes any number of rows, from one.",
       both_sides=True)  # fmt: skip
@on_rank_0
def dynamic(answer, rng, device):
    state, program = shipped(answer.ship)
    for count in (1, rng.randint(3, 40), rng.randint(70, 2000)):
        x = torch.rand(count, 64) * 16
        compare(called(program, x), state, x, f"scores of {count} rows")


def plain():
    return nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Dropout(0.2), nn.Linear(64, 10))


class Scaled(nn.Module):
    def __init__(self, state):
        super().__init__()
        self.net = plain()
        self.net.load_state_dict(state)

    def forward(self, x):
        return self.net(x / 16)


def export_to(state, path, module=None, train_mode=False, rows=True):
    module = module or Scaled(state)
    module.train(train_mode)
    shapes = ({0: Dim.DYNAMIC},) if rows else None
    program = export(module, (torch.zeros(2, 64),), dynamic_shapes=shapes)
    torch.export.save(program, path)


@mutant("the scaling stays in the training code", caught_by=raw)
def ship(state, path):
    export_to(state, path, Scaled(state).net)


@mutant("exports in training mode", caught_by=raw)
def ship(state, path):
    export_to(state, path, train_mode=True)


@mutant("forgets to load the state", caught_by=raw)
def ship(state, path):
    export_to(state, path, Scaled(plain().state_dict()))


@mutant("frees no dimension", caught_by=dynamic)
def ship(state, path):
    export_to(state, path, rows=False)


@mutant("takes three rows or more", caught_by=dynamic)
def ship(state, path):
    rows = ({0: Dim("rows", min=3)},)
    program = export(Scaled(state).eval(), (torch.zeros(4, 64),), dynamic_shapes=rows)
    torch.export.save(program, path)


@mutant("takes 64 rows at most", caught_by=dynamic)
def ship(state, path):
    rows = ({0: Dim("rows", max=64)},)
    program = export(Scaled(state).eval(), (torch.zeros(4, 64),), dynamic_shapes=rows)
    torch.export.save(program, path)


@mutant("has the scaling in the caller's weights", caught_by=raw)
def ship(state, path):
    state["0.weight"] /= 16
    export_to(state, path, Scaled(state).net)


@mutant("scales the caller's pixels in place", caught_by=raw)
def ship(state, path):
    class InPlace(Scaled):
        def forward(self, x):
            x /= 16
            return self.net(x)

    export_to(state, path, InPlace(state))


@mutant("writes probabilities", caught_by=raw)
def ship(state, path):
    export_to(state, path, nn.Sequential(Scaled(state), nn.Softmax(-1)))


@mutant("divides by the largest pixel", caught_by=raw)
def ship(state, path):
    class Largest(Scaled):
        def forward(self, x):
            return self.net(x / x.amax())

    export_to(state, path, Largest(state))


@accepted("a Sequential with a module for the scaling")
def ship(state, path):
    class Divide(nn.Module):
        def forward(self, x):
            return x.mul(0.0625)

    net = plain()
    net.load_state_dict(state)
    module = nn.Sequential(Divide(), net).eval()
    rows = {"input": {0: Dim("rows", min=1)}}
    program = export(module, (torch.ones(5, 64),), dynamic_shapes=rows)
    torch.export.save(program, path)


@accepted("has the scaling in the weights")
def ship(state, path):
    net = plain().eval()
    net.load_state_dict(state)
    with torch.no_grad():
        net[0].weight /= 16
    export_to(state, path, net)


@hinted(1, reaches=raw)
def ship(state, path):
    export_to(state, path, rows=False)
