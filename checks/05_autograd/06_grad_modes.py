"""Judges lessons/05_autograd/06_grad_modes.md."""

import contextlib

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_true,
    expect_unchanged,
    fail,
    hinted,
    mutant,
)

background(
    "In self-supervised training",
    "The teacher is the student's own past",
    "After each step the average moves",
    "And for each batch, the model runs",
    "Useful in place",
)

WRITE = "Writing into a leaf that requires grad is refused while operations are recorded."
NAME = (
    "A name, or a place in a list, that gets a new tensor updates nothing: write into the old one."
)
MODE = (
    "The caller finds the mode as it was, on or off. `with` and the decorator put it back, "
    "set_grad_enabled() leaves it as it is set."
)
BACK = "The values must be kept somewhere else: a second name, or detach(), shares the memory."


def leaves(device, *shapes, grad=True, dtype=torch.float32):
    return [torch.randn(shape, dtype=dtype).to(device).requires_grad_(grad) for shape in shapes]


def pairs(rng, device, grad=True, dtype=torch.float32):
    """Averages and parameters of the same shapes: small, 0-d, empty and not contiguous."""
    m, n = rng.sample(range(2, 7), 2)
    shapes = ((n,), (m, n), (), (0, n))
    two = []
    for _ in range(2):
        turned = torch.randn(n, m, dtype=dtype).to(device).T.requires_grad_(grad)
        two.append([*leaves(device, *shapes, grad=grad, dtype=dtype), turned])
    return two


def update(answer, ema, params, decay):
    with advising(RuntimeError, saying="leaf", hint=WRITE):
        answer.ema_update(ema, params, decay)


def average(answer, params, ema, fn):
    with advising(RuntimeError, saying="leaf", hint=WRITE):
        return answer.with_average(params, ema, fn)


def numbers(tensors):
    return [t.detach().clone() for t in tensors]


def expect_same(tensors, before, name, hint):
    for i, (tensor, old) in enumerate(zip(tensors, before)):
        expect_equal(tensor.detach(), old, name=f"{name}[{i}]", hint=hint)


def expect_leaf(tensor, grad, name):
    hint = "The same leaf as before, with other numbers in it: no history, no other flag."
    expect_true(tensor.requires_grad == grad, f"{name}.requires_grad is not {grad} now", hint=hint)
    expect_true(tensor.is_leaf and tensor.grad_fn is None, f"{name} has a history", hint=hint)


@check(
    "the average moves towards the parameter",
    holds="ema[i] becomes decay * ema[i] + (1 - decay) * params[i].",
)
def moves(answer, rng, device):
    hint = "Two terms: decay times the average, and the rest, 1 - decay, times the parameter."
    for dtype in (torch.float32, torch.float64):
        ema, params = pairs(rng, device, dtype=dtype)
        decay = rng.uniform(0.6, 0.95)
        right = [
            decay * a.detach().double() + (1 - decay) * p.detach().double()
            for a, p in zip(ema, params)
        ]
        before = numbers(ema)
        update(answer, ema, params, decay)
        for i, (a, good, old) in enumerate(zip(ema, right, before)):
            said = NAME if torch.equal(a.detach(), old) else hint
            said = "The averages before this one are right. Every pair has its turn." if i else said
            expect_close(a.detach(), good, dtype=dtype, name=f"ema[{i}]", hint=said)


@check("decay 1 keeps the average, decay 0 takes the parameter", holds="decay: from 0 to 1")
def ends(answer, rng, device):
    hint = "decay is the weight of the average: 1 moves nothing, 0 forgets the past."
    for decay in (0.0, 1.0):
        ema, params = pairs(rng, device)
        wanted = numbers(params if decay == 0 else ema)
        update(answer, ema, params, decay)
        for i, (a, good) in enumerate(zip(ema, wanted)):
            expect_close(a.detach(), good, name=f"with decay {decay:g}, ema[{i}]", hint=hint)
    update(answer, [], [], 0.9)


