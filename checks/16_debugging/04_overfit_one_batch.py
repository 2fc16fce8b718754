"""Judges lessons/16_debugging/04_overfit_one_batch.md."""

import copy

import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.modules.module import register_module_forward_pre_hook

from tensortutor.checking import (
    accepted,
    background,
    check,
    equivalent,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    hinted,
    key_line_shown,
    mutant,
)

background(
    "It ends above 1.4.",
    "The model has a fault, and the test that should find it says True",
    "A call that may help",
)
key_line_shown("Adam", because="the optimizer is given; the exercise is what is done with it")
key_line_shown("cross_entropy", because="the loss is given; the exercise is its threshold")

equivalent(
    "if loss.item() < 0.05:",
    "if loss.item() <= 0.05:",
    because="no float32 loss is 0.05 to the last digit of a Python float",
)
equivalent(
    "if loss.item() < 0.05:",
    "if loss < 0.05:",
    because="a comparison of a tensor of no dimension serves an if as well",
)

LAST = "Linear, ReLU, dropout, linear: cross_entropy takes the softmax itself."
BOOL = "True and False themselves: no tensor, and no None where the loop ends."
COPY = "Work on copy.deepcopy(model), made before the optimizer."
STEP = "Clear the gradients before each backward, and let Adam, not AdamW, step the copy alone."
ONCE = "One call of the model a step: the loss that is compared is the one that goes backward."
ARRIVE = "A broken model's loss falls too. Compare with 0.05, over all steps."


equivalent("with torch.no_grad():", "if True:", because="the figure is the same, with a graph")
equivalent(
    "with torch.no_grad():",
    "with torch.enable_grad():",
    because="the figure is the same, with a graph",
)
equivalent('plot(loss, title="loss")', "pass", because="the curve is for the eye")
equivalent('plot(loss, title="loss")', "plot(loss)", because="the curve is for the eye")
equivalent(
    'x = torch.from_numpy(d["images"]).float().flatten(1) / 16',
    'x = torch.from_numpy(d["images"]).flatten(1) / 16',
    because="a division of whole numbers gives float32 too",
)
equivalent(
    "return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 10))",
    "return nn.Sequential(nn.Linear(64, width), nn.Dropout(0.3), nn.ReLU(), nn.Linear(width, 10))",
    because="dropout scales by a number that is not negative, and so does not change a sign",
)
equivalent(
    "answers = can_overfit(build(64), *batch), can_overfit(no_way, *batch)",
    "answers = can_overfit(build(63), *batch), can_overfit(no_way, *batch)",
    because="a model of nearly the same width learns the batch as well",
)
equivalent(
    "answers = can_overfit(build(64), *batch), can_overfit(no_way, *batch)",
    "answers = can_overfit(build(65), *batch), can_overfit(no_way, *batch)",
    because="a model of nearly the same width learns the batch as well",
)


def batch(rng, device):
    n = rng.randint(8, 16)
    return torch.randn(n, 6, device=device), (torch.arange(n, device=device) % 3)


def healthy(device, p=0.0):
    return nn.Sequential(
        nn.Linear(6, 64), nn.ReLU(), nn.Dropout(p), nn.Linear(64, 3)
    ).to(device)  # fmt: skip


@check(
    "build ends with its linear layer",
    holds=[
        "takes images (batch, 64) to scores (batch, 10)",
        "a linear layer with width outputs, a ReLU, dropout of 0.3, a linear layer, and nothing",
    ],
)
def built(answer, rng, device):
    width = rng.choice([8, 9, *range(11, 50)])  # not that of the scores
    model = answer.build(width).to(device)
    x = torch.rand(rng.randint(1, 9), 64, device=device)
    linears = [m for m in model.modules() if isinstance(m, nn.Linear)]
    expect_equal(len(linears), 2, name="the number of linear layers", hint=LAST)
    expect_equal(linears[0].out_features, width, name="the outputs of the first", hint=LAST)
    drops = [m.p for m in model.modules() if isinstance(m, nn.Dropout)]
    expect_equal(drops, [0.3], name="the dropout", hint="Dropout is no fault: eval mode ends it.")
    with torch.no_grad():
        wanted = linears[1](linears[0](x).relu())
        got = model.eval()(x)
    expect_shape(got, (len(x), 10), name="the scores", hint=LAST)
    expect_close(got, wanted, name="the scores in eval mode", rtol=1e-4, atol=1e-5, hint=LAST)
    sizes = []

    def dropped(module, inputs):
        if isinstance(module, nn.Dropout):
            sizes.append(inputs[0].shape[1:])

    handle = register_module_forward_pre_hook(dropped)
    try:
        model.train()(x)
    finally:
        handle.remove()
    hint = "Dropout stands between the ReLU and the second linear layer."
    expect_equal(sizes, [(width,)], name="the sizes of the rows that dropout gets", hint=hint)


