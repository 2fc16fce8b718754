"""Judges lessons/10_training/02_five_steps.md."""

import copy
import weakref

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

shows = ["autograd/accumulation"]


class Watched(torch.optim.SGD):
    """SGD that notes, at each step, the gradients it finds and calls `at_step` with them."""

    def __init__(self, params, at_step, **options):
        self.at_step = at_step
        super().__init__(params, **options)

    def step(self, closure=None):
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.at_step([p.grad for group in self.param_groups for p in group["params"]])
        super().step()
        return loss


def network(device, *extra):
    """From 3 features to 4 numbers, in training mode, without gradients."""
    return nn.Sequential(nn.Linear(3, 5), nn.Tanh(), *extra, nn.Linear(5, 4)).to(device)


def dirty(model):
    """Leave large gradients behind, as an earlier caller might."""
    for p in model.parameters():
        p.grad = torch.full_like(p, 99.0)


def data(device, sizes):
    """Pairs (x, y) with this many samples each, four numbers as a target."""
    return [(torch.randn(n, 3, device=device), torch.randn(n, 4, device=device)) for n in sizes]


def labelled(device, sizes):
    """The same with a class as target."""
    return [(x, y.argmax(1)) for x, y in data(device, sizes)]


def sgd(model, **options):
    return torch.optim.SGD(model.parameters(), **options)


def reference(model, batches, opt):
    """Train the model on the batches, each with its own gradient."""
    model.train()
    for x, y in batches:
        loss = F.mse_loss(model(x), y)
        for p in model.parameters():
            p.grad = None
        loss.backward()
        opt.step()


def follow(answer, batches, build, opt, stale=False):
    """Train one model as the answer does and one as it should be: (theirs, right)."""
    theirs = build()
    right = copy.deepcopy(theirs)
    if stale:
        dirty(theirs)
    answer.train_epoch(theirs, iter(batches), opt(theirs), F.mse_loss)
    reference(right, batches, opt(right))
    return theirs, right


def same(theirs, right, hint):
    for (name, p), q in zip(theirs.named_parameters(), right.parameters(), strict=True):
        expect_close(p, q, name=f"{name} after the epoch", hint=hint)


@check(
    "the model learns from every batch",
    holds="which trains on the batches of a loader, once each,",
    both_sides=True,
)
def learns(answer, rng, device):
    sizes = [4] * rng.randrange(2, 5)
    model = network(device)
    calls = []
    opt = Watched(model.parameters(), calls.append, lr=0.5)
    before = copy.deepcopy(model.state_dict())
    answer.train_epoch(model, iter(data(device, sizes)), opt, F.mse_loss)
    hint = "The loader here can be walked once. What walks it before the loop leaves nothing."
    expect_true(calls, "no step was made: opt.step() is never called", hint=hint)
    hint = "One step for each batch, after its backward."
    expect_equal(len(calls), len(sizes), name="the number of steps", hint=hint)
    moved = any(not torch.equal(before[k], v) for k, v in model.state_dict().items())
    hint = "Step moves a parameter by its .grad, and skips None. What stands in .grad when it is "
    hint += "called?"
    expect_true(moved, "no parameter has changed", hint=hint)


@check(
    "each step uses the gradient of its own batch", holds="with the gradient of that batch alone"
)
def own_gradient(answer, rng, device):
    batches = data(device, [4, 4, 2])
    model = network(device)
    at = -1

    def at_step(found):
        nonlocal at
        at += 1
        hint = "One step for each batch."
        expect_true(at < len(batches), "there are more steps than batches", hint=hint)
        twin = copy.deepcopy(model)
        twin.zero_grad()
        F.mse_loss(twin(batches[at][0]), batches[at][1]).backward()
        for p, (name, q) in zip(found, twin.named_parameters(), strict=True):
            title = f"{name}.grad at the step of batch {at}"
            hint = "Between two steps: one clearing, then one backward. What lay in .grad before "
            hint += "must be gone, and what this batch's backward left must still be there."
            expect_true(p is not None, f"{title} is None", hint=hint)
            expect_close(p, q.grad, name=title, hint=hint)

    opt = Watched(model.parameters(), at_step, lr=0.3)
    answer.train_epoch(model, iter(batches), opt, F.mse_loss)


