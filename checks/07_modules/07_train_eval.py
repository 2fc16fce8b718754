"""Judges lessons/07_modules/07_train_eval.md."""

import copy

import torch
from torch import nn
from torch.nn import functional as F

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    hinted,
    mutant,
)

background(
    "A helper that runs in the middle",
    "Write `predict`.",
    "Mind two things that `model.train()` at the end gets wrong.",
)

shows = ["autograd/grad_modes"]

EVAL = "In eval mode nothing is random, each row is on its own, and the running statistics are "
EVAL += "used. The flag must be off in every module, the model itself included."
RESTORE = "Note the flag of each module before eval(), and set each one back. One flag for all is "
RESTORE += "not enough, and train(mode) also writes into everything below."


class Noisy(nn.Module):
    """Reads its own flag, and holds a layer that another module holds too."""

    def __init__(self, n, norm):
        super().__init__()
        self.norm = norm
        self.drop = nn.ModuleList([nn.Dropout(0.4)])
        self.line = nn.Linear(n, n)

    def forward(self, x):
        x = self.line(self.drop[0](self.norm(x)))
        return x + F.dropout(torch.ones_like(x), 0.3, training=self.training)


class Stop(Exception):
    """What a model that breaks raises."""


class Breaks(nn.Module):
    def forward(self, x):
        raise Stop


class Interrupt(BaseException):
    """Raised in place of a KeyboardInterrupt. It is no Exception either."""


class Interrupted(nn.Module):
    def forward(self, x):
        raise Interrupt


def model(rng, device):
    """(model, width): it has seen data, and its modules are in random modes."""
    n = rng.randrange(2, 8)
    shared = nn.BatchNorm1d(n)
    net = nn.Sequential(
        nn.Sequential(nn.Linear(n, n), shared),
        Noisy(n, nn.BatchNorm1d(n, momentum=0.5)),
        Noisy(n, shared),
    ).to(device)
    with torch.no_grad():
        for _ in range(3):
            net(torch.randn(9, n, device=device) * 2 + 1)
    for m in net.modules():
        m.training = rng.random() < 0.5
    return net, n


def wanted(net, x):
    """model(x) in eval mode, by a copy of the model."""
    with torch.no_grad():
        return copy.deepcopy(net).eval()(x)


@check("the model runs in eval mode", holds="model(x) in eval mode")
def evaluates(answer, rng, device):
    net, n = model(rng, device)
    for training in (True, False):
        net.train(training)
        x = torch.randn(rng.randrange(2, 7), n, device=device)
        right = wanted(net, x)
        expect_close(answer.predict(net, x), right, hint=EVAL)


@check("a row alone gives what it gives in a batch, each time")
def alone(answer, rng, device):
    net, n = model(rng, device)
    net.train()
    x = torch.randn(5, n, device=device)
    together = answer.predict(net, x)
    expect_close(answer.predict(net, x), together, name="the result of a second call", hint=EVAL)
    for i in (0, 4):
        row = answer.predict(net, x[i : i + 1])
        expect_close(row, together[i : i + 1], name="the result for a batch of one", hint=EVAL)
    expect_close(answer.predict(net, x[:0]), together[:0], name="the result for no rows", hint=EVAL)


@check("a module that reads its own flag is told too")
def root_flag(answer, rng, device):
    n = rng.randrange(2, 8)
    net = Noisy(n, nn.Identity()).to(device).train()
    x = torch.randn(6, n, device=device)
    expect_close(answer.predict(net, x), wanted(net, x), hint=EVAL)
    drop = nn.Dropout(0.5)
    expect_equal(answer.predict(drop, x), x, name="what a single Dropout makes of x", hint=EVAL)


@check("the result has no history", holds="computed without a graph, even if x requires grad")
def no_history(answer, rng, device):
    net, n = model(rng, device)
    x = torch.randn(3, n, device=device, requires_grad=True)
    hint = "eval() does not stop autograd. Which context does?"
    recorded = []
    handle = net[0].register_forward_hook(lambda m, a, out: recorded.append(out.requires_grad))
    got = answer.predict(net, x)
    handle.remove()
    expect_true(not got.requires_grad, "the result requires grad", hint=hint)
    late = "The graph was recorded, and detach() at the end throws it away. Record none."
    expect_true(not any(recorded), "inside the model a graph is recorded", hint=late)
    expect_true(
        x.requires_grad and all(p.requires_grad for p in net.parameters()),
        "x or a parameter does not require grad any more",
        hint="They belong to the caller. Turn off the recording, not the tensors.",
    )