@check("a healthy model can", holds="returns the bool True as soon as a loss is below 0.05")
def good(answer, rng, device):
    got = answer.can_overfit(healthy(device), *batch(rng, device))
    expect_true(isinstance(got, bool), f"a healthy model gets {got!r}", hint=BOOL)
    hint = "300 steps of Adam with 0.01 on the parameters of the copy reach 0.05."
    expect_true(got is True, f"a healthy model gets {got!r}", hint=hint)


@check("a broken model cannot", holds="False if none of the `steps` losses is")
def broken(answer, rng, device):
    for model in (nn.Sequential(healthy(device), nn.Softmax(1)), healthy(device)):
        if isinstance(model[0], nn.Linear):
            nn.init.constant_(model[0].bias, -1e4)
        got = answer.can_overfit(model, *batch(rng, device), steps=40)
        expect_true(isinstance(got, bool), f"a broken model gets {got!r}", hint=BOOL)
        expect_true(got is False, f"a broken model gets {got!r}", hint=ARRIVE)


@check(
    "the caller's model stays",
    holds="the caller's model keeps its weights, its gradients and its mode",
)
def stays(answer, rng, device):
    for mode in (True, False):
        model = healthy(device).train(mode)
        before = [p.detach().clone() for p in model.parameters()]
        grads = [torch.randn_like(p) for p in model.parameters()]
        for p, g in zip(model.parameters(), grads):
            p.grad = g.clone()
        answer.can_overfit(model, *batch(rng, device), steps=3)
        same = all(torch.equal(p, q) for p, q in zip(model.parameters(), before))
        expect_true(same, "the weights of the model changed", hint=COPY)
        kept = [p.grad is not None and torch.equal(p.grad, g)
                for p, g in zip(model.parameters(), grads)]  # fmt: skip
        expect_true(all(kept), "the gradients of the model changed", hint=COPY)
        expect_equal(model.training, mode, name="model.training afterwards", hint=COPY)


class Counted(nn.Module):
    """Notes the losses' scores of each call in a list that copies share."""

    def __init__(self, device, seen):
        super().__init__()
        self.inner, self.seen = healthy(device), seen

    def __deepcopy__(self, memo):
        other = Counted("cpu", self.seen)
        other.inner = copy.deepcopy(self.inner, memo)
        return other.train(self.training)

    def forward(self, x):
        z = self.inner(x)
        self.seen.append(z.detach().clone())
        return z


@check(
    "the steps of Adam",
    holds=[
        "trains on the batch by Adam with a learning rate of 0.01, and measures by",
        "if none of the `steps` losses is",
    ],
)
def steps(answer, rng, device):
    x, y = batch(rng, device)
    seen, n = [], rng.randint(3, 6)
    model, x = Counted(device, seen).double(), x.double()
    for p in model.parameters():
        p.grad = torch.randn_like(p)
    few = answer.can_overfit(model, x, y, steps=n) is False
    expect_true(few, "3 to 6 steps are too few", hint="Take as many steps as `steps` says.")
    expect_equal(len(seen), n, name="the number of calls of the model", hint=ONCE)
    twin = copy.deepcopy(model.inner).eval()
    opt = torch.optim.Adam(twin.parameters(), lr=0.01)
    for z in seen:
        loss = F.cross_entropy(twin(x), y)
        near = abs(loss.item() - F.cross_entropy(z, y).item()) < 1e-6
        expect_true(near, "the losses are not those of Adam with 0.01", hint=STEP)
        opt.zero_grad()
        loss.backward()
        opt.step()


