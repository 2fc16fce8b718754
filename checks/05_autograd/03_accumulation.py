"""Judges lessons/05_autograd/03_accumulation.md."""

import torch

from tensortutor.checking import (
    accepted,
    advising,
    background,
    check,
    expect_close,
    expect_equal,
    expect_shape,
    expect_true,
    fail,
    hinted,
    mutant,
)

background(
    "Two tasks train one model.",
    "Take the gradient of each loss at a shared weight",
    "So the gradients are needed one by one",
)

APART = (
    "backward() adds to p.grad, in place. Whoever keeps p.grad keeps one tensor that goes on "
    "growing. Which call returns the gradient instead?"
)
UNTOUCHED = (
    "The caller's training loop is in the middle of a step. What lies in .grad belongs to it, in "
    "p and in every other leaf that the losses depend on."
)
ALIVE = (
    "A walk back frees what the graph has saved, unless it is told to keep it. The other losses "
    "and the caller still need it, after the last loss too."
)


def leaf(device, *shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype).to(device).requires_grad_()


def shared(p, q):
    """Three losses over one trunk, which has saved tensors."""
    trunk = (p * q).tanh()
    return [trunk.sum(), (trunk * p).sum(), (trunk * trunk).sum() * 3]


def wanted(make, p, *others):
    """The gradient of each of `make(p, *others)`, each from a graph of its own, in float64."""
    grads = []
    for i in range(len(make(p, *others))):
        fresh = [x.detach().double().requires_grad_() for x in (p, *others)]
        make(*fresh)[i].backward()
        grads.append(fresh[0].grad)
    return grads


TOGETHER = "This is the gradient of all losses together. Each of them is to be walked by itself."
UNUSED = (
    "If p is not in a loss, p does not change it: its gradient is 0 everywhere, in p's shape and "
    "dtype. allow_unused=True gives None instead of an error."
)


def separate(answer, p, losses):
    """The answer's gradients, as many as there are losses."""
    with (
        advising(RuntimeError, saying="second time", hint=ALIVE),
        advising(RuntimeError, saying="not have been used", hint=UNUSED),
    ):
        got = answer.separate_grads(p, losses)
    expect_true(
        isinstance(got, (list, tuple)) and len(got) == len(losses),
        f"for {len(losses)} losses, separate_grads does not return a list of {len(losses)}",
        hint="One gradient per loss, in a list, in the order of the losses.",
    )
    return got


def compare(got, right, p):
    """The hint tells those who sum from those who keep one tensor that goes on growing."""
    several = len(got) > 1 and got[0] is not got[1]
    for number, (grad, good) in enumerate(zip(got, right)):
        name = f"the gradient of loss {number}"
        expect_shape(grad, good.shape, name=name)
        summed = several and torch.isclose(grad.double(), sum(right), rtol=1e-4).all()
        hint = TOGETHER if number == 0 and summed else APART
        expect_close(grad, good, dtype=p.dtype, name=name, hint=hint)


@check(
    "each gradient is that of its own loss",
    holds="a list with the gradient of each loss with respect to the leaf p, in the order",
    both_sides=True,
)
def own(answer, rng, device):
    n = rng.randint(3, 7)
    p = leaf(device, n)

    def make(p):
        return [(p**2).sum(), (p * 3).sum(), (p**3).sum()]

    compare(separate(answer, p, make(p)), wanted(make, p), p)


@check("losses that share a graph work", holds="The losses may share nodes of their graph.")
def share(answer, rng, device):
    m, n = rng.sample(range(2, 7), 2)
    p, q = leaf(device, m, n), leaf(device, n)
    compare(separate(answer, p, shared(p, q)), wanted(shared, p, q), p)


@check(
    "p.grad keeps what was in it",
    holds=["No leaf's .grad changes", "p.grad may be None or a gradient that is still needed"],
    both_sides=True,
)
def keeps(answer, rng, device):
    n = rng.randint(3, 7)
    p, q = leaf(device, n), leaf(device, n)
    right = wanted(shared, p, q)
    p.grad = torch.full_like(p, 7.0)
    held = p.grad
    got = separate(answer, p, shared(p, q))
    seven = torch.full((n,), 7.0, device=device)
    expect_true(p.grad is not None, "p.grad was full of 7, and is None now", hint=UNTOUCHED)
    expect_equal(p.grad, seven, name="p.grad, which was full of 7,", hint=UNTOUCHED)
    expect_equal(held, seven, name="the tensor that was p.grad", hint=UNTOUCHED)
    compare(got, right, p)
    p.grad = None
    separate(answer, p, shared(p, q))
    expect_true(p.grad is None, "p.grad was None, and is not None any more", hint=UNTOUCHED)