@check("the model is called once, with its hooks", holds="It is one call, and hooks run")
def called(answer, rng, device):
    net, n = model(rng, device)
    runs = []
    handles = [m.register_forward_hook(lambda m, *_: runs.append(m)) for m in (net, net[1])]
    answer.predict(net, torch.randn(3, n, device=device))
    for handle in handles:
        handle.remove()
    hint = "`model(x)`, one time. `model.forward(x)` goes past the hooks of the model, and a copy "
    hint += "is another model."
    count = [sum(m is part for m in runs) for part in (net, net[1])]
    name = "how often the hooks of the model and of its child 1 ran"
    expect_equal(count, [1, 1], name=name, hint=hint)


@check("parameters and buffers do not move", holds="Parameters, their .grad, buffers")
def state_stays(answer, rng, device):
    net, n = model(rng, device)
    net.train()
    net(torch.randn(5, n, device=device)).sum().backward()
    grads = {name: p.grad.clone() for name, p in net.named_parameters()}
    before = copy.deepcopy(net.state_dict())
    answer.predict(net, torch.randn(4, n, device=device))
    for name, value in net.state_dict().items():
        expect_equal(
            value,
            before[name],
            name=name,
            hint="In training mode a BatchNorm moves its statistics, under no_grad too.",
        )
    hint = "A training loop may be between backward() and step()."
    for name, p in net.named_parameters():
        expect_true(p.grad is not None, f"{name}.grad is gone", hint=hint)
        expect_equal(p.grad, grads[name], name=f"{name}.grad", hint=hint)


def expect_modes(net, modes, when, hint=RESTORE):
    for name, m in net.named_modules():
        expect_true(
            m.training == modes[name],
            f"{when}, {name or 'the model itself'} has training={m.training}; "
            f"before it was {modes[name]}",
            hint=hint,
        )


@check(
    "each module is in its own mode again",
    holds=[
        "It must leave the model as it found it.",
        "Afterwards each module is in the mode it was in before",
    ],
    both_sides=True,
)
def modes_back(answer, rng, device):
    for training in (True, False, None):
        net, n = model(rng, device)
        if training is not None:
            net.train(training)
        modes = {name: m.training for name, m in net.named_modules()}
        answer.predict(net, torch.randn(3, n, device=device))
        expect_modes(net, modes, "afterwards")
    net.train()
    net[1].norm.eval()
    modes = {name: m.training for name, m in net.named_modules()}
    answer.predict(net, torch.randn(3, n, device=device))
    expect_modes(net, modes, "afterwards")


@check("a module with two parents, too", holds="a module can have two parents")
def two_parents(answer, rng, device):
    net, n = model(rng, device)
    net.train()
    net[0][1].eval()  # the other parent, net[2], trains
    answer.predict(net, torch.randn(3, n, device=device))
    expect_true(
        not net[2].norm.training,
        "a BatchNorm that two modules hold was in eval mode, and trains now",
        hint="train(mode) of the second parent writes over what was set back under the first. Set "
        "the attribute itself.",
    )


@check(
    "if the model raises, all is put back as well",
    holds=[
        "And the model may raise.",
        "also if the model raises or is interrupted (and the error reaches the caller).",
    ],
    both_sides=True,
)
def after_an_error(answer, rng, device):
    net, n = model(rng, device)
    net.append(Breaks())
    modes = {name: m.training for name, m in net.named_modules()}
    hint = "Put everything back in `finally`. It runs in either case, and lets the error pass on "
    hint += "to the caller."
    with expect_raises(Stop, "the model raised an error, and predict kept it", hint=hint):
        answer.predict(net, torch.randn(3, n, device=device))
    expect_modes(net, modes, "after an error in the model", hint)
    expect_true(torch.is_grad_enabled(), "after an error, grad mode is left off", hint=hint)
    net[-1] = Interrupted()
    modes = {name: m.training for name, m in net.named_modules()}
    hint = "Ctrl-C is no Exception, so `except Exception` lets it by. `finally` does not."
    try:
        answer.predict(net, torch.randn(3, n, device=device))
        kept = True
    except Interrupt:
        kept = False
    expect_true(not kept, "the model was interrupted, and predict kept that to itself", hint=hint)
    expect_modes(net, modes, "after the model was interrupted", hint)


