"""Judges lessons/14_performance/01_autocast.md."""

import copy

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    hinted,
    mutant,
)

background(
    "Your loss is written by hand: it takes a logarithm and sums over many entries.",
    "With bfloat16 logits it would keep 8 bits",
)

FORWARD = (
    "The model is called inside torch.autocast, with the device type of x and dtype=torch.bfloat16."
)
RETURNED = (
    "The second of the pair is the dtype of what the model returned: logits.dtype, before .float()."
)
ONCE = "The model and the loss run once a step. Return the loss that backward() began at."
MASTER = (
    "Autocast casts copies. Whoever casts the model rounds its weights, and loses small steps, "
    "also if it is cast back afterwards."
)
LOSS = "Leave the autocast block before the loss, and hand the loss logits.float()."
AFTER = "Leave the autocast block before backward() and step()."
CLEAR = "backward() adds to what lies in .grad. Clear it first."
STEP = "One backward() of this batch's loss, then one opt.step() with what it left in .grad."
EARLY = "Call zero_grad() before backward(). After it, it takes away what the step needs."
STALE = (
    "Autocast keeps its copies of weights until the caller's context ends, and they are old after "
    "a step. cache_enabled=False in your own context keeps none."
)
CALLER = "The caller's autocast is on around all of your step. Switch it off where it must be off."


def log_loss(z, y):
    rows = torch.arange(len(y), device=z.device)
    return (z.logsumexp(1) - z[rows, y]).mean()


def task(rng, device, rows=None):
    features, classes = rng.randint(5, 9), rng.randint(3, 5)
    model = nn.Sequential(nn.Linear(features, 8), nn.Tanh(), nn.Linear(8, classes)).to(device)
    n = rng.randint(4, 9) if rows is None else rows
    x = torch.randn(n, features, device=device)
    y = torch.randint(classes, (n,), device=device)
    return model, x, y


def on(device):
    return torch.is_autocast_enabled(device.type)


def pair(answer, model, loss_fn, x, y, opt):
    got = answer.amp_step(model, loss_fn, x, y, opt)
    hint = "Return (loss.item(), logits.dtype)."
    right = isinstance(got, (tuple, list)) and len(got) == 2
    expect_true(right, "amp_step does not return a pair", hint=hint)
    expect_true(type(got[0]) is float, "the loss is not a Python float", hint=hint)
    return got