@check("no other leaf gets a gradient", holds="No leaf's .grad changes.")
def others(answer, rng, device):
    n = rng.randint(3, 7)
    p, q, r = leaf(device, n), leaf(device, n), leaf(device, n)
    q.grad = torch.full_like(q, 5.0)
    separate(answer, p, [*shared(p, q), (p * r).sum()])
    five = torch.full((n,), 5.0, device=device)
    expect_equal(q.grad, five, name="another leaf's .grad, which was full of 5,", hint=UNTOUCHED)
    message = "a leaf that had no .grad has one now"
    expect_true(r.grad is None, message, hint=UNTOUCHED)


@check(
    "a loss that does not depend on p has a gradient of zeros",
    holds=["A loss that does not depend on p has a gradient of zeros.", "each a tensor of its own"],
    both_sides=True,
)
def unused(answer, rng, device):
    n = rng.randint(2, 6)
    for dtype in (torch.float32, torch.float64):
        p, q = leaf(device, n, 2, dtype=dtype), leaf(device, n, dtype=dtype)
        losses = [(q * q).sum(), (p * p).sum(), q.sum()]
        got = separate(answer, p, losses)
        zeros = torch.zeros(n, 2, dtype=dtype, device=device)
        expect_close(got[1], 2 * p.detach(), name="the gradient of loss 1")
        (alone,) = separate(answer, p, losses[:1])
        for name, grad in (
            ("the gradient of loss 0", got[0]),
            ("the gradient of loss 2", got[2]),
            ("the gradient of a single loss without p", alone),
        ):
            expect_true(grad is not None, f"{name} is None", hint=UNUSED)
            expect_equal(grad, zeros, name=name, hint=UNUSED, shape_hint=UNUSED, dtype_hint=UNUSED)
        got[0].add_(1)
        own = "Both are zeros, and each is to be a tensor of its own: whoever adds to one changes "
        own += "no other."
        name = "after 1 was added to the gradient of loss 0, that of loss 2"
        expect_equal(got[2], zeros, name=name, hint=own)


@check(
    "the caller can still go back from every loss",
    holds="Afterwards the caller can still run backward() from any of the losses.",
)
def alive(answer, rng, device):
    n = rng.randint(3, 7)
    p, q = leaf(device, n), leaf(device, n)
    right = wanted(shared, p, q)
    for number, one_of in enumerate(right):
        losses = shared(p, q)
        separate(answer, p, losses)
        p.grad = None
        try:
            losses[number].backward()
        except RuntimeError:
            fail(f"the caller's own backward() from loss {number} finds a freed graph", hint=ALIVE)
        expect_close(p.grad, one_of.float(), name="p.grad after the caller's backward()")


@check(
    "the gradients stay what they are",
    holds="A returned gradient keeps its values when the caller does so, and it records nothing.",
)
def stay(answer, rng, device):
    n = rng.randint(3, 7)
    p, q = leaf(device, n), leaf(device, n)
    losses = shared(p, q)
    got = separate(answer, p, losses)
    before = [grad.detach().clone() for grad in got]
    for _ in range(2):
        sum(losses).backward(retain_graph=True)
    for number, (grad, old) in enumerate(zip(got, before)):
        name = f"after a later backward(), the gradient of loss {number}"
        expect_equal(grad, old, name=name, hint=APART)
    expect_true(
        not any(grad.requires_grad for grad in got),
        "a returned gradient requires grad itself",
        hint="It is a number to look at. Nobody asked for a graph of the gradient.",
    )


@check(
    "any shape, any dtype and any number of losses will do",
    holds=["leaf of any shape, float32 or float64", "perhaps empty"],
    both_sides=True,
)
def shapes(answer, rng, device):
    n = rng.randint(3, 7)
    expect_equal(len(separate(answer, leaf(device, n), [])), 0, name="the number of results")
    turned = torch.randn(n, 2).to(device).T.requires_grad_()
    for p in (leaf(device), leaf(device, 1), leaf(device, 0), leaf(device, 2, n), turned):
        q = leaf(device, *p.shape)
        compare(separate(answer, p, shared(p, q)), wanted(shared, p, q), p)
    p, q = leaf(device, n, dtype=torch.float64), leaf(device, n, dtype=torch.float64)
    compare(separate(answer, p, shared(p, q)[:1]), wanted(shared, p, q)[:1], p)


@mutant("appends p.grad after each backward", caught_by=own)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        loss.backward(retain_graph=True)
        grads.append(p.grad)
    return grads


