"""Judges lessons/16_debugging/06_silent_faults.md."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

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

background("It ends with an assertion, for three faults, one in each function.")

key_line_shown(
    "randperm", because="a shuffle stands in the case; the exercise is to see where it is wrong"
)
key_line_shown("ExponentialLR", because="the schedule is given; the exercise is where it steps")
key_line_shown("eval", because="the case has the mode in it; the exercise is that it is missing")
key_line_shown("train", because="the case has the mode in it; the exercise is that it is missing")

equivalent("with torch.no_grad():", "if True:", because="the figure is the same, with a graph")
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="the figure is the same, with a graph",
)

equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32 too",
)
equivalent(
    'rates.append(opt.param_groups[0]["lr"])',
    'rates.append(opt.param_groups[-1]["lr"])',
    because="there is one group",
)
equivalent('plot(loss, title="loss")', "pass", because="the plot is for the learner's eyes")
equivalent('plot(loss, title="loss")', "plot(loss)", because="the title is for the learner's eyes")

PAIR = "One order of the rows, and x and y are both indexed with it."
STEP = "The scheduler steps once an epoch, behind the loop over batches."
EACH = "One rate for each of the epochs that are asked for, noted before its first batch."
FLOAT = "`.item()` makes a float of a tensor with one value."
SHARE = "The mean of the matches, from 0 to 1, measured in eval mode."
MODE = "Note model.training, call eval(), and set the mode back at the end."


class Watched(nn.Module):
    """A linear model that notes the mode and the rows of each call."""

    def __init__(self, features, classes):
        super().__init__()
        self.linear = nn.Linear(features, classes)
        self.drop = nn.Dropout(0.5)
        self.seen = []

    def forward(self, x):
        self.seen.append((self.training, x[:, 0].detach().clone()))
        return self.drop(self.linear(x))


def rows(rng, device):
    """Rows whose first feature is their number, and their labels."""
    n, features = rng.randint(130, 300), rng.randint(3, 7)
    x = torch.randn(n, features, device=device)
    x[:, 0] = torch.arange(n, device=device)
    return x, torch.randint(4, (n,), device=device)


@check("x and y keep their values", holds="The tensors that came in keep their values.")
def untouched(answer, rng, device):
    x, y = rows(rng, device)
    with expect_unchanged(x, y):
        answer.split(x, y, rng.randint(1, 99))


@check("each row keeps its label", holds="Each row keeps its own label.", both_sides=True)
def labels(answer, rng, device):
    x, y = rows(rng, device)
    xa, ya, xb, yb = answer.split(x.clone(), y.clone(), rng.randint(1, 99))
    for name, part, got in (("training", xa, ya), ("test", xb, yb)):
        expect_equal(len(got), len(part), name=f"the number of {name} labels", hint=PAIR)
        own = y[part[:, 0].long()]
        expect_close(got, own, name=f"the labels of the {name} part", hint=PAIR)
        expect_close(part, x[part[:, 0].long()], name=f"the rows of the {name} part", hint=PAIR)


@check(
    "each row once",
    both_sides=True,
    holds=[
        "It returns x and y of the training part, then x and y of the test part, which has",
        "Each row is in one part, once.",
    ],
)
def once(answer, rng, device):
    x, y = rows(rng, device)
    for held in (rng.randint(1, 99), 0):
        parted(answer, x, y, held)


def parted(answer, x, y, held):
    """Each row is in one of both parts, and the second has so many."""
    xa, _, xb, _ = answer.split(x, y, held)
    hint = "The test part has held rows. With x[:-held] and held = 0 all rows are test rows."
    expect_equal(len(xb), held, name=f"the number of test rows, of {held}", hint=hint)
    numbers = torch.cat([xa[:, 0], xb[:, 0]]).sort().values
    hint = "A row that is in both parts is a leak; a row that is in none is lost."
    expect_close(numbers, x[:, 0], name="the rows of both parts", hint=hint, shape_hint=hint)


@check("the rows are shuffled", holds="shuffles the rows")
def shuffled(answer, rng, device):
    x, y = rows(rng, device)
    _, _, xb, _ = answer.split(x, y, 60)
    inside = (xb[:, 0] < 60).float().mean().item()
    last = (xb[:, 0] >= len(x) - 60).float().mean().item()
    expect_true(inside < 0.9 and last < 0.9, "the test part is one end of the data", hint=PAIR)


@check(
    "the rates of the epochs",
    both_sides=True,
    holds=[
        "returns the learning rates of its epochs, as a list of floats",
        "The first is 0.2, and each next one is 0.9 times the one before.",
    ],
)
def rates(answer, rng, device):
    x, y = rows(rng, device)
    epochs = rng.randint(2, 6)
    got = answer.train(Watched(x.shape[1], 4).to(device), x / len(x), y, epochs)
    expect_true(
        isinstance(got, list) and all(isinstance(r, float) for r in got),
        "train does not return a list of floats",
        hint=FLOAT,
    )
    expect_equal(len(got), epochs, name=f"the number of rates of {epochs} epochs", hint=EACH)
    wanted = torch.tensor([0.2 * 0.9**k for k in range(epochs)])
    expect_close(torch.tensor(got), wanted, name="the rates", hint=STEP, rtol=1e-4)


@check("one rate in an epoch", holds="Within an epoch the rate is the same for all batches.")
def constant(answer, rng, device):
    n, epochs = 64 * rng.randint(3, 6), rng.randint(2, 4)
    used, momenta, first = [], set(), torch.optim.SGD.step

    def step(self, *args, **kwargs):
        used.append(self.param_groups[0]["lr"])
        momenta.add(self.param_groups[0]["momentum"])
        return first(self, *args, **kwargs)

    x, y = torch.randn(n, 3, device=device), torch.randint(4, (n,), device=device)
    torch.optim.SGD.step = step
    try:
        answer.train(Watched(3, 4).to(device), x, y, epochs)
    finally:
        torch.optim.SGD.step = first
    expect_equal(len(used), epochs * n // 64, name="the number of steps", hint=STEP)
    wanted = [0.2 * 0.9**k for k in range(epochs) for _ in range(n // 64)]
    expect_close(torch.tensor(used), torch.tensor(wanted), name="the rate of each batch", hint=STEP)
    expect_equal(momenta, {0.9}, name="the momentum", hint="The optimizer is right as it is.")


@check("training is as it was", holds="leave the rest as it is")
def training(answer, rng, device):
    x, y = rows(rng, device)
    model = Watched(x.shape[1], 4).to(device).train()
    before = model.linear.weight.detach().clone()
    epochs = rng.randint(2, 4)
    answer.train(model, x, y, epochs)
    hint = "Leave the loop over shuffled batches of 64 as it is."
    expect_true(
        all(mode for mode, _ in model.seen), "a batch met the model in eval mode", hint=hint
    )
    batches = -(-len(x) // 64)
    expect_equal(len(model.seen), epochs * batches, name="the number of batches", hint=hint)
    expect_equal(len(model.seen[0][1]), 64, name="the rows of the first batch", hint=hint)
    for epoch in range(epochs):
        part = torch.cat([r for _, r in model.seen[epoch * batches : (epoch + 1) * batches]])
        expect_close(part.sort().values, x[:, 0], name="the rows of an epoch", hint=hint)
    moved = (model.linear.weight - before).abs().max().item()
    expect_true(moved > 0, "the weights did not move", hint=hint)


@check("right answers in eval mode", holds="is the share of right answers in eval mode, as a float")
def share(answer, rng, device):
    n, k = rng.randint(40, 90), rng.randint(3, 9)
    model = nn.Sequential(nn.Linear(5, k), nn.Dropout(0.9), nn.BatchNorm1d(k)).to(device)
    x = torch.randn(n, 5, device=device)
    with torch.no_grad():
        y = model.eval()(x).argmax(1)
    wrong = rng.randint(1, n // 3)
    y[:wrong] = (y[:wrong] + 1) % k
    got = answer.accuracy(model.train(), x, y)
    expect_true(isinstance(got, float), "accuracy does not return a float", hint=FLOAT)
    expect_close(torch.tensor(got), torch.tensor((n - wrong) / n), name="the accuracy", hint=SHARE)
    expect_equal(answer.accuracy(model, x[-1:], y[-1:]), 1.0, name="the accuracy of one row")


@check(
    "the mode is given back",
    holds="Afterwards the model is in the mode in which it came.",
    hint=MODE,
)
def mode(answer, rng, device):
    for came in (True, False):
        model = Watched(3, 4).to(device).train(came)
        y = torch.zeros(6, dtype=torch.int64, device=device)
        answer.accuracy(model, torch.randn(6, 3, device=device), y)
        expect_equal(model.training, came, name="model.training afterwards", hint=MODE)
        expect_equal(model.drop.training, came, name="the mode of its dropout", hint=MODE)


@check("the program reaches 0.95", holds="This program should end with a test accuracy above 0.95.")
def score(answer, rng, device):
    hint = "Mend one function after the other, and watch the score."
    expect_true(isinstance(answer.score, float), f"score is {answer.score!r}", hint=FLOAT)
    expect_true(answer.score > 0.95, f"score is {answer.score!r}", hint=hint)


@check("the rest is as it was", holds="Mend all three, and leave the rest as it is.")
def as_before(answer, rng, device):
    hint = "The faults are in split, train and accuracy."
    expect_shape(answer.xa, (1197, 64), name="xa", hint=hint)
    expect_equal(answer.xa.max().item(), 1.0, name="the largest value of xa", hint=hint)
    expect_shape(answer.ya, (1197,), name="ya", hint=hint)
    expect_shape(answer.yb, (600,), name="yb", hint=hint)
    expect_equal(answer.ya.dtype, torch.int64, name="the dtype of ya", hint=hint)
    expect_equal(len(answer.rates), 15, name="the number of epochs", hint=hint)
    expect_shape(answer.model(answer.xb[:3]), (3, 10), name="the scores of 3 images", hint=hint)
    kinds = [type(m) for m in answer.model]
    wanted = [nn.Linear, nn.ReLU, nn.Dropout, nn.Linear]
    expect_equal(kinds, wanted, name="the modules", hint=hint)
    drops = [m.p for m in answer.model.modules() if isinstance(m, nn.Dropout)]
    expect_equal(drops, [0.7], name="the dropout of the model", hint=hint)


def fit(model, x, y, epochs, rate=0.2, keep=0.9, per_step=False, mode=True):
    opt = torch.optim.SGD(model.parameters(), lr=rate, momentum=0.9)
    decay = torch.optim.lr_scheduler.ExponentialLR(opt, keep)
    rates = []
    for _ in range(epochs):
        rates.append(opt.param_groups[0]["lr"])
        model.train(mode)
        for rows in torch.randperm(len(x)).split(64):
            loss = F.cross_entropy(model(x[rows]), y[rows])
            opt.zero_grad()
            loss.backward()
            opt.step()
            if per_step:
                decay.step()
        if not per_step:
            decay.step()
    return rates


@mutant("shuffles x and y apart", caught_by=labels)
def split(x, y, held):
    x, y = x[torch.randperm(len(x))], y[torch.randperm(len(y))]
    return x[held:], y[held:], x[:held], y[:held]


@mutant("keeps the test rows in the training part", caught_by=once)
def split(x, y, held):
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    return x, y, x[:held], y[:held]


@mutant("swaps the two parts", caught_by=once)
def split(x, y, held):
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    return x[:held], y[:held], x[held:], y[held:]


@mutant("takes the last rows for the test, also where there are none", caught_by=once)
def split(x, y, held):
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    return x[:-held], y[:-held], x[-held:], y[-held:]


@mutant("shuffles, and takes the labels of the test in their old order", caught_by=labels)
def split(x, y, held):
    order = torch.randperm(len(x))
    return x[order[held:]], y[order[held:]], x[order[:held]], y[:held]


@mutant("does not shuffle", caught_by=shuffled)
def split(x, y, held):
    return x[held:], y[held:], x[:held], y[:held]


@mutant("shuffles the caller's tensors", caught_by=untouched)
def split(x, y, held):
    order = torch.randperm(len(x))
    x.copy_(x[order])
    y.copy_(y[order])
    return x[held:], y[held:], x[:held], y[:held]


@mutant("loses a row between the parts", caught_by=once)
def split(x, y, held):
    order = torch.randperm(len(x))
    x, y = x[order], y[order]
    return x[held + 1 :], y[held + 1 :], x[:held], y[:held]


@mutant("spreads the decay over the batches of an epoch", caught_by=constant)
def train(model, x, y, epochs):
    steps = -(-len(x) // 64)
    return fit(model, x, y, epochs, keep=0.9 ** (1 / steps), per_step=True)


@mutant("steps the schedule per batch", caught_by=rates)
def train(model, x, y, epochs):
    return fit(model, x, y, epochs, per_step=True)


@mutant("reports one schedule and trains by another", caught_by=constant)
def train(model, x, y, epochs):
    fit(model, x, y, epochs, keep=0.99, per_step=True)
    return [0.2 * 0.9**k for k in range(epochs)]


@mutant("drops the schedule", caught_by=rates)
def train(model, x, y, epochs):
    return fit(model, x, y, epochs, keep=1.0)


@mutant("trains in eval mode", caught_by=training)
def train(model, x, y, epochs):
    return fit(model, x, y, epochs, mode=False)


@mutant("forgets eval mode", caught_by=share)
def accuracy(model, x, y):
    return (model(x).argmax(1) == y).float().mean().item()


@mutant("leaves the model in eval mode", caught_by=mode)
def accuracy(model, x, y):
    return (model.eval()(x).argmax(1) == y).float().mean().item()


@mutant("sets training mode whatever it was", caught_by=mode)
def accuracy(model, x, y):
    share = (model.eval()(x).argmax(1) == y).float().mean().item()
    model.train()
    return share


@hinted(1, reaches=shuffled)
def split(x, y, held):
    order = torch.randperm(len(x))
    return x[order][held:], y[order][held:], x[order][:held], y[order][:held]


@accepted("steps per batch a schedule that counts the batches, and measures a copy")
def train(model, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    decay = torch.optim.lr_scheduler.StepLR(opt, -(-len(x) // 64), 0.9)
    rates = []
    for _ in range(epochs):
        rates += decay.get_last_lr()
        for rows in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            opt.step()
            decay.step()
    return rates


def accuracy(model, x, y):
    with torch.no_grad():
        said = copy.deepcopy(model).eval()(x).argmax(1)
    return (said == y).double().mean().item()


@accepted("splits the order and measures in batches")
def split(x, y, held):
    test, rest = torch.randperm(len(x), device=x.device).tensor_split([held])
    return x[rest], y[rest], x[test], y[test]


def accuracy(model, x, y):
    mode = model.training
    model.eval()
    right = sum((model(a).argmax(1) == b).sum() for a, b in zip(x.split(32), y.split(32)))
    model.train(mode)
    return right.item() / len(y)


@accepted("sets the rate by hand, without a scheduler")
def train(model, x, y, epochs):
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    rates = [0.2 * 0.9**k for k in range(epochs)]
    for rate in rates:
        opt.param_groups[0]["lr"] = rate
        for rows in torch.randperm(len(x)).split(64):
            opt.zero_grad()
            F.cross_entropy(model(x[rows]), y[rows]).backward()
            opt.step()
    return rates
