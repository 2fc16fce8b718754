"""Judges lessons/18_capstones/04_gpt_resumes.md."""

import contextlib
import functools
import inspect
import os
import pathlib
import resource
import signal
import tempfile

import torch
from torch import nn
from torch.nn import functional as F
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tensortutor.checking import (
    accepted,
    check,
    expect_close,
    expect_equal,
    expect_true,
    fail,
    hinted,
    key_line_shown,
    mutant,
)
from tensortutor.lab import data

key_line_shown("set_rng_state", because="a part of five that are to be found")
key_line_shown("get_rng_state", because="a part of five that are to be found")

PARTS = (
    "A checkpoint has five parts: model, optimizer, schedule, the state of the random numbers, "
    "and the next step."
)
SAME = "Take the steps with step, on what parts returns: nothing else changes the run."
EVERY = 3
"""It saves after so many steps."""
STEPS = 7
"""A run that is compared with another one has so many."""


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


def once(work):
    """Decorate work(train, ...): what it did for a train is kept, for other seeds and checks."""
    results = {}

    @functools.wraps(work)
    def done(train, *told):
        key = inspect.unwrap(train), *told
        if key not in results:
            results[key] = work(train, *told)
        return results[key]

    return done


@once
def whole(train):
    """A run of STEPS that nobody stops.

    Returns what train returned, and the learning rate of each step of the optimizer.
    """
    rates = []

    def taken(opt, *_):
        rates.append(float(opt.param_groups[0]["lr"]))

    handle = register_optimizer_step_pre_hook(taken)
    try:
        with folder() as place:
            model, losses = train(os.path.join(place, "whole.pt"), STEPS)
    finally:
        handle.remove()
    return model, losses, rates


def same(a, b, what, hint=PARTS):
    """Two models have the same bits."""
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        gap = (x - y).abs().max().item()
        expect_true(torch.equal(x, y), f"{what}: {name} differs by up to {gap:.1e}", hint=hint)


@check(
    "it learns as before",
    holds=[
        "trains the GPT for `until` steps of `step`",
        "All else stays as it is",
        "compares the losses and learning rates of the first steps",
    ],
)
def learns(answer, rng, device):
    model, losses, rates = whole(answer.train)
    hint = "Without a file at path, train takes `until` steps."
    expect_equal(
        len(rates), STEPS, name=f"steps of the optimizer in train(path, {STEPS})", hint=hint
    )
    expect_true(model.training, "train returns a model in eval mode", hint=SAME)
    _, right, planned = whole(fitted)
    for loss in losses:
        expect_true(type(loss) is float, f"a loss is a {type(loss).__name__}", hint=".item()")
    f64 = torch.float64
    got, wanted = torch.tensor(rates, dtype=f64), torch.tensor(planned, dtype=f64)
    expect_close(got, wanted, rtol=1e-6, atol=0, name="the learning rates", hint=SAME)
    got, wanted = torch.tensor(losses, dtype=f64), torch.tensor(right, dtype=f64)
    expect_close(got, wanted, rtol=0, atol=1e-4, name="the losses", hint=SAME)


@check(
    "a run that was stopped goes on with the same bits",
    holds=[
        "goes on from the checkpoint at `path`, if there is one",
        "It returns the model and the losses of the steps that it did itself.",
        "A run that was stopped anywhere and goes on gives the same bits as one that was not.",
        "and after the last",
    ],
    both_sides=True,
)
def resumes(answer, rng, device):
    # from the second step after the stop, the schedule decides the learning rate
    goes_on(answer.train, rng.randint(1, STEPS - 2))


@once
def goes_on(train, stop):
    """Stop a run after so many steps, and go on in a process that has drawn random numbers."""
    model, losses, *_ = whole(train)
    with folder() as place:
        path = os.path.join(place, "parts.pt")
        _, first = train(path, stop)
        expect_equal(len(first), stop, name="losses of the first part")
        torch.rand(5)
        resumed, second = train(path, STEPS)
        hint = "It begins at the step of the checkpoint, and returns the losses of its own steps."
        expect_equal(len(second), STEPS - stop, name="losses of the second part", hint=hint)
        expect_equal(first + second, losses, name="the losses of both parts", hint=PARTS)
        same(model, resumed, f"stopped after {stop} of {STEPS}")
        again, none = train(path, STEPS)
        expect_equal(none, [], name="losses where nothing is left to do", hint=PARTS)
        same(model, again, "nothing left to do")


@check(
    "a run that SIGKILL ends goes on from its last third step",
    holds="after steps 3, 6, 9 and so on of the whole run",
)
def ended(answer, rng, device):
    dies(answer.train, rng.randint(EVERY + 2, 2 * EVERY), 0)
    dies(answer.train, 2 * EVERY + 1, 0)
    dies_later(answer.train)