@check("it stops at the first loss below 0.05", holds="as soon as a loss is below 0.05")
def stops(answer, rng, device):
    x, y = batch(rng, device)
    seen = []
    expect_true(answer.can_overfit(Counted(device, seen), x, y) is True, "a healthy model can")
    low = [F.cross_entropy(z, y).item() < 0.05 for z in seen]
    hint = "The mean loss of the batch has to be below 0.05."
    expect_true(any(low), "it says True, and no loss was below 0.05", hint=hint)
    hint = "Return True inside the loop, before the step that would follow."
    needed = low.index(True) + 1
    expect_equal(len(seen), needed, name="the number of calls of a model that can", hint=hint)


@check("300 steps unless told otherwise", holds="can_overfit(model, x, y, steps=300)")
def default(answer, rng, device):
    seen = []
    model = Counted(device, seen)
    nn.init.constant_(model.inner[0].bias, -1e4)
    answer.can_overfit(model, *batch(rng, device))
    expect_equal(len(seen), 300, name="the number of calls of a model that cannot", hint=ARRIVE)


@check("dropout is off", holds="It trains a deep copy in eval mode")
def dropout(answer, rng, device):
    got = answer.can_overfit(healthy(device, 0.95).train(), *batch(rng, device))
    expect_true(got is True, f"with dropout in the model it is {got!r}", hint="Use eval mode.")


@check(
    "gradients switched off",
    holds="It works where the caller has switched gradients off by torch.no_grad(), and leaves",
)
def no_grad(answer, rng, device):
    with torch.no_grad():
        got = answer.can_overfit(healthy(device), *batch(rng, device))
        off = not torch.is_grad_enabled()
    expect_true(got is True, f"under no_grad it is {got!r}", hint="with torch.enable_grad():")
    hint = "`with torch.enable_grad():` puts back what was there; set_grad_enabled does not."
    expect_true(off, "gradients are switched on afterwards", hint=hint)


@check(
    "the program ends with a loss below 0.3",
    holds=[
        "This program should end with a loss below 0.3 on all digits.",
        "and leave data and training as they are",
    ],
)
def program(answer, rng, device):
    expect_equal(answer.answers, (True, False), name="answers", hint=ARRIVE)
    low = isinstance(answer.loss, float) and answer.loss < 0.3
    expect_true(low, f"loss is {answer.loss!r}", hint=LAST)
    hint = "Keep the data and the training."
    expect_shape(answer.x, (1797, 64), name="x", hint=hint)
    expect_equal(answer.x.max().item(), 1.0, name="the largest value of x", hint=hint)
    expect_equal(answer.y.dtype, torch.int64, name="the dtype of y", hint=hint)
    for model in (answer.model, answer.no_way):
        width = next(model.parameters()).shape
        expect_equal(tuple(width), (64, 64), name="the first weight's shape", hint=hint)
    expect_true(not answer.model.training, "the last loss was not taken in eval mode", hint=hint)
    expect_equal(answer.no_way[1].dim, 1, name="the softmax of the broken model", hint=hint)
    expect_equal(answer.step, 299, name="the last step", hint=hint)
    expect_equal(len(answer.rows), 64, name="the size of a batch", hint=hint)
    expect_equal(answer.opt.param_groups[0]["lr"], 0.01, name="the learning rate", hint=hint)


@torch.enable_grad()
def fit(model, x, y, steps, floor=0.05, lr=0.01):
    opt = torch.optim.Adam(model.parameters(), lr=lr)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        if loss.item() < floor:
            return True
        opt.zero_grad()
        loss.backward()
        opt.step()
    return False


@mutant("keeps the softmax", caught_by=built)
def build(width):
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 10), nn.Softmax(1)
    )


@mutant("drops the dropout, so that the test needs no eval mode", caught_by=built)
def build(width):
    return nn.Sequential(nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10))