@mutant("copies p.grad, and never clears it", caught_by=own)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        loss.backward(retain_graph=True)
        grads.append(p.grad.clone())
    return grads


@mutant("gives every loss the gradient of their sum", caught_by=own)
def separate_grads(p, losses):
    return [torch.autograd.grad(sum(losses), p, retain_graph=True)[0] for _ in losses]


@mutant("lets each walk free the graph", caught_by=share)
def separate_grads(p, losses):
    return [torch.autograd.grad(loss, p)[0] for loss in losses]


@mutant("clears p.grad", caught_by=keeps)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        p.grad = None
        loss.backward(retain_graph=True)
        grads.append(p.grad)
    p.grad = None
    return grads


@mutant("puts the old gradient back after it was added to", caught_by=keeps)
def separate_grads(p, losses):
    old, grads = p.grad, []
    for loss in losses:
        before = torch.zeros_like(p) if p.grad is None else p.grad.clone()
        loss.backward(retain_graph=True)
        grads.append(p.grad - before)
    p.grad = old
    return grads


@mutant("goes back as usual, and restores p.grad only", caught_by=others)
def separate_grads(p, losses):
    old, grads = p.grad, []
    for loss in losses:
        p.grad = None
        loss.backward(retain_graph=True)
        grads.append(torch.zeros_like(p) if p.grad is None else p.grad)
    p.grad = old
    return grads


@mutant("expects p in every loss", caught_by=unused)
def separate_grads(p, losses):
    return [torch.autograd.grad(loss, p, retain_graph=True)[0] for loss in losses]


@mutant("returns None where p is not used", caught_by=unused)
def separate_grads(p, losses):
    return [
        torch.autograd.grad(loss, p, retain_graph=True, allow_unused=True)[0] for loss in losses
    ]


@mutant("hands out the same zeros twice", caught_by=unused)
def separate_grads(p, losses):
    zeros = torch.zeros_like(p).detach()
    grads = []
    for loss in losses:
        (grad,) = torch.autograd.grad(loss, p, retain_graph=True, allow_unused=True)
        grads.append(zeros if grad is None else grad)
    return grads


@mutant("makes zeros of the default dtype", caught_by=unused)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        (grad,) = torch.autograd.grad(loss, p, retain_graph=True, allow_unused=True)
        grads.append(torch.zeros(p.shape, device=p.device) if grad is None else grad)
    return grads


@mutant("frees the graph with the last loss", caught_by=alive)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        (grad,) = torch.autograd.grad(
            loss, p, retain_graph=loss is not losses[-1], allow_unused=True
        )
        grads.append(torch.zeros_like(p) if grad is None else grad)
    return grads


@mutant("records the walk back", caught_by=stay)
def separate_grads(p, losses):
    grads = []
    for loss in losses:
        (grad,) = torch.autograd.grad(loss, p, create_graph=True, allow_unused=True)
        grads.append(torch.zeros_like(p) if grad is None else grad)
    return grads


@hinted(1, reaches=own)
def separate_grads(p, losses):
    return [torch.autograd.grad(loss, p)[0] for loss in losses]


@hinted(2, reaches=others)
def separate_grads(p, losses):
    return [torch.autograd.grad(loss, p, retain_graph=True)[0] for loss in losses]


@accepted("asks for zeros instead of None")
def separate_grads(p, losses):
    return [
        # Up to 2.6 at least, these zeros require grad.
        torch.autograd.grad(loss, [p], retain_graph=True, materialize_grads=True)[0].detach()
        for loss in losses
    ]


@accepted("sends all losses back as one batch")
def separate_grads(p, losses):
    if not losses:
        return []
    together = torch.stack([loss + 0 * p.sum() for loss in losses])
    eye = torch.eye(len(losses), dtype=together.dtype, device=together.device)
    (rows,) = torch.autograd.grad(together, p, eye, retain_graph=True, is_grads_batched=True)
    return list(rows)


@accepted("lets backward fill p.grad alone, and puts the old tensor back")
def separate_grads(p, losses):
    old, grads = p.grad, []
    for loss in losses:
        p.grad = None
        loss.backward(retain_graph=True, inputs=[p])
        grads.append(torch.zeros_like(p) if p.grad is None else p.grad)
    p.grad = old
    return grads


@accepted("adds nothing of p to each loss, so that every loss depends on it")
def separate_grads(p, losses):
    nothing = (p * 0).sum()
    return [torch.autograd.grad(loss + nothing, p, retain_graph=True)[0] for loss in losses]