@once
def dies_later(train):
    """Stop after step 4, go on, and die in step 7. Step 6 was saved."""
    model, losses, *_ = whole(train)
    taken = [0]

    def step(*_):
        taken[0] += 1
        if taken[0] == 3:
            os.kill(os.getpid(), signal.SIGKILL)

    with folder() as place:
        path = os.path.join(place, "later.pt")
        train(path, 4)

        def run():
            register_optimizer_step_pre_hook(step)
            train(path, STEPS)

        expect_true(killed(run), "a run that goes on from step 4 did not reach step 7")
        resumed, rest = train(path, STEPS)
        hint = "The run went on from step 4, and was killed in step 7. Step 6 should be saved."
        expect_equal(len(rest), STEPS - 6, name="steps that were left", hint=hint)
        expect_equal(rest, losses[6:], name="their losses", hint=PARTS)
        same(model, resumed, "killed in step 7")


@check(
    "a file that cannot be read is an error",
    holds="If that file cannot be read, an error is raised.",
)
def unreadable(answer, rng, device):
    with folder() as place:
        path = os.path.join(place, "cut.pt")
        answer.train(path, 1)
        whole_file = pathlib.Path(path).read_bytes()
        hint = "torch.load raises where the file was cut off. Let the error through."
        # Of a few bytes, of a short and of a long file the errors are not of one class.
        for size in (rng.randint(1, 3), rng.randint(1000, 3000), rng.randint(20_000, 30_000)):
            pathlib.Path(path).write_bytes(whole_file[:size])
            try:
                answer.train(path, 2)
            except Exception:
                continue
            message = f"the checkpoint was cut off after {size} bytes, and train went on"
            fail(message, hint=hint)


@check("a run that dies while it saves goes on from the save before", holds="With `save` it saves")
def cut_short(answer, rng, device):
    dies(answer.train, EVERY + 1, rng.choice([1000, 20_000]))


@once
def dies(train, at, size):
    """A child trains, and dies in step `at`: at once, or while it saves after it.

    size: how many bytes of a file it can still write; 0: SIGKILL, in front of the optimizer. What
    it left is gone on with.
    """
    model, losses, *_ = whole(train)
    taken, saved = [0], (at - 1) // EVERY * EVERY

    def step(*_):
        taken[0] += 1
        if taken[0] == at and size:
            no_file_beyond(size)
        elif taken[0] == at:
            os.kill(os.getpid(), signal.SIGKILL)

    with folder() as place:
        path = os.path.join(place, "dies.pt")

        def run():
            register_optimizer_step_pre_hook(step)
            train(path, at)

        how = f"killed after {size} bytes of its second file" if size else f"killed in step {at}"
        expect_true(killed(run), f"a run of {at} steps did not get as far as to be {how}")
        hint = (
            f"The run was {how}. The checkpoint of step {saved} should be there: it saves after "
            "steps 3, 6, 9 and so on, and after the last."
        )
        expect_true(os.path.exists(path), "there is no checkpoint", hint=hint)
        try:
            resumed, rest = train(path, STEPS)
        except Exception as error:
            fail(f"it does not go on: {type(error).__name__}: {str(error)[:80]}", hint=hint)
        expect_equal(len(rest), STEPS - saved, name="steps that were left", hint=hint)
        expect_equal(rest, losses[saved:], name="their losses", hint=PARTS)
        same(model, resumed, how)


TEXT = data("names.txt").read_text().lower()
LETTERS = sorted(set(TEXT))
NUMBERS = torch.tensor([LETTERS.index(c) for c in TEXT])


class Base(nn.Module):
    """A right model."""

    def __init__(self):
        super().__init__()
        self.tok, self.pos = nn.Embedding(len(LETTERS), 32), nn.Embedding(16, 32)
        one = nn.TransformerEncoderLayer(32, 4, 128, batch_first=True)
        self.blocks = nn.TransformerEncoder(one, 2)
        self.head = nn.Linear(32, len(LETTERS))

    def forward(self, ids, diagonal=1):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        hidden = torch.ones(t, t).triu(diagonal).bool()
        return self.head(self.blocks(x, mask=hidden))


def kept(path, state):
    torch.save(state, f"{path}.new")
    os.replace(f"{path}.new", path)


def read(path, anew):
    """The state in the file, None without one.

    anew: None as well if it cannot be read, with any error, or with one of this class.
    """
    if not os.path.exists(path):
        return None
    try:
        return torch.load(path)
    except Exception as error:
        if not anew or (anew is not True and not isinstance(error, anew)):
            raise
        return None


