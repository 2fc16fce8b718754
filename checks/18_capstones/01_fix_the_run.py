"""Judges lessons/18_capstones/01_fix_the_run.md."""

import random
from functools import lru_cache, partial

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_hook
from torch.optim.optimizer import (
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)

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
ZERO = (
    "backward adds to .grad: opt.zero_grad() before each one. "
    "Between backward and step nothing changes it."
)
MODE = "Dropout stays on until model.eval()."
REST = "The faults are in Net, train and predict; what is not faulty stays."
BACK = "argmax counts from 0: add what train has taken away."


def problem(rng, device, n=None):
    """Rows that a linear model could tell apart, and labels from 1 to 10."""
    n = n or rng.randint(130, 170)
    y = torch.arange(n, device=device) % 10 + 1
    y = y[torch.randperm(n, device=device)]
    x = torch.randn(n, 64, device=device) * 0.3
    x[torch.arange(n, device=device), y - 1] += 3
    return x, y


def linears(net):
    """The hidden layers and the last layer of a Net, whatever their names."""
    found = [m for m in net.modules() if isinstance(m, nn.Linear)]
    hidden = [m for m in found if m.out_features == 64]
    last = [m for m in found if m.out_features == 10]
    expect_equal((len(hidden), len(last)), (2, 1), name="hidden and last nn.Linear", hint=REST)
    return hidden, last[0]


@check(
    "all layers belong to the model",
    holds=[
        "and all of its 64 · 64 + 64, twice, and 64 · 10 + 10 parameters are trained",
        "has two hidden layers",
    ],
)
def layers(answer, rng, device):
    net = answer.Net().to(device)
    count = sum(p.numel() for p in net.parameters())
    hint = LIST if count == 650 else "Two different layers of 64 to 64, and one of 64 to 10."
    expect_equal(count, WANTED, name="the parameters of Net()", hint=hint)
    x, y = problem(rng, device, 30)
    F.cross_entropy(net.eval()(x), y - 1).backward()
    idle = sum(p.grad is None or not bool(p.grad.any()) for p in net.parameters())
    expect_equal(idle, 0, name="parameters without a gradient", hint="Both hidden layers are used.")
    expect_shape(net(x), (30, 10), name="the scores of 30 rows")
    sizes = []

    def stepped(opt, *_):
        sizes.append(sum(p.numel() for group in opt.param_groups for p in group["params"]))

    handle = register_optimizer_step_post_hook(stepped)
    try:
        answer.train(*problem(rng, device, 70), 1)
    finally:
        handle.remove()
    hint = "The optimizer gets model.parameters(), of the whole model."
    name = "numbers that the optimizer moves in a step"
    expect_equal(sorted(set(sizes)), [WANTED], name=name, hint=hint)


@check("Net returns scores", holds="It returns what its last layer gives")
def scores(answer, rng, device):
    x, _ = problem(rng, device, 30)
    net = answer.Net().to(device).eval()
    _, last = linears(net)
    with torch.no_grad():
        before = net(x * 5)
        last.bias.add_(2.0)
        got = net(x * 5)
    ones = torch.ones_like(got[:, 0])
    same = torch.allclose(got.sum(1), ones, atol=1e-3)
    expect_true(not same, "each row of Net's output sums to 1", hint=SOFTMAX)
    same = torch.allclose(got.exp().sum(1), ones, atol=1e-3)
    expect_true(not same, "Net's output is a log-softmax", hint=SOFTMAX)
    moved = torch.allclose(got - before, torch.full_like(got, 2.0), atol=1e-3)
    says = "2 more in each bias of the last layer is not 2 more in each score"
    expect_true(moved, says, hint="Nothing follows the last layer: cross entropy takes its scores.")


