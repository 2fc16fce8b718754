"""Judges lessons/18_capstones/01_fix_the_run.md."""

import functools

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import (
    register_module_forward_hook,
    register_module_forward_pre_hook,
)
from torch.optim.optimizer import register_optimizer_step_post_hook

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    expect_unchanged,
    hinted,
    key_line_shown,
    mutant,
)

background("The labels of this file are 1 to 10, for the digits 0 to 9.")
background("Mend the program, so that each part does what follows.")
background("There are seven faults.")

for word in ("zero_grad", "eval"):
    key_line_shown(word, because="the case has it in its right place; here it is missing")

equivalent(
    "with torch.no_grad():",
    "if True:",
    because="argmax has no gradient",
)
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="argmax has no gradient",
)
equivalent(
    "torch.manual_seed(0)",
    "torch.manual_seed(1)",
    because="another seed does as well",
)
equivalent(
    "torch.manual_seed(0)",
    "torch.manual_seed(-1)",
    because="another seed does as well",
)
equivalent(
    "model.train()",
    "pass",
    because="a new module is in training mode",
)
equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32",
)
equivalent(
    'y = torch.from_numpy(d["labels"]).long() + 1',
    'y = torch.from_numpy(d["labels"]) + 1',
    because="cross entropy takes the file's whole numbers as well",
)
equivalent(
    "model = train(x[:1197], y[:1197], 20)",
    "model = train(x[:1197], y, 20)",
    because="train reads as many labels as x has rows",
)
equivalent(
    "model = train(x[:1197], y[:1197], 20)",
    "model = train(x[:1197], y[:], 20)",
    because="train reads as many labels as x has rows",
)
equivalent(
    "model = train(x[:1197], y[:1197], 20)",
    "model = train(x[:1197], y[:1198], 20)",
    because="train reads as many labels as x has rows",
)

WANTED = 2 * (64 * 64 + 64) + 64 * 10 + 10
LIST = "A Python list hides its layers from parameters(): nn.ModuleList shows them."
SOFTMAX = "F.cross_entropy takes the softmax itself: return the scores of the last layer."
SHIFT = "cross_entropy counts classes from 0, the file from 1."
PAIR = "Index x and y with the same rows."
ZERO = "backward adds to .grad: opt.zero_grad() before each one."
MODE = "Dropout stays on until model.eval()."
BACK = "argmax counts from 0: add what train has taken away."


def problem(rng, device, n=None):
    """Rows that a linear model could tell apart, and labels from 1 to 10."""
    n = n or rng.randint(260, 340)
    y = torch.arange(n, device=device) % 10 + 1
    y = y[torch.randperm(n, device=device)]
    x = torch.randn(n, 64, device=device) * 0.3
    x[torch.arange(n, device=device), y - 1] += 3
    return x, y


@check(
    "all layers belong to the model",
    holds="and all of its 64 · 64 + 64, twice, and 64 · 10 + 10 parameters are trained",
)
def layers(answer, rng, device):
    net = answer.Net().to(device)
    count = sum(p.numel() for p in net.parameters())
    expect_equal(count, WANTED, name="the parameters of Net()", hint=LIST)
    x, y = problem(rng, device, 30)
    F.cross_entropy(net.eval()(x), y - 1).backward()
    idle = sum(p.grad is None or not bool(p.grad.any()) for p in net.parameters())
    expect_equal(idle, 0, name="parameters without a gradient", hint="Both hidden layers are used.")
    expect_shape(net(x), (30, 10), name="the scores of 30 rows")


@check("Net returns scores", holds="It returns scores for cross entropy, not probabilities.")
def scores(answer, rng, device):
    x, _ = problem(rng, device, 30)
    net = answer.Net().to(device).eval()
    with torch.no_grad():
        net.out.bias.add_(2.0)
    got = net(x * 5)
    expect_true(not torch.allclose(got.sum(1), torch.ones_like(got[:, 0]), atol=1e-3),
                "each row of Net's output sums to 1", hint=SOFTMAX)  # fmt: skip
    same = torch.allclose(got.exp().sum(1), torch.ones_like(got[:, 0]), atol=1e-3)
    expect_true(not same, "Net's output is a log-softmax", hint=SOFTMAX)


def trained_on(answer, x, y, epochs):
    """(label of the row, class it was trained as) for each row that `answer.train` took.

    The gradient of cross entropy with respect to a row of scores is its softmax minus 1 at the
    class: the smallest number stands at the class, whatever else the program does wrong.
    """
    taken = []

    def called(module, inputs, out):
        rows = inputs[0]
        if rows.shape[1:] != x.shape[1:] or out.shape != (len(rows), 10) or not out.requires_grad:
            return
        same = (rows[:, None] == x).all(-1)
        if bool(same.any(1).all()):
            of = y[same.int().argmax(1)].tolist()
            out.register_hook(lambda grad: taken.extend(zip(of, grad.argmin(1).tolist())))

    handle = register_module_forward_hook(called)
    try:
        answer.train(x.clone(), y.clone(), epochs)
    finally:
        handle.remove()
    hint = "Each batch goes through the model and cross entropy, and then backward."
    expect_true(len(taken) >= epochs * len(x), "train leaves out rows", hint=hint)
    return taken


