"""Judges lessons/10_training/08_evaluation.md."""

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
    expect_true,
    hinted,
    mutant,
)

background("Write `evaluate`, as a training loop calls it")

shows = ["modules/train_eval"]

PAIRS = "Rows are targets, columns predictions, and each sample is one count. `+=` with index "
PAIRS += "tensors writes each place once, however often a pair occurs."
WEIGH = "Add up the loss of each batch times its number of samples, and divide by the number of "
WEIGH += "all samples once."
MODE = "In eval mode nothing is random, and the running statistics stand still."
RESTORE = "Note the flag of each module before eval(), and set each one back. train(mode) writes "
RESTORE += "into everything below."


class Table(nn.Module):
    """Looks its logits up: x is a column of row numbers."""

    def __init__(self, logits):
        super().__init__()
        self.logits = nn.Parameter(logits)

    def forward(self, x):
        return self.logits[x[:, 0].long()]


def table(logits, device):
    """(model, x) with these logits as the model's answers, sample by sample."""
    x = torch.arange(len(logits), device=device)[:, None].float()
    return Table(logits.to(device)), x


def data(rng, device, k, n, classes=None):
    """(model, x, y, logits): random answers, and targets of the given classes alone."""
    logits = torch.randn(n, k) * 2
    classes = torch.tensor(list(range(k)) if classes is None else classes)
    y = classes[torch.randint(len(classes), (n,))].to(device)
    model, x = table(logits, device)
    return model, x, y, logits.to(device)


def batches(x, y, sizes):
    """A generator of pairs: it can be walked once."""
    yield from zip(x.split(sizes), y.split(sizes), strict=True)


def result(answer, model, loader, k):
    """What evaluate returns, with all keys, each of its type."""
    got = answer.evaluate(model, loader, k)
    expect_true(isinstance(got, dict), "the result is not a dict", hint="Keys and values: {...}.")
    missing = [key for key in ("loss", "acc", "f1", "conf") if key not in got]
    expect_true(not missing, f"the result has no {', '.join(missing)}")
    for key in ("loss", "acc", "f1"):
        kind = type(got[key]).__name__
        hint = "item() makes a Python number of a tensor with one element."
        expect_true(isinstance(got[key], float), f"{key} is of type {kind}, not float", hint=hint)
    return got


def near(value, wanted, name, hint):
    message = f"{name} is {value:.5g}, not {wanted:.5g}"
    expect_true(abs(value - wanted) < 1e-4 * (1 + abs(wanted)), message, hint=hint)


def counted(y, p, k):
    """The confusion matrix, one sample after the other."""
    conf = torch.zeros(k, k, dtype=torch.int64)
    for row, column in zip(y.tolist(), p.tolist(), strict=True):
        conf[row, column] += 1
    return conf


def matrix(got):
    """The confusion matrix on the CPU, whatever device it was made on."""
    conf = got["conf"]
    return conf.cpu() if isinstance(conf, torch.Tensor) else conf


@check(
    "the confusion matrix counts each sample once",
    holds="The rows of `conf` are targets, its columns predictions.",
)
def confusion(answer, rng, device):
    for k in (3, rng.randint(4, 6), 2):
        model, x, y, logits = data(rng, device, k, 40)
        wanted = counted(y, logits.argmax(1), k)
        got = result(answer, model, batches(x, y, [17, 22, 1]), k)
        expect_equal(matrix(got), wanted, name="conf", hint=PAIRS)
    model, x, y, logits = data(rng, device, 4, 9, classes=[0])  # classes that do not occur
    with torch.no_grad():
        model.logits[:, 3] = -50
    got = result(answer, model, batches(x, y, [9]), 4)
    wanted = counted(y, model.logits.argmax(1), 4)
    expect_equal(matrix(got), wanted, name="conf where classes are missing", hint=PAIRS)


@check("the loss is a mean over samples", holds="mean cross entropy per sample, a float")
def loss(answer, rng, device):
    model, x, y, logits = data(rng, device, 3, 25)
    wanted = F.cross_entropy(logits.double(), y).item()
    for sizes in ([25], [10, 10, 5], [12, 12, 1], [1] * 25):
        got = result(answer, model, batches(x, y, sizes), 3)
        name = f"loss, with batches of {sizes[0]} and a last one of {sizes[-1]},"
        near(got["loss"], wanted, name, WEIGH)


@check("the accuracy is the share of right predictions")
def accuracy(answer, rng, device):
    model, x, y, logits = data(rng, device, 3, 25)
    wanted = (logits.argmax(1) == y).double().mean().item()
    for sizes in ([25], [12, 12, 1]):
        got = result(answer, model, batches(x, y, sizes), 3)
        near(got["acc"], wanted, "acc", "Right ones over all samples, divided once.")


