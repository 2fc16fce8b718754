"""Judges lessons/10_training/10_checkpoint.md."""

import contextlib
import copy
import io
import os
import pathlib
import pickle
import sys
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

shows = ["modules/save_load"]

background("Write the pair.")

PLAIN = "weights_only=True reads tensors, containers and plain values. Save state_dict()s, no "
PLAIN += "objects of classes."
WEIGHTS = "model.state_dict() has parameters and buffers; load_state_dict copies them in."
MOMENTS = "The optimizer has a state_dict() too: moments, step counts, and its groups with lr."
SCHEDULE = "The schedule counts its own steps, and has a state_dict() as well."
WHOLE = "torch.save empties the file that it writes to. Write another one, and give it the name "
WHOLE += "with os.replace when it is complete."
PARTS = "Take every part out of the file before the first one is put back: a missing one then "
PARTS += "raises while the run is still what it was."
FIRST = "Let torch.load read the whole file before anything is changed, and let its error pass."
ROLL_BACK = "load_state_dict may have changed its part, and the parts before it, when it raises. "
ROLL_BACK += "Keep copies of all states, and put them back before the error goes on."
COPIES = "A state_dict() shares the model's memory: what is loaded into the model is in it too. "
COPIES += "Keep deep copies."
OBJECTS = "The optimizer holds these objects. Copy into them."