@mutant("drops the ReLU", caught_by=built)
def build(width):
    return nn.Sequential(nn.Linear(64, width), nn.Dropout(0.3), nn.Linear(width, 10))


@mutant("drops pixels out", caught_by=built)
def build(width):
    return nn.Sequential(
        nn.Dropout(0.3), nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10)
    )  # fmt: skip


@mutant("drops scores out", caught_by=built)
def build(width):
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Linear(width, 10), nn.Dropout(0.3)
    )  # fmt: skip


@mutant("ends with a ReLU", caught_by=built)
def build(width):
    return nn.Sequential(
        nn.Linear(64, width), nn.ReLU(), nn.Dropout(0.3), nn.Linear(width, 10), nn.ReLU()
    )


@mutant("trains the caller's model", caught_by=stays)
def can_overfit(model, x, y, steps=300):
    return fit(model.eval(), x, y, steps)


@mutant("is content with a loss that fell", caught_by=broken)
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model).eval(), x, y, steps, floor=2.0)


@mutant("looks at the last loss alone", caught_by=stops)
@torch.enable_grad()
def can_overfit(model, x, y, steps=300):
    model = copy.deepcopy(model).eval()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        opt.zero_grad()
        loss.backward()
        opt.step()
    return loss.item() < 0.05


@mutant("takes three steps", caught_by=good)
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model).eval(), x, y, 3)


@mutant("leaves dropout on", caught_by=dropout)
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model).train(), x, y, steps)


@mutant("takes another learning rate", caught_by=steps)
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model).eval(), x, y, steps, lr=0.03)


@accepted("clears behind the step: a deep copy of a parameter has no gradient")
@torch.enable_grad()
def can_overfit(model, x, y, steps=300):
    model = copy.deepcopy(model).eval()
    opt = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        if loss.item() < 0.05:
            return True
        loss.backward()
        opt.step()
        opt.zero_grad()
    return False


@mutant("takes AdamW, which shrinks the weights as well", caught_by=steps)
@torch.enable_grad()
def can_overfit(model, x, y, steps=300):
    model = copy.deepcopy(model).eval()
    opt = torch.optim.AdamW(model.parameters(), lr=0.01)
    for _ in range(steps):
        loss = F.cross_entropy(model(x), y)
        if loss.item() < 0.05:
            return True
        opt.zero_grad()
        loss.backward()
        opt.step()
    return False


@mutant("puts the weights back, and not the gradients", caught_by=stays)
def can_overfit(model, x, y, steps=300):
    mode, before = model.training, copy.deepcopy(model.state_dict())
    model.zero_grad()
    got = fit(model.eval(), x, y, steps)
    model.load_state_dict(before)
    model.zero_grad()
    model.train(mode)
    return got


@mutant("switches gradients on for good", caught_by=no_grad)
def can_overfit(model, x, y, steps=300):
    torch.set_grad_enabled(True)
    return fit(copy.deepcopy(model).eval(), x, y, steps)


@mutant("puts the caller's model into eval mode", caught_by=stays)
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model.eval()), x, y, steps)


@hinted(1, reaches=broken)
def can_overfit(model, x, y, steps=300):
    return fit(model, x, y, steps)


class Scores(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.one, self.two = nn.Linear(64, width), nn.Linear(width, 10)
        self.drop = nn.Dropout(0.3)

    def forward(self, x):
        return self.two(self.drop(F.relu(self.one(x))))


@accepted("a class of its own")
def build(width):
    return Scores(width)


@accepted("a helper with a decorator")
def can_overfit(model, x, y, steps=300):
    return fit(copy.deepcopy(model).eval(), x, y, steps)


@accepted("sets the mode of autograd, and clears by hand")
def can_overfit(model, x, y, steps=300):
    model = copy.deepcopy(model)
    model.eval()
    opt = torch.optim.Adam(model.parameters(), 1e-2)
    with torch.set_grad_enabled(True):
        for _ in range(steps):
            model.zero_grad()
            loss = torch.nn.CrossEntropyLoss()(model(x), y)
            if loss < 0.05:
                return True
            loss.backward()
            opt.step()
    return False