@check(
    "the macro F1 is a mean over classes",
    holds="`f1` is the macro F1 over all k classes; a class with nothing in its row and its column",
    both_sides=True,
)
def macro(answer, rng, device):
    for k, classes in ((3, None), (4, [0, 2]), (5, [1])):
        model, x, y, _ = data(rng, device, k, 30, classes)
        with torch.no_grad():
            model.logits[:, k - 1] -= 9 * (classes is not None)  # the last is never predicted
        conf = counted(y, model.logits.argmax(1), k)
        each = []
        for c in range(k):
            tp, both = conf[c, c].item(), (conf[c].sum() + conf[:, c].sum()).item()
            each.append(2 * tp / both if both else 0.0)
        got = result(answer, model, batches(x, y, [14, 15, 1]), k)
        hint = "2 tp / (row sum + column sum) for each class of the whole matrix; 0 for a class "
        hint += "with nothing in either; then the mean over all k."
        near(got["f1"], sum(each) / k, "f1", hint)


def awake(rng, device):
    """A model with dropout and a BatchNorm that has seen data, in random modes."""
    norm = nn.BatchNorm1d(4)
    norm.running_mean = torch.randn(4)
    norm.running_var = torch.rand(4) + 0.5
    inner = nn.Sequential(nn.Linear(4, 4), norm)
    model = nn.Sequential(inner, nn.Dropout(0.5), nn.Linear(4, 3)).to(device)
    for m in model.modules():
        m.training = rng.random() < 0.5
    model[1].training = True
    norm.training = not inner.training
    return model


def told(model, x):
    """The logits in eval mode, by hand: no mode is switched."""
    line, norm = model[0][0], model[0][1]
    with torch.no_grad():
        x = (line(x) - norm.running_mean) / (norm.running_var + norm.eps).sqrt()
        return model[2](x * norm.weight + norm.bias)


@check(
    "the model runs in eval mode, and each module is put back into its own",
    holds="Afterwards each module is in the mode it was in before.",
    both_sides=True,
)
def modes(answer, rng, device):
    model = awake(rng, device)
    before = {name: m.training for name, m in model.named_modules()}
    state = {name: t.clone() for name, t in model.state_dict().items()}
    x, y = torch.randn(8, 4, device=device), torch.randint(3, (8,), device=device)
    wanted = F.cross_entropy(told(model, x), y).item()
    got = result(answer, model, batches(x, y, [4, 4]), 3)
    near(got["loss"], wanted, "loss of a model with Dropout and BatchNorm", MODE)
    for name, t in model.state_dict().items():
        expect_equal(t, state[name], name=f"{name} afterwards", hint=MODE)
    for name, m in model.named_modules():
        message = f"{name or 'the model itself'} has training={m.training} afterwards; "
        message += f"before it was {before[name]}"
        expect_true(m.training == before[name], message, hint=RESTORE)


@check(
    "no graph is recorded, and no gradient touched",
    holds=["records no graph", "Parameters, buffers and gradients are as before."],
)
def graphless(answer, rng, device):
    model, x, y, _ = data(rng, device, 3, 8)
    held = torch.randn_like(model.logits)
    model.logits.grad = held.clone()
    recorded = []
    hook = model.register_forward_hook(lambda m, args, out: recorded.append(out.requires_grad))
    got = result(answer, model, batches(x, y, [3, 3, 2]), 3)
    hook.remove()
    expect_true(
        not any(recorded),
        "the model's logits had a graph",
        hint="eval() does not stop autograd. Call the model inside no_grad.",
    )
    expect_true(torch.is_grad_enabled(), "autograd is switched off afterwards",
                hint="`with` puts the caller's mode back.")  # fmt: skip
    hint = "The gradients of a step that is not over yet belong to the caller."
    expect_true(model.logits.grad is not None, "a gradient was cleared", hint=hint)
    expect_equal(model.logits.grad, held, name="a gradient", hint=hint)
    expect_true(not matrix(got).requires_grad, "conf requires grad")


@check("no random number is drawn", holds="The function draws no random number itself")
def undisturbed(answer, rng, device):
    model = awake(rng, device)
    x, y = torch.randn(6, 4, device=device), torch.randint(3, (6,), device=device)
    pairs = list(batches(x, y, [3, 3]))
    before = torch.get_rng_state()
    answer.evaluate(model, pairs, 3)
    expect_true(
        torch.equal(before, torch.get_rng_state()),
        "torch's default generator has moved on",
        hint="Whoever trains on gets other numbers now. Dropout in training mode draws some, and "
        "so does every shuffle.",
    )


