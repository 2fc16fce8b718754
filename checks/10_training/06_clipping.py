"""Judges lessons/10_training/06_clipping.md."""

import contextlib
import copy
import math
import sys

import torch
from torch import nn

from tensortutor.checking import (
    accepted,
    background,
    check,
    expect_close,
    expect_equal,
    expect_raises,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "`torch.linalg.vector_norm(t)` is the length of a tensor",
    "The length of a list of lengths is the length of all.",
)

ONE = "All gradients are one long vector: the root of the sum of all their squares, before the "
ONE += "clip. The length of the list of lengths is just that."
FACTOR = "One factor for all of them: max_norm divided by the norm of all gradients together."
SHORT = "The bound is an upper one. Whatever is shorter passes as it is."
BOTH = "One factor for all of them, and none for what is within the bound."
HALF = "The sum of squares overflows where the norm does not. torch.linalg.vector_norm copes."
EXACT = "The factor is max_norm / norm, with nothing added to the norm."
INPLACE = "Others may hold the same tensor. Write into it, as mul_ does, and bind no new one."


def leaf(grad, device, dtype=torch.float32):
    """A parameter with this gradient, or with none."""
    if grad is None:
        return torch.zeros(3, device=device, dtype=dtype, requires_grad=True)
    p = torch.zeros(grad.shape, device=device, dtype=dtype, requires_grad=True)
    p.grad = grad.to(device=device, dtype=dtype)
    return p


def params_of_norm(rng, device, norm, dtype=torch.float32):
    """Parameters of many shapes, some without a gradient, whose gradients have this norm."""
    n = rng.randint(2, 5)
    shapes = [(n, 3), (), (1,), (0,), (2, n, 2), (n,)]
    grads = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    grads = [g * norm / total(grads) for g in grads]
    params = [leaf(g, device, dtype) for g in grads]
    turned = params[0].grad.T.contiguous().T  # not contiguous
    params[0].grad = turned
    params.insert(rng.randrange(len(params)), leaf(None, device, dtype))
    rng.shuffle(params)
    return params


def total(grads):
    """The norm of all gradients in float64."""
    return torch.cat([g.detach().double().flatten() for g in grads]).square().sum().sqrt()


def grads_of(params):
    return [p.grad for p in params if p.grad is not None]


def clones(params):
    return [g.clone() for g in grads_of(params)]


@contextlib.contextmanager
def functions_run(*files):
    """A set of the names of the functions from these files that are called inside."""
    names, before = set(), sys.getprofile()

    def note(frame, event, _):
        if event == "call" and frame.f_code.co_filename.endswith(files):
            names.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        yield names
    finally:
        sys.setprofile(before)


def clipped(answer, params, max_norm):
    """What clip_ returns, as a 0-d tensor."""
    norm = answer.clip_(params, max_norm)
    expect_true(
        isinstance(norm, torch.Tensor) and norm.ndim == 0,
        "the result is not a 0-d tensor",
        hint="torch.linalg.vector_norm returns one. Without any gradient it is torch.tensor(0.0).",
    )
    return norm


@check(
    "it is built without torch.nn.utils",
    holds="without the functions of torch.nn.utils",
)
def own(answer, rng, device):
    params = params_of_norm(rng, device, 6.0)
    with functions_run("nn/utils/clip_grad.py") as used:
        answer.clip_(params, 3.0)
    used -= {"_no_grad_wrapper", "<lambda>", "<genexpr>"}
    if used:
        fail(f"torch.nn.utils runs: {', '.join(sorted(used))}",
             hint="Build the norm and the scaling from operations on tensors.")  # fmt: skip


@check(
    "it returns the norm of all gradients before the clip",
    holds="The result is their norm before the clip, a 0-d tensor of their dtype",
)
def returned(answer, rng, device):
    for norm, bound in ((7.0, 2.0), (0.6, 2.0), (40.0, 50.0)):
        for dtype in (torch.float32, torch.float64):
            params = params_of_norm(rng, device, norm * (1 + rng.random() / 10), dtype)
            wanted = total(grads_of(params))
            got = clipped(answer, params, bound)
            expect_close(got, wanted, dtype=dtype, name="the norm", hint=ONE)


