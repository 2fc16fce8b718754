"""Judges lessons/07_modules/05_save_load.md."""

import contextlib
import errno
import io
import os
import pathlib
import pickle
import shutil
import sys
import tempfile

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    equivalent,
    expect_dtype,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

background("Write the pair that a project needs")

PLAIN = (
    "weights_only=True reads tensors, containers and plain values. Save the state_dict(), not the "
    "model: build is there to make the model."
)
ALL = "A state_dict() has parameters and buffers. load_state_dict copies them into build's model."
WHOLE = (
    "torch.save empties the file that it writes to. Let it write another one, and give that the "
    "name when it is complete."
)
STEP = (
    "Whoever opens path at that moment finds no checkpoint, and a job that is killed then leaves "
    "none. os.replace(other, path) puts a complete file in the old one's place in one step."
)
BESIDE = (
    "A file gets a new name only on the disk where it is. The other file belongs into path's own "
    "folder."
)
SAFE = "A pickle can call any function while it is loaded, unless weights_only=True refuses it."


def make(meta):
    """A model with parameters, buffers and a layer that behaves differently in training."""
    d = meta["d"]
    return nn.Sequential(nn.Linear(3, d), nn.BatchNorm1d(d), nn.Dropout(0.5), nn.Linear(d, 2))


def problem(rng, device):
    """A model with a past, on the device, and its meta."""
    meta = {"d": rng.randrange(2, 7), "name": "net", "sizes": [3, 2], "lr": 0.1, "best": None}
    meta |= {"limit": float("inf"), "3.bias": True, "model": "mlp", "state": 7}
    model = make(meta).to(device)
    with torch.no_grad():
        for t in model.state_dict().values():
            t.copy_(torch.randn(t.shape) * 9)  # the count of batches becomes a whole number
    return model, meta


def folder():
    """An empty folder for one check."""
    return tempfile.TemporaryDirectory()


def snapshot(model):
    return {name: t.detach().clone() for name, t in model.state_dict().items()}


def save(answer, path, model, meta):
    """Save, and expect that a file is there."""
    with advising(OSError, saying="cross-device", hint=BESIDE):
        answer.save_ckpt(path, model, meta)
    message = "after save_ckpt there is no file at path"
    expect_true(os.path.isfile(path), message, hint="The file is called exactly path.")


def load(answer, path, build):
    """(model, meta), and a refused or impossible load as a sentence."""
    try:
        got = answer.load_ckpt(path, build)
    except pickle.UnpicklingError as error:
        words = str(error).partition("Unsupported ")[2].partition(" was")[0]
        fail(f"load_ckpt cannot open what save_ckpt wrote: unsupported {words}", hint=PLAIN)
    expect_true(
        isinstance(got, tuple) and len(got) == 2,
        "load_ckpt does not return a pair (model, meta)",
        hint="return model, meta",
    )
    return got


@contextlib.contextmanager
def watching(path):
    """A list of what path holds, one after the other, while the block runs; None for no file.

    It looks at the file after each call of a Python or C function.
    """
    seen, last = [], ()

    def look(*_):
        nonlocal last
        try:
            about = os.stat(path)
            now = (about.st_ino, about.st_size, about.st_mtime_ns)
        except FileNotFoundError:
            now = None
        if now != last:
            last = now
            seen.append(None if now is None else pathlib.Path(path).read_bytes())

    sys.setprofile(look)
    try:
        yield seen
    finally:
        sys.setprofile(None)


@contextlib.contextmanager
def one_disk_each():
    """In here each folder is a disk of its own: no file gets a new name in another folder."""
    originals = os.replace, os.rename

    def within(call):
        def moved(old, new, **more):
            folders = [os.path.realpath(os.path.dirname(os.path.abspath(p))) for p in (old, new)]
            if folders[0] != folders[1]:
                raise OSError(errno.EXDEV, "Invalid cross-device link", str(old))
            return call(old, new, **more)

        return moved

    os.replace, os.rename = map(within, originals)
    try:
        yield
    finally:
        os.replace, os.rename = originals


def builder(device):
    """A build function, and the list of what it was given and has made."""
    made = []

    def build(meta):
        model = make(meta).to(device)
        made.append((meta, model))
        return model

    return build, made