@check("labels 1 to 10 become classes 0 to 9", holds="takes labels from 1 to 10", hint=SHIFT)
def classes(answer, rng, device):
    low = rng.randint(1, 3)
    x, y = problem(rng, device)
    few = (y >= low) & (y <= 9)
    x, y = x[few], y[few]
    got = sorted({k for _, k in trained_on(answer, x, y, 2)})
    name = f"the classes that train makes of the labels {low} to 9"
    expect_equal(got, list(range(low - 1, 9)), name=name, hint=SHIFT)
    trained_on(answer, *problem(rng, device), 1)


@check(
    "each row meets its own label",
    holds="Each row meets its own label.",
    hint=PAIR,
    both_sides=True,
)
def pairs(answer, rng, device):
    x, y = problem(rng, device)
    taken = trained_on(answer, x, y, rng.randint(1, 3))
    label = rng.randint(1, 10)
    seen = len({k for of, k in taken if of == label})
    says = f"rows with the label {label} were trained as {seen} different classes"
    expect_true(seen == 1, says, hint=PAIR)


@check(
    "each step follows its own batch",
    holds="Each step follows the gradient of its own batch.",
    both_sides=True,
)
def gradient(answer, rng, device):
    x, y = problem(rng, device)

    def spoil(opt, *_):
        for group in opt.param_groups:
            for p in group["params"]:
                if p.grad is not None:
                    p.grad.fill_(float("nan"))

    handle = register_optimizer_step_post_hook(spoil)
    try:
        model = answer.train(x, y, 2)
    finally:
        handle.remove()
    sound = all(bool(p.isfinite().all()) for p in model.parameters())
    says = "the gradient of a step was still there at the next one"
    expect_true(sound, says, hint=ZERO)


@check("the model comes back in eval mode", holds="The model comes back in eval mode.")
def mode(answer, rng, device):
    x, y = problem(rng, device)
    model = answer.train(x, y, rng.randint(1, 3))
    left = sum(module.training for module in model.modules())
    expect_equal(left, 0, name="modules in training mode", hint=MODE)
    with torch.no_grad():
        expect_close(model(x), model(x), name="a second call", hint=MODE)


@check("x and y are left as they are", holds="leaves x and y as they are")
def untouched(answer, rng, device):
    x, y = problem(rng, device)
    with expect_unchanged(x, y):
        answer.train(x, y, 1)


class Table(nn.Module):
    """Its best score stands where the row has its largest number."""

    def forward(self, x):
        return x[:, :10]


@check("predict answers 1 to 10", holds="returns labels from 1 to 10")
def labels(answer, rng, device):
    x, y = problem(rng, device, rng.randint(20, 60))
    x = x.clamp(-1, 1)
    x[torch.arange(len(x), device=device), y - 1] += 3
    got = answer.predict(Table().to(device), x)
    expect_shape(got, (len(x),), name="what predict returns")
    expect_close(got, y, name="the labels", hint=BACK)


@check(
    "the rest is as it was",
    holds="Leave the rest as it is: sizes, dropout, optimizer, seed, rows.",
)
def as_before(answer, rng, device):
    hint = "The faults are in Net, train and predict; what is not faulty stays."
    net, seen, rates = answer.Net(), [], []
    drops = [m.p for m in net.modules() if isinstance(m, nn.Dropout)]
    expect_equal(drops, [0.3], name="the dropout of Net()", hint=hint)
    x, y = problem(rng, device, 200)
    both = net.eval()(x) + net(-x)
    straight = torch.allclose(both, 2 * net(torch.zeros_like(x)), atol=1e-3)
    expect_true(not straight, "Net computes a straight line: its ReLUs are gone", hint=hint)
    expect_true(not torch.equal(net.train()(x), net(x)), "Net drops nothing", hint=hint)

    def called(module, inputs):
        if isinstance(module, nn.Dropout):
            seen.append((module.training, len(inputs[0])))

    def stepped(opt, *_):
        rates.append((type(opt).__name__, opt.param_groups[0]["lr"]))

    handles = [register_module_forward_pre_hook(called), register_optimizer_step_post_hook(stepped)]
    try:
        first = answer.train(x, y, 1)
    finally:
        for handle in handles:
            handle.remove()
    sizes = [(True, 64)] * 3 + [(True, 8)]
    expect_equal(seen, sizes, name="mode and rows of each call for 200 rows", hint=hint)
    expect_equal(rates, [("AdamW", 3e-3)] * 4, name="optimizer and learning rate", hint=hint)
    torch.manual_seed(rng.randint(0, 99))
    second = answer.train(x, y, 1)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        expect_close(a, b, rtol=0, atol=0, name="a parameter of a second training", hint=hint)