def right_step(model, x, y, opt):
    """The same step by the rules of the task, for comparison."""
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x)
    loss = log_loss(logits.float(), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    return loss.item()


@check(
    "the model runs in bfloat16",
    hint=FORWARD,
    holds=[
        "The model runs under autocast to bfloat16, on the device where x is.",
        "The result is a pair: the loss as a Python float, and the dtype of what the model",
    ],
)
def forward(answer, rng, device):
    model, x, y = task(rng, device)
    seen = []
    model[0].register_forward_hook(lambda m, i, out: seen.append(out.dtype))
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    _, dtype = pair(answer, model, log_loss, x, y, opt)
    expect_equal(len(seen), 1, name="the number of forward passes", hint=ONCE)
    expect_equal(seen[0], torch.bfloat16, name="the dtype of a layer's output", hint=FORWARD)
    expect_equal(dtype, torch.bfloat16, name="the returned dtype", hint=RETURNED)


@check(
    "parameters and gradients are float32",
    holds="Parameters stay float32, and so do their gradients.",
)
def master(answer, rng, device):
    model, x, y = task(rng, device)
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    opt = torch.optim.SGD(model.parameters(), lr=0.0)  # a step that moves nothing
    used = {}

    def note(*_):
        used.update({name: p.grad for name, p in model.named_parameters()})

    opt.register_step_post_hook(note)
    pair(answer, model, log_loss, x, y, opt)
    for name, p in model.named_parameters():
        expect_equal(p.dtype, torch.float32, name=f"the dtype of {name}", hint=MASTER)
        expect_close(p.detach(), before[name], name=f"{name}, rate 0,", atol=0, rtol=0, hint=MASTER)
        grad = used.get(name)
        expect_true(grad is not None, f"the step found no gradient of {name}", hint=EARLY)
        expect_equal(grad.dtype, torch.float32, name=f"the dtype of {name}.grad", hint=MASTER)


@check(
    "the loss sees float32, and autocast is off",
    holds="The loss gets the logits in float32 and runs with autocast off.",
)
def loss_island(answer, rng, device):
    model, x, y = task(rng, device)
    seen = []

    def loss_fn(z, y):
        seen.append((z.dtype, on(device)))
        return log_loss(z, y)

    pair(answer, model, loss_fn, x, y, torch.optim.SGD(model.parameters(), lr=0.1))
    expect_equal(len(seen), 1, name="the number of calls of the loss", hint=ONCE)
    expect_equal(seen[0][0], torch.float32, name="the dtype of the loss's logits", hint=LOSS)
    expect_true(not seen[0][1], "autocast is on while the loss runs", hint=LOSS)


def states(answer, rng, device):
    """Whether autocast was on in the loss, in backward and in the optimizer's step."""
    model, x, y = task(rng, device)
    seen = {}

    def loss_fn(z, y):
        seen["the loss"] = on(device)
        return log_loss(z, y)

    def note(name):
        return lambda *_: seen.update({name: on(device)})

    model[2].register_full_backward_hook(note("backward()"))  # its input requires grad
    opt = torch.optim.SGD(model.parameters(), lr=0.1)
    opt.register_step_pre_hook(note("the optimizer's step"))
    _, dtype = pair(answer, model, loss_fn, x, y, opt)
    expect_equal(dtype, torch.bfloat16, name="the returned dtype", hint=FORWARD)
    for name in ("backward()", "the optimizer's step"):
        expect_true(name in seen, f"{name} did not run", hint="A step has all five parts.")
    return seen


@check("backward and step run without autocast", holds="So do backward() and the step")
def after(answer, rng, device):
    for name, was in states(answer, rng, device).items():
        expect_true(not was, f"autocast is on during {name}", hint=AFTER)


def compare_steps(answer, model, x, y, hint, planted=None, where=""):
    """Three steps of the answer beside those of a twin. planted: a value to leave in .grad."""
    twin = copy.deepcopy(model)
    opt = torch.optim.SGD(model.parameters(), lr=0.2, momentum=0.9)
    other = torch.optim.SGD(twin.parameters(), lr=0.2, momentum=0.9)
    for p in model.parameters() if planted else ():
        p.grad = torch.full_like(p, planted)
    kind = x.device.type
    for number in range(1, 4):
        loss, _ = pair(answer, model, log_loss, x, y, opt)
        with torch.autocast(kind, enabled=False):
            wanted = right_step(twin, x, y, other)
        name = f"the loss of step {number}{where}"
        expect_close(torch.tensor(loss), torch.tensor(wanted), name=name, hint=hint)
    for (name, p), q in zip(model.named_parameters(), twin.parameters(), strict=True):
        name = f"{name} after three steps{where}"
        expect_close(p.detach(), q.detach(), name=name, hint=hint)


@check(
    "three steps give the right weights",
    holds="one training step",
)
def steps(answer, rng, device):
    model, x, y = task(rng, device)
    for p in model.parameters():
        p.grad = torch.zeros_like(p)
    first = copy.deepcopy(model)
    opt = torch.optim.SGD(first.parameters(), lr=0.2)
    pair(answer, first, log_loss, x, y, opt)
    twin = copy.deepcopy(model)
    right_step(twin, x, y, torch.optim.SGD(twin.parameters(), lr=0.2))
    for (name, p), q in zip(first.named_parameters(), twin.named_parameters(), strict=True):
        name = f"{name} after one step"
        expect_close(p.detach(), q[1].detach(), name=name, hint=STEP)
    compare_steps(answer, model, x, y, CLEAR)


@check(
    "what an earlier step left does not count",
    holds="Gradients that an earlier step left do not count.",
)
def cleared(answer, rng, device):
    compare_steps(answer, *task(rng, device), CLEAR, planted=3.0)


@check("a batch of one sample", holds="x, y: a batch, on the model's device")
def single(answer, rng, device):
    model, x, y = task(rng, device, rows=1)
    twin = copy.deepcopy(model)
    x = x.double().float().T.contiguous().T
    loss, _ = pair(answer, model, log_loss, x, y, torch.optim.SGD(model.parameters(), lr=0.1))
    wanted = right_step(twin, x, y, torch.optim.SGD(twin.parameters(), lr=0.1))
    expect_close(torch.tensor(loss), torch.tensor(wanted), name="the loss")


@check(
    "the caller's autocast is on, and stays on",
    holds="Afterwards autocast is as it was, on or off.",
    side="on",
)
def caller_on(answer, rng, device):
    for dtype in (torch.bfloat16, torch.float16):
        with torch.autocast(device.type, dtype=dtype):
            seen = states(answer, rng, device)
            expect_true(on(device), "the caller's autocast is off afterwards", hint=CALLER)
            now = torch.get_autocast_dtype(device.type)
            expect_equal(now, dtype, name="the caller's autocast dtype", hint=CALLER)
        for name, was in seen.items():
            expect_true(not was, f"the caller's autocast is on during {name}", hint=CALLER)


@check(
    "steps under the caller's autocast take the weights as they are",
    holds=[
        "The caller may have autocast switched on, around many steps.",
        "A step still takes the weights as they are.",
    ],
)
def caller_steps(answer, rng, device):
    for dtype in (torch.bfloat16, torch.float16):
        model, x, y = task(rng, device)
        with torch.autocast(device.type, dtype=dtype):
            model(x)  # leaves copies of the weights
            with advising(RuntimeError, saying="dtype", hint=STALE):
                where = " under the caller's autocast"
                compare_steps(answer, model, x, y, STALE, where=where)


@check(
    "the caller's autocast is off, and stays off",
    holds="Afterwards autocast is as it was, on or off.",
    side="off",
)
def caller_off(answer, rng, device):
    states(answer, rng, device)
    still = on(device)
    torch.set_autocast_enabled(device.type, False)
    expect_true(not still, "autocast is still on afterwards", hint="Use it as a context, by with.")


@mutant("casts the model", caught_by=master)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    model.bfloat16()
    logits = model(x.bfloat16())
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("stays in float32", caught_by=forward)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    logits = model(x)
    loss = loss_fn(logits, y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("names a device that is not there", caught_by=forward)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast("cuda" if x.device.type == "cpu" else "cpu", dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("casts the logits instead of the forward pass", caught_by=forward)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    logits = model(x).bfloat16()
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("hands bfloat16 logits to the loss", caught_by=loss_island)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits, y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("computes the loss inside the context", caught_by=loss_island)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
        loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("walks back inside the context", caught_by=after)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
        with torch.autocast(x.device.type, enabled=False):
            loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
    return loss.item(), logits.dtype


@mutant("runs backward for the loss, and the model again for the result", caught_by=forward)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss_fn(logits.float(), y).backward()
        opt.step()
        loss = loss_fn(model(x), y)
    return loss.item(), logits.dtype


@mutant("returns the dtype after the cast", caught_by=forward)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x).float()
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits, y)
        loss.backward()
        opt.step()
    return loss.item(), logits.dtype


@mutant("casts the model and casts it back", caught_by=master)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    logits = model.bfloat16()(x.bfloat16())
    loss = loss_fn(logits.float(), y)
    loss.backward()
    model.float()
    opt.step()
    return loss.item(), logits.dtype


@mutant("steps twice", caught_by=steps)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
        opt.step()
    return loss.item(), logits.dtype


@mutant("clears the gradients after the step alone", caught_by=cleared)
def amp_step(model, loss_fn, x, y, opt):
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=False)
    return loss.item(), logits.dtype


