"""Judges lessons/18_capstones/03_gpt_saves.md."""

import copy
import io
import os
import pathlib
import resource
import shutil
import signal
import tempfile

import torch
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_equal,
    expect_true,
    fail,
    hinted,
    key_line_shown,
    mutant,
)
from tensortutor.lab import data

background("A check ends a process with SIGKILL")

key_line_shown("replace", because="the step before shows what it is for; the exercise uses it")

equivalent(
    "p = model(ids)[0, -1].softmax(-1)",
    "p = model(ids)[-1, -1].softmax(-1)",
    because="the batch has one row, the first and the last",
)
equivalent(
    "p = model(ids)[0, -1].softmax(-1)",
    "p = model(ids)[0, -1].softmax(0)",
    because="the scores have one dimension, the first and the last",
)
equivalent(
    'return "".join(letters[i] for i in ids[0, 1:])',
    'return "".join(letters[i] for i in ids[-1, 1:])',
    because="the batch has one row, the first and the last",
)

BESIDE = 'Write to a file beside it, such as f"{path}.new", and rename that with os.replace.'
DRAW = (
    "Begin with number 0, and draw p.multinomial(1, generator=gen) from the softmax of the last "
    "logits in eval mode, until it is 0 or T - 1 letters are there."
)
OWN = "Give gen to each draw, and work in eval mode, where dropout draws nothing."
MODE = "Keep model.training, call model.eval(), and give the mode back with model.train at the end."


def killed(work):
    """Whether a child process that does work is ended by a signal. Nothing of it is left over."""
    child = os.fork()
    if child == 0:
        try:
            work()
        finally:
            os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status)


def no_file_beyond(size):
    """From now on the kernel ends the process when a file grows beyond so many bytes."""
    signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    highest = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, highest))


def folder():
    return tempfile.TemporaryDirectory()


@check(
    "save leaves the old file whole",
    holds="leaves the old file whole if the process dies while it writes",
    hint=BESIDE,
)
def atomic(answer, rng, device):
    with folder() as place:
        path = os.path.join(place, "a.pt")
        answer.save(path, {"step": 1})
        expect_equal(torch.load(path), {"step": 1}, name="what save wrote")

        size = rng.randint(100, 3000)

        def cut_off():
            no_file_beyond(size)
            answer.save(path, {"step": 2, "w": torch.zeros(5000)})

        expect_true(killed(cut_off), "save wrote no file of 20,000 bytes", hint=BESIDE)
        try:
            found = torch.load(path)
        except Exception:
            fail(f"save died after {size} bytes, and the old checkpoint is gone", hint=BESIDE)
        expect_equal(
            found, {"step": 1}, name="the checkpoint after a save was cut off", hint=BESIDE
        )

        def removed():
            """End the process where it is to remove the old checkpoint."""

            def ends(place, **_):
                if os.path.abspath(place) == path:
                    os.kill(os.getpid(), signal.SIGKILL)

            os.remove = os.unlink = ends  # in the child alone
            answer.save(path, {"step": 1})

        what = "save removes the old checkpoint before the new one has its name"
        expect_true(not killed(removed), what, hint=BESIDE)
        with open(path, "rb") as old:  # it keeps the old file's number from being given again
            answer.save(path, {"step": 3})
            into = os.path.samestat(os.fstat(old.fileno()), os.stat(path))
        found = torch.load(path)
        expect_equal(found, {"step": 3}, name="what a later save wrote", hint=BESIDE)
        expect_true(not into, "save writes into the old file", hint=BESIDE)


TEXT = data("names.txt").read_text().lower()
LETTERS = sorted(set(TEXT))


def generator(seed):
    return torch.Generator().manual_seed(seed)


def likely(model, ids):
    """The probabilities of the letter after ids: (t,) -> (V,)."""
    return model(ids[None])[0, -1].softmax(-1)


def drawn(model, gen, most=15, end=0, graph=False, mode=None, calm=True, pick=None):
    """sample, with parts left out. end: the number that ends a name. mode: the one at the end."""
    before = model.training
    if calm:
        model.eval()
    ids = torch.zeros(1, dtype=torch.long)
    with torch.set_grad_enabled(graph):
        while len(ids) <= most:
            p = likely(model, ids)
            new = pick(p) if pick else p.multinomial(1, generator=gen)
            if new == end:
                break
            ids = torch.cat([ids, new])
    model.train(before if mode is None else mode)
    return "".join(LETTERS[i] for i in ids[1:])


def some(answer, rng, ends=True):
    """A model of the learner's whose names end early, or do not end."""
    torch.manual_seed(rng.randrange(1000))
    model = answer.GPT()
    with torch.no_grad():
        model.head.bias[0] += 1.5 if ends else -30
    return model


@check(
    "a name is drawn letter by letter",
    holds=[
        "returns a name that the model writes, a string",
        "It begins behind a line break, which has number 0.",
        "Letter after letter is drawn by `multinomial`, from the probabilities of the model in "
        "eval mode.",
        "The next line break ends the name and is no part of it.",
        "Without one, the name ends after T - 1 letters.",
    ],
)
def written(answer, rng, device):
    for ends in (True, True, True, False):
        model, seed = some(answer, rng, ends), rng.randrange(1000)
        wanted = drawn(copy.deepcopy(model), generator(seed), answer.T - 1)
        model.train(rng.random() < 0.5)
        got = answer.sample(model, generator(seed))
        expect_true(type(got) is str, f"sample returned a {type(got).__name__}", hint=DRAW)
        hint = DRAW
        if "\n" in got:
            hint = "A line break is no part of the name: the first draw of number 0 ends it."
        elif len(wanted) == answer.T - 1 and (wanted.startswith(got) or got.startswith(wanted)):
            hint = "A name without a line break has T - 1 letters, and the input at most T."
        name = f"the name with a generator of seed {seed}"
        expect_equal(got, wanted, name=name, hint=hint)