@check(
    "the averages stay the same leaves in the same memory",
    holds=[
        "leave no trace in any graph",
        "with or without requires_grad",
        "the tensors of ema stay the same objects in the same memory",
    ],
    both_sides=True,
)
def same_leaves(answer, rng, device):
    for grad in (True, False):
        ema, params = pairs(rng, device, grad=grad)
        before, memory = list(ema), [a.detach() for a in ema]
        update(answer, ema, params, rng.uniform(0.3, 0.9))
        hint = "Somebody else holds these tensors, and views of them. Write into their memory."
        for i, (a, old, alias) in enumerate(zip(ema, before, memory)):
            expect_true(a is old, f"ema[{i}] is another object now", hint=hint)
            expect_leaf(a, grad, f"ema[{i}]")
            seen = torch.equal(a.detach(), alias)
            expect_true(seen, f"ema[{i}] lives in other memory now", hint=hint)


@check("the parameters are only read", holds="params are only read.")
def only_read(answer, rng, device):
    ema, params = pairs(rng, device)
    hint = "The student's weights belong to the optimizer. What is scaled and scaled back need "
    hint += "not be the same to the last bit."
    for decay in (0.5, rng.uniform(0.8, 0.9), 1.0):
        with expect_unchanged(*params, hint=hint):
            update(answer, ema, params, decay)
    for i, p in enumerate(params):
        expect_leaf(p, True, f"params[{i}]")
        expect_true(p.grad is None, f"params[{i}] has a .grad now")


@check(
    "the mode is afterwards what it was before",
    holds="Afterwards recording is on or off, as it was before.",
    both_sides=True,
)
def mode(answer, rng, device):
    for on in (True, False):
        word = "on" if on else "off"
        ema, params = pairs(rng, device)
        with torch.set_grad_enabled(on):
            update(answer, ema, params, 0.5)
            after = torch.is_grad_enabled()
            torch.set_grad_enabled(on)
            name = f"recording was {word} before ema_update, and is not {word} after it"
            expect_true(after == on, name, hint=MODE)
            average(answer, params, ema, lambda params=params: params[0] * 2)
            after = torch.is_grad_enabled()
            name = f"recording was {word} before with_average, and is not {word} after it"
            expect_true(after == on, name, hint=MODE)


@check(
    "fn sees the averages, and its result comes back",
    holds=["What fn() returns while params hold the values of ema.", "called once"],
)
def sees(answer, rng, device):
    ema, params = pairs(rng, device)
    seen = []

    def fn():
        seen.append(numbers(params))
        return params[0] * 2

    wanted = numbers(ema)
    got = average(answer, params, ema, fn)
    hint = "First the averages go into params, in place: fn knows these tensors and no others."
    expect_true(len(seen) == 1, f"fn was called {len(seen)} times", hint="Once is enough.")
    expect_same(seen[0], wanted, "while fn runs, params", hint)
    expect_equal(got.detach(), 2 * wanted[0], name="the result", hint="Return what fn returned.")


@check(
    "params have their own values back",
    holds="Afterwards params have their own values again, to the last bit",
)
def back(answer, rng, device):
    for grad in (True, False):
        ema, params = pairs(rng, device, grad=grad)
        own, objects, memory = numbers(params), list(params), [p.detach() for p in params]
        average(answer, params, ema, lambda params=params: params[1].sum())
        expect_same(params, own, "params", BACK)
        expect_same(memory, own, "the memory of params", BACK)
        for i, (p, old) in enumerate(zip(params, objects)):
            expect_true(p is old, f"params[{i}] is another object now", hint=NAME)
            expect_leaf(p, grad, f"params[{i}]")


@check(
    "params have their own values back even if fn raises",
    holds="even if fn raises or Ctrl+C ends it",
    both_sides=True,
)
def raises(answer, rng, device):
    ema, params = pairs(rng, device)
    own = numbers(params)

    def fn():
        raise KeyError("no such batch")

    hint = "An exception leaves a function at once. The lines of a `finally:` run all the same."
    try:
        answer.with_average(params, ema, fn)
    except KeyError:
        pass
    else:
        fail("the exception of fn did not reach the caller", hint="Put things back, and let it go.")
    expect_same(params, own, "after an exception, params", hint)
    on = torch.is_grad_enabled()
    expect_true(on, "after an exception in fn, recording is off for the caller", hint=MODE)

    def interrupted():
        raise KeyboardInterrupt

    hint = "Ctrl+C raises KeyboardInterrupt, which `except Exception:` does not catch. `finally:` "
    hint += "asks for no kind."
    with contextlib.suppress(KeyboardInterrupt):
        answer.with_average(params, ema, interrupted)
    expect_same(params, own, "after Ctrl+C, params", hint)