@check(
    "long gradients are scaled by one factor",
    holds=[
        "It bounds the length of all gradients together",
        "If it is above, all are multiplied by max_norm / norm, with nothing added to the norm, be",
    ],
)
def scaled(answer, rng, device):
    for bound in (1.0, 0.05, 4, 1e-7):
        for dtype in (torch.float32, torch.float64):
            params = params_of_norm(rng, device, bound * (1.2 + 9 * rng.random()), dtype)
            before = clones(params)
            factor = bound / total(before)
            clipped(answer, params, bound)
            for i, (now, old) in enumerate(zip(grads_of(params), before, strict=True)):
                wanted = old.double() * factor
                expect_close(now, wanted, dtype=dtype, name=f"gradient {i} with the bound {bound}",
                             atol=1e-6 * bound, hint=EXACT if bound < 1e-6 else FACTOR)  # fmt: skip


@check(
    "gradients within the bound keep every bit",
    holds=[
        "If the norm is at most max_norm, no bit of a gradient changes.",
        "a number above 0, or inf",
    ],
    both_sides=True,
)
def kept(answer, rng, device):
    for norm, bound in (
        (0.5, 1.0),
        (0.97, 1.0),
        (1e-8, 2.0),
        (0.0, 1.0),
        (80.0, 100.0),
        (7.0, float("inf")),
    ):
        params = params_of_norm(rng, device, norm)
        before = clones(params)
        clipped(answer, params, bound)
        for i, (now, old) in enumerate(zip(grads_of(params), before, strict=True)):
            expect_equal(now, old, name=f"gradient {i}, for norm {norm} and bound {bound},",
                         hint=SHORT)  # fmt: skip


WHOLE = ((9, 40), (11, 60), (33, 44), (48, 55), (13, 84), (20, 99), (60, 91), (15, 112), (88, 105))
"""Two numbers whose length is a whole one: exact in every precision, and in any order. For some of
them, 41 is the first length, n * (1 / n) is not 1 in float32."""


@check(
    "gradients exactly at the bound keep every bit",
    holds="If the norm is at most max_norm",
    both_sides=True,
)
def at_the_bound(answer, rng, device):
    hint = "A norm equal to the bound is within it. Ask `norm > max_norm`, and add nothing to norm."
    cases = [([leaf(torch.tensor([0.3]), device)], torch.tensor(0.3).item())]
    for a, b in ((3, 4), *WHOLE):
        scale = rng.choice((0.25, 1.0, 8.0))
        numbers = torch.tensor([[a], [b]]) * scale
        parts = rng.choice((numbers.T, numbers))
        cases.append(([leaf(part, device) for part in parts], math.hypot(a, b) * scale))
    for params, bound in cases:
        before = clones(params)
        clipped(answer, params, bound)
        for i, (now, old) in enumerate(zip(grads_of(params), before, strict=True)):
            expect_equal(now, old, name=f"gradient {i}, whose norm is the bound,", hint=hint)


@check(
    "float16 and bfloat16 gradients are clipped too",
    holds="float16 and bfloat16 work: [300, 400] has the norm 500, "
    "though in float16 the squares overflow.",
)
def half(answer, rng, device):
    for dtype, rtol in ((torch.float16, 4e-3), (torch.bfloat16, 3e-2)):
        for entries in ([300.0, 400.0], [3.0, 4.0], [-3000.0, 4000.0]):
            params = [leaf(torch.tensor(entries[:1]), device, dtype),
                      leaf(torch.tensor(entries[1:]), device, dtype)]  # fmt: skip
            wanted, before = total(grads_of(params)), clones(params)
            got = clipped(answer, params, 1.0)
            name = f"the norm of {entries} in {str(dtype)[6:]}"
            expect_close(got, wanted, dtype=dtype, rtol=rtol, name=name, hint=HALF)
            for now, old in zip(grads_of(params), before, strict=True):
                expect_close(now, old.double() / wanted, dtype=dtype, rtol=2 * rtol,
                             name="a gradient after the clip to 1", hint=HALF)  # fmt: skip