@check("a training run with evaluations goes as one without", holds="The loop must not notice.")
def training(answer, rng, device):
    seed, ends = rng.randrange(2**31), []
    for evaluates in (False, True):
        torch.manual_seed(seed)  # that of the device too
        x, y = torch.randn(12, 4, device=device), torch.randint(3, (12,), device=device)
        model = nn.Sequential(nn.Linear(4, 6), nn.Dropout(0.5), nn.Linear(6, 3)).to(device)
        opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9)
        for _ in range(4):
            opt.zero_grad()
            F.cross_entropy(model(x), y).backward()
            if evaluates:
                answer.evaluate(model, batches(x, y, [5, 7]), 3)
            opt.step()
        ends.append([p.detach().clone() for p in model.parameters()])
    hint = "Modes, gradients, weights or random numbers are not what they were before evaluate."
    for one, other in zip(*ends, strict=True):
        expect_close(other, one, name="a parameter after 4 steps", hint=hint)


@check("autograd is on or off as before", holds="The loop must not notice.")
def grad_mode(answer, rng, device):
    x, y = torch.randn(4, 3, device=device), torch.tensor([0, 1, 2, 0], device=device)
    model, found = nn.Linear(3, 3).to(device), []
    for on in (True, False):
        with torch.set_grad_enabled(on):
            answer.evaluate(model, batches(x, y, [4]), 3)
            found.append(torch.is_grad_enabled())
    hint = "with torch.no_grad(): puts back what was. Neither True nor False is right in general."
    expect_equal(
        found, [True, False], name="is_grad_enabled() after it was on, and off,", hint=hint
    )


@mutant("switches autograd on at the end", caught_by=grad_mode)
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    torch.set_grad_enabled(False)
    total, conf = 0.0, torch.zeros(k, k, dtype=torch.int64)
    for x, y in loader:
        logits = model(x)
        total += F.cross_entropy(logits, y).item() * len(y)
        pairs = (y * k + logits.argmax(1)).cpu()
        conf += torch.bincount(pairs, minlength=k * k).view(k, k)
    torch.set_grad_enabled(True)
    for m, flag in modes:
        m.training = flag
    both = conf.sum(0) + conf.sum(1)
    f1 = (2 * conf.diag() / both.clamp(min=1)).mean().item()
    n = conf.sum().item()
    return {"loss": total / n, "acc": conf.diag().sum().item() / n, "f1": f1, "conf": conf}


@mutant("counts duplicate pairs once", caught_by=confusion)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    total, conf = 0.0, torch.zeros(k, k, dtype=torch.int64)
    for x, y in loader:
        logits = model(x)
        total += F.cross_entropy(logits, y, reduction="sum").item()
        conf[y.cpu(), logits.argmax(1).cpu()] += 1
    for m, mode in modes:
        m.training = mode
    return numbers(total, conf)


def numbers(total, conf):
    """The four numbers of a sum of losses and a matrix."""
    n, tp = conf.sum().item(), conf.diag()
    f1 = 2 * tp / (conf.sum(0) + conf.sum(1)).clamp(min=1)
    return {"loss": total / n, "acc": tp.sum().item() / n, "f1": f1.mean().item(), "conf": conf}


def walk(model, loader, k):
    """(sum of losses, matrix) of a right walk, in whatever mode the model is."""
    total, conf = 0.0, torch.zeros(k * k, dtype=torch.int64)
    for x, y in loader:
        logits = model(x)
        total += F.cross_entropy(logits, y).item() * len(y)
        conf += torch.bincount(y * k + logits.argmax(1), minlength=k * k).cpu()
    return total, conf.view(k, k)


@mutant("has rows and columns swapped", caught_by=confusion)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    return numbers(total, conf.T)


@mutant("takes the mean of the batch means", caught_by=loss)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    pairs = list(loader)
    total, conf = walk(model.eval(), pairs, k)
    means = [F.cross_entropy(model(x), y).item() for x, y in pairs]
    for m, mode in modes:
        m.training = mode
    return {**numbers(total, conf), "loss": sum(means) / len(means)}


@mutant("takes the mean of the batches' accuracies", caught_by=accuracy)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    pairs = list(loader)
    total, conf = walk(model.eval(), pairs, k)
    shares = [(model(x).argmax(1) == y).float().mean().item() for x, y in pairs]
    for m, mode in modes:
        m.training = mode
    return {**numbers(total, conf), "acc": sum(shares) / len(shares)}