@check(
    "gradients that others left are not used",
    holds="perhaps in eval mode, perhaps with gradients in .grad",
)
def stale(answer, rng, device):
    batches = data(device, [4, 4, 2])
    theirs, right = follow(
        answer, batches, lambda: network(device), lambda m: sgd(m, lr=0.1), stale=True
    )
    same(theirs, right, "The model arrived with 99 in each .grad. Clear before the first backward.")


@check(
    "the parameters end where they should, with any optimizer",
    holds=["A batch has one forward pass, one loss and one step", "a torch.optim optimizer"],
)
def end(answer, rng, device):
    for make in (
        lambda m: sgd(m, lr=0.2, momentum=0.9),
        lambda m: torch.optim.AdamW(m.parameters(), lr=0.01),
    ):
        for sizes in ([4, rng.randrange(3, 6), 2], [1]):
            theirs, right = follow(answer, data(device, sizes), lambda: network(device), make)
            same(theirs, right, "Per batch: one forward, one backward, one step, on that batch.")


@check(
    "the loss is a mean over samples, before each update",
    holds=[
        "returns the mean loss per sample",
        "The mean is over all samples, and each loss is that before the update.",
        "The batches may differ in size.",
    ],
    both_sides=True,
)
def mean_loss(answer, rng, device):
    for sizes in ([4, 4, 2], [5, 1], [3]):
        model = network(device)
        losses, opt = [], sgd(model, lr=1.0)

        def loss_fn(out, y):
            loss = F.cross_entropy(out, y)
            losses.append(loss.item())  # noqa: B023
            return loss

        got = answer.train_epoch(model, iter(labelled(device, sizes)), opt, loss_fn)
        hint = "One forward pass and one loss for each batch, the one that backward starts from."
        expect_equal(len(losses), len(sizes), name="the number of losses computed", hint=hint)
        right = sum(v * n for v, n in zip(losses, sizes, strict=True)) / sum(sizes)
        kind = type(got).__name__
        hint = "item() makes a float of a tensor with one element."
        expect_true(isinstance(got, float), f"the result is of type {kind}, not float", hint=hint)
        message = f"the loss is {got:.5g}, not {right:.5g}, for batches of {sizes}"
        hint = "A batch of 2 counts half as much as one of 4: add up loss times samples, and "
        hint += "divide by all samples once."
        expect_true(abs(got - right) < 1e-4 * (1 + right), message, hint=hint)


@check(
    "the model is in training mode, and stays so",
    holds="It trains in training mode, and stays in it.",
)
def mode(answer, rng, device):
    for training in (False, True):
        model = network(device, nn.Dropout(0.5)).train(training)
        model[2].eval()
        seen = []
        model[2].register_forward_hook(lambda module, *_: seen.append(module.training))  # noqa: B023
        answer.train_epoch(model, iter(data(device, [4, 3])), sgd(model, lr=0.1), F.mse_loss)
        hint = "Dropout is off in eval mode. One call before the first forward sets all submodules."
        expect_true(seen and all(seen), "the dropout layer ran in eval mode", hint=hint)
        expect_equal(len(seen), 2, name="the number of forward passes for 2 batches")
        left = [m.training for m in model.modules()]
        expect_true(all(left), "a module is in eval mode afterwards", hint="Nobody asked for that.")


class Mark:
    """Lives as long as the graph that it hangs on."""


class Marked(torch.autograd.Function):
    """The identity. Its node in the graph holds a Mark."""

    @staticmethod
    def forward(ctx, x, marks):
        ctx.mark = Mark()
        marks.append(weakref.ref(ctx.mark))
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        return grad, None


@check(
    "a list will do, and so will a generator",
    holds="The loader may be a list or a generator",
    both_sides=True,
)
def loaders(answer, rng, device):
    batches = data(device, [3, rng.randrange(1, 5), 2])
    for kind, loader in (("a list", list(batches)), ("a generator", (b for b in batches))):
        theirs = network(device)
        right = copy.deepcopy(theirs)
        answer.train_epoch(theirs, loader, sgd(theirs, lr=0.1), F.mse_loss)
        reference(right, batches, sgd(right, lr=0.1))
        same(theirs, right, f"Here the loader is {kind}. Walk it once, and count as you go.")