@check(
    "finite entries whose squares overflow do not become 0 in silence",
    holds=[
        "For [1e30, 1e30] in float32 the squares overflow: raise there too, or clip it rightly.",
        "Nothing becomes 0 in silence.",
    ],
    both_sides=True,
)
def overflow(answer, rng, device):
    params = [leaf(torch.tensor([1e30]), device), leaf(torch.tensor([-1e30, 0.5]), device)]
    before = clones(params)
    hint = "All entries are finite and the norm is not. Ask norm.isfinite(), not the entries."
    try:
        answer.clip_(params, 1.0)
    except RuntimeError:
        for i, (now, old) in enumerate(zip(grads_of(params), before, strict=True)):
            expect_equal(now, old, name=f"gradient {i} after the error", hint=hint)
        return
    left = total(grads_of(params)).item()
    message = f"the norm of [1e30], [-1e30, 0.5] after the clip to 1 is {left:.4g}, and no error"
    expect_true(abs(left - 1) < 1e-3, message, hint=hint)


@check(
    "a generator will do, and some or all parameters without a gradient",
    holds=[
        "params may be a list or a generator",
        "without any gradient it is 0.0",
        "None stays None",
    ],
    both_sides=True,
)
def any_iterable(answer, rng, device):
    params = params_of_norm(rng, device, 6.0)
    without = [p for p in params if p.grad is None]
    got = clipped(answer, (p for p in params), 3.0)
    hint = "A generator is empty after one walk. Keep the gradients in a list first."
    expect_close(got.double(), torch.tensor(6.0, device=device).double(), name="the norm", hint=ONE)
    left = total(grads_of(params)).item()
    expect_true(
        abs(left - 3) < 1e-3,
        f"the norm after the clip to 3 of a generator's parameters is {left:.4g}",
        hint=hint,
    )
    expect_true(
        all(p.grad is None for p in without),
        "a parameter without a gradient has one now",
        hint="None means that the loss did not reach it. The optimizer skips it.",
    )
    for none in ([], [leaf(None, device)], (leaf(None, device) for _ in range(2))):
        value = clipped(answer, none, 1.0).item()
        expect_true(value == 0, f"without any gradient the norm is {value}", hint="It is 0.")


@check(
    "it works in the gradients' own tensors",
    holds=[
        "together, in place.",
        ".grad stays the tensor object that it is",
        "The parameters keep their values.",
    ],
)
def in_place(answer, rng, device):
    params = params_of_norm(rng, device, 9.0)
    held, values = grads_of(params), [p.detach().clone() for p in params]
    clipped(answer, iter(params), 1.0)
    for old, now in zip(held, grads_of(params), strict=True):
        expect_true(old is now, "a .grad is another tensor than before", hint=INPLACE)
    left = total(held).item()
    expect_true(abs(left - 1) < 1e-3, f"the norm after the clip to 1 is {left:.4g}", hint=INPLACE)
    for p, old in zip(params, values, strict=True):
        expect_equal(p.detach(), old, name="a parameter", hint="Clip gradients, not parameters.")


@check(
    "a norm that is not finite is an error, and nothing has changed",
    holds="If a gradient has inf or NaN: RuntimeError, and no gradient has changed.",
    both_sides=True,
)
def refused(answer, rng, device):
    for bad in (float("nan"), float("inf"), -float("inf")):
        for norm in (0.5, 20.0):
            params = params_of_norm(rng, device, norm)
            target = rng.choice([g for g in grads_of(params) if g.ndim and g.numel()])
            target[(-1,) * target.ndim] = bad
            before = clones(params)
            message = f"one gradient has a {bad}, and there was no RuntimeError"
            hint = "A NaN is neither above the bound nor below. Ask isfinite() first."
            with expect_raises(RuntimeError, message, hint=hint):
                answer.clip_(params, 1.0)
            for i, (now, old) in enumerate(zip(grads_of(params), before, strict=True)):
                hint = "Raise before the first gradient is touched, so that the caller can look."
                expect_equal(now, old, name=f"gradient {i} after the error", hint=hint)