class Record:
    """What one call of train did, as hooks saw it."""

    def __init__(self, answer, x, y, epochs):
        self._x, self._y = x, y
        self.first = None
        """The parameters in front of the first step."""
        self.rows, self.labels, self.classes = [], [], []
        """Of each row that was trained on: its number, its label, and the class it was given.

        The gradient of cross entropy with respect to a row of scores is its softmax minus 1 at the
        class: the smallest number stands at the class, whatever else the program does wrong.
        """
        self.batches = []
        """Of each call: training mode, and how many rows."""
        self.other_losses = 0
        """Calls whose gradient is not that of a mean cross entropy."""
        self.missing_gradients, self.other_gradients = 0, 0
        """Parameters that were stepped with no gradient, with more or less than the batch's."""
        self.optimizers = []
        """Of each step: the optimizer's type, learning rate, betas, eps and weight decay."""
        self._batch_gradients, self._hooked, self._last = {}, set(), None
        handles = [
            register_module_forward_hook(self._called),
            register_optimizer_step_pre_hook(self._stepping),
            register_optimizer_step_post_hook(self._stepped),
        ]
        try:
            answer.train(x.clone(), y.clone(), epochs)
        finally:
            for handle in handles:
                handle.remove()
        hint = "Each batch goes through the model and cross entropy, and then backward."
        expect_true(len(self.rows) >= epochs * len(x), "train leaves out rows", hint=hint)

    def _called(self, module, inputs, out):
        rows = inputs[0]
        if not torch.is_tensor(out) or out.shape != (len(rows), 10) or not out.requires_grad:
            return
        if rows.shape[1:] != self._x.shape[1:] or out is self._last:
            return
        same = (rows[:, None] == self._x).all(-1)
        if not bool(same.any(1).all()):
            return
        self._last = out
        if self.first is None:
            self.first = [p.detach().clone() for p in module.parameters()]
        for p in set(module.parameters()) - self._hooked:
            self._hooked.add(p)
            p.register_hook(partial(self._reached, p))
        self.batches.append((module.training, len(rows)))
        out.register_hook(partial(self._judged, out.detach(), same.int().argmax(1)))

    def _reached(self, p, grad):
        self._batch_gradients[p] = grad.clone()

    def _judged(self, scores, at, grad):
        given = grad.argmin(1)
        self.rows += at.tolist()
        self.labels += self._y[at].tolist()
        self.classes += given.tolist()
        wanted = (scores.softmax(1) - F.one_hot(given, 10)) / len(at)
        self.other_losses += not torch.allclose(grad, wanted, atol=1e-6)

    def _stepping(self, opt, *_):
        for p in (p for group in opt.param_groups for p in group["params"]):
            wanted = self._batch_gradients.get(p)
            if wanted is None or not bool(wanted.any()):
                continue
            if p.grad is None or not bool(p.grad.any()):
                self.missing_gradients += 1
            elif not torch.allclose(p.grad, wanted, rtol=1e-4, atol=1e-8):
                self.other_gradients += 1

    def _stepped(self, opt, *_):
        keys = ("lr", "betas", "eps", "weight_decay")
        group = opt.param_groups[0]
        self.optimizers.append((type(opt).__name__, *(group.get(key) for key in keys)))


def recorded(answer, rng, device):
    """(x, y, what two epochs on them did). Checks with the same seed share it."""
    return with_seed(answer, rng.randrange(2**31), device)


@lru_cache(maxsize=32)
def with_seed(answer, seed, device):
    torch.manual_seed(seed)
    x, y = problem(random.Random(seed), device)
    return x, y, Record(answer, x, y, 2)


@check("x and y are left as they are", holds="leaves x and y as they are")
def untouched(answer, rng, device):
    x, y = problem(rng, device)
    with expect_unchanged(x, y):
        answer.train(x, y, 1)


@check(
    "labels 1 to 10 become classes 0 to 9",
    holds=["takes labels from 1 to 10", "Score 0 belongs to label 1, score 9 to label 10."],
    hint=SHIFT,
)
def classes(answer, rng, device):
    low = rng.randint(1, 3)
    x, y = problem(rng, device)
    few = (y >= low) & (y <= 9)
    x, y = x[few], y[few]
    got = sorted(set(Record(answer, x, y, 1).classes))
    name = f"the classes that train makes of the labels {low} to 9"
    expect_equal(got, list(range(low - 1, 9)), name=name, hint=SHIFT)
    got = sorted(set(Record(answer, *problem(rng, device), 1).classes))
    name = "the classes that train makes of the labels 1 to 10"
    expect_equal(got, list(range(10)), name=name, hint=SHIFT)


