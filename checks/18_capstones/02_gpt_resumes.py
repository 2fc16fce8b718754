"""Judges lessons/18_capstones/02_gpt_resumes.md."""

import functools
import inspect
import io
import os
import pathlib
import resource
import shutil
import signal
import tempfile

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.lr_scheduler import CosineAnnealingLR
from torch.optim.optimizer import register_optimizer_step_pre_hook

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    fail,
    hinted,
    key_line_shown,
    mutant,
)
from tensortutor.lab import data

background("Four things are missing.", "A check ends a process with SIGKILL")

key_line_shown("replace", because="the step before shows what it is for; the exercise uses it")
key_line_shown("set_rng_state", because="a part of five that are to be found")
key_line_shown("get_rng_state", because="a part of five that are to be found")

MASK = "Give `blocks` a mask that is True where a position may not look: above the diagonal."
BESIDE = 'Write to a file beside it, such as f"{path}.new", and rename that with os.replace.'
PARTS = (
    "A checkpoint has five parts: model, optimizer, schedule, the state of the random numbers, "
    "and the next step."
)
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.5) between backward and step."


SAME = "Change the four things alone: batches, seed, optimizer and schedule stay as they are."
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

    Returns what train returned, and of each step of the optimizer the norm of the gradient and the
    learning rate.
    """
    norms, rates = [], []

    def taken(opt, *_):
        grads = [p.grad for group in opt.param_groups for p in group["params"]]
        norms.append(torch.stack([g.norm() for g in grads if g is not None]).norm().item())
        rates.append(float(opt.param_groups[0]["lr"]))

    handle = register_optimizer_step_pre_hook(taken)
    try:
        with folder() as place:
            model, losses = train(os.path.join(place, "whole.pt"), STEPS)
    finally:
        handle.remove()
    return model, losses, norms, rates


def same(a, b, what, hint=PARTS):
    """Two models have the same bits."""
    for (name, x), y in zip(a.state_dict().items(), b.state_dict().values(), strict=True):
        gap = (x - y).abs().max().item()
        expect_true(torch.equal(x, y), f"{what}: {name} differs by up to {gap:.1e}", hint=hint)


@check("no position sees later letters", holds="depend on no later letter")
def causal(answer, rng, device):
    for t in (answer.T, rng.randint(3, answer.T - 1)):
        looks_back(answer, rng, t)


def looks_back(answer, rng, t):
    """Changes to later ones of t letters change nothing before them."""
    torch.manual_seed(rng.randrange(1000))
    model = answer.GPT().eval()
    ids = torch.randint(answer.V, (2, t))
    other = ids.clone()
    at = rng.randint(1, t - 1)
    other[:, at:] = (other[:, at:] + torch.randint(1, answer.V, (2, t - at))) % answer.V
    for mode in ("eval", "training"):
        model.train(mode == "training")
        found = []
        for seen in (ids, other):
            torch.manual_seed(0)  # both draw the same dropout masks
            with torch.no_grad():
                found.append(model(seen))
        one, two = found
        expect_shape(one, (2, t, answer.V), name="the logits")
        name = f"logits before the change, in {mode} mode"
        expect_close(two[:, :at], one[:, :at], atol=1e-5, name=name, hint=MASK)
        gap = (two[:, -1] - one[:, -1]).abs().max().item()
        what = f"in {mode} mode the last position does not see the letters that changed"
        expect_true(gap > 1e-4, what, hint=MASK)


@check(
    "save leaves the old file whole",
    holds="leaves the old file whole if the process dies while it writes",
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
        expect_true(not into, "save writes into the old file", hint=BESIDE)
        expect_equal(torch.load(path), {"step": 3}, name="what a later save wrote")


@once
def faint(train):
    """The norms of the gradients in two steps of a run whose gradients are a hundredth, or less."""
    norms = []

    def scale(module, inputs, out):
        if torch.is_tensor(out) and out.shape[-1:] == (len(LETTERS),) and out.requires_grad:
            out.register_hook(lambda grad: grad * 0.01)

    def taken(opt, *_):
        grads = [p.grad for group in opt.param_groups for p in group["params"]]
        norms.append(torch.stack([g.norm() for g in grads if g is not None]).norm().item())

    handles = register_module_forward_hook(scale), register_optimizer_step_pre_hook(taken)
    try:
        with folder() as place:
            train(os.path.join(place, "faint.pt"), 2)
    finally:
        for handle in handles:
            handle.remove()
    return norms


@check(
    "the gradient is clipped",
    holds=[
        "The norm of all gradients together is clipped to 0.5.",
        "A gradient with a smaller norm stays as it is.",
    ],
    both_sides=True,
)
def clipped(answer, rng, device):
    _, losses, norms, _ = whole(answer.train)
    expect_equal(len(losses), STEPS, name=f"losses of {STEPS} steps")
    expect_equal(len(norms), STEPS, name=f"steps of the optimizer in a run of {STEPS}")
    expect_close(
        torch.tensor(norms[:5]),
        torch.full((5,), 0.5),  # without clipping, the norms of these steps are 0.6 to 1.1
        atol=1e-3,
        name="the norms that the optimizer got in the first steps",
        hint=CLIP,
    )
    largest = max(faint(answer.train))
    what = f"a gradient with a norm below 0.02 has the norm {largest:.2f} in the step"
    expect_true(largest < 0.02, what, hint="Where the norm is below 0.5, nothing is multiplied.")


@check(
    "it learns as before",
    holds=[
        "A GPT learns first names, letter by letter.",
        "All else stays as it is",
        "compares the losses and learning rates of the first steps",
    ],
)
def learns(answer, rng, device):
    model, losses, _, rates = whole(answer.train)
    expect_true(model.training, "train returns a model in eval mode", hint=SAME)
    _, right, _, planned = whole(fitted)
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
    dies(answer.train, rng.randint(EVERY + 1, 2 * EVERY), 0)
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
        pathlib.Path(path).write_bytes(whole_file[: rng.randint(1000, 20_000)])
        try:
            answer.train(path, 2)
        except Exception:
            return
        hint = "torch.load raises where the file was cut off. Let the error through."
        fail("the checkpoint was cut off, and train went on without a word", hint=hint)


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
        hint = f"The run was {how}. The checkpoint of step {saved} should be there."
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
    """The state in the file, None without one. anew: None as well if it cannot be read."""
    if not os.path.exists(path):
        return None
    try:
        return torch.load(path)
    except Exception:
        if not anew:
            raise
        return None


def clip(parameters, norm):
    """Clip the norm of all gradients to a number, not at all with None, or in a wrong way."""
    if norm == "values":
        nn.utils.clip_grad_value_(parameters, 0.5)
    elif norm == "apart":
        for p in parameters:
            nn.utils.clip_grad_norm_(p, 0.5)
    elif norm == "to":
        length = nn.utils.get_total_norm([p.grad for p in parameters])
        for p in parameters:
            p.grad.mul_(0.5 / length)
    elif norm:
        nn.utils.clip_grad_norm_(parameters, norm)


def fitted(path, until, leave=(), norm=0.5, every=EVERY, last=True, still=False, total=False,
           final=False, seed=0, rate=4e-3, write=kept, since=False, calm=False,
           anew=False):  # fmt: skip
    """train, with parts left out."""
    torch.manual_seed(seed)
    model = Base()
    opt = torch.optim.AdamW(model.parameters(), lr=rate)
    plan = CosineAnnealingLR(opt, 100)
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

    def take():
        at = torch.randint(len(NUMBERS) - 16, (16, 1))
        ids = NUMBERS[at + torch.arange(17)]
        loss = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:])
        opt.zero_grad()
        loss.backward()
        clip(list(model.parameters()), norm)
        if not still:
            opt.step()
        plan.step()
        losses.append(loss.item())

    done = start
    try:
        while done < until:
            take()
            done += 1
            if not final and ((done - since * start) % every == 0 or (last and done == until)):
                keep(done)
    finally:
        if final:
            keep(done)
    return model.train(not calm), losses


@mutant("no mask: sees what it is to predict", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        return self.head(self.blocks(self.tok(ids) + self.pos.weight[: ids.shape[1]]))


@mutant("a mask that hides the past", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        return self.head(self.blocks(x, mask=torch.ones(t, t).tril(-1).bool()))


@mutant("a mask that is one off", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        return super().forward(ids, 2)


@mutant("a mask for T letters alone", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        if ids.shape[1] == 16:
            return super().forward(ids)
        return self.head(self.blocks(self.tok(ids) + self.pos.weight[: ids.shape[1]]))


@mutant("a mask of numbers that are added", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        return self.head(self.blocks(x, mask=torch.ones(t, t).triu(1)))


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


@mutant("does not clip", caught_by=clipped)
def train(path, until):
    return fitted(path, until, norm=None)


@mutant("clips to 1", caught_by=clipped)
def train(path, until):
    return fitted(path, until, norm=1.0)


@mutant("clips each number", caught_by=clipped)
def train(path, until):
    return fitted(path, until, norm="values")


@mutant("clips each parameter by itself", caught_by=clipped)
def train(path, until):
    return fitted(path, until, norm="apart")


@mutant("makes each gradient one of norm 0.5", caught_by=clipped)
def train(path, until):
    return fitted(path, until, norm="to")


@mutant("counts to three anew after a resume", caught_by=ended)
def train(path, until):
    return fitted(path, until, since=True)


@mutant("begins anew where the file is broken", caught_by=unreadable)
def train(path, until):
    return fitted(path, until, anew=True)


@mutant("returns the model in eval mode", caught_by=learns)
def train(path, until):
    return fitted(path, until, calm=True)


@mutant("takes no step", caught_by=clipped)
def train(path, until):
    return fitted(path, until, still=True)


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


@accepted("saves through a temporary file")
def save(path, state):
    place = tempfile.mkdtemp(dir=os.path.dirname(os.path.abspath(path)))
    torch.save(state, os.path.join(place, "new"))
    os.rename(os.path.join(place, "new"), path)


@accepted("a mask by -inf")
class GPT(Base):
    def forward(self, ids):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        mask = nn.Transformer.generate_square_subsequent_mask(t)
        return self.head(self.blocks(x, mask=mask, is_causal=True))


@accepted("a mask of -inf that the state holds")
class GPT(Base):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", torch.full((16, 16), -torch.inf).triu(1))

    def forward(self, ids):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        return self.head(self.blocks(x, mask=self.mask[:t, :t]))


@hinted(1, reaches=causal)
class GPT(Base):
    def forward(self, ids):
        return super().forward(ids)