@check("a training run with a bad batch goes as with torch's own clip")
def run(answer, rng, device):
    model = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 1)).to(device)
    other = copy.deepcopy(model)
    batches = [torch.randn(6, 4, device=device) for _ in range(5)]
    batches[2] = batches[2] * 1000
    torchs = nn.utils.clip_grad_norm_
    for net, clip in ((model, answer.clip_), (other, torchs)):
        opt = torch.optim.SGD(net.parameters(), lr=0.2, momentum=0.5)
        for batch in batches:
            opt.zero_grad()
            (net(batch[:, :3]) - batch[:, 3:]).square().mean().backward()
            clip(net.parameters(), 0.7)
            opt.step()
    for (name, p), q in zip(model.named_parameters(), other.parameters(), strict=True):
        expect_close(p.detach(), q.detach(), name=f"{name} after 5 steps", rtol=1e-3, atol=1e-4,
                     hint=BOTH)  # fmt: skip


@hinted(1, reaches=half)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


@mutant("clips each gradient by its own norm", caught_by=scaled)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    lengths = [torch.linalg.vector_norm(g) for g in grads]
    norm = torch.linalg.vector_norm(torch.stack(lengths))
    if not norm.isfinite():
        raise RuntimeError("not finite")
    for g, length in zip(grads, lengths, strict=True):
        if length > max_norm:
            g.mul_(max_norm / length)
    return norm


@mutant("clamps each value", caught_by=scaled)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    if not norm.isfinite():
        raise RuntimeError("not finite")
    for g in grads:
        g.clamp_(-max_norm, max_norm)
    return norm


@mutant("always scales to the bound", caught_by=kept)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    if not norm.isfinite():
        raise RuntimeError("not finite")
    for g in grads:
        g.mul_(max_norm / (norm + 1e-6))
    return norm


@mutant("returns the norm after the clip", caught_by=returned)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    if not norm.isfinite():
        raise RuntimeError("not finite")
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm.clamp(max=max_norm)


@mutant("adds up the lengths", caught_by=returned)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = sum(torch.linalg.vector_norm(g) for g in grads)
    if not norm.isfinite():
        raise RuntimeError("not finite")
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


@mutant("walks the iterable twice", caught_by=any_iterable)
def clip_(params, max_norm):
    lengths = [torch.linalg.vector_norm(p.grad) for p in params if p.grad is not None]
    if not lengths:
        return torch.tensor(0.0)
    norm = torch.linalg.vector_norm(torch.stack(lengths))
    if not norm.isfinite():
        raise RuntimeError("not finite")
    if norm > max_norm:
        for p in params:
            if p.grad is not None:
                p.grad.mul_(max_norm / norm)
    return norm


@mutant("binds new gradients", caught_by=in_place)
def clip_(params, max_norm):
    params = [p for p in params if p.grad is not None]
    if not params:
        return torch.tensor(0.0)
    norm = torch.cat([p.grad.flatten() for p in params]).square().sum().sqrt()
    if not norm.isfinite():
        raise RuntimeError("not finite")
    if norm > max_norm:
        for p in params:
            p.grad = p.grad * (max_norm / norm)
    return norm


@mutant("lets NaN and inf through", caught_by=refused)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    for g in grads:
        g.mul_((max_norm / (norm + 1e-6)).clamp(max=1))
    return norm


@mutant("looks for NaN alone", caught_by=refused)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    if norm.isnan():
        raise RuntimeError("not finite")
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


@mutant("scales before it complains", caught_by=refused)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.tensor(0.0)
    norm = torch.cat([g.flatten() for g in grads]).square().sum().sqrt()
    for g in grads:
        g.mul_((max_norm / (norm + 1e-6)).clamp(max=1))
    if not norm.isfinite():
        raise RuntimeError("not finite")
    return norm


@mutant("leaves it to torch", caught_by=own)
def clip_(params, max_norm):
    params = list(params)
    return nn.utils.clip_grad_norm_(params, max_norm, error_if_nonfinite=True)