@mutant("divides 0 by 0 for an empty class", caught_by=macro)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    f1 = 2 * conf.diag() / (conf.sum(0) + conf.sum(1))
    return {**numbers(total, conf), "f1": f1.mean().item()}


@mutant("leaves empty classes out of the mean", caught_by=macro)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    both = conf.sum(0) + conf.sum(1)
    f1 = (2 * conf.diag() / both)[both > 0]
    return {**numbers(total, conf), "f1": f1.mean().item()}


@mutant("gives the F1 of all samples together", caught_by=macro)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    found = numbers(total, conf)
    return {**found, "f1": found["acc"]}


@mutant("does not switch to eval mode", caught_by=modes)
@torch.no_grad()
def evaluate(model, loader, k):
    return numbers(*walk(model, loader, k))


@mutant("leaves the model in eval mode", caught_by=modes)
@torch.no_grad()
def evaluate(model, loader, k):
    return numbers(*walk(model.eval(), loader, k))


@mutant(
    "puts one flag back for all",
    caught_by=modes,
    misconception="modules/train_eval",
    like="remembers the model's flag only",
)
@torch.no_grad()
def evaluate(model, loader, k):
    was = model.training
    found = numbers(*walk(model.eval(), loader, k))
    model.train(was)
    return found


@mutant("records graphs", caught_by=graphless)
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    return numbers(total, conf)


@mutant("clears the gradients", caught_by=graphless)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    model.zero_grad()
    total, conf = walk(model.eval(), loader, k)
    for m, mode in modes:
        m.training = mode
    return numbers(total, conf)


@mutant("shuffles the batches first", caught_by=undisturbed)
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    pairs = list(loader)
    pairs = [pairs[i] for i in torch.randperm(len(pairs))]
    total, conf = walk(model.eval(), pairs, k)
    for m, mode in modes:
        m.training = mode
    return numbers(total, conf)


@hinted(1, reaches=accuracy)
def evaluate(model, loader, k):
    model.eval()
    total, conf = 0.0, torch.zeros(k, k, dtype=torch.int64)
    for x, y in loader:
        logits = model(x)
        total += F.cross_entropy(logits, y).item() * len(y)
        pairs = torch.bincount(y * k + logits.argmax(1), minlength=k * k)
        conf += pairs.view(k, k).cpu()
    model.train()
    n = conf.sum().item()
    return {"loss": total / n, "acc": conf.diag().sum().item() / n, "f1": 0.0, "conf": conf}


@accepted("collects everything, and counts at the end")
def evaluate(model, loader, k):
    modes = {m: m.training for m in model.modules()}
    model.eval()
    with torch.inference_mode():
        pairs = [(model(x), y) for x, y in loader]
        logits = torch.cat([a for a, _ in pairs])
        y = torch.cat([b for _, b in pairs])
        p = logits.softmax(1).argmax(1)
        conf = torch.zeros(k, k, dtype=torch.int64, device=y.device)
        conf.index_put_((y, p), torch.ones_like(y), accumulate=True)
        loss = F.cross_entropy(logits, y)
    for m, was in modes.items():
        m.training = was
    f1 = 0.0
    for c in range(k):
        both = conf[c].sum().item() + conf[:, c].sum().item()
        f1 += 2 * conf[c, c].item() / both / k if both else 0.0
    right = (p == y).float().mean().item()
    return {"loss": loss.item(), "acc": right, "f1": f1, "conf": conf.clone()}


@accepted("multiplies one-hot rows, and adds up losses")
@torch.no_grad()
def evaluate(model, loader, k):
    modes = [(m, m.training) for m in model.modules()]
    try:
        model.eval()
        total, conf = 0.0, 0
        for x, y in loader:
            logits = model(x)
            total += F.cross_entropy(logits, y, reduction="sum").item()
            hit = F.one_hot(logits.argmax(1), k).double()
            conf = conf + F.one_hot(y, k).double().T @ hit
    finally:
        for m, mode in modes:
            m.training = mode
    tp, n = conf.diag(), conf.sum().item()
    f1 = (2 * tp / (conf.sum(0) + conf.sum(1))).nan_to_num(0).mean().item()
    return {"loss": total / n, "acc": tp.sum().item() / n, "f1": f1, "conf": conf.long()}


equivalent(
    "f1 = 2 * tp / (conf.sum(0) + conf.sum(1)).clamp(min=1)",
    "f1 = 2 * tp / (conf.sum(0) + conf.sum(1)).clamp(min=2)",
    because="A class with 1 in its row and column together has no hit, so 0 is divided.",
)