@check(
    "no graph of an earlier batch stays alive",
    holds="The graph of an earlier batch is not kept alive.",
)
def graphs(answer, rng, device):
    model, marks, most = network(device), [], 0

    def loss_fn(out, y):
        nonlocal most
        loss = Marked.apply(F.mse_loss(out, y), marks)
        most = max(most, sum(mark() is not None for mark in marks))
        return loss

    answer.train_epoch(model, iter(data(device, [4] * 6)), sgd(model, lr=0.1), loss_fn)
    hint = "A sum of losses is a tensor with a graph, and holds the graphs of all batches. Add up "
    hint += "numbers: loss.item()."
    expect_true(most <= 2, f"the graphs of {most} of 6 batches were alive at once", hint=hint)


@hinted(1, reaches=end)
def train_epoch(model, loader, opt, loss_fn):
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total += loss
        n += 1
    return total / n


@hinted(2, reaches=mean_loss)
def train_epoch(model, loader, opt, loss_fn):
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
        n += len(x)
    return total / n


@mutant("walks the loader twice", caught_by=learns)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    n, total = sum(len(x) for x, _ in loader), 0.0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
    return total / n


@mutant("asks for the next batch, which a list cannot give", caught_by=loaders)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n, pair = 0.0, 0, next(loader)
    while pair is not None:
        x, y = pair
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss.item() * len(x), n + len(x)
        pair = next(loader, None)
    return total / n


@mutant(
    "never clears",
    caught_by=own_gradient,
    misconception="autograd/accumulation",
    like="copies p.grad, and never clears it",
)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("clears between backward and step", caught_by=learns)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.zero_grad()
        opt.step()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("steps one batch late", caught_by=own_gradient)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    opt.zero_grad()
    total, n = 0.0, 0
    for x, y in loader:
        opt.step()
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("clears after the step alone", caught_by=stale)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("clears once, before the loop", caught_by=own_gradient)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    opt.zero_grad()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("takes the mean of the batch means", caught_by=mean_loss)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    losses = []
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return sum(losses) / len(losses)


@mutant("never steps", caught_by=learns)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("leaves the mode as it was", caught_by=mode)
def train_epoch(model, loader, opt, loss_fn):
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss.item() * len(x), n + len(x)
    return total / n


@mutant("adds up losses with their graphs", caught_by=graphs)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss * len(x), n + len(x)
    return total.item() / n


@mutant("steps once, at the end of the epoch", caught_by=learns)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    opt.zero_grad()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        total, n = total + loss.item() * len(x), n + len(x)
    opt.step()
    return total / n


@mutant("measures the loss after the step", caught_by=mode)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss_fn(model(x), y).backward()
        opt.step()
        total, n = total + loss_fn(model(x), y).item() * len(x), n + len(x)
    return total / n


@mutant("returns a tensor", caught_by=mean_loss)
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        opt.zero_grad()
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        total, n = total + loss.detach() * len(x), n + len(x)
    return total / n


@accepted("clears after the loss, and adds in a tensor without history")
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        model.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
        total += loss.detach() * y.shape[0]
        n += y.shape[0]
    return (total / n).item()


@accepted("clears before the loop, and after each step")
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    opt.zero_grad()
    sums, sizes = [], []
    for x, y in loader:
        loss = loss_fn(model(x), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
        sums.append(float(loss) * len(x))
        sizes.append(len(x))
    return sum(sums) / sum(sizes)


@accepted("asks autograd for the gradients, and lays them into .grad")
def train_epoch(model, loader, opt, loss_fn):
    model = model.train()
    params = list(model.parameters())
    total, n = 0.0, 0
    for x, y in loader:
        loss = loss_fn(model(x), y)
        for p, g in zip(params, torch.autograd.grad(loss, params), strict=True):
            p.grad = g
        opt.step()
        total += loss.item() * len(x)
        n += len(x)
    return total / n


@accepted("hands the first three steps to the optimizer as a closure")
def train_epoch(model, loader, opt, loss_fn):
    model.train()
    total, n = 0.0, 0
    for x, y in loader:

        def closure(x=x, y=y):
            opt.zero_grad()
            loss = loss_fn(model(x), y)
            loss.backward()
            return loss

        total += opt.step(closure).item() * len(x)
        n += len(x)
    return total / n