@check(
    "the accuracy is above 0.9", holds="With all of that the accuracy on the last 600 rows is above"
)
def accuracy(answer, rng, device):
    expect_shape(answer.x, (1797, 64), name="x")
    expect_equal(answer.x.dtype, torch.float32, name="the dtype of x")
    expect_equal(answer.x.max().item(), 1.0, name="the largest number in x")
    expect_equal(answer.y.unique().tolist(), list(range(1, 11)), name="the labels in y")
    right = answer.predict(answer.model, answer.x[1197:]) == answer.y[1197:]
    share = right.float().mean().item()
    expect_true(share > 0.9, f"the accuracy is {share:.3f}", hint="Ask each part for its number.")
    for a, b in zip(answer.model.parameters(), whole_run(answer).parameters(), strict=True):
        hint = "model comes from train(x[:1197], y[:1197], 20)."
        expect_close(a, b, rtol=0, atol=1e-6, name="a parameter of model", hint=hint)


@functools.lru_cache(maxsize=1)
def whole_run(answer):
    """The training of the program once more. It has its own seed: one time is enough."""
    return answer.train(answer.x[:1197], answer.y[:1197], 20)


class Base(nn.Module):
    """A right model."""

    def __init__(self):
        super().__init__()
        self.hidden = nn.ModuleList([nn.Linear(64, 64), nn.Linear(64, 64)])
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(64, 10)

    def forward(self, x):
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.out(self.drop(x))


def fitted(x, y, epochs, shift=1, zero=True, own=True, stop=True, once=False):
    """train, with a part left out."""
    torch.manual_seed(0)
    model = Base().to(x.device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    model.train()
    for _ in range(epochs):
        for i in torch.randperm(len(x)).split(64):
            j = i if own else torch.randperm(len(x))[: len(i)]
            loss = F.cross_entropy(model(x[i]), y[j] - shift)
            if zero:
                opt.zero_grad()
            loss.backward()
            opt.step()
        if once:
            opt.zero_grad()
    return model.eval() if stop else model


@mutant("layers in a Python list", caught_by=layers)
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = [nn.Linear(64, 64), nn.Linear(64, 64)]
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(64, 10)

    forward = Base.forward


@mutant("one hidden layer twice", caught_by=layers)
class Net(Base):
    def forward(self, x):
        x = torch.relu(self.hidden[0](x))
        return self.out(self.drop(torch.relu(self.hidden[0](x))))


@mutant("softmax before cross entropy", caught_by=scores)
class Net(Base):
    def forward(self, x):
        return super().forward(x).softmax(-1)


@mutant("log-softmax before cross entropy", caught_by=scores)
class Net(Base):
    def forward(self, x):
        return super().forward(x).log_softmax(-1)


@mutant("labels as they stand in the file", caught_by=classes)
def train(x, y, epochs):
    return fitted(x, y, epochs, shift=0)


@mutant("labels modulo 10: no error, and one off", caught_by=classes)
def train(x, y, epochs):
    return fitted(x, y % 10, epochs, shift=0)


@mutant("labels in another order", caught_by=pairs)
def train(x, y, epochs):
    return fitted(x, y, epochs, own=False)


@mutant("no zero_grad", caught_by=gradient)
def train(x, y, epochs):
    return fitted(x, y, epochs, zero=False)


@mutant("zero_grad once an epoch", caught_by=gradient)
def train(x, y, epochs):
    return fitted(x, y, epochs, zero=False, once=True)


@mutant("no eval", caught_by=mode)
def train(x, y, epochs):
    return fitted(x, y, epochs, stop=False)


@mutant("shifts the caller's labels", caught_by=untouched)
def train(x, y, epochs):
    y -= 1
    return fitted(x, y, epochs, shift=0)


@mutant("predictions from 0", caught_by=labels)
def predict(model, x):
    with torch.no_grad():
        return model(x).argmax(1)


@mutant("returns the best scores", caught_by=labels)
def predict(model, x):
    with torch.no_grad():
        return model(x).amax(1)


@accepted("a Sequential, and the softmax where it is read")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.drop(self.body(x)))


@accepted("shuffles by a loader's order, and clears behind the step")
def train(x, y, epochs):
    torch.manual_seed(0)
    model, classes = Base().to(x.device).train(), y - 1
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        order = torch.randperm(len(x), device=x.device)
        for k in range(0, len(x), 64):
            i = order[k : k + 64]
            F.cross_entropy(model(x[i]), classes[i]).backward()
            opt.step()
            opt.zero_grad(set_to_none=False)
    model.train(False)
    return model


@accepted("predicts through the classes' names")
def predict(model, x):
    names = torch.arange(1, 11, device=x.device)
    with torch.inference_mode():
        return names[model(x).softmax(1).argmax(1)]


@hinted(1, reaches=labels)
def predict(model, x):
    with torch.no_grad():
        return model(x).argmax(1) + 1
