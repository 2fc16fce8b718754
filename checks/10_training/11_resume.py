"""Judges lessons/10_training/11_resume.md."""

import copy
import os
import pathlib
import pickle
import tempfile

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    check,
    equivalent,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    mutant,
)

shows = ["modules/save_load"]

PLAIN = "weights_only=True reads tensors, containers and plain values. Save state_dict()s, no "
PLAIN += "objects of classes."
MOMENTS = "The optimizer has a state_dict() too: moments, step counts, and its groups with lr."
SCHEDULE = "The schedule counts its own steps, and has a state_dict() as well."
DICE = "torch.get_rng_state() is the state of the CPU's generator, torch.cuda.get_rng_state_all() "
DICE += "that of each GPU. set_... puts them back. A seed is where a generator began, not where it "
DICE += "stands."
WHOLE = "torch.save empties the file that it writes to. Write another one, and give it the name "
WHOLE += "with os.replace when it is complete."
PARTS = "Take every part out of the file before the first one is put back: a missing one then "
PARTS += "raises while the run is still what it was."
FIRST = "Let torch.load read the whole file before anything is changed, and let its error pass."


def build(rng, device, kind="adam"):
    """(model, opt, sched), each time with other weights; kind: "adam" or "sgd"."""
    drop = 0.4 if device.type in ("cpu", "cuda") else 0.0
    model = nn.Sequential(nn.Linear(3, 6), nn.Dropout(drop), nn.Linear(6, 1)).to(device)
    if kind == "adam":
        opt = torch.optim.Adam(model.parameters(), lr=0.05, weight_decay=0.01)
        return model, opt, torch.optim.lr_scheduler.StepLR(opt, 2, gamma=0.5)
    groups = [{"params": model[0].parameters(), "lr": 0.02}, {"params": model[2].parameters()}]
    opt = torch.optim.SGD(groups, lr=0.05, momentum=0.9)
    return model, opt, torch.optim.lr_scheduler.CosineAnnealingLR(opt, 12)


def train(run, steps, device):
    """So many steps on noise; the losses as numbers."""
    model, opt, sched = run
    losses = []
    for _ in range(steps):
        x = torch.randn(5, 3).to(device)  # from the CPU's generator
        loss = F.mse_loss(model(x), x.sum(1, keepdim=True))
        opt.zero_grad()
        loss.backward()
        opt.step()
        sched.step()
        losses.append(loss.item())
    return losses


def elsewhere_in_time(rng):
    """Another day: the generators stand somewhere else."""
    torch.manual_seed(rng.randrange(2**31))


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
    train(one, steps, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, one, steps)
        elsewhere_in_time(rng)
        other = build(rng, device, kind)
        load(answer, path, other)
    return one, other


@check("the file opens with weights_only=True")
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


@check("parameters and buffers come back, and the step")
def weights(answer, rng, device):
    one, other = (nn.Sequential(nn.Linear(3, 2), nn.BatchNorm1d(2)).to(device) for _ in range(2))
    for t in one.state_dict().values():
        t.copy_(torch.randn(t.shape) * 9)  # the count of batches becomes a whole number
    runs = []
    for model in (one, other):
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        runs.append((model, opt, torch.optim.lr_scheduler.StepLR(opt, 3)))
    held, step = list(other.parameters()), rng.randrange(1, 10**6)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, runs[0], step)
        found = load(answer, path, runs[1])
    expect_equal(found, step, name="the step", hint="What save_state was given.")
    wanted = one.state_dict()
    for name, t in other.state_dict().items():
        expect_equal(t, wanted[name], name=f"{name} after loading", hint="model.state_dict() has "
                     "parameters and buffers; load_state_dict copies them in.")  # fmt: skip
    same = all(a is b for a, b in zip(held, other.parameters(), strict=True))
    hint = "The optimizer holds these objects. Copy into them."
    expect_true(same, "a Parameter is another object after loading", hint=hint)


@check("the optimizer's moments and groups come back")
def moments(answer, rng, device):
    for kind in ("adam", "sgd"):
        one, other = resumed(answer, rng, device, kind)
        wanted, got = numbers(one)["opt"], numbers(other)["opt"]
        expect_equal(len(got["state"]), len(wanted["state"]),
                     name="the number of parameters of which the optimizer has moments",
                     hint=MOMENTS)  # fmt: skip
        for i, state in wanted["state"].items():
            for key, value in state.items():
                name = f"{key} of parameter {i} in the optimizer"
                expect_equal(got["state"][i][key], value, name=name, hint=MOMENTS)
        for i, group in enumerate(wanted["param_groups"]):
            lr = got["param_groups"][i]["lr"]
            expect_equal(lr, group["lr"], name=f"lr of the optimizer's group {i}", hint=MOMENTS)