class Net(nn.Module):
    """Two layers with one weight, a frozen one, a norm with buffers, one of them not saved."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(3, 3)
        self.again = nn.Linear(3, 3, bias=False)
        self.again.weight = self.first.weight
        self.norm = nn.BatchNorm1d(3)
        self.frozen = nn.Linear(3, 2).requires_grad_(False)
        self.last = nn.Linear(2, 1)
        self.register_buffer("scratch", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.last(self.frozen(self.norm(self.again(self.first(x)).tanh())))


def build(rng, device, kind="adam"):
    """(model, opt, sched), each time with other weights; kind: "adam" or "sgd"."""
    if kind == "adam":
        model = Net().to(device)
        trained = [p for p in model.parameters() if p.requires_grad]
        opt = torch.optim.Adam(trained, lr=0.05, weight_decay=0.01)
        return model, opt, torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
    model = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1)).to(device)
    groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[2].parameters()}]
    opt = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    return model, opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)


def train(run, steps, device, seed=0):
    """So many steps on the noise of a seed; the losses as numbers."""
    model, opt, sched = run
    noise, losses = torch.Generator().manual_seed(seed), []
    for _ in range(steps):
        x = torch.randn(5, 3, generator=noise).to(device)
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    return losses


def numbers(run):
    """All that the three parts say about themselves, as copies."""
    model, opt, sched = run
    states = {"model": model.state_dict(), "opt": opt.state_dict(), "sched": sched.state_dict()}
    return clone(states)


def clone(value):
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {key: clone(item) for key, item in value.items()}
    return [clone(item) for item in value] if isinstance(value, (list, tuple)) else value


def folder():
    return tempfile.TemporaryDirectory()


def save(answer, path, run, step):
    answer.save_state(path, *run, step)
    message = "after save_state there is no file at path"
    expect_true(os.path.isfile(path), message, hint="The file is called exactly path.")


def load(answer, path, run):
    """What load_state returns; a file that it cannot open, as a sentence."""
    try:
        return answer.load_state(path, *run)
    except pickle.UnpicklingError as error:
        words = str(error).partition("Unsupported ")[2].partition(" was")[0]
        fail(f"load_state cannot open what save_state wrote: unsupported {words}", hint=PLAIN)


def resumed(answer, rng, device, kind="adam", steps=5):
    """(the run that was saved, another one that was loaded from its file)."""
    one = build(rng, device, kind)
    train(one, steps, device, rng.randrange(2**31))
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, one, steps)
        other = build(rng, device, kind)
        train(other, rng.randrange(3), device)
        load(answer, path, other)
    return one, other


@check(
    "the file opens with weights_only=True",
    holds="torch.load opens the file with weights_only=True.",
)
def opens(answer, rng, device):
    run = build(rng, device)
    train(run, 2, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 2)
        try:
            torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            words = str(error).partition("Unsupported ")[2].partition(" was")[0]
            fail(f"torch.load refuses the file: unsupported {words}", hint=PLAIN)


@check(
    "parameters and buffers come back, and the step",
    holds=[
        "`save_state` saves all that the run is, apart from chance: its model, its optimizer, its "
        "schedule and its step.",
        "str or pathlib.Path",
        "returns: the step, an int",
        "Parameters stay the objects that they are.",
    ],
    both_sides=True,
)
def weights(answer, rng, device):
    one, other = Net().to(device), Net().to(device)
    for t in one.state_dict().values():
        t.copy_(torch.randn(t.shape) * 9)  # the count of batches becomes a whole number
    with torch.no_grad():
        one.last.weight[0, 0], one.last.weight[0, 1] = float("nan"), float("inf")
    runs = []
    for model in (one, other):
        opt = torch.optim.SGD(model.last.parameters(), lr=0.1)
        runs.append((model, opt, torch.optim.lr_scheduler.StepLR(opt, 3)))
    held, step = list(other.parameters()), rng.randrange(1, 10**6)
    with folder() as place:
        for path in (os.path.join(place, "run.pt"), pathlib.Path(place) / "second.ckpt"):
            save(answer, path, runs[0], step)
            found = load(answer, path, runs[1])
    expect_equal(found, step, name="the step", hint="What save_state was given.")
    wanted = one.state_dict()
    for name, t in other.state_dict().items():
        expect_equal(t, wanted[name], name=f"{name} after loading", hint=WEIGHTS)
    same = all(a is b for a, b in zip(held, other.parameters(), strict=True))
    expect_true(same, "a Parameter is another object after loading", hint=OBJECTS)


@check(
    "the optimizer's moments and groups come back",
    holds="its model, its optimizer, its schedule and its step",
)
def moments(answer, rng, device):
    for kind, steps in (("adam", 5), ("sgd", 5), ("adam", 0)):
        one, other = resumed(answer, rng, device, kind, steps)
        wanted, got = numbers(one)["opt"], numbers(other)["opt"]
        message = "the number of parameters of which the optimizer has moments"
        message += "" if steps else ", after loading a run that was saved before its first step"
        expect_equal(len(got["state"]), len(wanted["state"]), name=message, hint=MOMENTS)
        for i, state in wanted["state"].items():
            for key, value in state.items():
                name = f"{key} of parameter {i} in the optimizer"
                expect_equal(got["state"][i][key], value, name=name, hint=MOMENTS)
        for i, group in enumerate(wanted["param_groups"]):
            lr = got["param_groups"][i]["lr"]
            expect_equal(lr, group["lr"], name=f"lr of the optimizer's group {i}", hint=MOMENTS)


@check(
    "the schedule goes on where it stood",
    holds="its model, its optimizer, its schedule and its step",
)
def schedule(answer, rng, device):
    for kind in ("adam", "sgd"):
        one, other = resumed(answer, rng, device, kind)
        rates = []
        for _, opt, sched in (one, other):
            rates.append([])
            for _ in range(5):
                opt.step()
                sched.step()
                rates[-1].append([group["lr"] for group in opt.param_groups])
        expect_equal(rates[1], rates[0], name="the list of the next learning rates", hint=SCHEDULE)


@check(
    "a run that was resumed has the bits of one that was not",
    holds="`load_state` puts another run, built as before, to where that one was saved.",
)
def bits(answer, rng, device):
    for kind in ("adam", "sgd"):
        one, other = build(rng, device, kind), build(rng, device, kind)
        train(one, 4, device, 1)
        train(other, 2, device, 2)
        with folder() as place:
            path = os.path.join(place, "run.pt")
            save(answer, path, one, 4)
            wanted = train(one, 4, device, 3)
            load(answer, path, other)
            got = train(other, 4, device, 3)
        hint = "Model, optimizer, schedule: one of them was not where it was."
        expect_equal(got, wanted, name="the list of the next losses", hint=hint)
        for (name, p), q in zip(one[0].named_parameters(), other[0].parameters(), strict=True):
            expect_equal(q.detach(), p.detach(), name=f"{name} after 8 steps", hint=hint)


@check(
    "a run that saves has the bits of one that does not",
    holds="The run goes on as if nothing had been saved",
)
def traceless(answer, rng, device):
    seed, ends = rng.randrange(2**31), []
    for saves in (False, True):
        torch.manual_seed(seed)
        run = build(rng, device)
        run[0].add_module("extra", nn.Identity().eval())
        with folder() as place:
            for step in range(3):
                train(run, 1, device, step)
                if saves:
                    save(answer, os.path.join(place, "run.pt"), run, step)
        modes = [m.training for m in run[0].modules()]
        wants = [(p.requires_grad, p.grad is None) for p in run[0].parameters()]
        ends.append((numbers(run), modes, wants, torch.rand(3)))
    hint = "save_state reads, and draws and switches nothing."
    (plain, modes, wants, dice), (saving, modes_then, wants_then, dice_then) = ends
    for name, t in plain["model"].items():
        expect_equal(saving["model"][name], t, name=f"{name} after 3 steps", hint=hint)
    expect_equal(modes_then, modes, name="the list of the modules' modes", hint=hint)
    expect_equal(wants_then, wants, name="the list of the parameters' flags and grads", hint=hint)
    expect_equal(dice_then, dice, name="what the generator draws next", hint=hint)


@check(
    "a file from a GPU can be resumed without one",
    holds="model and opt get tensors on the device where they are, whatever device they were "
    "saved on",
)
def from_gpu(answer, rng, device):
    one, other = build(rng, device), build(rng, device)
    train(one, 2, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        tag = torch.serialization.location_tag
        try:  # write into the file that its tensors were on a GPU
            torch.serialization.location_tag = lambda storage: "cuda:99"
            save(answer, path, one, 2)
        finally:
            torch.serialization.location_tag = tag
        try:
            load(answer, path, other)
        except (RuntimeError, TypeError) as error:
            words = " ".join(str(error).split()[:12])
            hint = "map_location says where the tensors go. load_state_dict moves them to the "
            hint += "device of each parameter."
            fail(f"a file whose tensors were on cuda:99: {words} ...", hint=hint)
    wanted = numbers(one)
    for name, t in other[0].state_dict().items():
        expect_equal(t, wanted["model"][name], name=f"{name} after loading")
    where = {p.device for p in other[0].parameters()}
    where |= {state["exp_avg"].device for state in other[1].state.values()}
    expect_true(len(where) == 1, "after loading, model and moments are on different devices")


class Unwritable:
    """Breaks off a save in the middle, as a full disk does."""

    def __reduce__(self):
        raise OSError("no space left")


@check(
    "a save that fails leaves the old file",
    holds=[
        "Save the run, or leave the old file.",
        "also if saving raises an error, which goes on to the caller",
    ],
    both_sides=True,
)
def failing(answer, rng, device):
    run = build(rng, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        hint = "The caller must hear of it."
        with expect_raises(Exception, "an error in the middle of saving is swallowed", hint=hint):
            answer.save_state(path, *run, Unwritable())
        try:
            found = answer.load_state(path, *run)
        except Exception as error:
            words = " ".join(str(error).split()[:8]) or type(error).__name__
            fail(f"after a save that failed, the old file is broken: {words}", hint=WHOLE)
        expect_equal(found, 3, name="the step in the old file", hint=WHOLE)
        fresh = os.path.join(place, "fresh.pt")
        with expect_raises(Exception, "an error in the middle of saving is swallowed", hint=hint):
            answer.save_state(fresh, *run, Unwritable())
        message = "path had no file, the first save failed, and now there is half a file at path"
        expect_true(not os.path.exists(fresh), message, hint=WHOLE)
        taken = os.path.join(place, "taken")
        os.makedirs(os.path.join(taken, "inside"))
        with expect_raises(
            Exception, "path is a folder, nothing was saved, and no error", hint=hint
        ):
            answer.save_state(taken, *run, 3)


@check(
    "the new file takes the old one's place in one step",
    holds=[
        "At every moment path is what it was before or the complete new file",
        "After a save that worked nothing else is left in the folder.",
    ],
    both_sides=True,
)
def replaced(answer, rng, device):
    run = build(rng, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        with open(path, "rb") as reader:
            old = pathlib.Path(path).read_bytes()
            sizes = watched(path, lambda: save(answer, path, run, 4))
            message = "somebody who had opened the old file reads something else now"
            expect_true(reader.read() == old, message, hint=WHOLE)
        new = os.path.getsize(path)
        message = "while save_state ran, there was a moment without a file at path"
        expect_true(None not in sizes, message, hint=WHOLE)
        message = "while save_state ran, there was a moment with half a file at path"
        expect_true(sizes <= {len(old), new}, message, hint=WHOLE)
        expect_equal(load(answer, path, run), 4, name="the step after the second save")
        hint = "The file that you wrote first must not stay behind."
        expect_equal(os.listdir(place), ["run.pt"], name="the list of files in the folder",
                     hint=hint)  # fmt: skip


def watched(path, call):
    """The sizes that the file at path had while the call ran; None where there was no file."""
    sizes = set()

    def look(*_):
        try:
            sizes.add(os.stat(path).st_size)
        except FileNotFoundError:
            sizes.add(None)

    sys.setprofile(look)
    try:
        call()
    finally:
        sys.setprofile(None)
    return sizes


def same_run(run, before, held, what, hint):
    """The run still is what it was, its Parameters the same objects."""
    expect_equal(numbers(run), before, name=f"after the failed load of {what}, run", hint=hint)
    same = all(a is b for a, b in zip(held, run[0].parameters(), strict=True))
    message = f"after the failed load of {what} a Parameter is another object"
    expect_true(same, message, hint=OBJECTS)


class Payload:
    """Makes a folder while it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@check(
    "half a file and a foreign one are errors, and nothing has changed",
    holds=["Nothing in the file is executed.", "If the file is not whole"],
)
def foreign(answer, rng, device):
    run = build(rng, device)
    train(run, 3, device)
    with folder() as place:
        path, trace = os.path.join(place, "run.pt"), os.path.join(place, "executed")
        save(answer, path, run, 3)
        whole = pathlib.Path(path).read_bytes()
        torch.save(Payload(trace), path)
        trap = pathlib.Path(path).read_bytes()
        cases = {
            "half a file": whole[: len(whole) // 2],
            "an empty file": b"",
            "a web page": b"<!DOCTYPE html>",
            "a file that calls a function": trap,
        }
        train(run, 1, device)
        before, held = numbers(run), list(run[0].parameters())
        for what, content in cases.items():
            pathlib.Path(path).write_bytes(content)
            with expect_raises(Exception, f"{what} is loaded as if nothing were wrong", hint=FIRST):
                answer.load_state(path, *run)
            message = "a function that the file names was executed"
            hint = "A pickle can call any function, unless weights_only=True refuses it."
            expect_true(not os.path.exists(trace), message, hint=hint)
            same_run(run, before, held, what, FIRST)
        with expect_raises(Exception, "a path without a file raises no error", hint=FIRST):
            answer.load_state(os.path.join(place, "missing.pt"), *run)


def pieces(saved):
    """Each part's name, and what is left of a saved dict, list or tuple without it.

    A tensor by its own name is no part: the model is, to which it belongs.
    """
    if isinstance(saved, dict):
        for key in (key for key, part in saved.items() if not isinstance(part, torch.Tensor)):
            yield str(key), {name: part for name, part in saved.items() if name != key}
    elif isinstance(saved, (list, tuple)):
        for n in range(len(saved)):
            yield f"number {n}", type(saved)([*saved[:n], *saved[n + 1 :]])


@check(
    "a file that lacks a part of the run is an error, and nothing has changed",
    holds="a part of the run is not in it",
)
def partial(answer, rng, device):
    run = build(rng, device)
    train(run, 3, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        saved = torch.load(path, map_location="cpu", weights_only=True)
        whole = numbers(run)
        cases = {f"a file without {name}": part for name, part in pieces(saved)}
        cases["a file of weights alone"] = run[0].state_dict()
        for what, part in cases.items():
            torch.save(part, path)
            train(run, 1, device)
            before, held = numbers(run), list(run[0].parameters())
            try:
                answer.load_state(path, *run)
            except Exception:
                same_run(run, before, held, what, PARTS)
            else:  # nothing is wrong with it if that part is not needed
                name = f"{what} raised no error, and run"
                expect_equal(numbers(run), whole, name=name, hint=PARTS)


class Refused(Exception):
    """What a part raises that refuses its state."""


class PickyModel(nn.Sequential):
    """Copies what it is given, and raises then if that is marked."""

    def __init__(self, mark):
        super().__init__(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
        self.register_buffer("mark", torch.tensor(mark))

    def load_state_dict(self, state_dict, *args, **kwargs):
        done = super().load_state_dict(state_dict, *args, **kwargs)
        if state_dict["mark"]:
            raise Refused("this model's state is marked")
        return done


class PickyOptimizer(torch.optim.SGD):
    """The same with an optimizer: the mark is an entry of its groups."""

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        if any(group.get("mark") for group in state_dict["param_groups"]):
            raise Refused("this optimizer's state is marked")


class PickySchedule(torch.optim.lr_scheduler.StepLR):
    """The same with a schedule."""

    def load_state_dict(self, state_dict):
        super().load_state_dict(state_dict)
        if state_dict["mark"]:
            raise Refused("this schedule's state is marked")


def picky(device, refusing):
    """A run in which the part of this name is marked, so that it cannot be loaded."""
    model = PickyModel(refusing == "model").to(device)
    groups = [
        {"params": model[0].parameters(), "lr": 0.02},
        {"params": model[2].parameters(), "mark": refusing == "optimizer"},
    ]
    opt = PickyOptimizer(groups, lr=0.05, momentum=0.9)
    sched = PickySchedule(opt, 2)
    sched.mark = refusing == "schedule"
    return model, opt, sched


def misfits(rng, device):
    """(words, run that is saved, run that it is loaded into, error): one part does not fit."""
    for what in ("a model with another last layer", "a model with one layer less"):
        runs = [build(rng, device, "sgd") for _ in range(2)]
        model = nn.Sequential(nn.Linear(3, 6), nn.Tanh())
        if "another" in what:
            model.append(nn.Linear(6, 2))
        yield what, (model.to(device), *runs[0][1:]), runs[1], RuntimeError
    runs = [build(rng, device, "sgd") for _ in range(2)]
    one = torch.optim.SGD([nn.Parameter(torch.zeros(3, device=device))], lr=9.0)
    yield "an optimizer with one group", (runs[0][0], one, runs[0][2]), runs[1], ValueError
    for name in ("model", "optimizer", "schedule"):
        what = f"a {name} that raises when it has taken its state"
        yield what, picky(device, name), picky(device, ""), Refused


@check(
    "a part that is refused is an error, and nothing has changed",
    holds=[
        "If it cannot, the run that it was given stays as it is.",
        "a load_state_dict refuses its part, that error goes on to the caller",
        "Model, optimizer and schedule are then as they were before the call",
    ],
    both_sides=True,
)
def rolled_back(answer, rng, device):
    for what, saved, run, error in misfits(rng, device):
        train(run, 3, device)
        with folder() as place:
            path = os.path.join(place, "run.pt")
            save(answer, path, saved, 3)
            before, held = numbers(run), list(run[0].parameters())
            message = f"{what}: load_state raised no error"
            hint = "`raise` on a line of its own, in the except, lets the error go on."
            try:
                with expect_raises(error, message, hint=hint):
                    answer.load_state(path, *run)
            except (RuntimeError, ValueError, TypeError, KeyError, Refused) as other:
                message = f"{what} raised {error.__name__}, and load_state raised "
                fail(message + type(other).__name__, hint=hint)
        model = numbers(run)["model"]
        for name, t in before["model"].items():
            words = f"after the failed load of {what}, {name}"
            expect_equal(model[name], t, name=words, hint=f"{ROLL_BACK} {COPIES}")
        same_run(run, before, held, what, ROLL_BACK)


def content(model, opt, sched, step):
    """What a right file has."""
    return {
        "model": model.state_dict(),
        "opt": opt.state_dict(),
        "sched": sched.state_dict(),
        "step": step,
    }


def put_back(found, without, model, opt, sched):
    """Put back all parts but one, or nothing."""
    states = {name: found[name] for name in ("model", "opt", "sched", "step")}
    parts = {"model": model, "opt": opt, "sched": sched}
    before = {name: copy.deepcopy(part.state_dict()) for name, part in parts.items()}
    try:
        for name, part in parts.items():
            if name != without:
                part.load_state_dict(states[name])
    except Exception:
        for name, part in parts.items():
            part.load_state_dict(before[name])
        raise
    return states["step"]


def read(path):
    return torch.load(path, map_location="cpu", weights_only=True)


@mutant("forgets the moments", caught_by=moments)
def load_state(path, model, opt, sched):
    return put_back(read(path), "opt", model, opt, sched)


@mutant("forgets the schedule", caught_by=schedule)
def load_state(path, model, opt, sched):
    return put_back(read(path), "sched", model, opt, sched)


@mutant("forgets the model", caught_by=weights)
def load_state(path, model, opt, sched):
    return put_back(read(path), "model", model, opt, sched)


@mutant("puts the file's tensors in the place of the parameters", caught_by=weights)
def load_state(path, model, opt, sched):
    found = read(path)
    model.load_state_dict(found["model"], assign=True)
    return put_back(found, "", model, opt, sched)


@mutant("puts each part back before it looks for the next", caught_by=partial)
def load_state(path, model, opt, sched):
    found = read(path)
    for name, part in (("model", model), ("opt", opt), ("sched", sched)):
        part.load_state_dict(found[name])
    return found["step"]


@mutant("puts the parts back one by one and keeps no copies", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    for part, state in zip((model, opt, sched), states, strict=False):
        part.load_state_dict(state)
    return states[-1]


@mutant("rolls the model back alone", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    before = copy.deepcopy(model.state_dict())
    try:
        for part, state in zip((model, opt, sched), states, strict=False):
            part.load_state_dict(state)
    except Exception:
        model.load_state_dict(before)
        raise
    return states[-1]


@mutant("keeps states that are the model's own tensors", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    parts = (model, opt, sched)
    before = [part.state_dict() for part in parts]
    try:
        for part, state in zip(parts, states, strict=False):
            part.load_state_dict(state)
    except Exception:
        for part, state in zip(parts, before, strict=True):
            part.load_state_dict(state)
        raise
    return states[-1]


@mutant("catches the errors that torch raises", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    parts = (model, opt, sched)
    before = [copy.deepcopy(part.state_dict()) for part in parts]
    try:
        for part, state in zip(parts, states, strict=False):
            part.load_state_dict(state)
    except (RuntimeError, ValueError, KeyError):
        for part, state in zip(parts, before, strict=True):
            part.load_state_dict(state)
        raise
    return states[-1]


@mutant("compares names, shapes and groups first, and keeps no copies", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found, own = read(path), model.state_dict()
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    if own.keys() != states[0].keys() or any(own[k].shape != states[0][k].shape for k in own):
        raise RuntimeError("another model")
    if len(opt.param_groups) != len(states[1]["param_groups"]):
        raise ValueError("other groups")
    for part, state in zip((model, opt, sched), states, strict=False):
        part.load_state_dict(state)
    return states[-1]


@mutant("puts a copy of the model's parts back", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    old, *rest = copy.deepcopy((model, opt.state_dict(), sched.state_dict()))
    try:
        for part, state in zip((model, opt, sched), states, strict=False):
            part.load_state_dict(state)
    except Exception:
        model.__dict__.update(old.__dict__)
        opt.load_state_dict(rest[0])
        sched.load_state_dict(rest[1])
        raise
    return states[-1]


@mutant("rolls back and raises an error of its own", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    states = [found[name] for name in ("model", "opt", "sched", "step")]
    try:
        return put_back(found, "", model, opt, sched)
    except Exception:
        raise KeyError(f"{path} does not fit, of {len(states)} parts") from None


@mutant("looks for the step when all else is loaded", caught_by=partial)
def load_state(path, model, opt, sched):
    found = read(path)
    put_back({**found, "step": 0}, "", model, opt, sched)
    return found["step"]


@mutant("loads the moments into the groups that are there", caught_by=moments)
def load_state(path, model, opt, sched):
    found = read(path)
    found["opt"]["param_groups"] = opt.state_dict()["param_groups"]
    return put_back(found, "", model, opt, sched)


@mutant("takes what fits of the model", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found = read(path)
    own = model.state_dict()
    fits = {n: t for n, t in found["model"].items() if n in own and own[n].shape == t.shape}
    found["model"] = {**own, **fits}
    return put_back(found, "", model, opt, sched)


@mutant("takes the parts that it finds", caught_by=partial)
def load_state(path, model, opt, sched):
    found = read(path)
    for name, part in (("model", model), ("opt", opt), ("sched", sched)):
        if name in found:
            part.load_state_dict(found[name])
    return found.get("step", 0)


@mutant("takes lr from the file, and not the moments", caught_by=moments)
def load_state(path, model, opt, sched):
    found = read(path)
    for group, old in zip(opt.param_groups, found["opt"]["param_groups"], strict=True):
        group["lr"] = old["lr"]
    return put_back(found, "opt", model, opt, sched)


@mutant("steps the schedule up to where it was", caught_by=schedule)
def load_state(path, model, opt, sched):
    found = read(path)
    step = put_back(found, "sched", model, opt, sched)
    for _ in range(step):
        sched.step()
    return step


@mutant("leaves the tensors where they were saved", caught_by=from_gpu)
def load_state(path, model, opt, sched):
    return put_back(torch.load(path, weights_only=True), "", model, opt, sched)


@mutant("executes the file", caught_by=foreign)
def load_state(path, model, opt, sched):
    found = torch.load(path, map_location="cpu", weights_only=False)
    return put_back(found, "", model, opt, sched)


@mutant("begins anew if the file is broken", caught_by=foreign)
def load_state(path, model, opt, sched):
    try:
        return put_back(read(path), "", model, opt, sched)
    except Exception:
        return 0


@mutant(
    "pickles the objects",
    caught_by=opens,
    misconception="modules/save_load",
    like="pickles the module",
)
def save_state(path, model, opt, sched, step):
    torch.save({**content(model, opt, sched, step), "run": model}, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


@mutant("saves the parameters alone", caught_by=weights)
def save_state(path, model, opt, sched, step):
    found = content(model, opt, sched, step)
    parameters = {n: p.detach() for n, p in model.named_parameters(remove_duplicate=False)}
    zeros = {n: torch.zeros_like(t) for n, t in found["model"].items()}
    found["model"] = {**zeros, **parameters}
    torch.save(found, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


@mutant("passes over an error of the last step", caught_by=failing)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), f"{path}.tmp")
    with contextlib.suppress(OSError):
        os.replace(f"{path}.tmp", path)


@mutant("writes into the file itself", caught_by=failing)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), path)


@mutant("removes the old file first", caught_by=replaced)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), f"{path}.tmp")
    if os.path.exists(path):
        os.remove(path)
    os.rename(f"{path}.tmp", path)


@mutant("leaves the first file behind", caught_by=replaced)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), f"{path}.tmp")
    pathlib.Path(f"{path}.tmp2").write_bytes(pathlib.Path(f"{path}.tmp").read_bytes())
    os.replace(f"{path}.tmp2", path)


@mutant("seeds the run at every save", caught_by=traceless)
def save_state(path, model, opt, sched, step):
    torch.manual_seed(step if isinstance(step, int) else 0)
    torch.save(content(model, opt, sched, step), f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


@mutant("switches the model to eval mode", caught_by=traceless)
def save_state(path, model, opt, sched, step):
    model.eval()
    torch.save(content(model, opt, sched, step), f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


@mutant("counts the step on", caught_by=weights)
def load_state(path, model, opt, sched):
    return put_back(read(path), "", model, opt, sched) + 1


@hinted(1, reaches=bits)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), path)


@hinted(1, reaches=bits)
def load_state(path, model, opt, sched):
    found = torch.load(path, weights_only=True)
    model.load_state_dict(found["model"])
    opt.load_state_dict(found["opt"])
    sched.load_state_dict(found["sched"])
    return found["step"]


@accepted("one list, and a temporary file of its own")
def save_state(path, model, opt, sched, step):
    states = [part.state_dict() for part in (model, opt, sched)]
    place, name = os.path.split(path)
    handle, new = tempfile.mkstemp(prefix=name, dir=place or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            found = content(model, opt, sched, step)
            torch.save({**found, "all": states}, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(new, path)
    except BaseException:
        os.remove(new)
        raise


@accepted("tries all parts on copies first")
def load_state(path, model, opt, sched):
    with open(path, "rb") as file:
        found = torch.load(file, map_location=lambda storage, place: storage, weights_only=True)
    if missing := {"model", "opt", "sched", "step"} - found.keys():
        raise ValueError(f"{path} has no {missing}")
    trial = copy.deepcopy((model, opt, sched))
    for part, name in zip(trial, ("model", "opt", "sched"), strict=True):
        part.load_state_dict(found[name])
    sched.load_state_dict(found["sched"])
    opt.load_state_dict(found["opt"])
    model.load_state_dict(found["model"])
    return int(found["step"])


@accepted("writes to memory first")
def save_state(path, model, opt, sched, step):
    whole = io.BytesIO()
    found = content(model, opt, sched, step)
    torch.save(found, whole)
    new = pathlib.Path(path).with_suffix(".new")
    new.write_bytes(whole.getvalue())
    new.replace(path)


@accepted("loads the schedule first, and rolls back in a finally")
def load_state(path, model, opt, sched):
    found = torch.load(str(path), map_location=torch.device("cpu"))
    todo = [(sched, found["sched"]), (opt, found["opt"]), (model, found["model"])]
    step, back = found["step"], []
    try:
        for part, state in todo:
            back.append((part, copy.deepcopy(part.state_dict())))
            part.load_state_dict(state)
        back.clear()
    finally:
        for part, state in back:
            part.load_state_dict(state)
    return step


equivalent(
    'found = torch.load(path, map_location="cpu", weights_only=True)',
    'found = torch.load(path, map_location="cpu")',
    because="It is the default since torch 2.6, the oldest that the course runs on.",
)