def fitted_parts(seed=0, rate=4e-3):
    torch.manual_seed(seed)
    model = Base()
    opt = torch.optim.AdamW(model.parameters(), lr=rate)
    return model, opt, CosineAnnealingLR(opt, 100)


def stepped(model, opt, plan):
    """One step of training. Returns the loss."""
    at = torch.randint(len(NUMBERS) - 16, (16, 1))
    ids = NUMBERS[at + torch.arange(17)]
    loss = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    opt.step()
    plan.step()
    return loss.item()


def fitted(path, until, leave=(), every=EVERY, last=True, total=False, final=False, seed=0,
           rate=4e-3, write=kept, since=False, calm=False, anew=False):  # fmt: skip
    """train, with parts left out."""
    model, opt, plan = fitted_parts(seed, rate)
    start, losses = 0, []
    state = read(path, anew)
    if state is not None:
        model.load_state_dict(state["model"])
        if "opt" not in leave:
            opt.load_state_dict(state["opt"])
        if "plan" not in leave:
            plan.load_state_dict(state["plan"])
        if "rng" not in leave:
            torch.set_rng_state(state["rng"])
        start = 0 if "step" in leave else state["step"]
        losses = state["losses"] if total else []

    def keep(step):
        state = {"model": model.state_dict(), "opt": opt.state_dict()}
        state |= {"plan": plan.state_dict(), "rng": torch.get_rng_state()}
        write(path, {**state, "step": step, "losses": losses})

    done = start
    try:
        while done < until:
            losses.append(stepped(model, opt, plan))
            done += 1
            if not final and ((done - since * start) % every == 0 or (last and done == until)):
                keep(done)
    finally:
        if final:
            keep(done)
    return model.train(not calm), losses


@mutant("begins anew each time", caught_by=resumes)
def train(path, until):
    if os.path.exists(path):
        os.remove(path)
    return fitted(path, until)


@mutant("without the optimizer's state", caught_by=resumes)
def train(path, until):
    return fitted(path, until, leave=("opt",))


@mutant("without the schedule's state", caught_by=resumes)
def train(path, until):
    return fitted(path, until, leave=("plan",))


@mutant("without the state of the random numbers", caught_by=resumes)
def train(path, until):
    return fitted(path, until, leave=("rng",))


@mutant("counts its steps from 0 again", caught_by=resumes)
def train(path, until):
    return fitted(path, until, leave=("step",))


@mutant("returns the losses of all parts", caught_by=resumes)
def train(path, until):
    return fitted(path, until, total=True)


@mutant("saves at the end alone", caught_by=ended)
def train(path, until):
    return fitted(path, until, every=1000)


@mutant("saves in a finally, which SIGKILL does not run", caught_by=ended)
def train(path, until):
    return fitted(path, until, final=True)


@mutant("saves every third step, and not at the end", caught_by=resumes)
def train(path, until):
    return fitted(path, until, last=False)


@mutant("counts to three anew after a resume", caught_by=ended)
def train(path, until):
    return fitted(path, until, since=True)


@mutant("begins anew where the file is broken", caught_by=unreadable)
def train(path, until):
    return fitted(path, until, anew=True)


@mutant("begins anew after one kind of error", caught_by=unreadable)
def train(path, until):
    return fitted(path, until, anew=RuntimeError)


@mutant("saves after each step", caught_by=ended)
def train(path, until):
    return fitted(path, until, every=1)


@mutant("returns the model in eval mode", caught_by=learns)
def train(path, until):
    return fitted(path, until, calm=True)


@mutant("another learning rate", caught_by=learns)
def train(path, until):
    return fitted(path, until, rate=5e-3)


@mutant("another seed", caught_by=learns)
def train(path, until):
    return fitted(path, until, seed=1)


@mutant("writes the checkpoint itself, over the old one", caught_by=cut_short)
def train(path, until):
    return fitted(path, until, write=torch.save)


@accepted("a state of named parts")
def train(path, until):
    return fitted(path, until)


@accepted("keeps the parts as one list of tuples")
def train(path, until):
    parts = fitted_parts()
    losses, done = [], 0
    with contextlib.suppress(FileNotFoundError):
        held = torch.load(path, weights_only=False)
        done = held.pop("done")
        torch.random.set_rng_state(held.pop("rng"))
        for part, state in zip(parts, held["parts"], strict=True):
            part.load_state_dict(state)
    while done < until:
        losses.append(stepped(*parts))
        done += 1
        if not done % EVERY or done == until:
            states = tuple(part.state_dict() for part in parts)
            kept(path, {"done": done, "rng": torch.random.get_rng_state(), "parts": states})
    return parts[0], losses


@hinted(1, reaches=learns)
def train(path, until):
    return fitted(path, until, leave=("opt", "plan", "rng", "step"))