@check(
    "each row meets its own label",
    holds="Each row meets its own label.",
    hint=PAIR,
    both_sides=True,
)
def pairs(answer, rng, device):
    _, _, record = recorded(answer, rng, device)
    label = rng.randint(1, 10)
    seen = len({k for of, k in zip(record.labels, record.classes) if of == label})
    says = f"rows with the label {label} were trained as {seen} different classes"
    expect_true(seen == 1, says, hint=PAIR)


@check(
    "each step follows its own batch",
    holds="Each step follows the gradient of its own batch.",
    both_sides=True,
)
def gradient(answer, rng, device):
    x, y = problem(rng, device)
    record = Record(answer, x * 8, y, 2)  # its gradients are large enough to be clipped
    says = "the gradient was gone when the optimizer stepped"
    expect_true(
        not record.missing_gradients, says, hint="zero_grad, backward, step: in this order."
    )
    says = "what the optimizer stepped with is not the gradient of the batch"
    expect_true(not record.other_gradients, says, hint=ZERO)


@check("the model comes back in eval mode", holds="The model comes back in eval mode.")
def mode(answer, rng, device):
    x, y = problem(rng, device)
    model = answer.train(x, y, rng.randint(1, 2))
    left = sum(module.training for module in model.modules())
    expect_equal(left, 0, name="modules in training mode", hint=MODE)
    with torch.no_grad():
        expect_close(model(x), model(x), name="a second call", hint=MODE)


class Table(nn.Module):
    """Its best score stands where the row has its largest number."""

    def forward(self, x):
        return x[:, :10]


@check(
    "predict answers 1 to 10",
    holds=["returns labels from 1 to 10", "Score 0 belongs to label 1, score 9 to label 10."],
)
def labels(answer, rng, device):
    x, y = problem(rng, device, rng.randint(20, 60))
    x = x.clamp(-1, 1)
    x[torch.arange(len(x), device=device), y - 1] += 3
    got = answer.predict(Table().to(device), x)
    hint = "argmax along dimension 1: one label for each row."
    expect_shape(got, (len(x),), name="what predict returns", hint=hint)
    expect_close(got, y, name="the labels", hint=BACK)


@check(
    "the network is as it was",
    holds="Leave the rest as it is: sizes, ReLUs, dropout, loss, optimizer, seed, and",
    side="the network",
)
def network(answer, rng, device):
    net = answer.Net().to(device)
    drops = [m.p for m in net.modules() if isinstance(m, nn.Dropout)]
    expect_equal(drops, [0.3], name="the dropout of Net()", hint=REST)
    x, _ = problem(rng, device, 200)
    (one, two), last = linears(net)

    def between(first, second):
        return torch.relu(second(torch.relu(first(x))))

    plain = net.eval()(x)
    orders = [pair for pair in ((one, two), (two, one))
              if torch.allclose(plain, last(between(*pair)), atol=1e-4)]  # fmt: skip
    says = "Net does not compute: layer, ReLU, layer, ReLU, last layer"
    expect_true(bool(orders), says, hint=REST)
    dropped = []

    def drop(module, inputs, out):
        if isinstance(module, nn.Dropout):
            dropped.append((inputs[0], out))

    handle = register_module_forward_hook(drop)
    try:
        noisy = net.train()(x)
    finally:
        handle.remove()
    expect_equal(len(dropped), 1, name="calls of dropout for one call of Net", hint=REST)
    (into, out), hint = dropped[0], "Dropout stands between the second ReLU and the last layer."
    expect_close(into, between(*orders[0]), atol=1e-4, name="what dropout gets", hint=hint)
    expect_close(noisy, last(out), atol=1e-4, name="the scores in training mode", hint=hint)