@check("the caller's grad mode is as before", holds="the caller's grad mode are as before")
def grad_mode(answer, rng, device):
    net, n = model(rng, device)
    x = torch.randn(3, n, device=device)
    hint = "A context puts back what was there, on or off."
    answer.predict(net, x)
    expect_true(torch.is_grad_enabled(), "recording was on, and is off now", hint=hint)
    with torch.no_grad():
        answer.predict(net, x)
        still = torch.is_grad_enabled()
    expect_true(not still, "recording was off, and is on now", hint=hint)


@mutant("no eval", caught_by=evaluates)
def predict(model, x):
    with torch.no_grad():
        return model(x)


@mutant("eval for the children only", caught_by=root_flag)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    for child in model.children():
        child.eval()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("keeps the graph", caught_by=no_history)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        return model(x)
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("freezes the parameters instead", caught_by=no_history)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval().requires_grad_(False)
    try:
        return model(x.detach())
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("everything trains afterwards", caught_by=modes_back)
def predict(model, x):
    model.eval()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        model.train()


@mutant("remembers the model's flag only", caught_by=modes_back)
def predict(model, x):
    was = model.training
    model.eval()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        model.train(was)


@mutant("stays in eval mode", caught_by=modes_back)
def predict(model, x):
    with torch.no_grad():
        return model.eval()(x)


@mutant("sets the modes back with train", caught_by=two_parents)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        for m, mode in modes:
            m.train(mode)


@mutant("no finally", caught_by=after_an_error)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    with torch.no_grad():
        out = model(x)
    for m, mode in modes:
        m.training = mode
    return out


@mutant("swallows the error", caught_by=after_an_error)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    out = None
    try:
        with torch.no_grad():
            out = model(x)
    except Exception:
        pass
    for m, mode in modes:
        m.training = mode
    return out


@mutant(
    "turns recording on again by hand",
    caught_by=grad_mode,
    misconception="autograd/grad_modes",
    like="turns recording on at the end, whatever it was",
)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    torch.set_grad_enabled(False)
    try:
        return model(x)
    finally:
        torch.set_grad_enabled(True)
        for m, mode in modes:
            m.training = mode


@mutant("moves the statistics, then uses them", caught_by=state_stays)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    with torch.no_grad():
        if len(x) > 1:
            model.train()(x)
        out = model.eval()(x)
    for m, mode in modes:
        m.training = mode
    return out


@mutant("detaches the result, and has recorded everything", caught_by=no_history)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        return model(x).detach()
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("calls forward", caught_by=called)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            return model.forward(x)
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("runs a copy", caught_by=called)
def predict(model, x):
    with torch.no_grad():
        return copy.deepcopy(model).eval()(x)


@mutant("clears the gradients", caught_by=state_stays)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval().zero_grad()
    try:
        with torch.no_grad():
            return model(x)
    finally:
        for m, mode in modes:
            m.training = mode


@mutant("puts back after an Exception, and not after Ctrl-C", caught_by=after_an_error)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            out = model(x)
    except Exception:
        for m, mode in modes:
            m.training = mode
        raise
    for m, mode in modes:
        m.training = mode
    return out


@hinted(1, reaches=root_flag)
def predict(model, x):
    modes = [(m, m.training) for m in model.modules()]
    model.eval()
    out = model(x)
    for m, mode in modes:
        m.training = mode
    return out


@accepted("inference mode, and a list of those that trained")
@torch.inference_mode()
def predict(model, x):
    trained = [m for m in model.modules() if m.training]
    try:
        return model.eval()(x)
    finally:
        for m in trained:
            m.training = True


@accepted("sets every flag itself")
def predict(model, x):
    flags = {name: m.training for name, m in model.named_modules()}
    try:
        for m in model.modules():
            m.training = False
        with torch.no_grad():
            return model(x)
    finally:
        for name, flag in flags.items():
            model.get_submodule(name).training = flag
