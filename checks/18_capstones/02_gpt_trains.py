"""Judges lessons/18_capstones/02_gpt_trains.md."""

import functools
import inspect

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
    hinted,
    mutant,
)
from tensortutor.lab import data

background("Two things are missing.")

MASK = "Give `blocks` a mask that is True where a position may not look: above the diagonal."
CLIP = "nn.utils.clip_grad_norm_(model.parameters(), 0.5) between backward and step."
SAME = "Change the two things alone: batches, seed, optimizer and schedule stay as they are."
STEPS = 7
"""A run that is compared with another one has so many."""


def once(work):
    """Decorate work(parts, step): what it did for these is kept, for other seeds and checks."""
    results = {}

    @functools.wraps(work)
    def done(*told):
        key = tuple(inspect.unwrap(of) for of in told)
        if key not in results:
            results[key] = work(*told)
        return results[key]

    return done


class Norms:
    """Of each step of an optimizer, the norm of the gradient and the learning rate."""

    def __init__(self):
        self.norms, self.rates = [], []

    def __call__(self, opt, *_):
        grads = [p.grad for group in opt.param_groups for p in group["params"]]
        norms = torch.stack([g.norm() for g in grads if g is not None])
        self.norms.append(norms.norm().item())
        self.rates.append(float(opt.param_groups[0]["lr"]))


@once
def whole(parts, step):
    """(model, losses, norms, learning rates) of the first STEPS steps."""
    taken = Norms()
    handle = register_optimizer_step_pre_hook(taken)
    try:
        run = parts()
        losses = [step(*run) for _ in range(STEPS)]
    finally:
        handle.remove()
    return run[0], losses, taken.norms, taken.rates


@check(
    "no position sees later letters",
    holds="depend on no later letter",
    hint="Make the mask of ids.shape[1] rows and columns, also where these are fewer than T.",
)
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
    other = ids.clone()
    other[:, 0] = (other[:, 0] + 1) % answer.V
    with torch.no_grad():
        gap = (model.eval()(other)[:, -1] - model(ids)[:, -1]).abs().max().item()
    hint = "The mask hides later letters alone: a position sees all before it."
    expect_true(gap > 1e-5, f"position {t - 1} does not see the first letter", hint=hint)


@once
def faint(parts, step):
    """The norms of the gradients in two steps of a run whose gradients are a hundredth, or less."""
    taken = Norms()

    def scale(module, inputs, out):
        if torch.is_tensor(out) and out.shape[-1:] == (len(LETTERS),) and out.requires_grad:
            out.register_hook(lambda grad: grad * 0.01)

    handles = register_module_forward_hook(scale), register_optimizer_step_pre_hook(taken)
    try:
        run = parts()
        for _ in range(2):
            step(*run)
    finally:
        for handle in handles:
            handle.remove()
    return taken.norms


@check(
    "the gradient is clipped",
    holds=[
        "takes one step of training",
        "The norm of all gradients together is clipped to 0.5.",
        "A gradient with a smaller norm stays as it is.",
    ],
    both_sides=True,
)
def clipped(answer, rng, device):
    _, _, norms, _ = whole(answer.parts, answer.step)
    expect_equal(len(norms), STEPS, name=f"steps of the optimizer in {STEPS} calls of step")
    expect_close(
        torch.tensor(norms[:5]),
        torch.full((5,), 0.5),  # without clipping, the norms of these steps are 0.6 to 1.1
        atol=1e-3,
        name="the norms that the optimizer got in the first steps",
        hint=CLIP,
    )
    largest = max(faint(answer.parts, answer.step))
    what = f"a gradient with a norm below 0.02 has the norm {largest:.2f} in the step"
    expect_true(largest < 0.02, what, hint="Where the norm is below 0.5, nothing is multiplied.")


@check(
    "it learns as before",
    holds=[
        "A GPT learns first names, letter by letter.",
        "returns its loss, a float",
        "All else stays as it is",
        "compares the losses and learning rates of the first steps",
    ],
)
def learns(answer, rng, device):
    model, losses, _, rates = whole(answer.parts, answer.step)
    expect_true(model.training, "after its steps the model is in eval mode", hint=SAME)
    _, right, _, planned = whole(right_parts, taken_step)
    for loss in losses:
        expect_true(type(loss) is float, f"a loss is a {type(loss).__name__}", hint=".item()")
    f64 = torch.float64
    got, wanted = torch.tensor(rates, dtype=f64), torch.tensor(planned, dtype=f64)
    expect_close(got, wanted, rtol=1e-6, atol=0, name="the learning rates", hint=SAME)
    got, wanted = torch.tensor(losses, dtype=f64), torch.tensor(right, dtype=f64)
    expect_close(got, wanted, rtol=0, atol=1e-4, name="the losses", hint=SAME)


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


def right_parts(seed=0, rate=4e-3, decays=True):
    torch.manual_seed(seed)
    model = Base()
    opt = torch.optim.AdamW(model.parameters(), lr=rate)
    return model, opt, CosineAnnealingLR(opt, 100 if decays else 1000)


def taken_step(model, opt, plan, norm=0.5, still=False, calm=False, late=False):
    """step, with parts left out."""
    at = torch.randint(len(NUMBERS) - 16, (16, 1))
    ids = NUMBERS[at + torch.arange(17)]
    loss = F.cross_entropy(model(ids[:, :-1]).mT, ids[:, 1:])
    opt.zero_grad()
    loss.backward()
    if not late:
        clip(list(model.parameters()), norm)
    if not still:
        opt.step()
    if late:
        clip(list(model.parameters()), norm)
    plan.step()
    model.train(not calm)
    return loss.item()


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


@mutant("a mask that hides what is far back as well", caught_by=causal)
class GPT(Base):
    def forward(self, ids):
        t = ids.shape[1]
        x = self.tok(ids) + self.pos.weight[:t]
        hidden = torch.ones(t, t).triu(1).bool() | torch.ones(t, t).tril(-6).bool()
        return self.head(self.blocks(x, mask=hidden))


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


@mutant("does not clip", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, norm=None)


@mutant("clips after the step", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, late=True)


@mutant("clips to 1", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, norm=1.0)


@mutant("clips each number", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, norm="values")


@mutant("clips each parameter by itself", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, norm="apart")


@mutant("makes each gradient one of norm 0.5", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, norm="to")


@mutant("takes no step", caught_by=clipped)
def step(model, opt, plan):
    return taken_step(model, opt, plan, still=True)


@mutant("leaves the model in eval mode", caught_by=learns)
def step(model, opt, plan):
    return taken_step(model, opt, plan, calm=True)


@mutant("returns the loss as a tensor", caught_by=learns)
def step(model, opt, plan):
    return torch.tensor(taken_step(model, opt, plan))


@mutant("another learning rate", caught_by=learns)
def parts():
    return right_parts(rate=5e-3)


@mutant("another seed", caught_by=learns)
def parts():
    return right_parts(seed=1)


@mutant("another schedule", caught_by=learns)
def parts():
    return right_parts(decays=False)


@accepted("clips by hand")
def step(model, opt, plan):
    at = torch.randint(len(NUMBERS) - 16, (16,))
    ids = torch.stack([NUMBERS[i : i + 17] for i in at])
    logits = model(ids[:, :16])
    loss = F.cross_entropy(logits.flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    grads = [p.grad for p in model.parameters()]
    norm = torch.cat([g.flatten() for g in grads]).norm()
    for g in grads:
        g.mul_(min(1.0, 0.5 / norm.item()))
    opt.step()
    plan.step()
    return float(loss)


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