@mutant("takes the device's default dtype", caught_by=caller_on)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, cache_enabled=False):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
    return loss.item(), logits.dtype


@mutant("takes copies of weights that the caller's context keeps", caught_by=caller_steps)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
    return loss.item(), logits.dtype


@mutant("does not clear the gradients", caught_by=steps)
def amp_step(model, loss_fn, x, y, opt):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("clears the gradients before the step", caught_by=master)
def amp_step(model, loss_fn, x, y, opt):
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.zero_grad()
    opt.step()
    return loss.item(), logits.dtype


@mutant("forgets that the caller may have autocast on", caught_by=caller_on)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits.float(), y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@mutant("switches autocast on, and never off", caught_by=caller_off)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
    torch.set_autocast_enabled(x.device.type, True)
    return loss.item(), logits.dtype


@hinted(1, reaches=master)
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    loss = loss_fn(logits, y)
    loss.backward()
    opt.step()
    return loss.item(), logits.dtype


@accepted("nests the contexts the other way round")
def amp_step(model, loss_fn, x, y, opt):
    with torch.amp.autocast(x.device.type, enabled=False):
        with torch.amp.autocast(x.device.type, torch.bfloat16, cache_enabled=False):
            logits = model(x)
        loss = loss_fn(logits.to(torch.float32), y)
        opt.zero_grad(set_to_none=False)
        loss.backward()
        opt.step()
    return float(loss), logits.dtype


@accepted("decorates functions")
def amp_step(model, loss_fn, x, y, opt):
    @torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False)
    def forward():
        return model(x)

    @torch.autocast(x.device.type, enabled=False)
    def rest(logits):
        model.zero_grad()
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
        return loss.detach().item()

    logits = forward()
    return rest(logits), logits.dtype


@accepted("empties the cache, and clears the gradients on both sides")
def amp_step(model, loss_fn, x, y, opt):
    opt.zero_grad()
    torch.clear_autocast_cache()
    with torch.autocast(x.device.type, dtype=torch.bfloat16):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        loss.backward()
        opt.step()
        opt.zero_grad()
    return loss.item(), logits.dtype


@accepted("hands the optimizer a closure")
def amp_step(model, loss_fn, x, y, opt):
    dtypes = []

    def closure():
        opt.zero_grad()
        with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
            logits = model(x)
        loss = loss_fn(logits.float(), y)
        loss.backward()
        dtypes.append(logits.dtype)
        return loss

    with torch.autocast(x.device.type, enabled=False):
        loss = opt.step(closure)
    return loss.item(), dtypes[0]


@accepted("asks for the gradients and sets them")
def amp_step(model, loss_fn, x, y, opt):
    params = list(model.parameters())
    with torch.autocast(x.device.type, dtype=torch.bfloat16, cache_enabled=False):
        logits = model(x)
    with torch.autocast(x.device.type, enabled=False):
        loss = loss_fn(logits.float(), y)
        for p, grad in zip(params, torch.autograd.grad(loss, params), strict=True):
            p.grad = grad
        opt.step()
    return loss.item(), logits.dtype