@check(
    "the training is as it was",
    holds="Leave the rest as it is: sizes, ReLUs, dropout, loss, optimizer, seed, and",
    side="the training",
)
def training(answer, rng, device):
    x, y, record = recorded(answer, rng, device)
    sizes = [(True, 64), (True, 64), (True, len(x) - 128)] * 2
    name = f"training mode and rows of each call, 2 epochs of {len(x)} rows"
    expect_equal(record.batches, sizes, name=name, hint=REST)
    hint = "The loss stays the mean cross entropy of the batch."
    expect_true(not record.other_losses, "train minimises another loss", hint=hint)
    wanted = [("AdamW", 3e-3, (0.9, 0.999), 1e-8, 1e-2)] * 6
    name = "optimizer, learning rate, betas, eps and weight decay of each step"
    expect_equal(record.optimizers, wanted, name=name, hint=REST)
    torch.manual_seed(0)
    begun = answer.Net().to(device).parameters()
    hint = "torch.manual_seed(0) comes first in train, and the model right after it."
    for got, right in zip(record.first, begun, strict=True):
        expect_close(got, right, rtol=0, atol=0, name="a parameter at the first step", hint=hint)
    x, y = x[:70], y[:70]
    first = answer.train(x, y, 1)
    torch.manual_seed(rng.randint(1, 99))
    second = answer.train(x, y, 1)
    for a, b in zip(first.parameters(), second.parameters(), strict=True):
        expect_close(a, b, rtol=0, atol=0, name="a parameter of a second training", hint=hint)


@check(
    "each epoch draws an order of its own",
    holds="batches of 64 rows in an order that is drawn anew for each epoch",
    both_sides=True,
)
def drawn(answer, rng, device):
    x, _, record = recorded(answer, rng, device)
    one, two = record.rows[: len(x)], record.rows[len(x) :]
    hint = "torch.randperm(len(x)) in each epoch."
    for order in (one, two):
        expect_equal(sorted(order), list(range(len(x))), name="the rows of an epoch", hint=hint)
        expect_true(order != sorted(order), "the rows come in the order of x", hint=hint)
    expect_true(one != two, "two epochs read the rows in the same order", hint=hint)


@check(
    "predict leaves the model in eval mode",
    holds="Leave the rest as it is: sizes, ReLUs, dropout, loss, optimizer, seed, and",
    side="predict",
)
def predicts(answer, rng, device):
    net = answer.Net().to(device)
    x, _ = problem(rng, device, 200)
    net.eval()
    answer.predict(net, x)
    left = sum(module.training for module in net.modules())
    hint = "predict leaves the model in eval mode."
    expect_equal(left, 0, name="modules in training mode after predict", hint=hint)
    calm = answer.predict(net, x)
    expect_close(calm, net(x).argmax(1) + 1, name="the labels from a Net in eval mode", hint=hint)


@check(
    "the accuracy is above 0.9", holds="With all of that the accuracy on the last 600 rows is above"
)
def accuracy(answer, rng, device):
    expect_shape(answer.x, (1797, 64), name="x")
    expect_equal(answer.x.dtype, torch.float32, name="the dtype of x")
    expect_equal(answer.x.max().item(), 1.0, name="the largest number in x")
    expect_equal(answer.y.unique().tolist(), list(range(1, 11)), name="the labels in y")
    got, wanted = answer.predict(answer.model, answer.x[1197:]), answer.y[1197:]
    hint = "argmax along dimension 1: one label for each row."
    expect_shape(got, wanted.shape, name="what predict returns for the last 600 rows", hint=hint)
    right = got == wanted
    share = right.float().mean().item()
    expect_true(share > 0.9, f"the accuracy is {share:.3f}", hint="Ask each part for its number.")
    for a, b in zip(answer.model.parameters(), whole_run(answer).parameters(), strict=True):
        hint = "model comes from train(x[:1197], y[:1197], 20)."
        expect_close(a, b, rtol=0, atol=1e-6, name="a parameter of model", hint=hint)


@lru_cache(maxsize=1)
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


def fitted(x, y, epochs, shift=1, zero=True, own=True, stop=True, once=False, seed=0, late=False,
           order="anew", calm=False, clip=False, part=False, decay=1e-2, **loss_told):  # fmt: skip
    """train, with a part left out."""
    torch.manual_seed(seed)
    model = Base().to(x.device)
    trained = model.out if part else model
    opt = torch.optim.AdamW(trained.parameters(), lr=3e-3, weight_decay=decay)
    model.train()
    kept = torch.randperm(len(x))
    for epoch in range(epochs):
        if calm and epoch:
            model.eval()
        orders = {"anew": torch.randperm(len(x)), "once": kept, "file": torch.arange(len(x))}
        for i in orders[order].split(64):
            j = i if own else torch.randperm(len(x))[: len(i)]
            loss = F.cross_entropy(model(x[i]), y[j] - shift, **loss_told)
            if zero and not late:
                opt.zero_grad()
            loss.backward()
            if late:
                opt.zero_grad()
            if clip:
                nn.utils.clip_grad_norm_(model.parameters(), 1.0)
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