@mutant("leaves it to torch's newer functions", caught_by=own)
def clip_(params, max_norm):
    params = [p for p in params if p.grad is not None]
    norm = nn.utils.get_total_norm([p.grad for p in params])
    if not torch.isfinite(torch.as_tensor(norm)):
        raise RuntimeError("not finite")
    if norm > max_norm:
        nn.utils.clip_grads_with_norm_(params, max_norm, norm)
    return torch.as_tensor(norm)


@mutant("adds 1e-6 to the norm, as torch does", caught_by=at_the_bound)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if norm.isnan() or norm.isinf():
        raise RuntimeError("gradients are not finite")
    scale = (max_norm / (norm + 1e-6)).clamp(max=1.0)
    for g in grads:
        g *= scale
    return norm


@accepted("compares and multiplies in float64")
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    exact = torch.stack([g.double().square().sum() for g in grads]).sum().sqrt()
    norm = exact.to(grads[0].dtype)
    if not norm.isfinite():
        raise RuntimeError("gradients are not finite")
    if exact > max_norm:
        for g in grads:
            g.copy_(g.double() * (max_norm / exact))
    return norm


@mutant("adds 1e-6 to the norm of long gradients", caught_by=scaled)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if not norm.isfinite():
        raise RuntimeError("gradients are not finite")
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / (norm + 1e-6))
    return norm


@mutant("divides and multiplies at the bound too", caught_by=at_the_bound)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if not norm.isfinite():
        raise RuntimeError("gradients are not finite")
    if norm >= max_norm:
        for g in grads:
            g.div_(norm).mul_(max_norm)
    return norm


@mutant("takes the root of a sum of squares in the gradients' dtype", caught_by=half)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    norm = torch.cat([g.reshape(-1) for g in grads]).pow(2).sum().sqrt()
    if not norm.isfinite():
        raise RuntimeError("gradients are not finite")
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


@mutant("asks the entries, not the norm", caught_by=overflow)
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    if not all(g.isfinite().all() for g in grads):
        raise RuntimeError("gradients are not finite")
    norm = torch.linalg.vector_norm(torch.stack([torch.linalg.vector_norm(g) for g in grads]))
    if norm > max_norm:
        for g in grads:
            g.mul_(max_norm / norm)
    return norm


@accepted("the lengths all at once, and a factor that is 1 within the bound")
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None]
    if not grads:
        return torch.zeros(())
    norm = torch.linalg.vector_norm(torch.stack(torch._foreach_norm(grads)))
    if norm.isnan() or norm.isinf():
        raise RuntimeError("gradients are not finite")
    scale = torch.where(norm > max_norm, max_norm / norm, 1.0)
    for g in grads:
        g *= scale
    return norm


@accepted("divides by the largest entry first, so that no square overflows")
def clip_(params, max_norm):
    grads = [p.grad for p in params if p.grad is not None and p.grad.numel()]
    if not grads:
        return torch.zeros(())
    largest = max(g.abs().max().double() for g in grads)
    if not all(g.isfinite().all() for g in grads):
        raise RuntimeError("gradients are not finite")
    if largest == 0:
        return torch.zeros((), dtype=grads[0].dtype, device=grads[0].device)
    exact = sum((g.double() / largest).square().sum() for g in grads).sqrt() * largest
    norm = exact.to(grads[0].dtype)
    if norm > max_norm:
        for g in grads:
            g.copy_(g.double() * (max_norm / exact))
    return norm


@accepted("adds up squares in float64, and copies the scaled values in")
def clip_(params, max_norm):
    params, squares = list(params), torch.zeros((), dtype=torch.float64)
    dtype = torch.float32
    for p in params:
        if p.grad is not None:
            dtype = p.grad.dtype
            squares = squares.to(p.grad.device) + p.grad.double().square().sum()
    norm = squares.sqrt().to(dtype)
    if not torch.isfinite(norm):
        raise RuntimeError("gradients are not finite")
    for p in params:
        if p.grad is not None and norm > max_norm:
            p.grad.copy_(p.grad / norm * max_norm)
    return norm