@check("the averages are only read while fn runs", holds="ema stays as it is.")
def averages_read(answer, rng, device):
    ema, params = pairs(rng, device)
    with expect_unchanged(
        *ema, hint="The averages are copied into params, not exchanged for good."
    ):
        average(answer, params, ema, lambda: params[0] + 1)
    for i, a in enumerate(ema):
        expect_leaf(a, True, f"ema[{i}]")


@check("the target records nothing", holds=["It requires no grad", "leave no trace in any graph"])
def silent(answer, rng, device):
    ema, params = pairs(rng, device)
    got = average(answer, params, ema, lambda: (params[0] * params[2]).exp())
    hint = "fn computes with leaves that require grad. While it runs, recording must be off."
    expect_true(not got.requires_grad, "the result requires grad", hint=hint)


@check(
    "the target can enter a graph later",
    holds="the target of a loss that is differentiated later",
)
def enters(answer, rng, device):
    ema, params = pairs(rng, device)
    target = average(answer, params, ema, lambda: params[0] * 2)
    hint = "The student's loss saves the target for its own way back. Tensors of inference mode "
    hint += "cannot be saved."
    with advising(RuntimeError, saying="nference", hint=hint):
        (params[0] * target).sum().backward()
    expect_close(params[0].grad, target, name="the student's gradient of w * target")


@mutant("writes without a mode", caught_by=moves)
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.mul_(decay).add_(p, alpha=1 - decay)


@mutant("gives a local name another tensor", caught_by=moves)
@torch.no_grad()
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a = decay * a + (1 - decay) * p


@mutant("only decays", caught_by=moves)
def ema_update(ema, params, decay):
    for a, _ in zip(ema, params):
        a.detach().mul_(decay)


@mutant("weighs the wrong way round", caught_by=ends)
@torch.no_grad()
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.mul_(1 - decay).add_(p, alpha=decay)


@mutant("puts new tensors into the list", caught_by=same_leaves)
@torch.no_grad()
def ema_update(ema, params, decay):
    for i, p in enumerate(params):
        ema[i] = (decay * ema[i] + (1 - decay) * p).requires_grad_(ema[i].requires_grad)


@mutant("gives the averages other memory", caught_by=same_leaves)
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.data = decay * a.data + (1 - decay) * p.data


@mutant("switches requires_grad off to get in", caught_by=same_leaves)
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.requires_grad_(False)
        a.mul_(decay).add_(p.detach(), alpha=1 - decay)


@mutant("scales the parameters on the way", caught_by=only_read)
@torch.no_grad()
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.mul_(decay).add_(p.mul_(1 - decay))


@mutant("scales the parameters, and back again", caught_by=only_read)
@torch.no_grad()
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.mul_(decay).add_(p.mul_(1 - decay))
        p.div_(1 - decay)


@mutant("updates the first pair", caught_by=moves)
@torch.no_grad()
def ema_update(ema, params, decay):
    for a, p in list(zip(ema, params))[:1]:
        a.mul_(decay).add_(p, alpha=1 - decay)


@mutant("leaves recording off", caught_by=mode)
def ema_update(ema, params, decay):
    torch.set_grad_enabled(False)
    for a, p in zip(ema, params):
        a.mul_(decay).add_(p, alpha=1 - decay)


@mutant("turns recording on at the end, whatever it was", caught_by=mode)
def ema_update(ema, params, decay):
    torch.set_grad_enabled(False)
    for a, p in zip(ema, params):
        a.mul_(decay).add_(p, alpha=1 - decay)
    torch.set_grad_enabled(True)