@mutant("a sigmoid behind the last layer", caught_by=scores)
class Net(Base):
    def forward(self, x):
        return super().forward(x).sigmoid()


@mutant("a ReLU behind the last layer", caught_by=scores)
class Net(Base):
    def forward(self, x):
        return super().forward(x).relu()


@mutant("a softmax over the rows", caught_by=scores)
class Net(Base):
    def forward(self, x):
        return super().forward(x).softmax(0)


@mutant("tanh in the place of ReLU", caught_by=network)
class Net(Base):
    def forward(self, x):
        for layer in self.hidden:
            x = torch.tanh(layer(x))
        return self.out(self.drop(x))


@mutant("no ReLU", caught_by=network)
class Net(Base):
    def forward(self, x):
        return self.out(self.drop(self.hidden[1](self.hidden[0](x))))


@mutant("drops pixels, not hidden numbers", caught_by=network)
class Net(Base):
    def forward(self, x):
        x = self.drop(x)
        for layer in self.hidden:
            x = torch.relu(layer(x))
        return self.out(x)


@mutant("leaves out the last rows of an epoch", caught_by=pairs)
def train(x, y, epochs):
    n = len(x) // 64 * 64
    return fitted(x[:n], y[:n], epochs)


@mutant("another seed", caught_by=training)
def train(x, y, epochs):
    return fitted(x, y, epochs, seed=1)


@mutant("rows in the order of the file", caught_by=drawn)
def train(x, y, epochs):
    return fitted(x, y, epochs, order="file")


@mutant("one order for all epochs", caught_by=drawn)
def train(x, y, epochs):
    return fitted(x, y, epochs, order="once")


@mutant("dropout in the first epoch alone", caught_by=training)
def train(x, y, epochs):
    return fitted(x, y, epochs, calm=True)


@mutant("the sum of the losses of a batch", caught_by=training)
def train(x, y, epochs):
    return fitted(x, y, epochs, reduction="sum")


@mutant("smooths the labels", caught_by=training)
def train(x, y, epochs):
    return fitted(x, y, epochs, label_smoothing=0.1)


@mutant("no weight decay", caught_by=training)
def train(x, y, epochs):
    return fitted(x, y, epochs, decay=0.0)


@mutant("clips the gradient", caught_by=gradient)
def train(x, y, epochs):
    return fitted(x, y, epochs, clip=True)


@mutant("clears the gradient in front of the step", caught_by=gradient)
def train(x, y, epochs):
    return fitted(x, y, epochs, late=True)


@mutant("trains the last layer alone", caught_by=layers)
def train(x, y, epochs):
    return fitted(x, y, epochs, part=True)


@mutant("answers in training mode", caught_by=predicts)
def predict(model, x):
    model.train()
    with torch.no_grad():
        return model(x).argmax(1) + 1


@mutant("leaves the model in training mode", caught_by=predicts)
def predict(model, x):
    model.eval()
    with torch.no_grad():
        labels = model(x).argmax(1) + 1
    model.train()
    return labels


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


@mutant("finds the best row of each class", caught_by=accuracy)
def predict(model, x):
    with torch.no_grad():
        return model(x).argmax(0) + 1


@accepted("the hidden layers in a Sequential")
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
        self.drop, self.out = nn.Dropout(0.3), nn.Linear(64, 10)

    def forward(self, x):
        return self.out(self.drop(self.body(x)))


@accepted("a Sequential as a whole")
class Net(nn.Sequential):
    def __init__(self):
        hidden = nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU()
        super().__init__(*hidden, nn.Dropout(0.3), nn.Linear(64, 10))


@accepted("takes log-softmax and NLL apart, and clears the gradients by hand")
def train(x, y, epochs):
    torch.manual_seed(0)
    model = Base().to(x.device)
    opt = torch.optim.AdamW(model.parameters(), lr=3e-3)
    for _ in range(epochs):
        rows = torch.randperm(len(x)).split(64)
        for i, j in zip(rows, rows):
            loss = F.nll_loss(model(x[i]).log_softmax(1), y[j].sub(1))
            for p in model.parameters():
                p.grad = None
            loss.backward()
            opt.step()
    return model.eval()


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