@check(
    "a sample leaves the run as it is",
    holds=[
        "All draws come from the generator `gen`: the run's random numbers stay where they were.",
        "Afterwards the model is in the mode in which it was",
        "and gradients are switched on if they were",
    ],
)
def apart(answer, rng, device):
    for training in (True, False):
        model = some(answer, rng).train(training)
        before, gen = torch.get_rng_state(), generator(rng.randrange(1000))
        answer.sample(model, gen)
        same = torch.equal(before, torch.get_rng_state())
        expect_true(same, "after a sample the run draws other random numbers", hint=OWN)
        modes = {module.training for module in model.modules()}
        mode = "training" if training else "eval"
        message = f"the model was in {mode} mode, and is in another one after a sample"
        expect_true(modes == {training}, message, hint=MODE)
        on = torch.is_grad_enabled()
        hint = "`with torch.no_grad():` puts back what was there; set_grad_enabled does not."
        expect_true(on, "after a sample gradients are switched off", hint=hint)


@check("a sample builds no graph", holds="No graph is built.")
def bare(answer, rng, device):
    graphs = []

    def look(module, inputs, out):
        graphs.append(torch.is_tensor(out) and out.requires_grad)

    handle = register_module_forward_hook(look)
    try:
        answer.sample(some(answer, rng), generator(0))
    finally:
        handle.remove()
    hint = "Draw under torch.no_grad()."
    expect_true(not any(graphs), "the model was called with a graph for backward", hint=hint)


def kept(path, state):
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)


@mutant("writes over the old file", caught_by=atomic)
def save(path, state):
    torch.save(state, path)


@mutant("removes the old file first", caught_by=atomic)
def save(path, state):
    if os.path.exists(path):
        os.remove(path)
    kept(path, state)


@mutant("writes beside the old file, and copies over it", caught_by=atomic)
def save(path, state):
    torch.save(state, f"{path}.new")
    shutil.copyfile(f"{path}.new", path)


@mutant("removes the old file when the new one is written", caught_by=atomic)
def save(path, state):
    torch.save(state, f"{path}.new")
    if os.path.exists(path):
        os.remove(path)
    os.rename(f"{path}.new", path)


@mutant("makes the bytes first, and writes them over the old file", caught_by=atomic)
def save(path, state):
    made = io.BytesIO()
    torch.save(state, made)
    pathlib.Path(path).write_bytes(made.getvalue())


@mutant("puts the old file back after an error, which SIGKILL is not", caught_by=atomic)
def save(path, state):
    file = pathlib.Path(path)
    old = file.read_bytes() if file.exists() else b""
    try:
        torch.save(state, path)
    except BaseException:
        file.write_bytes(old)
        raise


@mutant("never renames", caught_by=atomic)
def save(path, state):
    if os.path.exists(path):
        torch.save(state, f"{path}.new")
    else:
        kept(path, state)


@mutant("draws from the run's random numbers", caught_by=apart)
def sample(model, gen):
    return drawn(model, None)


@mutant("leaves the model in eval mode", caught_by=apart)
def sample(model, gen):
    return drawn(model, gen, mode=False)


@mutant("puts training mode in place of any", caught_by=apart)
def sample(model, gen):
    return drawn(model, gen, mode=True)


@mutant("draws in training mode", caught_by=written)
def sample(model, gen):
    return drawn(model.train(), gen, calm=False)


@mutant("switches gradients off for good", caught_by=apart)
def sample(model, gen):
    name = drawn(model, gen)
    torch.set_grad_enabled(False)
    return name


@mutant("saves the first time alone", caught_by=atomic)
def save(path, state):
    torch.save(state, f"{path}.new")
    if not os.path.exists(path):
        os.replace(f"{path}.new", path)


@mutant("keeps the line break", caught_by=written)
def sample(model, gen):
    name = drawn(model, gen)
    return name if len(name) == 15 else name + "\n"


@mutant("builds a graph", caught_by=bare)
def sample(model, gen):
    return drawn(model, gen, graph=True)


@mutant("takes the likeliest letter", caught_by=written)
def sample(model, gen):
    return drawn(model, gen, pick=lambda p: p.argmax()[None])


@mutant("goes on behind the line break", caught_by=written)
def sample(model, gen):
    return drawn(model, gen, end=-1)


@mutant("draws one letter too few", caught_by=written)
def sample(model, gen):
    return drawn(model, gen, most=14)


@mutant("seeds the run's numbers from the generator", caught_by=apart)
def sample(model, gen):
    torch.manual_seed(torch.randint(1000, (1,), generator=gen).item())
    return drawn(model, None)


@accepted("saves through a temporary file")
def save(path, state):
    place = tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(path)))
    torch.save(state, os.path.join(place, "new"))
    os.rename(os.path.join(place, "new"), path)


@accepted("a list of numbers in inference mode")
def sample(model, gen):
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    numbers = [0]
    with torch.inference_mode():
        while len(numbers) < 16:
            logits = model(torch.tensor([numbers]))
            new = torch.multinomial(F.softmax(logits[:, -1], 1), 1, generator=gen).item()
            if not new:
                break
            numbers.append(new)
    for module, training in modes:
        module.training = training
    return "".join(LETTERS[n] for n in numbers[1:])


@hinted(1, reaches=atomic)
def save(path, state):
    kept(path, state)