def exchange(params, ema, fn, keep, around):
    """with_average, with the ways to keep the values and to run fn left open."""
    with torch.no_grad():
        kept = [keep(p) for p in params]
        for p, a in zip(params, ema):
            p.copy_(a)
    try:
        with around:
            return fn()
    finally:
        with torch.no_grad():
            for p, old in zip(params, kept):
                p.copy_(old)


@mutant("leaves the parameters where they are", caught_by=sees)
@torch.no_grad()
def with_average(params, ema, fn):
    return fn()


@mutant("gives the local list the averages", caught_by=sees)
@torch.no_grad()
def with_average(params, ema, fn):
    kept, params = params, ema
    result = fn()
    params = kept
    return result


@mutant("keeps the values under a second name", caught_by=back)
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.Tensor.detach, torch.no_grad())


@mutant("never puts the values back", caught_by=back)
@torch.no_grad()
def with_average(params, ema, fn):
    for p, a in zip(params, ema):
        p.copy_(a)
    return fn()


@mutant("puts the values back on the next line", caught_by=raises)
@torch.no_grad()
def with_average(params, ema, fn):
    kept = [p.clone() for p in params]
    for p, a in zip(params, ema):
        p.copy_(a)
    result = fn()
    for p, old in zip(params, kept):
        p.copy_(old)
    return result


@mutant("puts the values back after errors, not after Ctrl+C", caught_by=raises)
@torch.no_grad()
def with_average(params, ema, fn):
    kept = [p.clone() for p in params]
    for p, average in zip(params, ema):
        p.copy_(average)
    try:
        result = fn()
    except Exception:
        for p, old in zip(params, kept):
            p.copy_(old)
        raise
    for p, old in zip(params, kept):
        p.copy_(old)
    return result


@mutant("swallows the exception", caught_by=raises)
@torch.no_grad()
def with_average(params, ema, fn):
    try:
        return exchange(params, ema, fn, torch.clone, torch.no_grad())
    except KeyError:
        return None


@mutant("exchanges the two, and only half of it back", caught_by=averages_read)
@torch.no_grad()
def with_average(params, ema, fn):
    kept = [p.clone() for p in params]
    for p, a, old in zip(params, ema, kept):
        p.copy_(a)
        a.copy_(old)
    try:
        return fn()
    finally:
        for p, old in zip(params, kept):
            p.copy_(old)


@mutant("records what fn does", caught_by=silent)
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.clone, torch.enable_grad())


@mutant("runs fn in inference mode", caught_by=enters)
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.clone, torch.inference_mode())


@mutant("does everything in inference mode", caught_by=enters)
@torch.inference_mode()
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.clone, torch.no_grad())


@hinted(1, reaches=mode)
def ema_update(ema, params, decay):
    with torch.no_grad():
        for average, p in zip(ema, params):
            average.copy_(decay * average + (1 - decay) * p)


@accepted("interpolates under no_grad")
def ema_update(ema, params, decay):
    with torch.no_grad():
        for i in range(len(ema)):
            ema[i].lerp_(params[i], 1 - decay)


@accepted("writes through detach")
def ema_update(ema, params, decay):
    for a, p in zip(ema, params):
        a.detach().mul_(decay).add_(p.detach(), alpha=1 - decay)


@accepted("updates in inference mode, since only numbers are written")
def ema_update(ema, params, decay):
    with torch.inference_mode():
        for a, p in zip(ema, params):
            a.copy_(a * decay + p * (1 - decay))


@accepted("stores and restores the flag by hand")
def ema_update(ema, params, decay):
    before = torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    try:
        for a, p in zip(ema, params):
            a += (1 - decay) * (p - a)
    finally:
        torch.set_grad_enabled(before)


@accepted("runs fn under no_grad and copies outside of it")
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.clone, torch.no_grad())


@accepted("lends the parameters the averages' memory")
def with_average(params, ema, fn):
    kept = [p.data for p in params]
    try:
        for p, a in zip(params, ema):
            p.data = a.data
        with torch.no_grad():
            return fn()
    finally:
        for p, old in zip(params, kept):
            p.data = old


@accepted("detaches a clone of what was computed in inference mode")
def with_average(params, ema, fn):
    return exchange(params, ema, fn, torch.clone, torch.inference_mode()).clone().detach()