@check("the schedule goes on where it stood")
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


@check("the generators go on where they stood")
def generators(answer, rng, device):
    run = build(rng, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        elsewhere_in_time(rng)
        torch.rand(rng.randrange(1, 9)), torch.rand(3, device=device)  # no longer at the seed
        save(answer, path, run, 1)
        wanted = torch.rand(4), torch.rand(4, device=device), torch.randperm(9)
        elsewhere_in_time(rng)
        load(answer, path, run)
        got = torch.rand(4), torch.rand(4, device=device), torch.randperm(9)
    if device.type in ("cpu", "cuda"):
        expect_equal(got, wanted, name="what the generators draw next", hint=DICE)


@check("a run that was resumed has the bits of one that was not")
def bits(answer, rng, device):
    for kind in ("adam", "sgd"):
        one, other = build(rng, device, kind), build(rng, device, kind)
        train(one, 4, device)
        with folder() as place:
            path = os.path.join(place, "run.pt")
            save(answer, path, one, 4)
            wanted = train(one, 4, device)
            elsewhere_in_time(rng)
            load(answer, path, other)
            got = train(other, 4, device)
        hint = "Model, optimizer, schedule, generators: one of them was not where it was."
        expect_equal(got, wanted, name="the list of the next losses", hint=hint)
        for (name, p), q in zip(one[0].named_parameters(), other[0].parameters(), strict=True):
            expect_equal(q.detach(), p.detach(), name=f"{name} after 8 steps", hint=hint)


@check("a run that saves has the bits of one that does not")
def traceless(answer, rng, device):
    seed, ends = rng.randrange(2**31), []
    for saves in (False, True):
        torch.manual_seed(seed)
        run = build(rng, device)
        run[0].add_module("extra", nn.Identity().eval())
        with folder() as place:
            for step in range(3):
                train(run, 1, device)
                if saves:
                    save(answer, os.path.join(place, "run.pt"), run, step)
        modes = [m.training for m in run[0].modules()]
        ends.append((numbers(run), modes, torch.rand(3)))
    hint = "save_state reads, and draws and switches nothing."
    (plain, modes, dice), (saving, modes_then, dice_then) = ends
    for name, t in plain["model"].items():
        expect_equal(saving["model"][name], t, name=f"{name} after 3 steps", hint=hint)
    expect_equal(modes_then, modes, name="the list of the modules' modes", hint=hint)
    expect_equal(dice_then, dice, name="what the generator draws next", hint=hint)


@check("a file from a GPU can be resumed without one")
def from_gpu(answer, rng, device):
    one, other = build(rng, device), build(rng, device)
    train(one, 2, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        tag = torch.serialization.location_tag
        try:  # write into the file that its tensors were on a GPU
            torch.serialization.location_tag = lambda storage: "cuda:0"
            save(answer, path, one, 2)
        finally:
            torch.serialization.location_tag = tag
        try:
            load(answer, path, other)
        except (RuntimeError, TypeError) as error:
            words = " ".join(str(error).split()[:12])
            hint = "map_location says where the tensors go. A generator's state has to be on the "
            hint += "CPU; load_state_dict moves the rest."
            fail(f"a file whose tensors were on cuda:0: {words} ...", hint=hint)
    wanted = one[0].state_dict()
    for name, t in other[0].state_dict().items():
        expect_equal(t, wanted[name], name=f"{name} after loading")


class Unwritable:
    """Breaks off a save in the middle, as a full disk does."""

    def __reduce__(self):
        raise OSError("no space left")


@check("a save that fails leaves the old file")
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


@check("the new file takes the old one's place in one step")
def replaced(answer, rng, device):
    run = build(rng, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        with open(path, "rb") as reader:
            old = pathlib.Path(path).read_bytes()
            save(answer, path, run, 4)
            message = "somebody who had opened the old file reads something else now"
            expect_true(reader.read() == old, message, hint=WHOLE)
        expect_equal(load(answer, path, run), 4, name="the step after the second save")
        hint = "The file that you wrote first must not stay behind."
        expect_equal(os.listdir(place), ["run.pt"], name="the list of files in the folder",
                     hint=hint)  # fmt: skip


class Payload:
    """Makes a folder while it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@check("half a file and a foreign one are errors, and nothing has changed")
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
        before, dice = numbers(run), torch.get_rng_state()
        for what, content in cases.items():
            pathlib.Path(path).write_bytes(content)
            with expect_raises(Exception, f"{what} is loaded as if nothing were wrong", hint=FIRST):
                answer.load_state(path, *run)
            message = "a function that the file names was executed"
            hint = "A pickle can call any function, unless weights_only=True refuses it."
            expect_true(not os.path.exists(trace), message, hint=hint)
            expect_equal(numbers(run), before, name=f"the run after {what}", hint=FIRST)
            same = torch.equal(torch.get_rng_state(), dice)
            expect_true(same, f"the generator has moved after {what}", hint=FIRST)


def pieces(saved):
    """Each part's name, and what is left of a saved dict, list or tuple without it."""
    if isinstance(saved, dict):
        for key in saved:
            yield str(key), {name: part for name, part in saved.items() if name != key}
    elif isinstance(saved, (list, tuple)):
        for n in range(len(saved)):
            yield f"number {n}", type(saved)([*saved[:n], *saved[n + 1 :]])


@check("a file that lacks a part of the run is an error, and nothing has changed")
def partial(answer, rng, device):
    run = build(rng, device)
    train(run, 3, device)
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        saved = torch.load(path, map_location="cpu", weights_only=True)
        whole, where = numbers(run), torch.get_rng_state()
        cases = {f"a file without {name}": part for name, part in pieces(saved)}
        cases["a file of weights alone"] = run[0].state_dict()
        for what, part in cases.items():
            torch.save(part, path)
            train(run, 1, device)
            before, dice = numbers(run), torch.get_rng_state()
            try:
                answer.load_state(path, *run)
            except Exception:
                name = f"after the failed load of {what}, run"
                expect_equal(numbers(run), before, name=name, hint=PARTS)
                same = torch.equal(torch.get_rng_state(), dice)
                expect_true(same, f"the generator has moved after {what}", hint=PARTS)
            else:  # nothing is wrong with it if that part is not needed
                name = f"{what} raised no error, and run"
                expect_equal(numbers(run), whole, name=name, hint=PARTS)
                same = torch.equal(torch.get_rng_state(), where)
                expect_true(
                    same, f"{what} raised no error, and the generator is not back", hint=PARTS
                )


def roles(saved, run):
    """Under which name a saved dict has the model, the optimizer and so on, where that is plain."""
    found = {}
    for name, part in saved.items() if isinstance(saved, dict) else ():
        if isinstance(part, torch.Tensor) and part.shape == torch.get_rng_state().shape:
            found["rng"] = name
        elif isinstance(part, dict):
            for role, own in zip(("model", "opt", "sched"), run, strict=True):
                if part.keys() == own.state_dict().keys():
                    found[role] = name
    return found


def damaged(saved, run):
    """What has every part, one of which does not fit: (words, a saved dict)."""
    where = roles(saved, run)
    if "model" in where:
        model = saved[where["model"]]
        last = list(model)[-1]
        short = {name: t for name, t in model.items() if name != last}
        yield f"a file whose model lacks {last}", {**saved, where["model"]: short}
        wide = {**model, last: torch.ones(3, 3)}
        yield f"a file with another shape for {last}", {**saved, where["model"]: wide}
    if "opt" in where:
        opt = saved[where["opt"]]
        groups = {**opt, "param_groups": opt["param_groups"] * 2}
        yield "a file whose optimizer has twice the groups", {**saved, where["opt"]: groups}
    if "sched" in where:
        yield "a file whose schedule is None", {**saved, where["sched"]: None}
    if "rng" in where:
        half = saved[where["rng"]][:100].clone()
        yield "a file with a part of the generator's state", {**saved, where["rng"]: half}


@check("a file with a part that does not fit is an error, and nothing has changed")
def rolled_back(answer, rng, device):
    run = build(rng, device)
    train(run, 3, device)
    hint = "load_state_dict copies what fits and raises afterwards. Keep copies of all states, and "
    hint += "put them back before the error goes on."
    with folder() as place:
        path = os.path.join(place, "run.pt")
        save(answer, path, run, 3)
        saved = torch.load(path, map_location="cpu", weights_only=True)
        for what, part in damaged(saved, run):
            torch.save(part, path)
            train(run, 1, device)
            before, dice = numbers(run), torch.get_rng_state()
            with expect_raises(Exception, f"{what} is loaded without an error", hint=hint):
                answer.load_state(path, *run)
            name = f"after the failed load of {what}, run"
            expect_equal(numbers(run), before, name=name, hint=hint)
            same = torch.equal(torch.get_rng_state(), dice)
            expect_true(same, f"the generator has moved after {what}", hint=hint)


def content(model, opt, sched, step):
    """What a right file has."""
    return {
        "model": model.state_dict(),
        "opt": opt.state_dict(),
        "sched": sched.state_dict(),
        "step": step,
        "rng": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all(),
    }


def put_back(found, without, model, opt, sched):
    """Put back all parts but one."""
    states = {name: found[name] for name in ("model", "opt", "sched", "step", "rng", "cuda")}
    for name, part in (("model", model), ("opt", opt), ("sched", sched)):
        if name != without:
            part.load_state_dict(states[name])
    if without != "rng":
        torch.set_rng_state(states["rng"])
        torch.cuda.set_rng_state_all(states["cuda"])
    return states["step"]


def read(path):
    return torch.load(path, map_location="cpu", weights_only=True)


@mutant("forgets the moments", caught_by=moments)
def load_state(path, model, opt, sched):
    return put_back(read(path), "opt", model, opt, sched)


@mutant("forgets the schedule", caught_by=schedule)
def load_state(path, model, opt, sched):
    return put_back(read(path), "sched", model, opt, sched)


@mutant("forgets the generators", caught_by=generators)
def load_state(path, model, opt, sched):
    return put_back(read(path), "rng", model, opt, sched)


@mutant("forgets the model", caught_by=weights)
def load_state(path, model, opt, sched):
    return put_back(read(path), "model", model, opt, sched)


@mutant("seeds the generator instead", caught_by=generators)
def load_state(path, model, opt, sched):
    found = read(path)
    step = put_back(found, "rng", model, opt, sched)
    torch.manual_seed(step)
    return step


@mutant("puts each part back before it looks for the next", caught_by=partial)
def load_state(path, model, opt, sched):
    found = read(path)
    for name, part in (("model", model), ("opt", opt), ("sched", sched)):
        part.load_state_dict(found[name])
    torch.set_rng_state(found["rng"])
    torch.cuda.set_rng_state_all(found["cuda"])
    return found["step"]


@mutant("puts the parts back one by one and keeps no copies", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    return put_back(read(path), "", model, opt, sched)


@mutant("rolls the model back alone", caught_by=rolled_back)
def load_state(path, model, opt, sched):
    found, before = read(path), copy.deepcopy(model.state_dict())
    try:
        return put_back(found, "", model, opt, sched)
    except Exception:
        model.load_state_dict(before)
        raise


@mutant("takes the parts that it finds", caught_by=partial)
def load_state(path, model, opt, sched):
    found = read(path)
    for name, part in (("model", model), ("opt", opt), ("sched", sched)):
        if name in found:
            part.load_state_dict(found[name])
    if "rng" in found:
        torch.set_rng_state(found["rng"])
    torch.cuda.set_rng_state_all(found.get("cuda", []))
    return found.get("step", 0)


@mutant("saves the seed of the generator, not its state", caught_by=generators)
def save_state(path, model, opt, sched, step):
    begin = torch.Generator().manual_seed(torch.initial_seed())
    found = {**content(model, opt, sched, step), "rng": begin.get_state()}
    torch.save(found, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


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


@mutant("seeds before it reads", caught_by=foreign)
def load_state(path, model, opt, sched):
    torch.manual_seed(0)
    return put_back(read(path), "", model, opt, sched)


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
    parameters = {name: p.detach() for name, p in model.named_parameters()}
    state = {**model.state_dict(), **{n: torch.zeros_like(b) for n, b in model.named_buffers()}}
    found = {**content(model, opt, sched, step), "model": {**state, **parameters}}
    torch.save(found, f"{path}.tmp")
    os.replace(f"{path}.tmp", path)


@mutant("writes into the file itself", caught_by=failing)
def save_state(path, model, opt, sched, step):
    torch.save(content(model, opt, sched, step), path)


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


@accepted("tries all parts on copies first, and puts the generators back by themselves")
def load_state(path, model, opt, sched):
    with open(path, "rb") as file:
        found = torch.load(file, map_location=lambda storage, place: storage, weights_only=True)
    if missing := {"model", "opt", "sched", "step", "rng", "cuda"} - found.keys():
        raise ValueError(f"{path} has no {missing}")
    trial = copy.deepcopy((model, opt, sched))
    for part, name in zip(trial, ("model", "opt", "sched"), strict=True):
        part.load_state_dict(found[name])
    torch.Generator().set_state(found["rng"])
    torch.default_generator.set_state(found["rng"])
    for i, state in enumerate(found["cuda"]):
        torch.cuda.set_rng_state(state, i)
    sched.load_state_dict(found["sched"])
    opt.load_state_dict(found["opt"])
    model.load_state_dict(found["model"], strict=True)
    return int(found["step"])


equivalent(
    "torch.cuda.set_rng_state_all(cuda)",
    "pass",
    because="Without a GPU there are no such states; with one, the generators' check notices.",
)
equivalent(
    'found = torch.load(path, map_location="cpu", weights_only=True)',
    'found = torch.load(path, map_location="cpu")',
    because="It is the default since torch 2.6, the oldest that the course runs on.",
)

equivalent(
    "torch.set_rng_state(dice)",
    "pass",
    because="Without a GPU nothing can fail after the generator was set, and a state that does not "
    "fit is refused before it changes anything.",
)