@check(
    "the file opens with weights_only=True",
    holds="torch.load opens the file with weights_only=True.",
)
def opens(answer, rng, device):
    model, meta = problem(rng, device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        save(answer, path, model, meta)
        try:
            torch.load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            name = str(error).partition("Unsupported ")[2].partition(" was")[0]
            fail(f"torch.load refuses the file: unsupported {name}", hint=PLAIN)


@check(
    "parameters, buffers and meta come back",
    holds=[
        "Whoever loads has the code, `build`, and gets from the file what to build",
        "path: str or pathlib.Path, in a folder that exists",
    ],
    both_sides=True,
)
def back(answer, rng, device):
    model, meta = problem(rng, device)
    build, made = builder(device)
    with folder() as place:
        for path in (os.path.join(place, "a.pt"), pathlib.Path(place) / "b.ckpt"):
            save(answer, path, model, meta)
            loaded, found = load(answer, path, build)
            expect_equal(found, meta, name="meta after loading")
            hint = "build takes meta and returns a new model: fill that one, and return it."
            given = [m for m, made_model in made if made_model is loaded]
            expect_true(bool(given), "the model returned is not one that build made", hint=hint)
            expect_equal(given[0], meta, name="what build was given", hint=hint)
            now, wanted = snapshot(loaded), snapshot(model)
            expect_equal(sorted(now), sorted(wanted), name="the list of names in the model loaded")
            for name, t in wanted.items():
                expect_equal(now[name], t, name=f"{name} of the model loaded", hint=ALL)


@check("the loaded model is ready for use", holds="in eval mode")
def ready(answer, rng, device):
    model, meta = problem(rng, device)
    build, _ = builder(device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        for mode in (True, False):
            save(answer, path, model.train(mode), meta)
            loaded, _ = load(answer, path, build)
            still = [name or "the model" for name, m in loaded.named_modules() if m.training]
            message = f"in training mode after loading: {', '.join(still)}"
            hint = "The mode is not in the file. eval() sets it, for the whole tree."
            expect_true(not still, message, hint=hint)


@check(
    "the saved model stays as it is",
    holds="The model stays as it is, on its device and in its mode",
)
def untouched(answer, rng, device):
    model, meta = problem(rng, device)
    model[0].weight.requires_grad_(False)
    before, given = snapshot(model), dict(meta)
    about = [(id(p), p.device, p.dtype, p.requires_grad) for p in model.parameters()]
    with folder() as place:
        for mode in (True, False):
            model.train(mode)
            save(answer, os.path.join(place, "a.pt"), model, meta)
            modes = {m.training for m in model.modules()}
            hint = "A save in the middle of training must leave no trace in the model."
            expect_equal(modes, {mode}, name="training, of the model that was saved,", hint=hint)
    for name, t in model.state_dict().items():
        expect_equal(t, before[name], name=f"{name} of the model that was saved", hint=hint)
    now = [(id(p), p.device, p.dtype, p.requires_grad) for p in model.parameters()]
    expect_true(now == about, "a Parameter of the saved model is not what it was", hint=hint)
    expect_equal(meta, given, name="the caller's meta", hint="Put it into a dict of your own.")


@check(
    "a file from a GPU opens without one",
    holds="The device that it was saved on need not exist.",
)
def elsewhere(answer, rng, device):
    model, meta = problem(rng, device)
    build, _ = builder(device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        tag = torch.serialization.location_tag
        try:  # write into the file that its tensors were on a GPU
            torch.serialization.location_tag = lambda storage: "cuda:0"
            save(answer, path, model, meta)
        finally:
            torch.serialization.location_tag = tag
        try:
            loaded, _ = load(answer, path, build)
        except RuntimeError as error:
            words = " ".join(str(error).split()[:12])
            hint = "Each storage remembers where it was. map_location says where it goes instead."
            fail(f"a file whose tensors were on cuda:0: {words} ...", hint=hint)
        hint = "The model stays where build has put it."
        for name, t in loaded.state_dict().items():
            expect_equal(t, model.state_dict()[name], name=f"{name} of the model", hint=hint)


@check(
    "the numbers go into what build has made",
    holds="the saved numbers in its own Parameters and buffers",
)
def own(answer, rng, device):
    model, meta = problem(rng, device)
    made = {}

    def build(meta):
        new = make(meta).to(device).double()
        new[3].weight = nn.Parameter(new[3].weight.detach())
        made.update(new.named_parameters())
        made.update(new.named_buffers())
        return new

    with folder() as place:
        path = os.path.join(place, "a.pt")
        save(answer, path, model, meta)
        loaded, _ = load(answer, path, build)
    hint = "load_state_dict copies numbers into the tensors that are there, unless assign=True."
    for name, t in (*loaded.named_parameters(), *loaded.named_buffers()):
        expect_true(t is made[name], f"{name} is another object than build has made", hint=hint)
        wanted = model.state_dict()[name]
        expect_equal(t.detach(), wanted.to(t), name=f"{name} of a model of float64", hint=ALL)
        expect_dtype(t, wanted.to(t).dtype, name=f"{name} of a model of float64", hint=hint)


class Unwritable:
    """Breaks off a save in the middle, as a full disk does."""

    def __reduce__(self):
        raise OSError("no space left")


@check(
    "a save that fails leaves the old file",
    holds="At every moment path is what it was before or the complete new file",
    side="saving raises",
)
def failing(answer, rng, device):
    model, meta = problem(rng, device)
    build, _ = builder(device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        save(answer, path, model, meta)
        wanted = snapshot(model)
        with torch.no_grad():
            model[0].weight.add_(1)
        hint = "The caller must hear of it."
        with expect_raises(OSError, "an error in the middle of saving is swallowed", hint=hint):
            answer.save_ckpt(path, model, {**meta, "broken": Unwritable()})
        try:
            loaded, found = answer.load_ckpt(path, build)
        except Exception as error:
            words = " ".join(str(error).split()[:8]) or type(error).__name__
            fail(f"after a save that failed, the old file is broken: {words}", hint=WHOLE)
        expect_equal(found, meta, name="meta of the old file", hint=WHOLE)
        for name, t in loaded.state_dict().items():
            expect_equal(t, wanted[name], name=f"{name} of the old file", hint=WHOLE)


@check(
    "the new file takes the old one's place in one step",
    holds=[
        "At every moment path is what it was before or the complete new file",
        "Until it is complete the new file has another name, in the same folder.",
    ],
    side="saving works",
)
def replaced(answer, rng, device):
    model, meta = problem(rng, device)
    build, _ = builder(device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        save(answer, path, model, meta)
        old = pathlib.Path(path).read_bytes()
        with watching(path) as seen, one_disk_each():
            save(answer, path, model, {**meta, "lr": 0.01})
        whole = (old, pathlib.Path(path).read_bytes())
        expect_true(None not in seen, "for a moment there is no file at path", hint=STEP)
        half = [content for content in seen if content not in whole]
        expect_true(not half, "for a moment path is a part of a file", hint=STEP)
        _, found = load(answer, path, build)
        expect_equal(found["lr"], 0.01, name="meta['lr'] after the second save")
        hint = "The file that you wrote first must not stay behind."
        expect_equal(os.listdir(place), ["a.pt"], name="the list of files in the folder", hint=hint)


class Payload:
    """Makes a folder while it is unpickled."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return os.mkdir, (self.path,)


@check("nothing in a file is executed", holds="Nothing that is in the file is executed.")
def harmless(answer, rng, device):
    model, meta = problem(rng, device)
    build, _ = builder(device)
    with folder() as place:
        path, trace = os.path.join(place, "a.pt"), os.path.join(place, "executed")
        whole = {"state": model.state_dict(), "meta": meta, "x": Payload(trace)}
        for content in (Payload(trace), whole):
            torch.save(content, path)
            try:
                answer.load_ckpt(path, build)
                refused = False
            except Exception:
                refused = True
            message = "a file whose pickle calls a function had that function executed"
            expect_true(not os.path.exists(trace), message, hint=SAFE)
            message = "a file whose pickle calls a function was loaded as if nothing were wrong"
            expect_true(refused, message, hint=SAFE)


@check(
    "names that do not match are an error",
    holds="RuntimeError if names are missing or left over",
    both_sides=True,
)
def names(answer, rng, device):
    model, meta = problem(rng, device)
    with folder() as place:
        path = os.path.join(place, "a.pt")
        save(answer, path, model, meta)
        hint = "A model of which a part is random must not pass for the saved one."
        for what, build in (
            ("a layer too many", lambda m: nn.Sequential(*make(m), nn.Linear(2, 2)).to(device)),
            ("a layer too few", lambda m: make(m)[:3].to(device)),
        ):
            message = f"build's model has {what}, and load_ckpt raises no RuntimeError"
            with expect_raises(RuntimeError, message, hint=hint):
                answer.load_ckpt(path, build)


@mutant("pickles the module", caught_by=opens)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    torch.save({"state": model, "meta": meta}, new)
    os.replace(new, path)


@mutant("saves the parameters alone", caught_by=back)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    torch.save({"state": dict(model.named_parameters()), "meta": meta}, new)
    os.replace(new, path)


@mutant("writes into the file itself", caught_by=failing)
def save_ckpt(path, model, meta):
    torch.save({"state": model.state_dict(), "meta": meta}, path)


@mutant("removes the old file first", caught_by=failing)
def save_ckpt(path, model, meta):
    if os.path.exists(path):
        os.remove(path)
    new = f"{path}.tmp"
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    os.replace(new, path)


@mutant("removes the old file, then gives the new one its name", caught_by=replaced)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    if os.path.exists(path):
        os.remove(path)
    os.rename(new, path)


@mutant("moves the old file out of the way, then the new one in", caught_by=replaced)
def save_ckpt(path, model, meta):
    new, old = f"{path}.tmp", f"{path}.old"
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    if os.path.exists(path):
        shutil.move(path, old)
    shutil.move(new, path)
    pathlib.Path(old).unlink(missing_ok=True)


@mutant("pickles in memory, then writes into the file", caught_by=replaced)
def save_ckpt(path, model, meta):
    memory = io.BytesIO()
    torch.save({"state": model.state_dict(), "meta": meta}, memory)
    pathlib.Path(path).write_bytes(memory.getvalue())


@mutant("copies the finished file, and leaves it", caught_by=replaced)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    shutil.copy(new, path)


@mutant("keeps quiet about a save that failed", caught_by=failing)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    try:
        torch.save({"state": model.state_dict(), "meta": meta}, new)
        os.replace(new, path)
    except OSError:
        os.remove(new)


@mutant("adds a text to the path", caught_by=back)
def save_ckpt(path, model, meta):
    new = path + ".tmp"
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    os.replace(new, path)


@mutant("switches the model to eval to save it", caught_by=untouched)
def save_ckpt(path, model, meta):
    new = f"{path}.tmp"
    torch.save({"state": model.eval().state_dict(), "meta": meta}, new)
    os.replace(new, path)


@mutant("allows everything", caught_by=harmless)
def load_ckpt(path, build):
    ckpt = torch.load(path, map_location="cpu", weights_only=False)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"])
    return model.eval(), ckpt["meta"]


@mutant("tries it safely, and then allows everything", caught_by=harmless)
def load_ckpt(path, build):
    try:
        ckpt = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError:
        ckpt = torch.load(path, map_location="cpu", weights_only=False)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"])
    return model.eval(), ckpt["meta"]


@mutant("forgets map_location", caught_by=elsewhere)
def load_ckpt(path, build):
    ckpt = torch.load(path, weights_only=True)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"])
    return model.eval(), ckpt["meta"]


@mutant("forgets eval", caught_by=ready)
def load_ckpt(path, build):
    ckpt = torch.load(path, map_location="cpu", weights_only=True)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"])
    return model, ckpt["meta"]


@mutant("never fills the model", caught_by=back)
def load_ckpt(path, build):
    ckpt = torch.load(path, map_location="cpu", weights_only=True)
    return build(ckpt["meta"]).eval(), ckpt["meta"]


@mutant("loads what it can", caught_by=names)
def load_ckpt(path, build):
    ckpt = torch.load(path, map_location="cpu", weights_only=True)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"], strict=False)
    return model.eval(), ckpt["meta"]


@mutant("puts the tensors of the file into the model", caught_by=own)
def load_ckpt(path, build):
    ckpt = torch.load(path, map_location="cpu", weights_only=True)
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"], assign=True)
    return model.eval(), ckpt["meta"]


@mutant("writes the other file into the system's folder for such files", caught_by=replaced)
def save_ckpt(path, model, meta):
    handle, new = tempfile.mkstemp()
    os.close(handle)
    torch.save({"state": model.state_dict(), "meta": meta}, new)
    os.replace(new, path)


@mutant("writes the other file into the working folder", caught_by=replaced)
def save_ckpt(path, model, meta):
    torch.save({"state": model.state_dict(), "meta": meta}, "unfinished.pt")
    os.rename("unfinished.pt", path)


@hinted(1, reaches=elsewhere)
def save_ckpt(path, model, meta):
    torch.save({"state": model.state_dict(), "meta": meta}, path)


@accepted("a temporary file of a random name, in the same folder")
def save_ckpt(path, model, meta):
    handle, new = tempfile.mkstemp(dir=os.path.dirname(path) or ".")
    try:
        with os.fdopen(handle, "wb") as file:
            torch.save({"meta": dict(meta), "state": model.state_dict()}, file)
            file.flush()
            os.fsync(file.fileno())
        pathlib.Path(new).replace(path)
    except BaseException:
        os.unlink(new)
        raise


@accepted("takes the tensors as they are, on the model's device")
def load_ckpt(path, build):
    with open(path, "rb") as file:
        ckpt = torch.load(file, map_location=torch.device("cpu"))
    model = build(ckpt["meta"])
    model.load_state_dict(ckpt["state"], strict=True)
    for module in model.modules():
        module.eval()
    return (model, ckpt["meta"])


equivalent(
    """ckpt = torch.load(path, map_location="cpu", weights_only=True)""",
    """ckpt = torch.load(path, map_location="cpu")""",
    because="weights_only=True is the default of every torch that the course runs with.",
)
